//! Documents packed into rows of 2,048 tokens: JSON lines, a line a case and round.
//!
//!     cargo bench --bench packing -- [documents, 100,000,000 by default] [rounds, 3] [workers, 2] [seconds, 5]
//!
//! Lengths are log-normal: median 400, sigma 1, at most 2,048. They are in memory.
//!
//! - `plan`: an epoch begins, in a process of its own. `order_s` is what the order alone takes before its first document,
//!   `plan_s` the time to the first batch, both together; `padding` the share of all positions; `peak_mb` the memory of the process, with the lengths.
//! - `resume`: another process goes on in the middle of that epoch. `new_s` is what the sampler takes, `resume_s` the time from there to the batch.
//! - `rows`: the loader over documents that are made in no time, from `get` to packed batches of 16 rows on the CPU; `alone` is the batcher
//!   on one thread. benches/peer_packing.py has the same of others.
//!
//! With the feature `tokenizers`, `-- tokens FOLDER [workers, 2] [seconds, 5]` gives packed batches of JSON lines with a tokeniser:
//! of `docs.jsonl` and `tokenizer.json`, which the bench `tokens` of burn-shards makes. That bench has the tokeniser alone.

use burn::{
    data::{
        dataloader::batcher::Batcher,
        dataset::{Dataset, DatasetError},
    },
    prelude::*,
};
use burn_pinned::{
    BoxError, KeyedRng, PinnedDataLoaderBuilder,
    data::TokenRow,
    order::{BatchSampler, BlockShuffle, Blocks, PackingSampler, RandomSampler, Sampler, SequentialSampler},
    text::PackTokens,
};
use rand::RngExt;
use std::{
    fs,
    hint::black_box,
    path::Path,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

const ROW: usize = 2048;
const ROWS: usize = 16;
/// Of the blocks of `BlockShuffle`.
const BLOCK: usize = 10_000;

fn lengths(documents: usize) -> Vec<u32> {
    let mut rng = KeyedRng::for_order(7, 0);
    let mut length = |_| {
        let (u, v): (f64, f64) = (rng.random_range(f64::MIN_POSITIVE..1.0), rng.random());
        let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
        ((400.0 * normal.exp()) as u32).clamp(1, ROW as u32)
    };
    let some: Vec<u32> = (0..1 << 16).map(&mut length).collect();
    (0..documents).map(|_| some[rng.random_range(0..1 << 16)]).collect()
}

fn order(name: &str, documents: usize) -> Arc<dyn Sampler> {
    let block = |at: usize| (BLOCK.min(documents - at * BLOCK), 0);
    match name {
        "random" => Arc::new(RandomSampler::new(1)),
        "blocks" => Arc::new(BlockShuffle::new(Blocks::new((0..documents.div_ceil(BLOCK)).map(block)), 1)),
        _ => Arc::new(SequentialSampler),
    }
}

/// The most memory that this process had, in MB.
fn peak_mb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) / 1000
}

/// A process that plans an epoch or resumes it. Prints a line.
fn epoch(case: &str, name: &str, documents: usize, folder: &Path) -> Result<(), BoxError> {
    let lengths = lengths(documents);
    let tokens: u64 = lengths.iter().map(|length| u64::from(*length)).sum();
    let begun = Instant::now();
    let order = order(name, documents);
    let sampler = PackingSampler::new(Arc::clone(&order), lengths, ROW, ROWS)?.save_plans_in(folder);
    sampler.check(documents)?;
    let new_s = begun.elapsed().as_secs_f64();
    let mut line =
        serde_json::json!({"bench": "packing", "case": case, "order": name, "documents": documents, "new_s": new_s});
    let begun = Instant::now();
    let first = order.indices(documents, 0).next();
    line["order_s"] = begun.elapsed().as_secs_f64().into();
    black_box(first);
    let begun = Instant::now();
    let mut epoch = sampler.batches(documents, 0);
    let at = if case == "resume" { epoch.len / 2 } else { 0 };
    black_box(epoch.batches.nth(at));
    line[format!("{case}_s")] = begun.elapsed().as_secs_f64().into();
    line["padding"] = (1.0 - tokens as f64 / (epoch.len * ROWS * ROW) as f64).into();
    line["peak_mb"] = peak_mb().into();
    println!("{line}");
    Ok(())
}

/// Documents of these lengths, in no time.
#[derive(Clone)]
struct Documents(Arc<[u32]>);

impl Dataset<TokenRow> for Documents {
    fn get(&self, document: usize) -> Result<TokenRow, DatasetError> {
        Ok(TokenRow::from(vec![document as u32 % 50_000; self.0[document] as usize]))
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

/// Tokens a second of what gives batches, and the share of padding.
fn timed(seconds: u64, mut batch: impl FnMut() -> Result<Tensor<2, Int>, BoxError>) -> Result<f64, BoxError> {
    for _ in 0..8 {
        black_box(batch()?);
    }
    let (begun, mut tokens) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(seconds) {
        tokens += black_box(batch()?).shape().num_elements();
    }
    Ok(tokens as f64 / begun.elapsed().as_secs_f64())
}

fn rows(workers: usize, seconds: u64) -> Result<serde_json::Value, BoxError> {
    let documents = Documents(lengths(2_000_000).into());
    let sampler = || PackingSampler::new(RandomSampler::new(1), Arc::clone(&documents.0), ROW, ROWS);
    let pack = PackTokens::new(ROW)?.vocabulary(50_000);
    let builder = PinnedDataLoaderBuilder::from_batcher(pack.clone()).order(sampler()?).num_workers(workers);
    let loader = builder.set_device(Device::flex()).build(documents.clone())?;
    let mut epoch = loader.iter();
    let loaded = timed(seconds, || Ok(epoch.next().ok_or("the epoch is over")??.tokens))?;
    drop(epoch);
    let mut batches = sampler()?.batches(documents.0.len(), 0).batches;
    let alone = timed(seconds, || {
        let batch = batches.next().ok_or("the epoch is over")?;
        let rows = batch.into_iter().map(|document| documents.get(document)).collect::<Result<Vec<_>, _>>()?;
        Ok(pack.batch(rows, &Device::flex()).tokens)
    })?;
    Ok(
        serde_json::json!({"bench": "packing", "case": "rows", "workers": workers, "tokens_per_s": loaded.round(), "alone_tokens_per_s": alone.round()}),
    )
}

/// Packed batches of rows of text with a tokeniser. Tokens a second: padding is not counted.
#[cfg(feature = "tokenizers")]
fn tokens(folder: &Path, workers: usize, seconds: u64) -> Result<(), BoxError> {
    let rows = burn_pinned::data::Rows::<(String,)>::jsonl(folder.join("docs.jsonl")).columns(["text"]).open()?;
    let tokenizer = burn_pinned::data::HfTokenizer::open(folder.join("tokenizer.json"))?;
    let tokens = rows.tokenized(tokenizer.column(|(text,): &(String,)| text));
    let lengths = tokens.lengths()?;
    let sum: u64 = lengths.as_ref().iter().map(|length| u64::from(*length)).sum();
    let order = PackingSampler::new(RandomSampler::new(1), lengths, ROW, ROWS)?;
    let filled = sum as f64 / (order.batches(tokens.len(), 0).len * ROWS * ROW) as f64;
    let builder = PinnedDataLoaderBuilder::from_batcher(PackTokens::new(ROW)?).order(order).num_workers(workers);
    let loader = builder.set_device(Device::flex()).build(tokens)?;
    let mut all = (0..).flat_map(|_| loader.iter());
    let rate = timed(seconds, || Ok(all.next().ok_or("no batch")??.tokens))? * filled;
    println!(
        "{}",
        serde_json::json!({"bench": "packing", "case": "tokens", "workers": workers, "tokens_per_s": rate.round()})
    );
    Ok(())
}

fn main() -> Result<(), BoxError> {
    // `cargo bench` adds this word.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let [case, name, documents, folder] = args.as_slice()
        && ["plan", "resume"].contains(&case.as_str())
    {
        return epoch(case, name, documents.parse()?, folder.as_ref());
    }
    #[cfg(feature = "tokenizers")]
    if let [case, folder, rest @ ..] = args.as_slice()
        && case == "tokens"
    {
        let number = |at: usize, usual: u64| rest.get(at).map_or(Ok(usual), |text| text.parse());
        return tokens(folder.as_ref(), number(0, 2)? as usize, number(1, 5)?);
    }
    let number = |at: usize, usual: usize| args.get(at).map_or(Ok(usual), |text| text.parse());
    let (documents, rounds, workers, seconds) = (number(0, 100_000_000)?, number(1, 3)?, number(2, 2)?, number(3, 5)?);
    for _ in 0..rounds {
        for name in ["sequential", "blocks", "random"] {
            let folder = tempfile::tempdir()?;
            for case in ["plan", "resume"] {
                let args = [case, name, &documents.to_string()];
                let done = Command::new(std::env::current_exe()?).args(args).arg(folder.path()).status()?;
                if !done.success() {
                    return Err(format!("{case} {name}: {done}").into());
                }
            }
        }
        println!("{}", rows(workers, seconds as u64)?);
    }
    Ok(())
}
