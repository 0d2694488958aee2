//! The nodes that read, and what stays there from one epoch to the next.

use super::{
    args::{Cluster, Limits},
    cache::NodeCache,
    data::SimulatedData,
    rank::Rank,
    report::EpochLoad,
    store::SimulatedStore,
    training::Training,
};
use burn_pinned::{
    BoxError, Distributed,
    data::for_tools::{AheadState, PlannedRow},
    order::{Sampler, samples_of},
};
use std::sync::Arc;

/// An epoch, or a part of one.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) epoch: usize,
    /// Samples of all processes before it.
    pub(super) given: usize,
    pub(super) steps: usize,
}

/// The nodes that are simulated one by one.
#[derive(Clone)]
pub(super) struct World<'a> {
    pub(super) cluster: Cluster,
    limits: Limits,
    pub(super) data: &'a SimulatedData,
    seed: u64,
    pub(super) caches: Vec<NodeCache>,
}

impl<'a> World<'a> {
    pub(super) fn new(cluster: Cluster, limits: Limits, data: &'a SimulatedData, seed: u64) -> Self {
        let caches = vec![NodeCache::new(cluster.cache); cluster.nodes_in_detail()];
        Self { cluster, limits, data, seed, caches }
    }

    pub(super) fn lose_node(&mut self) {
        self.cluster.nodes -= 1;
        self.caches.truncate(self.cluster.nodes_in_detail());
    }

    /// Simulates an epoch from its first request to the end of its last step.
    pub(super) fn run(&mut self, sampler: &Arc<dyn Sampler>, run: Run) -> Result<EpochLoad, BoxError> {
        let (Self { cluster, data, .. }, detail) = (&*self, self.caches.len());
        let (world, len) = (cluster.world(), sampler.len(data.rows));
        let all = (len - run.given.min(len)).div_ceil(world).min(run.steps * cluster.batch_size);
        let mut ranks = Vec::with_capacity(detail * cluster.gpus);
        for at in 0..detail * cluster.gpus {
            let (node, gpu) = (at / cluster.gpus, at % cluster.gpus);
            let share = Distributed::new(node * cluster.nodes / detail * cluster.gpus + gpu, world)?;
            let rows = || samples_of(sampler, data.rows, cluster.batch_size, share, run.epoch, run.given);
            let mut ahead = AheadState::new(cluster.read_ahead);
            let parts = Arc::clone(&data.layout.parts);
            let plan = rows()?.map(move |row| Some(PlannedRow { row, parts: parts(row) }));
            ahead.begin(Box::new(plan), data.layout.again);
            ranks.push(Rank::new(cluster, node, ahead, rows()?, all));
        }
        let share = detail as f64 / cluster.nodes as f64;
        let store = SimulatedStore::new(self.limits, detail, share, self.seed + run.epoch as u64);
        let is_part = run.steps * world * cluster.batch_size < len - run.given.min(len);
        let rates_from = if is_part { run.steps / 2 } else { 0 };
        Training::new(self, ranks, store, run.steps).run(rates_from, 1.0 / share)
    }
}
