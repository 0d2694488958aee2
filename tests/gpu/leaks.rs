//! What loaders leave behind: nothing.

use super::{check, loader};
use crate::common::{eventually, loader_threads};

pub(crate) fn device_mb() -> f64 {
    let context = cudarc::driver::CudaContext::new(0).unwrap();
    let (free, total) = context.mem_get_info().unwrap();
    (total - free) as f64 / 1e6
}

fn files() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

#[test]
#[ignore = "needs a CUDA device"]
fn two_hundred_epochs_of_early_drop_leak_nothing() {
    let loader = loader(150_528, 32, 8, 32 * 30);
    let mut at_twenty = None;
    for epoch in 0..200 {
        for kept in loader.iter().take(epoch % 6) {
            if epoch % 10 == 0 {
                check(kept.unwrap(), 150_528);
            } else {
                drop(kept.unwrap());
            }
        }
        if epoch == 20 {
            at_twenty = Some((device_mb(), loader.stats().host_bytes, threads(), files(), loader.stats().allocations));
        }
    }
    let before = at_twenty.unwrap();
    let after = (device_mb(), loader.stats().host_bytes, threads(), files(), loader.stats().allocations);
    println!("device MB, pinned bytes, threads, files, blocks: {before:?} after 20 epochs, {after:?} after 200");
    assert!(after.0 - before.0 < 40.0, "device memory grew");
    assert_eq!((before.1, before.2, before.3, before.4), (after.1, after.2, after.3, after.4));
    drop(loader);
    eventually("the threads end", || loader_threads().is_empty());
}

#[test]
#[ignore = "needs a CUDA device"]
fn loaders_that_come_and_go_leave_nothing() {
    let mut first = None;
    for round in 0..12 {
        let loader = loader(150_528, 32, 4, 32 * 6);
        let seen: usize = loader.iter().map(|kept| check(kept.unwrap(), 150_528)).sum();
        assert_eq!(seen, 192);
        drop(loader);
        if round == 2 {
            first = Some((threads(), files(), device_mb()));
        }
    }
    let (before, after) = (first.unwrap(), (threads(), files(), device_mb()));
    println!("threads, files, device MB: {before:?} after 3 loaders, {after:?} after 12");
    assert!(after.0 <= before.0 && after.1 <= before.1);
    // The CubeCL stream of a transfer thread stays with the device, and so does its pool. What a loader leaves behind
    // must not grow with its batches.
    assert!(after.2 - before.2 < 9.0 * 3.0 * 20.0, "{} MB", after.2 - before.2);
}
