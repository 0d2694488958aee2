//! The store: when it answers, and what it refuses.

use super::args::Cluster;
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use std::ops::Range;

/// A time of the simulation, in nanoseconds.
pub(super) type Nanos = u64;

pub(super) const SECOND: f64 = 1e9;

/// A time in milliseconds, as an option has it.
pub(super) fn nanos(ms: f64) -> Nanos {
    (ms * 1e6) as Nanos
}

/// The store, and the networks between it and the nodes.
pub(super) struct SimulatedStore {
    cluster: Cluster,
    /// How many requests may come at the time `since`.
    allowed: f64,
    since: Nanos,
    /// When the network of the store, and that of each node, has sent what was promised before.
    free: Nanos,
    nodes_free: Vec<Nanos>,
    rng: ChaCha8Rng,
}

impl SimulatedStore {
    pub(super) fn new(cluster: &Cluster, epoch: usize) -> Self {
        let rng = ChaCha8Rng::seed_from_u64(cluster.seed + epoch as u64);
        let nodes_free = vec![0; cluster.nodes_in_detail()];
        Self { cluster: *cluster, allowed: f64::INFINITY, since: 0, free: 0, nodes_free, rng }
    }

    /// A number from 0 to 1.
    pub(super) fn random(&mut self) -> f64 {
        self.rng.random()
    }

    /// Whether the rate allows one more request. The requests of a second may come at once.
    fn allows(&mut self, now: Nanos) -> bool {
        let Some(rate) = self.cluster.rate else { return true };
        let rate = (rate as f64 * self.cluster.share()).max(1.0);
        self.allowed = (self.allowed + (now - self.since) as f64 / SECOND * rate).min(rate);
        self.since = now;
        let allows = self.allowed >= 1.0;
        self.allowed -= f64::from(u8::from(allows));
        allows
    }

    /// Returns when the first byte comes and when the last one, or when a refusal comes.
    pub(super) fn ask(&mut self, now: Nanos, node: usize, bytes: u64) -> Result<Range<Nanos>, Nanos> {
        let answers = now + nanos(self.cluster.latency);
        if !self.allows(now) || self.random() < self.cluster.failures {
            return Err(answers);
        }
        // A network sends one answer after the other. The nodes that are not simulated one by one have the rest of the store.
        let send = |free: &mut Nanos, bandwidth: Option<u64>, share: f64| {
            let takes = bandwidth.map_or(0.0, |all| bytes as f64 * (SECOND / (all as f64 * share))) as Nanos;
            *free = answers.max(*free) + takes;
            (*free, takes)
        };
        let (last, takes) = send(&mut self.nodes_free[node], self.cluster.node_bandwidth, 1.0);
        let (last_of_all, takes_of_all) = send(&mut self.free, self.cluster.bandwidth, self.cluster.share());
        let last = last.max(last_of_all);
        Ok(last - takes.max(takes_of_all)..last)
    }
}
