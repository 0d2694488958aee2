//! What was measured of a data set, as text.

use super::advice::{Facts, Pass, Store, verdict};
use burn_pinned_tools::size::{count, several, show_bytes, time};
use std::fmt;

/// Characters of the longest bar.
const WIDE: f64 = 32.0;

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { format, rows, opened, store, pass } = self;
        writeln!(f, "\nData set")?;
        line(f, "format", format)?;
        line(f, "rows", count(*rows as u64))?;
        line(f, "opened in", time(*opened))?;
        if let Some(store) = store {
            of_store(f, store, pass)?;
        }
        writeln!(f, "\nRead by the loader, {}, {}", pass.words, several(pass.workers, "worker"))?;
        line(f, "samples/s", count(pass.samples_per_s()))?;
        line(f, "that is", format_args!("{}/s", show_bytes(pass.bytes_per_s())))?;
        let Some(store) = store else { return Ok(()) };
        let (traffic, size) = (&pass.traffic, show_bytes(pass.of_request()));
        let requests = count(traffic.requests);
        line(f, "fetched", format_args!("{} in {requests} requests of {size}", show_bytes(traffic.bytes)))?;
        let share = 100.0 * traffic.used as f64 / traffic.bytes.max(1) as f64;
        let rest = if pass.whole { "" } else { "; some of the rest was still to be read" };
        line(f, "used of it", format_args!("{} ({share:.0} %){rest}", show_bytes(traffic.used)))?;
        if traffic.retries > 0 {
            line(f, "retries", count(traffic.retries))?;
        }
        writeln!(f, "\nVerdict\n  {}", verdict(store, pass))
    }
}

/// A bar for each way to read.
fn of_store(f: &mut fmt::Formatter<'_>, store: &Store, pass: &Pass) -> fmt::Result {
    let Store { one, many } = store;
    writeln!(f, "\nStore, first byte after {}", time(one.traffic.first_byte()))?;
    let mut passes = vec![one, many];
    if pass.order != many.order {
        passes.push(pass);
    }
    let best = passes.iter().map(|pass| pass.fetched_per_s()).max().unwrap_or_default().max(1);
    for pass in passes {
        let rate = pass.fetched_per_s();
        let bar = "█".repeat((WIDE * rate as f64 / best as f64).round().max(1.0) as usize);
        let requests = several(pass.requests, "request");
        writeln!(f, "  {requests:>11} at once, {:<22} {:>7}/s  {bar}", pass.words, show_bytes(rate))?;
    }
    Ok(())
}

fn line(f: &mut fmt::Formatter<'_>, name: &str, value: impl fmt::Display) -> fmt::Result {
    writeln!(f, "  {name:<18} {value}")
}
