//! What is simulated at a time: an epoch in an order, or a part of it. And the processes at its start.

use super::{args::Cluster, cache::PageKey, data::SimulatedData, store::Nanos};
use burn_pinned::{
    BoxError, Distributed,
    data::for_tools::{AheadState, PlannedRow},
    order::{Sampler, samples_of},
};
use std::{
    collections::{HashMap, VecDeque},
    ops::Range,
    sync::Arc,
};

#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) cluster: Cluster,
    pub(super) data: &'a SimulatedData,
    pub(super) sampler: &'a Arc<dyn Sampler>,
    pub(super) epoch: usize,
    /// Samples of all processes before it.
    pub(super) given: usize,
    pub(super) steps: usize,
}

/// A process: what it reads ahead, and its workers.
#[derive(Default)]
pub(super) struct Rank {
    pub(super) node: usize,
    pub(super) ahead: AheadState,
    /// The samples that no worker has taken yet, each with its batch.
    pub(super) rows: VecDeque<(usize, usize)>,
    /// Of each batch, the samples that are not ready.
    pub(super) unready: Vec<usize>,
    pub(super) idle_threads: usize,
    pub(super) idle_workers: usize,
    /// The workers that wait for a part, by its object and its start.
    pub(super) waiting: HashMap<(usize, u64), Vec<RowRead>>,
    /// The pages that it is fetching, each with the time of the next event.
    pub(super) flights: HashMap<PageKey, Nanos>,
}

/// A worker that reads a row.
pub(super) struct RowRead {
    pub(super) row: usize,
    pub(super) batch: usize,
    /// The parts of objects that it has not read yet.
    pub(super) parts: VecDeque<(usize, Range<u64>)>,
}

impl Run<'_> {
    /// The samples of a process.
    pub(super) fn samples_of(&self, process: usize) -> Result<Box<dyn Iterator<Item = usize> + Send>, BoxError> {
        let share = Distributed::new(process, self.cluster.world())?;
        Ok(samples_of(self.sampler, self.data.rows, self.cluster.batch_size, share, self.epoch, self.given)?)
    }

    /// How many samples of the epoch are left for a process.
    pub(super) fn left(&self) -> usize {
        self.data.rows.saturating_sub(self.given).div_ceil(self.cluster.world())
    }

    /// The process of this number among those that are simulated one by one.
    pub(super) fn rank(&self, number: usize) -> Result<Rank, BoxError> {
        let (Self { cluster, data, .. }, node) = (self, number / self.cluster.gpus);
        let process = node * cluster.nodes / cluster.nodes_in_detail() * cluster.gpus + number % cluster.gpus;
        let (mut ahead, parts) = (AheadState::new(cluster.read_ahead), Arc::clone(&data.layout.parts));
        let plan = self.samples_of(process)?.map(move |row| Some(PlannedRow { row, parts: parts(row) }));
        ahead.begin(Box::new(plan), data.layout.again);
        let (batch, all) = (cluster.batch_size, self.left().min(self.steps * cluster.batch_size));
        let rows = self.samples_of(process)?.take(all).enumerate().map(|(at, row)| (row, at / batch)).collect();
        let unready = (0..all).step_by(batch).map(|first| batch.min(all - first)).collect();
        Ok(Rank { node, ahead, rows, unready, idle_workers: cluster.workers, ..Rank::default() })
    }
}
