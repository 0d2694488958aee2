//! What was simulated: a table, or lines of JSON.

use burn_pinned_tools::size::{count, show_bytes, time};
use serde::Serialize;
use std::time::Duration;

/// What all processes did in an epoch. While it runs: what those did that are simulated one by one, with numbers in place of rates and
/// shares.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct EpochLoad {
    pub(super) requests: f64,
    pub(super) bytes: f64,
    pub(super) requests_per_s: f64,
    pub(super) refused_per_s: f64,
    pub(super) bytes_per_s: f64,
    /// Parts that were given up after several refusals.
    pub(super) failed: f64,
    pub(super) seconds: f64,
    pub(super) first_batch_s: f64,
    pub(super) steps: usize,
    /// The share of the steps after the first one that wait.
    pub(super) waiting_steps: f64,
    /// How long they wait.
    pub(super) waited_s: f64,
    /// The part of it in which only some processes wait: the longest wait of each step, less the mean one.
    pub(super) skew_s: f64,
    /// The share of the bytes that come from caches.
    pub(super) cache_hits: f64,
    /// Bytes that rows needed.
    #[serde(skip)]
    pub(super) used: f64,
}

impl EpochLoad {
    /// All processes do `scale` times as much. The rates are those after `before`.
    pub(super) fn of_all(self, scale: f64, before: &Self) -> Self {
        let a_second = scale / (self.seconds - before.seconds);
        Self {
            requests: self.requests * scale,
            bytes: self.bytes * scale,
            requests_per_s: (self.requests - before.requests) * a_second,
            refused_per_s: (self.refused_per_s - before.refused_per_s) * a_second,
            bytes_per_s: (self.bytes - before.bytes) * a_second,
            failed: self.failed * scale,
            waiting_steps: self.waiting_steps / self.steps.saturating_sub(1).max(1) as f64,
            cache_hits: self.cache_hits / self.used.max(1.0),
            ..self
        }
    }
}

/// What it costs that a node is lost at the half of an epoch: what is fetched besides an epoch that is not interrupted.
#[derive(Serialize)]
pub(super) struct LostNode {
    pub(super) more_requests: f64,
    pub(super) more_bytes: f64,
    pub(super) rest: EpochLoad,
}

#[derive(Serialize)]
pub(super) struct OrderReport {
    pub(super) order: String,
    pub(super) steps: usize,
    pub(super) steps_of_epoch: usize,
    pub(super) plan_s: f64,
    pub(super) plan_bytes: Option<u64>,
    pub(super) epochs: Vec<EpochLoad>,
    pub(super) lost_node: Option<LostNode>,
}

/// The heading of the table.
pub(super) const HEADING: &str =
    "order                 epoch  requests/s     bytes/s  refused/s    wait first batch      skew    cached";

impl OrderReport {
    pub(super) fn print(&self) {
        for (number, load) in (1..).zip(&self.epochs) {
            let name = if number == 1 { &*self.order } else { "" };
            let (requests, refused) = (count(load.requests_per_s as u64), count(load.refused_per_s as u64));
            let (bytes, first) = (show_bytes(load.bytes_per_s as u64), seconds(load.first_batch_s));
            let (wait, hits) = (100.0 * load.waiting_steps, 100.0 * load.cache_hits);
            let skew = seconds(load.skew_s / load.steps as f64);
            println!(
                "{name:<22}{number:>5}{requests:>12}{bytes:>12}{refused:>11}{wait:>6.0} %{first:>12}{skew:>10}{hits:>8.0} %"
            );
        }
        let memory = self.plan_bytes.map_or("unknown memory".into(), show_bytes);
        print!("{:<22}planned in {}, {memory}", "", seconds(self.plan_s));
        if let Some(LostNode { more_requests, more_bytes, rest }) = &self.lost_node {
            let (requests, bytes) = (count(*more_requests as u64), show_bytes(*more_bytes as u64));
            let first = seconds(rest.first_batch_s);
            print!("; a lost node: {requests} requests more, {bytes}, first batch after {first}");
        }
        let failed: f64 = self.epochs.iter().map(|load| load.failed).sum();
        if failed > 0.0 {
            print!("; {} reads given up", count(failed as u64));
        }
        println!();
    }
}

fn seconds(seconds: f64) -> String {
    time(Duration::from_secs_f64(seconds))
}
