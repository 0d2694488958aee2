//! What the store of a data set gives, and how fast the loader reads the data set from it.

pub(crate) mod advice;
mod report;

use super::clock::Clock;
pub(crate) use advice::{Facts, Pass, Store};
use burn::{data::dataset::Dataset, tensor::Device};
use burn_pinned::{BoxError, PinnedDataLoaderBuilder, data::Rows};
use burn_pinned_tools::{
    collate::{Count, Tally},
    format::Format,
    measure::{Until, measure},
    open::Open,
    order::Order,
    remote::Traffic,
    row::{self, Row},
    size::several,
};
use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

const BATCH: usize = 64;
const SEED: u64 = 42;
/// Enough to see what a store gives; rows have 64 by default.
const REQUESTS: usize = 32;

#[derive(clap::Args)]
pub(crate) struct Data {
    /// Measure a data set instead, and the store that it lies on: files, globs, lists of braces or URLs, or the folder of an
    /// MDS data set
    #[arg(long, value_name = "URL|PATH", num_args = 1..)]
    pub(crate) data: Vec<PathBuf>,
    /// The format of the data set. Without it, the names tell
    #[arg(long, value_enum, requires = "data")]
    format: Option<Format>,
    /// Columns to read: of a tar the extensions. Without it, all
    #[arg(long, value_delimiter = ',', value_name = "A,B", requires = "data")]
    columns: Vec<String>,
    /// The order to read the data set in
    #[arg(long, value_enum, default_value_t = Order::Full, requires = "data")]
    order: Order,
}

/// Measures a data set. Each of its passes, three for a URL, takes `time`, or an epoch if that is shorter.
pub(crate) fn measured(args: &Data, time: Duration) -> Result<Facts, BoxError> {
    row::choose(&args.columns);
    let format = args.format.map_or_else(|| Format::guess(&args.data), Ok)?;
    let look = Look { paths: &args.data, format, time, clock: Clock::new(0, None) };
    look.clock.say("opens the data set");
    let begun = Instant::now();
    let rows = look.open(REQUESTS)?;
    let (opened, is_far, len) = (begun.elapsed(), Traffic::of(&rows).is_some(), rows.len());
    drop(rows);
    let store = if is_far {
        let one = look.pass(Order::Sequential, 1)?;
        Some(Store { one, many: look.pass(Order::Sequential, REQUESTS)? })
    } else {
        None
    };
    let pass = match &store {
        Some(store) if args.order == Order::Sequential => store.many.clone(),
        _ => look.pass(args.order, REQUESTS)?,
    };
    Ok(Facts { format: format.name(), rows: len, opened, store, pass })
}

/// What all passes have in common.
struct Look<'a> {
    paths: &'a [PathBuf],
    format: Format,
    time: Duration,
    clock: Clock,
}

impl Look<'_> {
    fn open(&self, requests: usize) -> Result<Rows<Row>, BoxError> {
        let mut open = Open::of(self.paths.to_vec(), self.format);
        open.remote.set_requests(requests);
        open.rows(&[], &[])
    }

    /// Reads first epochs, over rows that are opened anew for each: what was decoded before is not found again. None begins
    /// that would not come to its end in time.
    fn pass(&self, order: Order, requests: usize) -> Result<Pass, BoxError> {
        let begun = Instant::now();
        let (mut tally, mut time, mut traffic) = (Tally::default(), Duration::ZERO, Traffic::default());
        let (mut fetching, mut had, mut whole) = (Duration::ZERO, Duration::ZERO, true);
        loop {
            let rows = self.open(requests)?;
            let builder = PinnedDataLoaderBuilder::new(Count).batch_size(BATCH).set_device(Device::flex());
            let (mut builder, words) = order.set(builder, Some(rows.blocks()?.into()), SEED)?;
            // A worker asks the store by itself for what nobody has asked for. One of them has no reason to.
            if requests == 1 {
                builder = builder.num_workers(1);
            }
            let loader = builder.build(rows.clone())?;
            let before = Traffic::of(&rows);
            let at_once = before.map(|_| format!(", {} at once", several(requests, "request"))).unwrap_or_default();
            self.clock.say(format_args!("reads {words}{at_once}"));
            let epochs = measure(&*loader, Until::First(self.time))?;
            traffic += Traffic::of(&rows).unwrap_or_default() - before.unwrap_or_default();
            for epoch in &epochs {
                tally.add(&epoch.tally);
                time += epoch.time;
                whole &= epoch.whole;
            }
            let stats = loader.stats();
            fetching += stats.stages.fetch.busy;
            had += stats.workers_had;
            if begun.elapsed() >= self.time / 2 {
                let waiting = (fetching.as_secs_f64() / had.as_secs_f64().max(1e-9)).min(1.0);
                return Ok(Pass {
                    order,
                    words,
                    requests,
                    workers: stats.workers,
                    tally,
                    time,
                    traffic,
                    waiting,
                    whole,
                });
            }
        }
    }
}
