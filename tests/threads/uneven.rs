//! The warning that Burn's own slices differ in length.

use crate::common::*;
use burn::{
    data::dataloader::{DataLoader, split::split_dataloader},
    tensor::Device,
};
use burn_pinned::PinnedDataLoaderBuilder;
use std::sync::Arc;

/// Lets Burn cut a loader for two devices.
fn cut(builder: PinnedDataLoaderBuilder<usize, Shown>, len: usize) {
    let loader = builder.shuffle(5).build(Numbers::new(len)).unwrap();
    split_dataloader(Arc::clone(&loader) as Arc<dyn DataLoader<_>>, &vec![Device::flex(); 2]);
}

#[test]
fn uneven_slices_are_warned_of() {
    let _alone = alone();
    keep_log(log::LevelFilter::Warn);
    let warned = || logged().iter().filter(|said| said.contains("`.devices(n)`")).count();
    cut(sized(64), 128);
    cut(sized(64).devices(2), 129);
    assert_eq!(warned(), 0);
    cut(sized(64), 129); // one batch and two
    assert_eq!(warned(), 1);
    assert!(logged().iter().any(|said| said.contains("1 and 2 batches")));
}
