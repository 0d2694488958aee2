//! Hours of faults, early drops and policies: the memory and the threads must not grow. Ignored by default:
//!
//!     SOAK_MINUTES=10 cargo test --release --test threads soak -- --ignored --nocapture
//!     SOAK_MINUTES=5 cargo test --release --features cuda --test threads soak -- --ignored --nocapture  # on a GPU

use crate::common::*;
use burn::{
    data::{dataloader::batcher::Batcher, dataset::Dataset},
    tensor::Device,
};
use burn_pinned::{BadSamples, PinnedDataLoader, PinnedDataLoaderBuilder, fault::Quota, stream::Stream};
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

#[derive(Default)]
struct Seen {
    loaders: usize,
    epochs: usize,
    batches: usize,
    errors: usize,
    faults: u64,
    dropped: usize,
}

fn status(field: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("a Linux machine");
    let line = status.lines().find(|line| line.starts_with(field)).expect(field);
    line.split_whitespace().nth(1).and_then(|value| value.parse().ok()).expect(field)
}

/// Bytes in use of the device's memory, by whatever process.
#[cfg(feature = "cuda")]
fn device_bytes() -> usize {
    use cudarc::driver::{CudaContext, result};
    static CONTEXT: std::sync::LazyLock<Arc<CudaContext>> =
        std::sync::LazyLock::new(|| CudaContext::new(0).expect("a GPU"));
    CONTEXT.bind_to_thread().expect("a context");
    let (free, all) = result::mem_get_info().expect("a context");
    all - free
}

#[cfg(not(feature = "cuda"))]
fn device_bytes() -> usize {
    0
}

fn device() -> Device {
    #[cfg(feature = "cuda")]
    return Device::cuda(0);
    #[cfg(not(feature = "cuda"))]
    Device::flex()
}

fn files() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

struct Plain;

impl Batcher<usize, Shown> for Plain {
    fn batch(&self, items: Vec<usize>, _: &Device) -> Shown {
        assert!(items[0] % 97 != 5, "no batch of this");
        let bytes = items.iter().flat_map(|number| (0..200).map(|at| byte(*number, at))).collect();
        Shown { numbers: items.into_iter().map(|number| number as i64).collect(), bytes }
    }
}
burn_pinned::map_tensors!(Shown { numbers, bytes });

fn loader(rng: &mut ChaCha8Rng) -> Arc<PinnedDataLoader<Shown>> {
    let len = rng.random_range(1..600);
    let mut data = Numbers::new(len);
    for _ in 0..rng.random_range(0..12) {
        let mischief = [Mischief::Error, Mischief::Panic, Mischief::Sleep(Duration::from_millis(2))];
        data = data.with(rng.random_range(0..len), mischief[rng.random_range(0..3)]);
    }
    let builder = match rng.random_range(0..4) {
        0 => PinnedDataLoaderBuilder::from_batcher(Plain),
        _ => PinnedDataLoaderBuilder::new(Show { width: 200 }),
    };
    let streams = rng.random_bool(0.5);
    let policy = match rng.random_range(0..if streams { 2 } else { 4 }) {
        0 => BadSamples::Fail,
        1 => BadSamples::Skip(Quota::Count(rng.random_range(0..9))),
        2 => BadSamples::Skip(Quota::Share(rng.random())),
        _ => BadSamples::Replace { tries: rng.random_range(1..4) },
    };
    let mut builder = builder
        .set_device(device())
        .require_pinned(cfg!(feature = "cuda"))
        .batch_size(rng.random_range(1..40))
        .num_workers(rng.random_range(1..6))
        .prefetch(rng.random_range(1..4))
        .bad_samples(policy);
    if rng.random_bool(0.5) {
        builder = builder.timeout(Duration::from_secs(20));
    }
    if streams {
        let (stream, steps) = (stream(data, rng), rng.random_range(1..20));
        return match rng.random_range(0..3) {
            0 => builder.build_stream(stream),
            1 => builder.steps_per_epoch(steps).build_stream(stream),
            _ => builder.steps_per_epoch(steps).build_stream(stream.endless()),
        }
        .expect("right options");
    }
    if rng.random_bool(0.5) {
        builder = builder.shuffle(rng.random());
    }
    builder.build(data).expect("right options")
}

/// The numbers in shards. An endless one ends too, and its next epoch opens it again.
fn stream(data: Numbers, rng: &mut ChaCha8Rng) -> Stream<usize> {
    let shards = rng.random_range(1..5);
    let stream = Stream::new(move |place| {
        let (data, shard) = (data.clone(), place.shard);
        Ok((shard..data.len).step_by(shards).map(move |number| data.get(number)))
    });
    stream.shards(shards).interleave(rng.random_range(1..4)).shuffle_buffer(rng.random_range(0..50))
}

fn round(rng: &mut ChaCha8Rng, seen: &mut Seen) {
    let loader = loader(rng);
    for _ in 0..rng.random_range(1..6) {
        let early = rng.random_bool(0.4);
        let mut left = if early { rng.random_range(0..6) } else { usize::MAX };
        for batch in loader.iter() {
            if left == 0 {
                break;
            }
            left -= 1;
            match batch {
                Ok(shown) => {
                    let expected =
                        shown.numbers.iter().flat_map(|number| (0..200).map(|at| byte(*number as usize, at)));
                    assert!(shown.bytes.iter().copied().eq(expected), "a row has the bytes of another");
                    seen.batches += 1;
                }
                Err(error) => {
                    assert!(!error.to_string().contains("did not come"), "{error}");
                    seen.errors += 1;
                }
            }
        }
        seen.epochs += 1;
        seen.dropped += usize::from(early);
    }
    seen.loaders += 1;
    seen.faults += loader.stats().faults;
    assert!(loader.stats().host_bytes_peak < if cfg!(feature = "cuda") { 16 << 20 } else { 1 << 20 });
}

#[test]
#[ignore = "takes as long as SOAK_MINUTES says"]
fn soak() {
    let minutes: f64 = std::env::var("SOAK_MINUTES").map_or(10.0, |minutes| minutes.parse().expect("a number"));
    std::panic::set_hook(Box::new(|info| {
        if !std::thread::current().name().is_some_and(|name| name.starts_with("bp-")) {
            eprintln!("{info}");
        }
    }));
    let (mut rng, mut seen) = (ChaCha8Rng::seed_from_u64(1), Seen::default());
    let (start, mut shown, mut first) = (Instant::now(), 0.0, None);
    println!(
        "minutes  loaders  epochs  batches  errors  faults  dropped early  memory KiB  threads  files  device KiB"
    );
    loop {
        round(&mut rng, &mut seen);
        let time = start.elapsed().as_secs_f64() / 60.0;
        let over = time >= minutes;
        if time >= shown || over {
            shown += minutes / 10.0;
            wait_for_threads(0); // all loaders are gone
            let now = (status("VmRSS:"), status("Threads:"), files(), device_bytes());
            let Seen { loaders, epochs, batches, errors, faults, dropped } = seen;
            println!(
                "{time:7.1} {loaders:8} {epochs:7} {batches:8} {errors:7} {faults:7} {dropped:14} {:11} {:8} {:6} {:11}",
                now.0,
                now.1,
                now.2,
                now.3 >> 10
            );
            if loaders > 200 {
                first.get_or_insert(now); // warm by then
            }
            if over {
                let before = first.unwrap_or(now);
                assert!(now.0 < before.0 + 16 * 1024, "memory grew from {} to {} KiB", before.0, now.0);
                assert!(now.1 <= before.1, "threads grew from {} to {}", before.1, now.1);
                assert!(now.2 <= before.2, "files grew from {} to {}", before.2, now.2);
                assert!(now.3 < before.3 + (64 << 20), "device memory grew from {} to {}", before.3, now.3);
                return;
            }
        }
    }
}
