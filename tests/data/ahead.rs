//! Rows of a server through a loader: they are fetched ahead.

use crate::{
    formats::{FORMATS, Format, ROWS, Row, files, remote},
    server::{Fault, Server},
    sums::Sums,
};
use burn::{
    data::dataset::{Dataset, transform::ComposedDataset},
    tensor::Device,
};
use burn_pinned::{
    DatasetExt, Distributed, LoaderState, PinnedDataLoaderBuilder,
    data::Rows,
    order::{BlockShuffle, RandomSampler, Sampler},
};
use std::{sync::Arc, time::Duration};

/// Through a loader the rows of an epoch are fetched ahead. Order, resume and shares are those of local files.
#[test]
fn rows_that_are_fetched_ahead_are_those_of_local_files() {
    for format in FORMATS {
        let (written, indices) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let server = Server::new(files(format, written.path()), |request| match request.number % 10 {
            3 => Fault::Cut(100),
            7 => Fault::Reset,
            _ => Fault::Late(Duration::from_millis(1)),
        });
        let local = format.open(written.path()).open().unwrap();
        let far = remote(format, &server, indices.path()).read_ahead(64 << 10).requests(8).open().unwrap();
        let orders: [Arc<dyn Sampler>; 2] = [
            Arc::new(RandomSampler::new(5)),
            Arc::new(BlockShuffle::new(local.blocks().unwrap(), 5).streams(4).window(1)),
        ];
        for order in orders {
            let builder = || {
                let builder = PinnedDataLoaderBuilder::new(Sums).batch_size(8).set_device(Device::flex());
                builder.order(Arc::clone(&order)).num_workers(3)
            };
            let all = |rows: &Rows<Row>, world, state: Option<LoaderState>| -> Vec<Vec<(i64, i64)>> {
                let builder = builder().distributed(Distributed::new(1 % world, world).unwrap());
                let builder = if let Some(state) = state { builder.resume(state) } else { builder };
                builder.build(rows.clone()).unwrap().iter().map(|batch| batch.unwrap()).collect()
            };
            for world in [1, 2, 4] {
                assert_eq!(all(&far, world, None), all(&local, world, None), "{format:?}, {order:?}, world {world}");
            }
            // An epoch that is left in the middle, and goes on elsewhere.
            let loader = builder().build(far.clone()).unwrap();
            loader.iter().take(4).for_each(|batch| drop(batch.unwrap()));
            let state = loader.state();
            assert_eq!(
                all(&far, 1, Some(state.clone())),
                all(&local, 1, Some(state)),
                "{format:?}, {order:?}, resumed"
            );
        }
        let fetched = far.fetched().unwrap();
        assert!(
            fetched.requests > 0 && fetched.retries > 0 && fetched.first_byte > Duration::ZERO,
            "{format:?}: {fetched:?}"
        );
        assert!(local.fetched().is_none());
    }
}

/// Rows inside another dataset are announced by the option, with the place of their first row.
#[test]
fn rows_in_a_composed_dataset_are_fetched_ahead() {
    let (written, indices) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::new(files(Format::Tar, written.path()), |_| Fault::None);
    let local = Format::Tar.open(written.path()).open().unwrap();
    let far = remote(Format::Tar, &server, indices.path()).open().unwrap();
    let before = far.fetched().unwrap().requests;
    let both = ComposedDataset::new(vec![local, far.clone()]);
    let loader = PinnedDataLoaderBuilder::new(Sums).batch_size(8).num_workers(2).set_device(Device::flex());
    let loader = loader.reads_ahead_at(ROWS, &far).build(both).unwrap();
    let got: Vec<(i64, i64)> = loader.iter().flat_map(|batch| batch.unwrap()).collect();
    let told = (0..2 * ROWS).map(|at| (at % ROWS) as i64);
    assert!(got.iter().map(|(row, _)| *row).eq(told));
    // Neighbours come together, so there are fewer requests than rows.
    let requests = far.fetched().unwrap().requests - before;
    assert!(requests < ROWS as u64, "{requests} requests for {ROWS} rows");
}

/// A split is announced by the loader as all rows are, and has the order that its length says.
#[test]
fn a_split_of_far_rows_is_fetched_ahead_and_shuffled_by_blocks() {
    for format in [Format::Tar, Format::Pages] {
        let (written, indices) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let server = Server::new(files(format, written.path()), |_| Fault::None);
        let local = format.open(written.path()).open().unwrap().split(0.2, 3).unwrap();
        let far = remote(format, &server, indices.path()).open().unwrap().split(0.2, 3).unwrap();
        for (local, far) in [(local.0, far.0), (local.1, far.1)] {
            let before = far.fetched().unwrap().requests;
            let all = |rows: &Rows<Row>| -> Vec<(i64, i64)> {
                let builder =
                    PinnedDataLoaderBuilder::new(Sums).batch_size(8).num_workers(2).set_device(Device::flex());
                let order = BlockShuffle::new(rows.blocks().unwrap(), 5).streams(2).window(1);
                builder.order(order).build(rows.clone()).unwrap().iter().flat_map(|batch| batch.unwrap()).collect()
            };
            assert_eq!(all(&far), all(&local), "{format:?}");
            let requests = far.fetched().unwrap().requests - before;
            assert!(requests < far.blocks().unwrap().samples() as u64, "{format:?}: {requests} requests");
        }
    }
}

/// The loader finds the rows behind stages that keep their order, and behind a part.
#[test]
fn rows_behind_stages_are_fetched_ahead() {
    fn read(dataset: impl Dataset<Row> + 'static) -> Vec<(i64, i64)> {
        let builder = PinnedDataLoaderBuilder::new(Sums).batch_size(8).num_workers(2).set_device(Device::flex());
        builder.build(dataset).unwrap().iter().flat_map(|batch| batch.unwrap()).collect()
    }
    type Stages = fn(Rows<Row>) -> Vec<(i64, i64)>;
    let stages: [Stages; 4] = [
        |rows| read(DatasetExt::filter(rows, |row: &Row| row.label % 3 > 0)),
        |rows| read(DatasetExt::map(rows, Ok)),
        |rows| read(DatasetExt::select(&rows, 0..ROWS - 1).unwrap()),
        |rows| read(Arc::new(DatasetExt::map(Arc::new(rows), Ok).filter(|row: &Row| row.label % 3 > 0)).map(Ok)),
    ];
    let (written, indices) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::new(files(Format::Tar, written.path()), |_| Fault::None);
    let local = Format::Tar.open(written.path()).open().unwrap();
    for stage in stages {
        let far = remote(Format::Tar, &server, indices.path()).open().unwrap();
        let before = far.fetched().unwrap().requests;
        assert_eq!(stage(far.clone()), stage(local.clone()));
        let requests = far.fetched().unwrap().requests - before;
        assert!(requests < ROWS as u64, "{requests} requests for {ROWS} rows");
    }
}
