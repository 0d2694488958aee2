//! What only a GPU can show. `.ci/gpu` runs it; those of several devices have that in their name:
//!
//!     cargo test --release --features cuda --test gpu -- --ignored --test-threads 1 --skip several_devices
#![cfg(feature = "cuda")]

mod beside;
mod blocks;
#[path = "../common/mod.rs"]
mod common;
mod copies;
mod data_parallel;
mod decode;
#[path = "../common/exif.rs"]
mod exif;
mod kept;
mod kinds;
mod late;
mod leaks;
#[cfg(feature = "audio")]
mod mel;
mod overlap;
mod pinned;
mod reuse;
#[path = "../common/scenes.rs"]
mod scenes;
mod seen;
mod several_devices;
mod streams;
mod waits;

use burn::tensor::{DType, Device, Int, Tensor};
use burn_pinned::{
    BoxError, Collate, Error, Field, PinnedDataLoader, PinnedDataLoaderBuilder, RawBatch, RowMut, memory::MemoryKind,
};
use common::{Mischief, Numbers, byte, outcomes};
use leaks::device_mb;
use std::{sync::Arc, time::Duration};

/// A batch whose tensors stay on the device.
struct OnDevice {
    width: usize,
}

type Kept = (Tensor<1, Int>, Tensor<2, Int>);

impl Collate<usize> for OnDevice {
    type Batch = Kept;
    fn layout(&self) -> Vec<Field> {
        vec![Field::new("number", DType::I64, []), Field::new("bytes", DType::U8, [self.width])]
    }
    fn write(&self, &number: &usize, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        row.put("number", number as i64)?;
        // A different value in every byte. It comes from a table, because rows of 150 kB must be fast to make.
        let start = number % 251;
        let table: Vec<u8> = (0..self.width).map(|at| byte(start, at)).collect();
        Ok(row.write("bytes", &table)?)
    }
    fn finish(&self, mut batch: RawBatch) -> Result<Kept, BoxError> {
        Ok((batch.take("number")?, batch.take("bytes")?))
    }
}

fn loader(width: usize, batch: usize, workers: usize, len: usize) -> Arc<PinnedDataLoader<Kept>> {
    PinnedDataLoaderBuilder::new(OnDevice { width })
        .batch_size(batch)
        .num_workers(workers)
        .shuffle(11)
        .require_pinned(true)
        .set_device(Device::cuda(0))
        .build(Numbers::new(len))
        .unwrap()
}

/// Compares every byte of a batch with what the host wrote.
fn check((numbers, bytes): Kept, width: usize) -> usize {
    let numbers = numbers.into_data().try_to_vec::<i64>().unwrap();
    let bytes = bytes.into_data().try_to_vec::<u8>().unwrap();
    assert_eq!(bytes.len(), numbers.len() * width);
    for (number, row) in numbers.iter().zip(bytes.chunks(width)) {
        let start = *number as usize % 251;
        let wrong = row.iter().enumerate().find(|(at, value)| **value != byte(start, *at));
        assert!(wrong.is_none(), "number {number}: {wrong:?}");
    }
    numbers.len()
}

#[test]
#[ignore = "needs a CUDA device"]
fn every_byte_arrives_for_any_size_and_workers() {
    for (width, batch, len) in [(1, 1, 300), (3, 7, 1000), (784, 1024, 20_000), (150_528, 64, 640), (4 << 20, 16, 64)] {
        for workers in [1, 2, 5, 16] {
            let loader = loader(width, batch, workers, len);
            for _ in 0..2 {
                let seen: usize = loader.iter().map(|kept| check(kept.unwrap(), width)).sum();
                assert_eq!(seen, len);
            }
            let stats = loader.stats();
            assert!(stats.memory.is_some_and(MemoryKind::is_pinned), "{stats}");
            println!("{width} x {batch}, {workers} workers: {:?}, {} blocks", stats.memory, stats.allocations);
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_slow_consumer_gets_the_right_bytes() {
    let loader = loader(150_528, 64, 8, 64 * 20);
    for kept in loader.iter() {
        // Meanwhile the batch's slot would be used again, if it came back too soon.
        std::thread::sleep(Duration::from_millis(60));
        check(kept.unwrap(), 150_528);
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_consumer_may_keep_many_batches() {
    let loader = loader(50_000, 128, 8, 128 * 60);
    let kept: Vec<Kept> = loader.iter().map(Result::unwrap).collect();
    assert_eq!(kept.len(), 60);
    let seen: usize = kept.into_iter().map(|kept| check(kept, 50_000)).sum();
    assert_eq!(seen, 128 * 60);
    let stats = loader.stats();
    assert_eq!((stats.allocations, stats.host_bytes), (4, stats.host_bytes_peak), "slots do not stay with the batches");
}

/// A step may compute with a batch long after the step was launched. Until then no byte of the batch may be
/// overwritten, and the batches that wait for their steps must not fill the device.
#[test]
#[ignore = "needs a CUDA device"]
fn work_that_runs_late_reads_its_own_batch() {
    const WIDTH: usize = 400_000; // 26 MB a batch
    let device = Device::cuda(0);
    let loader = loader(WIDTH, 64, 8, 64 * 60);
    let matrix = Tensor::<2>::ones([2048, 2048], &device) * 1e-4;
    let mut sums = Vec::new();
    let mut before = None;
    for kept in loader.iter() {
        let (numbers, bytes) = kept.unwrap();
        let slow = (0..200).fold(matrix.clone(), |product, _| product.matmul(matrix.clone())).mean() * 0.0;
        let sum = bytes.float().sum_dim(1) + slow.reshape([1, 1]);
        device.flush().unwrap(); // launched now, as in a loop that reads its loss, but not waited for
        sums.push((numbers, sum)); // nothing is read before the end, so the loop runs ahead of the device
        if sums.len() == 10 {
            before = Some(device_mb());
        }
    }
    let grown = device_mb() - before.unwrap();
    println!("device MB in use after 60 batches that the loop ran ahead with: {grown:.0} more than after 10");
    let mut seen = 0;
    for (numbers, sum) in sums {
        let sums = sum.into_data().try_to_vec::<f32>().unwrap();
        for (number, sum) in numbers.into_data().try_to_vec::<i64>().unwrap().into_iter().zip(sums) {
            let start = number as usize % 251;
            let expected: u64 = (0..WIDTH).map(|at| u64::from(byte(start, at))).sum();
            assert!(
                (f64::from(sum) - expected as f64).abs() < 1e-5 * expected as f64,
                "{number}: {sum}, not {expected}"
            );
            seen += 1;
        }
    }
    assert_eq!(seen, 64 * 60);
    assert!(grown < 10.0 * 25.6, "{grown} MB: not bounded");
}

/// Each device has its share, its own pinned memory and its own copies, at the same time.
#[test]
#[ignore = "needs several CUDA devices"]
fn several_devices_in_one_process() {
    let devices = several_devices::devices();
    let len = 64 * 50 * devices.len();
    let builder = |rank: usize| {
        PinnedDataLoaderBuilder::new(OnDevice { width: 150_528 })
            .batch_size(64)
            .num_workers(6)
            .shuffle(3)
            .distributed(burn_pinned::Distributed::new(rank, devices.len()).unwrap())
            .require_pinned(true)
            .set_device(devices[rank].clone())
            .build(Numbers::new(len))
            .unwrap()
    };
    let train = |rank: usize| {
        let loader = builder(rank);
        let mut seen = Vec::new();
        for _ in 0..2 {
            for kept in loader.iter() {
                let (numbers, bytes) = kept.unwrap();
                assert_eq!(bytes.device(), devices[rank]);
                seen.extend(numbers.clone().into_data().try_to_vec::<i64>().unwrap());
                check((numbers, bytes), 150_528);
            }
        }
        seen
    };
    let mut seen = std::thread::scope(|scope| {
        let train = &train;
        let ranks: Vec<_> = (0..devices.len()).map(|rank| scope.spawn(move || train(rank))).collect();
        ranks.into_iter().flat_map(|rank| rank.join().unwrap()).collect::<Vec<_>>()
    });
    seen.sort_unstable();
    let twice: Vec<i64> = (0..len as i64).flat_map(|number| [number, number]).collect();
    assert_eq!(seen, twice);
    // A copy of a loader for another device, as a training on several devices makes it.
    let moved = builder(0).to_device(&devices[1]);
    for kept in moved.iter() {
        let (numbers, bytes) = kept.unwrap();
        assert_eq!(bytes.device(), devices[1]);
        check((numbers, bytes), 150_528);
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn an_error_and_a_panic_in_the_middle() {
    let numbers = Numbers::new(80).with(19, Mischief::Error).with(61, Mischief::Panic);
    let loader = common::builder().num_workers(8).set_device(Device::cuda(0)).build(numbers).unwrap();
    for epoch in 0..5 {
        let outcomes = outcomes(&*loader);
        assert_eq!(outcomes.len(), 10);
        for (at, outcome) in outcomes.into_iter().enumerate() {
            match (at, outcome) {
                (2, Err(error)) => assert!(error.contains("sample 19") && error.contains(&format!("epoch {epoch}"))),
                (7, Err(error)) => assert!(error.contains("sample 61") && error.contains("panicked")),
                (at, Ok(numbers)) => assert_eq!(numbers, (8 * at as i64..8 * at as i64 + 8).collect::<Vec<_>>()),
                (at, Err(error)) => panic!("batch {at}: {error}"),
            }
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_same_batches_as_on_the_cpu() {
    let run = |device: Device, workers| {
        let augment =
            |number: usize, rng: &mut burn_pinned::KeyedRng| Ok(number ^ rand::RngExt::random_range(rng, 0..64usize));
        let builder = common::builder().shuffle(5).augment(augment).num_workers(workers).set_device(device);
        let loader = builder.build(Numbers::new(500)).unwrap();
        (0..3).map(|_| common::epoch(&*loader)).collect::<Vec<_>>()
    };
    let reference = run(Device::flex(), 1);
    for workers in [1, 3, 16] {
        assert_eq!(run(Device::cuda(0), workers), reference);
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn several_loaders_and_an_autodiff_device_at_once() {
    let train = loader(10_000, 64, 4, 64 * 40);
    let valid = loader(10_000, 32, 4, 32 * 40);
    let train = train.to_device(&Device::cuda(0).autodiff());
    let weight = Tensor::<2>::ones([10_000, 8], &Device::cuda(0).autodiff()).require_grad();
    let mut valid = valid.iter();
    for kept in train.iter() {
        let (numbers, bytes) = kept.unwrap();
        let loss = bytes.clone().float().matmul(weight.clone()).mean();
        assert!(weight.grad(&loss.backward()).is_some());
        check((numbers, bytes), 10_000);
        check(valid.next().unwrap().unwrap(), 10_000);
    }
    assert!(valid.next().is_none());
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_device_without_memory_is_an_error_and_the_loader_works_again() {
    let width = 4 << 20; // batches of 256 MB, for which CubeCL asks the driver each time
    let loader = loader(width, 64, 8, 64 * 6);
    let context = cudarc::driver::CudaContext::new(0).unwrap();
    let stream = context.default_stream();
    let (free, _) = context.mem_get_info().unwrap();
    let hog = stream.alloc_zeros::<u8>(free - (128 << 20)).unwrap();
    stream.synchronize().unwrap();
    let outcomes: Vec<bool> = loader.iter().map(|kept| kept.is_ok()).collect();
    println!("without memory: {outcomes:?}");
    assert_eq!(outcomes, [false; 6]);
    drop(hog);
    stream.synchronize().unwrap();
    for _ in 0..2 {
        let seen: usize = loader.iter().map(|kept| check(kept.unwrap(), width)).sum();
        assert_eq!(seen, 64 * 6);
    }
    assert!(loader.stats().allocations <= 4, "slots came back: {}", loader.stats());
}
