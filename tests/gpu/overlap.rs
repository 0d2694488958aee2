//! Copies run beside the step, by events of CUDA.

use crate::common::Numbers;
use burn::tensor::{DType, Device, Int, Tensor};
use burn_pinned::{Field, PinnedDataLoaderBuilder, collate};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, sys::CUevent_flags};
use std::sync::Arc;

/// Batches of 77 MB.
const WIDTH: usize = 1_200_000;
const ROWS: usize = 64;
const STEPS: usize = 40;
const ROUNDS: usize = 5;
/// Batches that may be on the device before the clock starts: those that are ready or on their way.
const AHEAD: usize = 5;

/// Tells times by events on a stream that nothing else uses.
struct Clock {
    device: Device,
    stream: Arc<CudaStream>,
}

impl Clock {
    /// An event behind all that the calling thread has launched.
    fn mark(&self) -> CudaEvent {
        self.device.sync().unwrap();
        self.stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).unwrap()
    }

    /// The milliseconds that a call and its work on the device take.
    fn time(&self, call: impl FnOnce()) -> f32 {
        let start = self.mark();
        call();
        start.elapsed_ms(&self.mark()).unwrap()
    }
}

/// Steps alone, and steps for which the loader copies meanwhile. What the second takes longer is copies that were not
/// beside a step. Copies that the test makes between two steps show that this can be told.
#[test]
#[ignore = "needs a CUDA device"]
fn copies_run_beside_the_step() {
    let context = CudaContext::new(0).unwrap();
    let clock = Clock { device: Device::cuda(0), stream: context.new_stream().unwrap() };
    let bytes = collate(
        [Field::new("bytes", DType::U8, [WIDTH])],
        |&number: &usize, row| {
            row.slice_mut::<u8>("bytes")?.fill(number as u8);
            Ok(())
        },
        |mut batch| Ok(batch.take::<2, Int>("bytes")?),
    );
    let builder = PinnedDataLoaderBuilder::new(bytes).batch_size(ROWS).num_workers(8).require_pinned(true);
    let loader = builder.set_device(clock.device.clone()).build(Numbers::new(ROWS * (STEPS + 1))).unwrap();
    let matrix = Tensor::<2>::ones([4096, 4096], &clock.device) * 1e-4;
    let step = |bytes: Tensor<2, Int>, products: usize| {
        let product = (0..products).fold(matrix.clone(), |product, _| product.matmul(matrix.clone()));
        let out = product.mean() + bytes.float().mean();
        clock.device.flush().unwrap();
        drop(out); // Burn leaves out what is dropped before it is launched
    };

    // SAFETY: plain bytes, all written in the next line.
    #[expect(unsafe_code, reason = "cudarc leaves fresh memory uninitialised")]
    let mut pinned = unsafe { context.alloc_pinned::<u8>(ROWS * WIDTH) }.unwrap();
    pinned.as_mut_slice().unwrap().fill(1);
    let mut there = clock.stream.alloc_zeros::<u8>(ROWS * WIDTH).unwrap();
    let mut copies = |count: usize| {
        (0..count).for_each(|_| clock.stream.memcpy_htod(&pinned, &mut there).unwrap());
        clock.stream.synchronize().unwrap();
    };
    copies(3);
    let copy = clock.time(|| copies(STEPS)) / STEPS as f32;

    // A step takes twice as long as the loader needs for a batch. Kernels are compiled and tuned before the clock.
    let kept = loader.iter().map(Result::unwrap).last().unwrap();
    (0..3).for_each(|_| step(kept.clone(), 8));
    let mut batches = loader.iter();
    batches.next().unwrap().unwrap();
    let batch = clock.time(|| batches.by_ref().for_each(|batch| drop(batch.unwrap()))) / STEPS as f32;
    drop(batches);
    let steps = |products: usize| (0..STEPS).for_each(|_| step(kept.clone(), products));
    let product = (clock.time(|| steps(8)) - clock.time(|| steps(0))) / (8 * STEPS) as f32;
    let products = (2.0 * batch.max(copy) / product).ceil() as usize;
    println!(
        "ms: a copy {copy:.2}, a batch of the loader {batch:.2}, a product {product:.2}; {products} products a step"
    );

    // The share of the copies' time that the steps did not take longer.
    let share = |alone: f32, both: f32, count: usize| {
        let copies = count as f32 * copy;
        (alone + copies - both) / copies
    };
    let (mut beside, mut between) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let alone = clock.time(|| steps(products));
        let mut batches = loader.iter();
        step(batches.next().unwrap().unwrap(), products);
        let both = clock.time(|| batches.by_ref().for_each(|batch| step(batch.unwrap(), products)));
        let turns = clock.time(|| {
            for _ in 0..STEPS {
                copies(1);
                step(kept.clone(), products);
                clock.device.sync().unwrap();
            }
        });
        println!("ms: {STEPS} steps {alone:.1}, with the loader {both:.1}, each after a copy {turns:.1}");
        beside.push(share(alone, both, STEPS - AHEAD));
        between.push(share(alone, turns, STEPS));
    }
    println!("the share of copies beside the step: {beside:.2?} of the loader, {between:.2?} in turn");
    let median = |mut shares: Vec<f32>| {
        shares.sort_by(f32::total_cmp);
        shares[ROUNDS / 2]
    };
    assert!(median(beside) >= 0.8);
    assert!(median(between) < 0.3, "the clock does not tell copies beside a step from others");
}
