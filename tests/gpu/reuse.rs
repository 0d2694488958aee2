//! Memory of the device that is used again, or given back: by whom, and when.

use super::{Kept, check, device_mb, loader, several_devices};
use crate::common::eventually;
use burn::tensor::{Device, Tensor, capture};
use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
};

/// Rows of batches of 268 MB, for which CubeCL asks the driver each time.
const HUGE: usize = 4 << 20;
const HUGE_MB: f64 = 64.0 * HUGE as f64 / 1e6;

/// Batches are sent to the other GPUs many times over, and dropped at once. So their blocks seem to be free long before
/// the transfers are done. What arrives is what was sent.
#[test]
#[ignore = "needs several CUDA devices"]
fn a_batch_on_its_way_between_several_devices_is_not_overwritten() {
    const WIDTH: usize = 400_000; // 26 MB a batch
    const SENDS: usize = 32;
    let devices = several_devices::devices();
    let loader = loader(WIDTH, 64, 8, 64 * 60);
    let mut sent = Vec::new();
    for (other, batch) in devices[1..].iter().cycle().zip(loader.iter()) {
        let (numbers, bytes) = batch.unwrap();
        let last = (0..SENDS).map(|_| bytes.clone().to_device(other)).reduce(|_, sent| sent);
        drop(bytes);
        sent.push((numbers, last.unwrap()));
    }
    let seen: usize = sent.into_iter().map(|kept| check(kept, WIDTH)).sum();
    assert_eq!(seen, 64 * 60);
}

/// Loaders come and go and make blocks all the time, since the loop keeps its batches. No graph that another thread
/// records meanwhile is spoiled.
#[test]
#[ignore = "needs a CUDA device"]
fn blocks_are_made_beside_recordings() {
    const WIDTH: usize = 400_000;
    const GRAPHS: usize = 300;
    let done = AtomicBool::new(false);
    let (spoiled, batches) = thread::scope(|scope| {
        let recorder = scope.spawn(|| {
            let device = Device::cuda(0);
            let matrix = Tensor::<2>::ones([256, 256], &device) * 0.01;
            let product = || (0..20).fold(matrix.clone(), |product, _| product.matmul(matrix.clone()));
            let spoiled = (0..GRAPHS).filter(|_| !capture(&device, product).is_hardware()).count();
            done.store(true, SeqCst);
            spoiled
        });
        let mut batches = 0;
        while !done.load(SeqCst) {
            // Nothing is read, since that may allocate too.
            let kept: Vec<Kept> = loader(WIDTH, 64, 4, 64 * 12).iter().map(Result::unwrap).collect();
            batches += kept.len();
        }
        (recorder.join().unwrap(), batches)
    });
    println!("{spoiled} of {GRAPHS} recordings spoiled beside {batches} batches");
    assert!(spoiled == 0 && batches >= 24, "{spoiled} spoiled, {batches} batches");
    let seen: usize = loader(WIDTH, 64, 4, 64 * 12).iter().map(|kept| check(kept.unwrap(), WIDTH)).sum();
    assert_eq!(seen, 64 * 12);
}

/// Threads that compute with batches, and end without a wait for the device.
#[test]
#[ignore = "needs a CUDA device"]
fn threads_that_end_leave_no_batch_behind() {
    const WIDTH: usize = 50_000;
    const BATCH: usize = 64 * WIDTH;
    let loader = loader(WIDTH, 64, 4, 64 * 8);
    let train = |keeps: usize| {
        let loader = Arc::clone(&loader);
        let train = move || {
            let (mut batches, mut kept) = (loader.iter(), Vec::new());
            for (number, batch) in batches.by_ref().enumerate() {
                let (_, bytes) = batch.unwrap();
                drop(bytes.clone().float().mean());
                kept.extend((number + keeps >= 8).then_some(bytes));
            }
            drop(batches);
            drop(kept);
        };
        thread::spawn(train).join().unwrap();
    };
    (0..12).for_each(|_| train(0));
    eventually("nothing is left", || loader.stats().device_bytes == 0);
    // Two batches of each are dropped after the iterator. What is left of them is found once there is no room.
    (0..80).for_each(|_| train(2));
    let left = loader.stats().device_bytes / BATCH;
    println!("{left} batches are left of 160, {:?} of waits for batches kept", loader.stats().kept_wait);
    assert!(left <= 80, "{left} batches");
}

/// What a loader keeps between two epochs is bounded, however much the last one took.
#[test]
#[ignore = "needs a CUDA device"]
fn an_idle_loader_keeps_few_blocks() {
    let device = Device::cuda(0);
    let loader = loader(HUGE, 64, 8, 64 * 14);
    let mb = || {
        device.sync().unwrap();
        device.memory_cleanup();
        device_mb()
    };
    let before = mb();
    let mut batches = loader.iter();
    let kept: Vec<Kept> = batches.by_ref().map(Result::unwrap).collect();
    assert_eq!(kept.len(), 14);
    drop(kept);
    device.sync().unwrap();
    drop(batches);
    let after = Cell::new(0.0);
    eventually("the memory of `prefetch + 3` batches is kept, and no more", || {
        let _ = loader.stats(); // looks what is free
        after.set(mb() - before);
        after.get() < 5.5 * HUGE_MB
    });
    let after = after.get();
    println!("an idle loader keeps {after:.0} MB, {:.1} batches of 14", after / HUGE_MB);
    assert!(after > 0.5 * HUGE_MB, "{after:.0} MB: it keeps some");
    let seen: usize = loader.iter().map(|kept| check(kept.unwrap(), HUGE)).sum();
    assert_eq!(seen, 64 * 14);
}

/// The device has memory for one batch, beside what another thread's blocks have. They are given up.
#[test]
#[ignore = "needs a CUDA device"]
fn blocks_that_nobody_uses_are_given_up_for_others() {
    let device = Device::cuda(0);
    let loader = loader(HUGE, 64, 8, 64 * 8);
    let first = Arc::clone(&loader);
    let take = move || first.iter().map(|kept| check(kept.unwrap(), HUGE)).sum::<usize>();
    assert_eq!(thread::spawn(take).join().unwrap(), 64 * 8);
    device.sync().unwrap();
    device.memory_cleanup();
    let context = cudarc::driver::CudaContext::new(0).unwrap();
    let stream = context.default_stream();
    let (free, _) = context.mem_get_info().unwrap();
    let hog = stream.alloc_zeros::<u8>(free - (400 << 20)).unwrap();
    stream.synchronize().unwrap();
    let seen: Result<Vec<usize>, _> = loader.iter().map(|kept| kept.map(|kept| check(kept, HUGE))).collect();
    drop(hog);
    stream.synchronize().unwrap(); // also before a failure, or the tests after this one have no memory
    assert_eq!(seen.unwrap().iter().sum::<usize>(), 64 * 8);
}
