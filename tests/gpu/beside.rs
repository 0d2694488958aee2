//! A loader beside other users of CUDA in the process: recordings of graphs, contexts, other loaders.

use super::{check, loader};
use burn::tensor::{Device, Tensor, capture};
use burn_pinned::memory::MemoryKind;
use std::{
    sync::mpsc,
    thread::{scope, sleep},
    time::{Duration, Instant},
};

/// A loader starts, locks memory and makes its streams while a graph is recorded: both succeed.
#[test]
#[ignore = "needs a CUDA device"]
fn a_loader_starts_while_a_graph_is_recorded() {
    const RUNS: usize = 4; // three to warm up, one that is recorded
    for round in 0..8 {
        let ((recording, recorded), (done, go_on)) = (mpsc::channel(), mpsc::channel::<()>());
        scope(|scope| {
            scope.spawn(move || {
                let device = Device::cuda(0);
                let matrix = Tensor::<2>::ones([256, 256], &device) * 0.01;
                let mut runs = 0;
                let mut graph = capture(&device, || {
                    runs += 1;
                    let product = (0..6).fold(matrix.clone(), |product, _| product.matmul(matrix.clone()));
                    if runs == RUNS {
                        recording.send(()).unwrap();
                        let _ = go_on.recv_timeout(Duration::from_millis(400));
                    }
                    product
                });
                assert!(graph.is_hardware(), "round {round}: the recording was spoiled");
                let before = graph.output().clone().into_data().try_to_vec::<f32>().unwrap();
                // SAFETY: the graph's tensors live, and nobody else uses them.
                #[expect(unsafe_code, reason = "Burn cannot check it")]
                let after = unsafe { graph.replay() }.clone().into_data().try_to_vec::<f32>().unwrap();
                assert_eq!((before.len(), &before), (256 * 256, &after));
            });
            recorded.recv().unwrap();
            let (loader, start) = (loader(150_528, 64, 4, 64 * 12), Instant::now());
            let mut batches = loader.iter();
            let first = batches.next().unwrap().unwrap(); // its copy waits for the recording
            let waited = start.elapsed();
            let _ = done.send(());
            let seen = check(first, 150_528) + batches.map(|kept| check(kept.unwrap(), 150_528)).sum::<usize>();
            assert_eq!(seen, 64 * 12);
            let stats = loader.stats();
            println!("round {round}: first batch after {waited:?}, {:?}", stats.memory);
            assert!(stats.memory.is_some_and(MemoryKind::is_pinned), "{stats}");
            // If Burn made the copies, no bytes on the device would be counted.
            assert!(stats.device_bytes_peak > 0, "the crate does not copy itself any more: {stats}");
        });
    }
}

/// A thread keeps its CUDA context when it makes a loader, starts an epoch, or drops a loader.
#[test]
#[ignore = "needs a CUDA device"]
fn the_callers_context_stays() {
    use cudarc::driver::{CudaContext, result::ctx};
    let current = || ctx::get_current().unwrap();
    let context = CudaContext::new(0).unwrap();
    let _uses = Tensor::<1>::ones([1], &Device::cuda(0)); // Burn's device is there
    for with in [false, true] {
        let context = &context;
        let thread = move || {
            let before = if with {
                context.bind_to_thread().unwrap();
                current()
            } else {
                None
            };
            assert_eq!(current(), before);
            let loader = loader(10_000, 64, 2, 640);
            assert_eq!(current(), before, "build");
            let mut batches = loader.iter();
            assert_eq!(current(), before, "iter()");
            // Burn itself may change the context in `next()` and with tensors.
            let kept: Vec<_> = batches.by_ref().map(Result::unwrap).collect();
            assert_eq!(kept.len(), 10);
            drop((batches, kept));
            println!(
                "after next(), and the drop of tensors: {}",
                if current() == before { "the same" } else { "another" }
            );
            // SAFETY: as it was; the context lives, and null stands for none.
            #[expect(unsafe_code, reason = "cudarc has no other way to set a context")]
            unsafe { ctx::set_current(before.unwrap_or(std::ptr::null_mut())) }.unwrap();
            drop(loader); // frees page-locked memory here
            assert_eq!(current(), before, "the drop of the loader");
        };
        scope(|scope| scope.spawn(thread).join()).unwrap();
    }
}

/// A validation loader that is made and dropped each epoch does not hold up the training: no step waits for the
/// device's memory to be given back. The times are printed, and the bound is wide.
#[test]
#[ignore = "needs a CUDA device"]
fn a_validation_loader_that_comes_and_goes_stalls_no_step() {
    let device = Device::cuda(0);
    let train = loader(150_528, 64, 6, 64 * 60);
    let matrix = Tensor::<2>::ones([4096, 4096], &device) * 1e-4;
    let step = |bytes: Tensor<2, burn::tensor::Int>| {
        let slow = (0..4).fold(matrix.clone(), |product, _| product.matmul(matrix.clone())).mean() * 0.0;
        (bytes.float().mean() + slow).into_scalar::<f32>()
    };
    let epoch = |validate: bool| {
        let mut times = Vec::new();
        scope(|scope| {
            let valid = validate.then(|| {
                scope.spawn(|| {
                    for _ in 0..4 {
                        let valid = loader(150_528, 64, 2, 64 * 3);
                        assert_eq!(valid.iter().map(Result::unwrap).count(), 3);
                        drop(valid);
                        sleep(Duration::from_millis(20));
                    }
                })
            });
            for kept in train.iter() {
                let start = Instant::now();
                step(kept.unwrap().1);
                times.push(start.elapsed());
            }
            valid.into_iter().for_each(|valid| valid.join().unwrap());
        });
        times.sort_unstable();
        times
    };
    epoch(true); // compiles
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..6 {
        alone.extend(epoch(false));
        beside.extend(epoch(true));
    }
    let [alone, beside] = [alone, beside].map(|mut times| {
        times.sort_unstable();
        [times[times.len() / 2], times[times.len() * 99 / 100], times[times.len() - 1]]
    });
    println!("a step, median, 99 %, most: alone {alone:?}, beside a validation loader {beside:?}");
    assert!(beside[0] < 2 * alone[0], "{beside:?}");
}
