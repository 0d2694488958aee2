//! The warnings that Burn's slices differ in length, or are for another number of devices.

use crate::common::*;
use burn::{
    data::dataloader::{DataLoader, split::split_dataloader},
    tensor::Device,
};
use burn_pinned::PinnedDataLoaderBuilder;
use std::sync::Arc;

/// Lets Burn cut a loader for some devices.
fn cut(builder: PinnedDataLoaderBuilder<usize, Shown>, len: usize, devices: usize) {
    let loader = builder.shuffle(5).build(Numbers::new(len)).unwrap();
    split_dataloader(Arc::clone(&loader) as Arc<dyn DataLoader<_>>, &vec![Device::flex(); devices]);
}

#[test]
fn uneven_slices_are_warned_of() {
    let _alone = alone();
    keep_log(log::LevelFilter::Warn);
    let warned = || logged().iter().filter(|said| said.contains("`.devices(n)`")).count();
    cut(sized(64), 128, 2);
    cut(sized(64).devices(2), 129, 2);
    assert_eq!(warned(), 0);
    cut(sized(64), 129, 2); // one batch and two
    assert_eq!(warned(), 1);
    assert!(logged().iter().any(|said| said.contains("1 and 2 batches")));

    let other = |said: &String| said.contains("`.devices(4)`") || said.contains("`.devices(2)`");
    cut(sized(8).devices(3), 100, 3);
    cut(sized(8).devices(2), 71, 2);
    assert!(!logged().iter().any(other));
    cut(sized(8).devices(2), 70, 4); // 2, 2, 2 and 3 batches
    cut(sized(8).devices(4), 40, 2); // 3 and 2 batches
    let said: Vec<_> = logged().into_iter().filter(other).collect();
    assert!(said.iter().any(|said| said.contains("`.devices(2)` is cut for 4 devices")), "{said:?}");
    assert!(said.iter().any(|said| said.contains("`.devices(4)` is cut for 2 devices")), "{said:?}");

    // A part for validation that is exactly the share of a device has samples of the part for training.
    let overlaps = || logged().iter().filter(|said| said.contains("have samples in common")).count();
    assert_eq!(overlaps(), 0, "no cut of Burn for as many devices");
    for (first, second) in [((0, 75), (75, 100)), ((75, 100), (0, 75)), ((0, 80), (80, 100))] {
        let loader = sized(8).shuffle(5).devices(4).build(Numbers::new(100)).unwrap();
        let _slices = [first, second].map(|(start, end)| loader.slice(start, end));
    }
    assert_eq!(overlaps(), 2);
}
