//! The events of a run, in the order of their times.

mod requests;

use super::{
    cache::NodeCache,
    report::EpochLoad,
    run::{Rank, RowRead, Run},
    store::{Nanos, SECOND, SimulatedStore, nanos},
};
use burn_pinned::{
    BoxError,
    data::for_tools::{Plan, PlannedRow, ReadAction, next_rows},
};
use requests::Job;
use std::collections::BTreeMap;

/// How long a thread plans some rows, and the time from the start of one thread to that of the next. They decide which rows the first
/// requests know of.
const PLANNING: Nanos = 50_000;
const START: Nanos = 50_000;
/// How long a thread takes to wake up. So a thread that has fetched a part goes on before a worker reads it.
const WAKE: Nanos = 50_000;

/// So many batches have memory at once on the host, by default.
const OPEN: usize = 4;

/// What happens at a time.
type Event<'a> = Box<dyn FnOnce(&mut Training<'a>)>;

/// A run while it is simulated.
pub(super) struct Training<'a> {
    run: &'a Run<'a>,
    caches: &'a mut [NodeCache],
    ranks: Vec<Rank>,
    store: SimulatedStore,
    now: Nanos,
    /// Those of one time have the order in which they were added. The end of a step is before them.
    events: BTreeMap<(Nanos, u64), Event<'a>>,
    added: u64,
    /// How many steps have begun. `load` has the number of those that have ended.
    begun: usize,
    last_end: Nanos,
    /// The sum of the processes' waits for the next step.
    waits: Nanos,
    load: EpochLoad,
}

impl<'a> Training<'a> {
    /// Simulates a run from its first request to the end of its last step. `caches` are those of the nodes.
    pub(super) fn simulate(run: &'a Run<'a>, caches: &'a mut [NodeCache]) -> Result<EpochLoad, BoxError> {
        let (cluster, load, events) = (&run.cluster, EpochLoad::default(), BTreeMap::new());
        let ranks =
            (0..cluster.nodes_in_detail() * cluster.gpus).map(|rank| run.rank(rank)).collect::<Result<_, _>>()?;
        let store = SimulatedStore::new(cluster, run.epoch);
        let mut training =
            Self { run, caches, ranks, store, now: 0, events, added: 0, begun: 0, last_end: 0, waits: 0, load };
        (0..training.ranks.len()).for_each(|rank| training.begin(rank));
        // At first, a process fetches faster than it reads. So the rates of a part of an epoch are those of its second half.
        let is_part = run.steps * cluster.batch_size < run.left();
        let (unrated, mut before) = (if is_part { run.steps / 2 } else { 0 }, load);
        while training.load.steps < run.steps {
            let ((now, _), event) = training.events.pop_first().ok_or("the simulation stands still")?;
            training.now = now;
            event(&mut training);
            training.load.seconds = now as f64 / SECOND;
            if (1..=unrated).contains(&training.load.steps) {
                before = training.load;
            }
        }
        Ok(training.load.of_all(1.0 / cluster.share(), &before))
    }

    fn at(&mut self, time: Nanos, event: impl FnOnce(&mut Self) + 'static) {
        self.added += 1;
        self.events.insert((time, self.added), Box::new(event));
    }

    /// The first rows are planned before all else.
    fn begin(&mut self, rank: usize) {
        if let Some((id, rows, plan)) = self.next_rows(rank) {
            self.ranks[rank].ahead.planned(id, rows, plan);
        }
        for thread in 0..self.run.cluster.requests {
            self.at(thread as Nanos * START, move |training| training.thread_is_free(rank));
        }
        self.work(rank);
    }

    /// Plans the next rows of a process.
    fn next_rows(&mut self, rank: usize) -> Option<(u64, Vec<PlannedRow>, Option<Plan>)> {
        let state = &mut self.ranks[rank];
        let (cache, (id, plan)) = (&self.caches[state.node], state.ahead.next_plan()?);
        let (rows, plan) = next_rows(plan, |object, part| cache.has(object, part));
        Some((id, rows, plan))
    }

    /// Begins the next step, if no step runs and all processes have its batch.
    fn step(&mut self) {
        let is_ready = |rank: &Rank| rank.unready.get(self.begun) == Some(&0);
        if self.begun > self.load.steps || !self.ranks.iter().all(is_ready) {
            return;
        }
        let (waited, load) = (self.now - self.last_end, &mut self.load);
        if self.begun == 0 {
            load.first_batch_s = waited as f64 / SECOND;
        } else {
            load.waiting_steps += f64::from(u8::from(waited > 0));
            load.waited_s += waited as f64 / SECOND;
            load.skew_s += (waited - self.waits / self.ranks.len() as u64) as f64 / SECOND;
        }
        self.begun += 1;
        let end = |training: &mut Self| {
            (training.last_end, training.waits) = (training.now, 0);
            training.load.steps += 1;
            training.step();
        };
        self.events.insert((self.now + nanos(self.run.cluster.step), 0), Box::new(end));
        (0..self.ranks.len()).for_each(|rank| self.work(rank));
    }

    /// Gives rows to the workers of a process that have none, if a batch may be open so far ahead of the training.
    fn work(&mut self, rank: usize) {
        let open = self.begun + OPEN;
        while self.ranks[rank].idle_workers > 0
            && let Some((row, batch)) = self.ranks[rank].rows.pop_front_if(|(_, batch)| *batch < open)
        {
            self.ranks[rank].idle_workers -= 1;
            let parts = (self.run.data.layout.parts)(row);
            self.load.used += parts.iter().map(|(_, part)| part.end - part.start).sum::<u64>() as f64;
            self.read(rank, RowRead { row, batch, parts: parts.into() });
        }
    }

    /// Reads a row until it waits, or has all of its parts.
    fn read(&mut self, rank: usize, mut read: RowRead) {
        let state = &mut self.ranks[rank];
        while let Some((object, part)) = read.parts.pop_front() {
            let key = (object, part.start);
            let request = match state.ahead.want(key, part.end, None) {
                ReadAction::Here(_) | ReadAction::Failed(_) => continue,
                // It was decoded for another row.
                ReadAction::Unknown if !self.run.data.layout.again => continue,
                ReadAction::Coming(_) => {
                    read.parts.push_front((object, part));
                    return state.waiting.entry(key).or_default().push(read);
                }
                ReadAction::Fetch(request) => Some(request),
                ReadAction::Unknown => None,
            };
            return self.next(rank, Job::new(object, vec![part], request, Some(read)));
        }
        state.ahead.row_read(read.row);
        self.at(self.now + nanos(self.run.cluster.decode), move |training| training.sample(rank, read.batch));
        self.fetch(rank);
    }

    /// A sample of this batch is ready.
    fn sample(&mut self, rank: usize, batch: usize) {
        let state = &mut self.ranks[rank];
        state.idle_workers += 1;
        state.unready[batch] -= 1;
        if state.unready[batch] == 0 {
            if batch == self.load.steps {
                self.waits += self.now - self.last_end;
            }
            self.step();
        }
        self.work(rank);
    }

    fn thread_is_free(&mut self, rank: usize) {
        self.ranks[rank].idle_threads += 1;
        self.fetch(rank);
    }

    /// Gives plans and pieces to the fetching threads of a process, as they take them.
    fn fetch(&mut self, rank: usize) {
        while self.ranks[rank].idle_threads > 0 {
            if let Some((id, rows, plan)) = self.next_rows(rank) {
                self.ranks[rank].idle_threads -= 1;
                self.at(self.now + PLANNING, move |training| {
                    training.ranks[rank].ahead.planned(id, rows, plan);
                    training.thread_is_free(rank);
                });
            } else if let Some(piece) = self.ranks[rank].ahead.next_piece() {
                self.ranks[rank].idle_threads -= 1;
                self.next(rank, Job::new(piece.object, piece.parts.clone(), Some(piece.request), None));
            } else {
                return;
            }
        }
    }
}
