//! What an order of very many samples costs: JSON lines, a line a case.
//!
//!     cargo bench --bench scale -- [samples, 1000000,100000000,1000000000,100000000000 by default] [orders, all by default]
//!
//! Each case is a process of its own. `made_s` is the time to make the sampler of lists that are there (weights, lengths, labels, indices),
//! and `lists_mb` the memory of the process then. `first_s` is the time from there to the first 256 samples of an epoch, and `first_mb` the
//! memory more. `middle_s` is the time to 256 samples in the middle of another epoch. `peak_mb` is the most memory of the process. `ns` is
//! the time of an index, over a million. An order of more bytes than `MOST` is left out.

use burn_pinned::{
    BoxError,
    order::{
        BatchSampler, BlockShuffle, Blocks, ClassBalancedSampler, LengthBucketSampler, MixPart, MixSampler,
        PackingSampler, RandomSampler, RandomWithReplacementSampler, RepeatSampler, Sampler, SubsetSampler,
        WeightedSampler, WeightedWithoutReplacementSampler,
    },
};
use std::{env, fs, hint::black_box, process::Command, time::Instant};

/// The orders, and about how many bytes a sample they take with their lists.
const ORDERS: [(&str, f64); 14] = [
    ("random", 0.0),
    ("a third", 0.0),
    ("with replacement", 0.0),
    ("repeat", 0.0),
    ("mixture", 0.0),
    ("blocks", 0.002),
    ("subset", 4.0),
    ("weighted", 16.0),
    ("weighted once", 16.0),
    ("balanced", 4.0),
    ("balanced once", 4.1),
    ("buckets", 8.0),
    ("packing", 4.5),
    ("packing of blocks", 4.5),
];
const MOST: f64 = 16e9;
const BATCH: usize = 256;

/// A field of `/proc/self/status` in MB.
fn mb(field: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok()).unwrap_or(0.0) / 1e3
}

fn blocks(samples: usize) -> Blocks {
    const BLOCK: usize = 10_000;
    Blocks::new((0..samples.div_ceil(BLOCK)).map(|at| (BLOCK.min(samples - at * BLOCK), 0)))
}

/// Samples of an epoch from the middle of it, or from its start.
type Epoch = Box<dyn Fn(usize, bool) -> Vec<usize>>;

fn of_samples(sampler: impl Sampler, samples: usize) -> Epoch {
    let order = move |epoch, middle| {
        let skipped = if middle { sampler.len(samples) / 2 } else { 0 };
        sampler.indices(samples, epoch).skip(skipped).take(BATCH).collect()
    };
    Box::new(order)
}

/// The sampler, after a note of the time of an index.
fn timed<S: Sampler>(sampler: S, samples: usize, line: &mut serde_json::Value) -> S {
    let (count, begun) = (sampler.len(samples).min(1_000_000), Instant::now());
    black_box(sampler.indices(samples, 3).take(count).fold(0, usize::wrapping_add));
    line["ns"] = (begun.elapsed().as_nanos() as f64 / count as f64).into();
    sampler
}

fn of_batches(sampler: impl BatchSampler, samples: usize) -> Epoch {
    let order = move |epoch, middle| {
        let mut epoch = sampler.batches(samples, epoch);
        epoch.batches.nth(if middle { epoch.len / 2 } else { 0 }).unwrap_or_default()
    };
    Box::new(order)
}

fn order(name: &str, n: usize, line: &mut serde_json::Value) -> Result<Epoch, BoxError> {
    let random = RandomSampler::new(1);
    let length = |at: usize| 1 + (at as u32).wrapping_mul(0x9e37_79b9) % 1000;
    let lengths = || (0..n).map(length).collect::<Vec<u32>>();
    let weights = || (0..n).map(|at| length(at) as f32);
    let balanced = || ClassBalancedSampler::new((0..n).map(|at| at % 10), 1);
    Ok(match name {
        "random" => of_samples(timed(random, n, line), n),
        "a third" => of_samples(timed(random.with_size(n / 3), n, line), n),
        "with replacement" => of_samples(RandomWithReplacementSampler::new(1), n),
        "repeat" => of_samples(RepeatSampler::new(random, 3)?, n),
        "mixture" => {
            let parts = [MixPart::new(n / 2, 1.0, random), MixPart::new(n - n / 2, 3.0, RandomSampler::new(2))];
            of_samples(timed(MixSampler::new(parts, 1)?, n, line), n)
        }
        "blocks" => of_samples(BlockShuffle::new(blocks(n), 1), n),
        "subset" => of_samples(SubsetSampler::new(0..n).shuffle(1), n),
        "weighted" => of_samples(WeightedSampler::new(weights(), 1)?, n),
        "weighted once" => of_samples(WeightedWithoutReplacementSampler::new(weights(), 1)?, n),
        "balanced" => of_samples(balanced()?, n),
        "balanced once" => of_samples(balanced()?.without_replacement(), n),
        "buckets" => {
            of_batches(LengthBucketSampler::new((0..n).map(|at| length(at) as usize), 65_536, BATCH)?.shuffle(1), n)
        }
        "packing" => of_batches(PackingSampler::new(random, lengths(), 2048, 16)?, n),
        "packing of blocks" => {
            of_batches(PackingSampler::new(BlockShuffle::new(blocks(n), 1), lengths(), 2048, 16)?, n)
        }
        other => return Err(format!("there is no order {other:?}").into()),
    })
}

fn case(name: &str, samples: usize) -> Result<(), BoxError> {
    let mut line = serde_json::json!({"bench": "scale", "order": name, "samples": samples});
    let begun = Instant::now();
    let order = order(name, samples, &mut line)?;
    line["made_s"] = begun.elapsed().as_secs_f64().into();
    let before = mb("VmRSS");
    line["lists_mb"] = before.into();
    for (field, epoch, middle) in [("first", 0, false), ("middle", 1, true)] {
        let begun = Instant::now();
        assert!(!black_box(order(epoch, middle)).is_empty());
        line[format!("{field}_s")] = begun.elapsed().as_secs_f64().into();
        line[format!("{field}_mb")] = (mb("VmRSS") - before).into();
    }
    line["peak_mb"] = mb("VmHWM").into();
    println!("{line}");
    Ok(())
}

fn main() -> Result<(), BoxError> {
    // `cargo bench` adds this word.
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let [word, name, samples] = args.as_slice()
        && word == "case"
    {
        return case(name, samples.parse()?);
    }
    let samples = args.first().map_or("1000000,100000000,1000000000,100000000000", |samples| samples);
    for samples in samples.split(',') {
        for (name, bytes) in ORDERS {
            let wanted = args.get(1).is_none_or(|wanted| wanted.split(',').any(|wanted| wanted == name));
            if wanted && bytes * samples.parse::<f64>()? <= MOST {
                let done = Command::new(env::current_exe()?).args(["case", name, samples]).status()?;
                if !done.success() {
                    println!(
                        "{}",
                        serde_json::json!({"bench": "scale", "order": name, "samples": samples, "failed": done.to_string()})
                    );
                }
            }
        }
    }
    Ok(())
}
