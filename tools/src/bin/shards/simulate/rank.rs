//! One process: what it reads ahead, its workers, and its requests.

use super::{args::Cluster, cache::PageKey, store::Nanos};
use burn_pinned::data::for_tools::{AheadPiece, AheadState};
use std::{
    collections::{HashMap, VecDeque},
    ops::Range,
    sync::Arc,
};

/// A part of an object.
pub(super) type Part = (usize, Range<u64>);

/// A worker that reads a row.
pub(super) struct RowRead {
    pub(super) row: usize,
    pub(super) batch: usize,
    /// The parts that it has not read yet.
    pub(super) parts: VecDeque<Part>,
    /// The request that it waits for.
    pub(super) waited: Option<u64>,
}

/// Who has made a request.
pub(super) enum JobOwner {
    /// A thread that fetches ahead. Of the piece, so many parts are under way or here, and so many are here.
    Fetch { piece: Arc<AheadPiece>, sent: usize, here: usize },
    /// A worker, maybe on behalf of others that wait for the same part.
    Worker { read: RowRead, request: Option<u64> },
}

/// Bytes on their way to a process, by one request after the other.
pub(super) struct Job {
    pub(super) object: usize,
    /// What was not asked for yet.
    pub(super) rest: Range<u64>,
    /// What the request under way fetches for the cache.
    pub(super) pages: Vec<PageKey>,
    pub(super) refusals: u32,
    pub(super) owner: JobOwner,
}

pub(super) struct Rank {
    pub(super) node: usize,
    pub(super) ahead: AheadState,
    /// The samples that no worker has taken yet.
    rows: Box<dyn Iterator<Item = usize> + Send>,
    taken: usize,
    /// How many samples it has in all.
    all: usize,
    /// Of each batch from the next one on, the samples that are not ready.
    unready: VecDeque<usize>,
    pub(super) delivered: usize,
    pub(super) idle_threads: usize,
    pub(super) idle_workers: usize,
    /// The workers that wait for a part, by its object and its start.
    pub(super) waiting: HashMap<(usize, u64), Vec<RowRead>>,
    pub(super) flights: HashMap<PageKey, Nanos>,
    pub(super) jobs: HashMap<u64, Job>,
    pub(super) last_job: u64,
}

impl Rank {
    /// `rows` has the samples of `ahead`, of which so many are read.
    pub(super) fn new(
        cluster: &Cluster,
        node: usize,
        ahead: AheadState,
        rows: Box<dyn Iterator<Item = usize> + Send>,
        all: usize,
    ) -> Self {
        Self {
            node,
            ahead,
            rows,
            taken: 0,
            all,
            unready: VecDeque::new(),
            delivered: 0,
            idle_threads: 0,
            idle_workers: cluster.workers,
            waiting: HashMap::new(),
            flights: HashMap::new(),
            jobs: HashMap::new(),
            last_job: 0,
        }
    }

    /// The next row for a worker, and its batch, if a batch may be open so far ahead of the training.
    pub(super) fn next_row(&mut self, cluster: &Cluster) -> Option<(usize, usize)> {
        let batch = self.taken / cluster.batch_size;
        // On the host, so many batches have memory at once.
        if self.taken == self.all || batch >= self.delivered + cluster.prefetch + 2 {
            return None;
        }
        if self.unready.len() == batch - self.delivered {
            self.unready.push_back(cluster.batch_size.min(self.all - self.taken));
        }
        self.taken += 1;
        Some((self.rows.next()?, batch))
    }

    /// Whether a batch is complete with one more sample of it.
    pub(super) fn is_ready_with_one_more(&mut self, batch: usize) -> bool {
        let Some(unready) = self.unready.get_mut(batch - self.delivered) else { return false };
        *unready -= 1;
        *unready == 0
    }

    pub(super) fn deliver(&mut self) {
        self.unready.pop_front();
        self.delivered += 1;
    }

    pub(super) fn add_job(&mut self, object: usize, rest: Range<u64>, owner: JobOwner) -> u64 {
        self.last_job += 1;
        self.jobs.insert(self.last_job, Job { object, rest, pages: Vec::new(), refusals: 0, owner });
        self.last_job
    }
}
