//! A loader whose store stalls is dropped.

use crate::{
    formats::{Row, jsonl_files},
    server::{Fault, Server},
    sums::Sums,
};
use burn::tensor::Device;
use burn_pinned::{PinnedDataLoaderBuilder, data::Rows};
use std::{
    thread,
    time::{Duration, Instant},
};

#[test]
fn a_store_that_stalls_does_not_hold_up_a_drop() {
    let indices = tempfile::tempdir().unwrap();
    let (files, late) = (jsonl_files(), Duration::from_secs(5));
    let open =
        |server: &Server| Rows::<Row>::jsonl(server.url("/{0..1}.jsonl")).index_dir(indices.path()).open().unwrap();
    drop(open(&Server::new(files.clone(), |_| Fault::None)));
    let server = Server::new(files, move |request| if request.number > 3 { Fault::Late(late) } else { Fault::None });
    let loader = PinnedDataLoaderBuilder::new(Sums).batch_size(8).num_workers(2).set_device(Device::flex());
    let loader = loader.build(open(&server)).unwrap();
    let epoch = loader.iter();
    thread::sleep(Duration::from_millis(300));
    let since = Instant::now();
    drop(epoch);
    drop(loader);
    assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
}
