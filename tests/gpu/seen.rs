//! What statistics and verdict say of a GPU, and what several iterators make of its link.

use super::{Kept, OnDevice, check, loader};
use crate::common::{Numbers, eventually};
use burn::tensor::{Device, Tensor};
use burn_pinned::{PinnedDataLoaderBuilder, observe::Cause};
use std::{thread::sleep, time::Duration};

/// A loop that launches long steps and reads none of their results is held back by the GPU, in `next()`.
#[test]
#[ignore = "needs a CUDA device"]
fn a_loop_that_runs_ahead_is_compute_bound() {
    let device = Device::cuda(0);
    let loader = loader(10_000, 64, 4, 64 * 80);
    let matrix = Tensor::<2>::ones([4096, 4096], &device) * 1e-4;
    let mut total = Tensor::<1>::zeros([1], &device);
    for kept in loader.iter() {
        let (_, bytes) = kept.unwrap();
        let slow = (0..8).fold(matrix.clone(), |product, _| product.matmul(matrix.clone())).mean() * 0.0;
        total = total + bytes.float().mean() + slow;
        device.flush().unwrap();
    }
    println!("sum {}", total.into_scalar::<f32>());
    let stats = loader.stats();
    println!("{stats}\n{}", stats.verdict());
    // In the first step Burn compiles and tries out kernels for seconds, while transfers wait too: that is left out.
    let is_full = |cause| matches!(cause, Cause::Device { kept: false, full, .. } if full > 0.5);
    assert!(is_full(stats.verdict().cause), "{}", stats.verdict());
    let batch = 64 * (10_000 + 8);
    assert!((3 * batch..=8 * batch).contains(&stats.device_bytes_peak), "{}", stats.device_bytes_peak);
}

#[test]
#[ignore = "needs a CUDA device"]
fn device_memory_is_what_is_kept() {
    let loader = loader(100_000, 64, 4, 64 * 40);
    let mut kept: Vec<Kept> = loader.iter().take(30).map(Result::unwrap).collect();
    let batch = 64 * (100_000 + 8);
    // The epoch ended early: batches that were ready behind these, or are still being copied, are dropped with it.
    for count in [30, 7, 0] {
        kept.truncate(count);
        Device::cuda(0).sync().unwrap();
        eventually("the memory of dropped batches is free", || loader.stats().device_bytes == count * batch);
    }
    assert!(loader.stats().device_bytes_peak >= 30 * batch);
}

/// Two iterators of one loader, one much slower, on one stream: every batch of both arrives.
#[test]
#[ignore = "needs a CUDA device"]
fn iterators_side_by_side_get_all_their_batches() {
    let builder = PinnedDataLoaderBuilder::new(OnDevice { width: 150_528 }).batch_size(64).num_workers(8);
    let builder = builder.transfer_threads(1).timeout(Duration::from_secs(20)).set_device(Device::cuda(0));
    let loader = builder.build(Numbers::new(64 * 60)).unwrap();
    for _ in 0..3 {
        std::thread::scope(|scope| {
            for pause in [0, 9] {
                let loader = &loader;
                scope.spawn(move || {
                    let mut seen = 0;
                    for kept in loader.iter() {
                        sleep(Duration::from_millis(pause));
                        seen += check(kept.unwrap(), 150_528);
                    }
                    assert_eq!(seen, 64 * 60);
                });
            }
        });
    }
}
