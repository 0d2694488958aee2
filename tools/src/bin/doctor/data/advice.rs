//! What the measurements of a data set mean.

use burn_pinned_tools::{
    collate::Tally,
    order::Order,
    remote::Traffic,
    size::{count, show_bytes},
};
use std::time::Duration;

/// One way to read a data set, measured.
#[derive(Clone, Debug)]
pub(crate) struct Pass {
    pub(crate) order: Order,
    /// The order in words.
    pub(crate) words: String,
    /// To a store, at once.
    pub(crate) requests: usize,
    pub(crate) workers: usize,
    pub(crate) tally: Tally,
    pub(crate) time: Duration,
    pub(crate) traffic: Traffic,
    /// The share of the workers' time in which they waited for the store.
    pub(crate) waiting: f64,
    /// Whether it came to the end of an epoch. Else some bytes were fetched, and not read yet.
    pub(crate) whole: bool,
}

impl Pass {
    fn a_second(&self, number: u64) -> u64 {
        (number as f64 / self.time.as_secs_f64().max(1e-9)).round() as u64
    }

    pub(crate) fn samples_per_s(&self) -> u64 {
        self.a_second(self.tally.rows)
    }

    /// Bytes a second of the values of rows.
    pub(crate) fn bytes_per_s(&self) -> u64 {
        self.a_second(self.tally.bytes)
    }

    /// Bytes a second that came over the network.
    pub(crate) fn fetched_per_s(&self) -> u64 {
        self.a_second(self.traffic.bytes)
    }

    /// Mean bytes of a request.
    pub(crate) fn of_request(&self) -> u64 {
        self.traffic.bytes / self.traffic.requests.max(1)
    }
}

/// What a store gives in the order of the files.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    /// With one request at once.
    pub(crate) one: Pass,
    /// With many.
    pub(crate) many: Pass,
}

/// All that was found out about a data set.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) format: String,
    pub(crate) rows: usize,
    pub(crate) opened: Duration,
    /// `None` for local files.
    pub(crate) store: Option<Store>,
    /// In the order that was asked for.
    pub(crate) pass: Pass,
}

/// Workers that wait less than this share of their time would gain little from a faster store.
const KEEPS_UP: f64 = 0.25;
/// An order that gets less than this share of what the store gives in the order of the files has too small requests.
const AS_MUCH: f64 = 0.6;
/// If more requests have brought this share of the gain that there could be, still more may bring more.
const SCALES: f64 = 0.5;
/// Rows for which this many times their own bytes are read share these bytes with their neighbours.
const SHARED: f64 = 2.0;

/// What to do, in one line.
pub(crate) fn verdict(store: &Store, pass: &Pass) -> String {
    let Store { one, many } = store;
    let waits = format!("the workers wait for it {:.0} % of their time", 100.0 * pass.waiting);
    let (gets, gives, alone) = (pass.fetched_per_s(), many.fetched_per_s(), one.fetched_per_s());
    let is_small = (gets as f64) < AS_MUCH * gives as f64;
    let shared = pass.traffic.used as f64 > SHARED * pass.tally.bytes as f64;
    let more = format!("open the rows with more requests, e.g. `.requests({})`", 4 * pass.requests);
    if pass.waiting < KEEPS_UP {
        let (rate, workers) = (count(pass.samples_per_s()), pass.workers);
        return format!(
            "The store keeps up: {waits}. {rate} samples/s are what the workers make, {workers} of them here."
        );
    }
    if pass.order == Order::Full && shared {
        let [read, values] = [pass.traffic.used, pass.tally.bytes].map(show_bytes);
        return format!(
            "The store is the limit: {waits}. For {values} of samples, {read} are read: shuffle by blocks (`BlockShuffle`)."
        );
    }
    if is_small {
        let [size, gets, gives] = [pass.of_request(), gets, gives].map(show_bytes);
        let advice = match pass.order {
            Order::Full => format!("shuffle by blocks (`BlockShuffle`), or {more}"),
            Order::Blocks | Order::Sequential => more,
        };
        return format!(
            "The store is the limit: {waits}. Requests of {size} get {gets}/s of the {gives}/s that there are: {advice}."
        );
    }
    let (times, requests) = (gives as f64 / alone.max(1) as f64, many.requests);
    if times >= SCALES * requests as f64 {
        return format!(
            "The store is the limit: {waits}. {requests} requests get {times:.0} x as much as one: {more}."
        );
    }
    format!(
        "The store is the limit: {waits}, and more requests would bring little. Keep a cache (`.cache(folder, bytes)`): from the \
         second epoch on, what is in it comes from the disk."
    )
}
