//! Loaders for several devices, and how fast they feed them.

use crate::{
    batch::{Batch, Case, ROW},
    links,
    machine::threads,
    report::{each, rounded},
    window::{Start, joined},
};
use burn::{
    data::dataloader::{DataLoader, split::split_dataloader},
    tensor::Device,
};
use burn_pinned::{BoxError, Distributed, PinnedDataLoader, Stats, host_alloc};
use serde_json::{Value, json};
use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// Batches that each device takes before the clock starts.
const WARM: usize = 4;

pub(crate) type Source = Arc<dyn DataLoader<Batch>>;

/// Loaders, and what each device takes its batches from.
pub(crate) struct Feed {
    loaders: Vec<Arc<PinnedDataLoader<Batch>>>,
    pub(crate) sources: Vec<Source>,
}

/// What devices got in one window.
pub(crate) struct Fed {
    /// Samples a second, of each device.
    pub(crate) items_per_s: Vec<f64>,
    /// The share of its time that a consumer waited, as a mean over the devices.
    pub(crate) wait_share: f64,
}

/// What there is without loaders: workers that fill slots which nobody copies, while all links copy something else.
#[derive(Clone, Copy)]
pub(crate) struct Ceiling {
    pub(crate) fill: f64,
    /// `None` without GPUs.
    pub(crate) links: Option<f64>,
}

impl Feed {
    /// One loader. Burn cuts it for the devices, which divide its workers.
    pub(crate) fn cut(case: &Case, devices: &[Device], workers: usize) -> Result<Self, BoxError> {
        let first = devices.first().ok_or("there are no devices")?;
        let builder = case.builder(workers, devices.len()).devices(devices.len()).set_device(first.clone());
        let loader = builder.build(case.dataset())?;
        let sources = split_dataloader(Arc::clone(&loader) as Source, devices);
        Ok(Self { loaders: vec![loader], sources })
    }

    /// A loader for each device, with its part of the workers.
    pub(crate) fn separate(case: &Case, devices: &[Device], workers: usize) -> Result<Self, BoxError> {
        let mut loaders = Vec::new();
        for (nth, device) in devices.iter().enumerate() {
            let share = Distributed::new(nth, devices.len())?;
            let workers = if workers == 0 { 0 } else { part(workers, devices.len(), nth) };
            let builder = case.builder(workers, 1).distributed(share);
            loaders.push(builder.set_device(device.clone()).build(case.dataset())?);
        }
        Ok(Self::of(loaders))
    }

    /// The same workers, and slots near the same devices, but the batches stay in the slots.
    fn filling(case: &Case, devices: &[Device], workers: usize) -> Result<Self, BoxError> {
        let mut loaders = Vec::new();
        for (nth, device) in devices.iter().enumerate() {
            let builder = case.builder(part(workers, devices.len(), nth), 1).allocator(host_alloc(device, false)?);
            loaders.push(builder.set_device(Device::flex()).build(case.dataset())?);
        }
        Ok(Self::of(loaders))
    }

    fn of(loaders: Vec<Arc<PinnedDataLoader<Batch>>>) -> Self {
        let sources = loaders.iter().map(|loader| Arc::clone(loader) as Source).collect();
        Self { loaders, sources }
    }

    /// The workers of all loaders: those at work last, where the loaders choose.
    pub(crate) fn workers(&self) -> usize {
        self.loaders.iter().map(|loader| loader.stats().workers).sum()
    }

    /// Lets each device take batches, without a step, on a thread of its own.
    pub(crate) fn drain(&self, batch: usize, devices: &[Device], start: &Start) -> Result<Fed, BoxError> {
        let all = thread::scope(|scope| {
            let feeds = self.sources.iter().zip(devices);
            let threads = feeds.map(|(source, device)| scope.spawn(move || take(&**source, device, start)));
            joined(threads, "a consumer panicked")
        });
        let (rates, waits): (Vec<f64>, Vec<f64>) = all?.into_iter().unzip();
        Ok(Fed {
            wait_share: waits.iter().sum::<f64>() / waits.len() as f64,
            items_per_s: rates.into_iter().map(|rate| rate * batch as f64).collect(),
        })
    }

    /// Drains the loaders, and tells what was seen.
    pub(crate) fn figures(&self, case: &Case, devices: &[Device], time: Duration) -> Result<Value, BoxError> {
        let fed = self.drain(case.batch, devices, &Start::new(self.sources.len(), time))?;
        let stats: Vec<_> = self.loaders.iter().map(|loader| loader.stats()).collect();
        let mb = |bytes: usize| rounded(bytes as f64 / 1e6, 1);
        let decoded = stats.iter().any(|stats| stats.stages.decode.count > 0);
        let seconds =
            |time: fn(&Stats) -> Duration| rounded(stats.iter().map(|stats| time(stats).as_secs_f64()).sum(), 3);
        Ok(json!({
            "batch": case.batch,
            "items_per_s": fed.items_per_s.iter().sum::<f64>().round(),
            "items_per_s_each": each(&fed.items_per_s, 0),
            "gb_per_s": rounded(fed.gb_per_s().iter().sum(), 3),
            "gb_per_s_each": each(&fed.gb_per_s(), 3),
            "wait_share": rounded(fed.wait_share, 3),
            // Of each device.
            "slots": stats.first().map(|stats| stats.slots),
            "transfer_threads": stats.first().map(|stats| stats.transfer_threads),
            "threads": threads("bp-"),
            "workers_at_work": self.workers(),
            "pinned_mb": mb(stats.iter().map(|stats| stats.host_bytes_peak).sum()),
            "device_mb": mb(stats.iter().map(|stats| stats.device_bytes_peak).sum()),
            "memory": stats.first().and_then(|stats| stats.memory).map(|kind| format!("{kind:?}")),
            "decoded_on_device": decoded,
            // Of all devices together, with the start.
            "slot_wait_s": seconds(|stats| stats.stages.slot_wait.busy),
            "device_wait_s": seconds(|stats| stats.stages.device_wait.busy),
            "kept_wait_s": seconds(|stats| stats.kept_wait),
            "transfer_s": seconds(|stats| stats.stages.transfer.busy),
        }))
    }
}

impl Fed {
    pub(crate) fn gb_per_s(&self) -> Vec<f64> {
        self.items_per_s.iter().map(|rate| rate * ROW as f64 / 1e9).collect()
    }
}

impl Ceiling {
    pub(crate) fn measure(
        case: &Case,
        devices: &[Device],
        workers: usize,
        gpus: bool,
        time: Duration,
    ) -> Result<Self, BoxError> {
        let feed = Feed::filling(case, devices, workers)?;
        let (count, hosts) = (devices.len(), vec![Device::flex(); devices.len()]);
        let start = Start::new(if gpus { 2 * count } else { count }, time);
        let (fed, links) = thread::scope(|scope| {
            let links = gpus.then(|| scope.spawn(|| links::together(count, case.batch * ROW, &start)));
            (feed.drain(case.batch, &hosts, &start), links.map(|thread| thread.join()))
        });
        let links = links.map(|rates| rates.map_err(|_| "a thread that copies panicked")?).transpose()?;
        Ok(Self { fill: fed?.gb_per_s().iter().sum(), links: links.map(|rates| rates.iter().sum()) })
    }

    /// The lower of the two, GB/s.
    pub(crate) fn lower(&self) -> f64 {
        self.links.unwrap_or(f64::INFINITY).min(self.fill)
    }
}

/// The workers of one of several loaders.
pub(crate) fn part(workers: usize, loaders: usize, nth: usize) -> usize {
    (workers / loaders + usize::from(nth < workers % loaders)).max(1)
}

/// Takes batches and drops them. Returns batches a second, and the share of the time that it waited.
fn take(source: &dyn DataLoader<Batch>, device: &Device, start: &Start) -> Result<(f64, f64), BoxError> {
    let mut epoch = source.iter();
    let mut next = || -> Result<Batch, BoxError> { Ok(epoch.next().ok_or("the epoch ended early")??) };
    let warmed = (0..WARM).try_for_each(|_| next().map(drop));
    let window = start.wait();
    warmed?;
    let (mut batches, mut waited, mut before) = (0.0, 0.0, Instant::now());
    while !window.is_over(before) {
        let batch = next()?;
        let got = Instant::now();
        drop(batch);
        let now = Instant::now();
        batches += window.share(before, now);
        waited += window.share(before, got) * (got - before).as_secs_f64();
        before = now;
    }
    device.sync().map_err(|error| error.to_string())?;
    Ok((batches / window.seconds(), waited / window.seconds()))
}
