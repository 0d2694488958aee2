//! The store: when it answers, and what it refuses.

use super::args::Limits;
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};

/// A time of the simulation, in nanoseconds.
pub(super) type Nanos = u64;

pub(super) const SECOND: f64 = 1e9;

/// A time in milliseconds, as an option has it.
pub(super) fn nanos(ms: f64) -> Nanos {
    (ms * 1e6) as Nanos
}

/// What the store does with a request.
pub(super) enum StoreAnswer {
    /// It refuses the request, at this time.
    Refusal(Nanos),
    /// The first byte comes at the first time, and the last byte at the second.
    Body(Nanos, Nanos),
}

/// A connection that sends one answer after the other.
#[derive(Clone)]
struct Link {
    /// Nanoseconds for each byte.
    pace: f64,
    free: Nanos,
}

impl Link {
    fn new(bytes_a_second: Option<f64>) -> Self {
        Self { pace: bytes_a_second.map_or(0.0, |bytes| SECOND / bytes), free: 0 }
    }

    /// Sends bytes after those that it has promised to send before. Returns when the last one arrives.
    fn send(&mut self, from: Nanos, bytes: u64) -> Nanos {
        self.free = self.free.max(from) + (bytes as f64 * self.pace) as Nanos;
        self.free
    }
}

/// The store, and the networks between it and the nodes.
pub(super) struct SimulatedStore {
    limits: Limits,
    /// Requests a second. As many may come at once.
    rate: Option<f64>,
    /// How many may come at the time `since`.
    allowed: f64,
    since: Nanos,
    all: Link,
    nodes: Vec<Link>,
    rng: ChaCha8Rng,
}

impl SimulatedStore {
    /// `share` is that of the nodes that are simulated one by one: the others have the rest of the store.
    pub(super) fn new(limits: Limits, nodes: usize, share: f64, seed: u64) -> Self {
        let rate = limits.rate.map(|rate| (rate as f64 * share).max(1.0));
        Self {
            limits,
            rate,
            allowed: rate.unwrap_or(0.0),
            since: 0,
            all: Link::new(limits.bandwidth.map(|bytes| bytes as f64 * share)),
            nodes: vec![Link::new(limits.node_bandwidth.map(|bytes| bytes as f64)); nodes],
            rng: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    /// A number from 0 to 1.
    pub(super) fn random(&mut self) -> f64 {
        self.rng.random()
    }

    /// Whether the rate allows one more request.
    fn allows(&mut self, now: Nanos) -> bool {
        let Some(rate) = self.rate else { return true };
        self.allowed = (self.allowed + (now - self.since) as f64 / SECOND * rate).min(rate);
        self.since = now;
        let allows = self.allowed >= 1.0;
        self.allowed -= f64::from(u8::from(allows));
        allows
    }

    pub(super) fn ask(&mut self, now: Nanos, node: usize, bytes: u64) -> StoreAnswer {
        let answers = now + nanos(self.limits.latency);
        if !self.allows(now) || self.random() < self.limits.failures {
            return StoreAnswer::Refusal(answers);
        }
        let alone = Link::new(self.limits.request_bandwidth.map(|bytes| bytes as f64)).send(answers, bytes);
        let last = alone.max(self.nodes[node].send(answers, bytes)).max(self.all.send(answers, bytes));
        let slowest = self.nodes[node].pace.max(self.all.pace) * bytes as f64;
        StoreAnswer::Body(last - (slowest as Nanos).max(alone - answers), last)
    }
}
