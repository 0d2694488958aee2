//! The events of a run, in the order of their times. Each is one of one process.

mod requests;

use super::{
    rank::{JobOwner, Rank, RowRead},
    report::EpochLoad,
    store::{Nanos, SECOND, SimulatedStore, nanos},
    world::World,
};
use burn_pinned::{
    BoxError,
    data::for_tools::{Plan, PlannedRow, ReadAction, next_rows},
};
use std::collections::BTreeMap;

/// How long a thread plans some rows, and the time from the start of one thread to that of the next. They decide which rows the first
/// requests know of.
const PLANNING: Nanos = 50_000;
const START: Nanos = 50_000;
/// How long a thread takes to wake up. So a thread that has fetched a part goes on before a worker reads it.
const WAKE: Nanos = 50_000;

/// An event of a process.
enum Event {
    /// A fetching thread has started.
    Thread,
    Planned(u64, Vec<PlannedRow>, Option<Plan>),
    /// The next part of a piece is here.
    Part(u64),
    /// A request has ended, or a pause after one.
    Next(u64),
    /// A worker wakes up: a part that it waits for is here.
    Wake(RowRead),
    /// A sample of this batch is ready.
    Sample(usize),
}

/// A run while it is simulated.
pub(super) struct Training<'a, 'b> {
    world: &'a mut World<'b>,
    ranks: Vec<Rank>,
    store: SimulatedStore,
    now: Nanos,
    /// Events of processes, by their times. Those of one time have the order in which they were added.
    queue: BTreeMap<(Nanos, u64), (usize, Event)>,
    events: u64,
    /// How many processes have each batch.
    ready: Vec<usize>,
    /// When the step that runs ends.
    step_ends: Option<Nanos>,
    last_end: Nanos,
    /// The sum of the processes' waits for the next step.
    waits: Nanos,
    load: EpochLoad,
}

impl<'a, 'b> Training<'a, 'b> {
    pub(super) fn new(world: &'a mut World<'b>, ranks: Vec<Rank>, store: SimulatedStore, steps: usize) -> Self {
        Self {
            world,
            ranks,
            store,
            now: 0,
            queue: BTreeMap::new(),
            events: 0,
            ready: vec![0; steps],
            step_ends: None,
            last_end: 0,
            waits: 0,
            load: EpochLoad::default(),
        }
    }

    /// Runs until the last step has ended. The rates are those from the step `rates_from` on, and `scale` is how many times as much all
    /// processes do.
    pub(super) fn run(mut self, rates_from: usize, scale: f64) -> Result<EpochLoad, BoxError> {
        self.begin();
        while self.load.steps < self.ready.len() {
            self.next_event()?;
            self.load.traffic.seconds = self.now as f64 / SECOND;
            if self.load.steps <= rates_from && rates_from > 0 {
                self.load.before = self.load.traffic;
            }
        }
        Ok(EpochLoad { scale, ..self.load })
    }

    fn add(&mut self, at: Nanos, rank: usize, event: Event) {
        self.events += 1;
        self.queue.insert((at, self.events), (rank, event));
    }

    /// The first rows are planned before all else.
    fn begin(&mut self) {
        for rank in 0..self.ranks.len() {
            if let Some((id, plan)) = self.ranks[rank].ahead.next_plan() {
                let (rows, plan) = self.next_rows(rank, plan);
                self.ranks[rank].ahead.planned(id, rows, plan);
            }
            for thread in 0..self.world.cluster.requests {
                self.add(thread as Nanos * START, rank, Event::Thread);
            }
            self.work(rank);
        }
    }

    fn next_rows(&self, rank: usize, plan: Plan) -> (Vec<PlannedRow>, Option<Plan>) {
        let cache = &self.world.caches[self.ranks[rank].node];
        next_rows(plan, |object, part| cache.has(object, part))
    }

    fn next_event(&mut self) -> Result<(), BoxError> {
        let next = self.queue.first_key_value().map(|((at, _), _)| *at);
        if let Some(ends) = self.step_ends.filter(|ends| next.is_none_or(|next| *ends <= next)) {
            (self.now, self.last_end, self.step_ends, self.waits) = (ends, ends, None, 0);
            self.load.steps += 1;
            self.step();
            return Ok(());
        }
        let Some(((at, _), (rank, event))) = self.queue.pop_first() else {
            return Err("the simulation stands still".into());
        };
        self.now = at;
        match event {
            Event::Thread => {
                self.ranks[rank].idle_threads += 1;
                self.fetch(rank);
            }
            Event::Planned(id, rows, plan) => {
                self.ranks[rank].ahead.planned(id, rows, plan);
                self.ranks[rank].idle_threads += 1;
                self.fetch(rank);
            }
            Event::Part(job) => self.part(rank, job),
            Event::Next(job) => self.next(rank, job),
            Event::Wake(read) => self.read(rank, read),
            Event::Sample(batch) => {
                self.ranks[rank].idle_workers += 1;
                if self.ranks[rank].is_ready_with_one_more(batch) {
                    self.ready[batch] += 1;
                    self.waits += if batch == self.load.steps { self.waited() } else { 0 };
                    self.step();
                }
                self.work(rank);
            }
        }
        Ok(())
    }

    /// How long the next step has waited by now.
    fn waited(&self) -> Nanos {
        if self.step_ends.is_some() { 0 } else { self.now - self.last_end }
    }

    /// Begins the next step, if no step runs and all processes have its batch.
    fn step(&mut self) {
        let ranks = self.ranks.len();
        if self.step_ends.is_some() || self.ready.get(self.load.steps) != Some(&ranks) {
            return;
        }
        let waited = self.waited();
        match self.load.steps {
            0 => self.load.first_batch = waited as f64 / SECOND,
            _ => {
                self.load.waits += usize::from(waited > 0);
                self.load.waited += waited as f64 / SECOND;
                self.load.skew += (waited - self.waits / ranks as u64) as f64 / SECOND;
            }
        }
        self.step_ends = Some(self.now + nanos(self.world.cluster.step));
        for rank in 0..ranks {
            self.ranks[rank].deliver();
            self.work(rank);
        }
    }

    /// Gives rows to the workers of a process that have none.
    fn work(&mut self, rank: usize) {
        while self.ranks[rank].idle_workers > 0
            && let Some((row, batch)) = self.ranks[rank].next_row(&self.world.cluster)
        {
            self.ranks[rank].idle_workers -= 1;
            let parts = (self.world.data.layout.parts)(row).into();
            self.read(rank, RowRead { row, batch, parts, waited: None });
        }
    }

    /// Reads a row until it waits, or has all of its parts.
    fn read(&mut self, rank: usize, mut read: RowRead) {
        let state = &mut self.ranks[rank];
        while let Some((object, part)) = read.parts.front().cloned() {
            let key = (object, part.start);
            let request = match state.ahead.want(key, part.end, read.waited) {
                ReadAction::Here(_) | ReadAction::Failed(_) => None,
                // It was decoded for another row.
                ReadAction::Unknown if !self.world.data.layout.again => None,
                ReadAction::Coming(request) => {
                    read.waited = Some(request);
                    return state.waiting.entry(key).or_default().push(read);
                }
                ReadAction::Fetch(request) => Some(Some(request)),
                ReadAction::Unknown => Some(None),
            };
            if let Some(request) = request {
                let job = state.add_job(object, part, JobOwner::Worker { read, request });
                return self.next(rank, job);
            }
            self.load.used += part.end - part.start;
            read.parts.pop_front();
            read.waited = None;
        }
        state.ahead.row_read(read.row);
        self.add(self.now + nanos(self.world.cluster.decode), rank, Event::Sample(read.batch));
        self.fetch(rank);
    }

    /// Gives plans and pieces to the fetching threads of a process, as they take them.
    fn fetch(&mut self, rank: usize) {
        while self.ranks[rank].idle_threads > 0 {
            if let Some((id, plan)) = self.ranks[rank].ahead.next_plan() {
                let (rows, plan) = self.next_rows(rank, plan);
                self.add(self.now + PLANNING, rank, Event::Planned(id, rows, plan));
                self.ranks[rank].idle_threads -= 1;
            } else if let Some(piece) = self.ranks[rank].ahead.next_piece() {
                self.ranks[rank].idle_threads -= 1;
                let (object, range) = (piece.object, piece.range());
                let job = self.ranks[rank].add_job(object, range, JobOwner::Fetch { piece, sent: 0, here: 0 });
                self.next(rank, job);
            } else {
                return;
            }
        }
    }
}
