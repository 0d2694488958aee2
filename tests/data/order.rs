//! Each format keeps what the loader promises: one order for any number of workers and processes, and exact resume.

use crate::formats::{FORMATS, Format, ROWS, Row, bytes, sum};
use crate::sums::Sums;
use burn::{
    data::dataset::{Dataset, transform::ComposedDataset},
    tensor::Device,
};
use burn_pinned::{
    BadSamples, Distributed, Error, LoaderState, PinnedDataLoader, PinnedDataLoaderBuilder,
    data::Rows,
    fault::Quota,
    order::{BlockShuffle, Blocks, MixPart, MixSampler, RandomSampler, Sampler},
};
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use std::{fs, sync::Arc};

type Loader = Arc<PinnedDataLoader<Vec<(i64, i64)>>>;
type Builder = PinnedDataLoaderBuilder<Row, Vec<(i64, i64)>>;

fn builder(batch_size: usize) -> Builder {
    PinnedDataLoaderBuilder::new(Sums).batch_size(batch_size).set_device(Device::flex())
}

/// What a row must be.
fn row(index: usize) -> (i64, i64) {
    (index as i64, sum(&bytes(index)))
}

fn epoch(loader: &Loader) -> Vec<(i64, i64)> {
    loader.iter().flat_map(|batch| batch.unwrap_or_else(|error| panic!("{error}"))).collect()
}

fn orders(blocks: Blocks) -> [Arc<dyn Sampler>; 2] {
    [Arc::new(RandomSampler::new(7)), Arc::new(BlockShuffle::new(blocks, 7).streams(8).window(1))]
}

#[test]
fn rows_are_the_same_for_any_number_of_workers() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let rows = format.open(folder.path()).open().unwrap();
        assert_eq!((rows.len(), rows.blocks().unwrap().samples()), (ROWS, ROWS), "{format:?}");
        for order in orders(rows.blocks().unwrap().into()) {
            let expected: Vec<(i64, i64)> = order.indices(ROWS, 0).map(row).collect();
            for workers in [1, 4, 15] {
                let loader = builder(32).order(Arc::clone(&order)).num_workers(workers).build(rows.clone()).unwrap();
                assert_eq!(epoch(&loader), expected, "{format:?}, {workers} workers, {order:?}");
            }
        }
    }
}

#[test]
fn processes_share_the_same_order() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let rows = format.open(folder.path()).open().unwrap();
        for order in orders(rows.blocks().unwrap().into()) {
            let expected: Vec<(i64, i64)> = order.indices(ROWS, 0).map(row).collect();
            for world in [1, 2, 3, 4, 8] {
                for rank in 0..world {
                    let share = Distributed::new(rank, world).unwrap();
                    let loader = builder(5).order(Arc::clone(&order)).distributed(share).num_workers(3);
                    let got = epoch(&loader.build(rows.clone()).unwrap());
                    let expected: Vec<_> = expected.iter().copied().skip(rank).step_by(world).collect();
                    assert_eq!(got, expected, "{format:?}, rank {rank} of {world}, {order:?}");
                }
            }
        }
    }
}

#[test]
fn another_world_goes_on_with_the_very_next_batch() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let rows = format.open(folder.path()).open().unwrap();
        for order in orders(rows.blocks().unwrap().into()) {
            let expected: Vec<(i64, i64)> = order.indices(ROWS, 0).map(row).collect();
            // Batches of all ranks together have 12 samples, so any place of a stop is one of each world.
            let build = |rank, world: usize, state: Option<LoaderState>| {
                let share = Distributed::new(rank, world).unwrap();
                let loader = builder(12 / world).order(Arc::clone(&order)).distributed(share).num_workers(2);
                let loader = if let Some(state) = state { loader.resume(state) } else { loader };
                loader.build(rows.clone())
            };
            let stop = rng.random_range(1..ROWS / 12);
            let first = build(0, 2, None).unwrap();
            let taken: Vec<_> = first.iter().take(stop).flat_map(|batch| batch.unwrap()).collect();
            assert!(taken.iter().eq(expected.iter().step_by(2).take(6 * stop)));
            let state = first.state();
            // The global batch is another one where each rank keeps its batch size.
            for world in [1, 2, 4] {
                for rank in 0..world {
                    let share = Distributed::new(rank, world).unwrap();
                    let loader = builder(6).order(Arc::clone(&order)).distributed(share).resume(state.clone());
                    let loader = loader.num_workers(3).build(rows.clone()).unwrap();
                    let left = &expected[12 * stop..];
                    let got = epoch(&loader);
                    let whole: Vec<_> = left.iter().copied().skip(rank).step_by(world).collect();
                    // Ranks have as many samples each: the first ones come again at the end.
                    assert_eq!(got[..whole.len()], whole, "{format:?}, rank {rank} of {world} after {stop}");
                    assert!(got.len() - whole.len() <= 1);
                }
            }
        }
    }
}

#[test]
fn two_formats_are_mixed() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tar = Format::Tar.open(one.path()).open().unwrap();
    let pages = Format::Pages.open(two.path()).open().unwrap();
    let parts = [MixPart::new(ROWS, 1.0, RandomSampler::new(1)), MixPart::new(ROWS, 3.0, RandomSampler::new(2))];
    let mix = MixSampler::new(parts, 5).unwrap().with_size(300);
    let expected: Vec<(i64, i64)> = mix.indices(2 * ROWS, 0).map(|index| row(index % ROWS)).collect();
    let both = ComposedDataset::new(vec![tar, pages]);
    let loader = builder(7).order(mix).num_workers(4).build(both).unwrap();
    assert_eq!(epoch(&loader), expected);
}

#[test]
fn a_bad_row_is_named_and_skipped_alike_on_every_rank() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    let line = |index: usize| match index {
        13 => String::from("{\"label\": \"thirteen\", \"bytes\": []}\n"),
        29 => String::from("{\"label\": 29\n"),
        _ => format!("{}\n", serde_json::json!({"bytes": bytes(index), "label": index})),
    };
    fs::write(&path, (0..60).map(line).collect::<String>()).unwrap();
    let rows = Rows::<Row>::jsonl(&path).open().unwrap();
    let loader = builder(10).num_workers(3).build(rows.clone()).unwrap();
    let errors: Vec<String> =
        loader.iter().filter_map(|batch| batch.err()).map(|error| Error::of(&error).unwrap().to_string()).collect();
    assert_eq!(errors.len(), 2, "{errors:?}");
    for part in ["row 13 of", "rows.jsonl", "column `label`", "\"thirteen\""] {
        assert!(errors[0].contains(part), "{errors:?}");
    }
    assert!(errors[1].contains("row 29 of"), "{errors:?}");
    let mut all = Vec::new();
    for rank in 0..2 {
        let loader =
            builder(5).distributed(Distributed::new(rank, 2).unwrap()).bad_samples(BadSamples::Skip(Quota::Count(2)));
        all.extend(epoch(&loader.build(rows.clone()).unwrap()));
    }
    all.sort_unstable();
    assert_eq!(all, (0..60).filter(|index| ![13, 29].contains(index)).map(row).collect::<Vec<_>>());
}

#[test]
fn devices_have_equal_shares() {
    let folder = tempfile::tempdir().unwrap();
    let rows = Format::Chunks.open(folder.path()).open().unwrap();
    let expected: Vec<_> = RandomSampler::new(3).indices(ROWS, 0).map(row).collect();
    let loader = builder(8).shuffle(3).devices(2).build(rows).unwrap();
    let half = loader.num_items() / 2;
    let slices = [loader.slice(0, half), loader.slice(half, 2 * half)];
    let epochs: Vec<_> = slices.iter().map(|slice| slice.iter()).collect();
    for (device, epoch) in epochs.into_iter().enumerate() {
        let got: Vec<_> = epoch.flat_map(|batch| batch.unwrap()).collect();
        assert_eq!(got, expected.iter().copied().skip(device).step_by(2).collect::<Vec<_>>());
    }
}

#[test]
fn a_full_shuffle_over_pages_that_do_not_fit_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let rows = Format::Chunks.open(folder.path()).memory(2500).open().unwrap();
    let scattered = |loader: Builder| loader.build(rows.clone()).unwrap().stats().scattered;
    assert!(scattered(builder(8).shuffle(1)));
    assert!(!scattered(builder(8)));
    let error =
        builder(8).order(BlockShuffle::new(rows.blocks().unwrap(), 1)).build(rows.clone()).unwrap_err().to_string();
    assert!(error.contains("blocks are in use at once"), "{error}");
    let roomy = Format::Chunks.open(folder.path()).open().unwrap();
    assert!(!builder(8).shuffle(1).build(roomy).unwrap().stats().scattered);
}
