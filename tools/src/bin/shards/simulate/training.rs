//! The events of a run, in the order of their times. Each is one of one process.

use super::{
    cache::NextStep,
    rank::{JobOwner, Rank, RowRead},
    report::EpochLoad,
    store::{Nanos, SECOND, SimulatedStore, StoreAnswer, nanos},
    world::World,
};
use burn_pinned::{
    BoxError,
    data::for_tools::{PartState, Plan, PlannedRow, ReadAction, default_pause, next_rows},
};
use std::{collections::BTreeMap, mem, sync::Arc};

/// How long a thread plans some rows. It decides which rows the first requests know of.
const PLANNING: Nanos = 50_000;

/// An event of a process.
enum Event {
    Planned(u64, Vec<PlannedRow>, Option<Plan>),
    /// The next part of a piece is here.
    Part(u64),
    /// A request has ended, or a pause after one.
    Next(u64),
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
            self.fetch(rank);
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
            Event::Planned(id, rows, plan) => {
                self.ranks[rank].ahead.planned(id, rows, plan);
                self.ranks[rank].idle_threads += 1;
                self.fetch(rank);
            }
            Event::Part(job) => self.part(rank, job),
            Event::Next(job) => self.next(rank, job),
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

    /// Goes on with a job: the cache, the store, or its end.
    fn next(&mut self, rank: usize, id: u64) {
        let (now, state, caches) = (self.now, &mut self.ranks[rank], &mut self.world.caches);
        let Some(job) = state.jobs.get_mut(&id) else { return };
        let (object, bytes) = (job.object, self.world.data.layout.objects[job.object]);
        for page in mem::take(&mut job.pages) {
            state.flights.remove(&page);
            caches[state.node].keep(page, bytes);
        }
        if job.rest.is_empty() {
            return self.end(rank, id);
        }
        let (asked, pages) = match caches[state.node].next((object, bytes), &job.rest, &state.flights) {
            NextStep::Wait(until) => return self.add(until, rank, Event::Next(id)),
            NextStep::Kept(end) => {
                self.load.cached += end - job.rest.start;
                job.rest.start = end;
                self.parts_until(rank, id, (now, now), end);
                return self.add(now, rank, Event::Next(id));
            }
            NextStep::Ask(asked, pages) => (asked, pages),
        };
        self.load.traffic.requests += 1;
        match self.store.ask(now, state.node, asked.end - asked.start) {
            StoreAnswer::Body(first, last) => {
                self.load.traffic.bytes += asked.end - asked.start;
                (job.refusals, job.rest.start) = (0, asked.end.min(job.rest.end));
                pages.iter().for_each(|page| _ = state.flights.insert(*page, last));
                job.pages = pages;
                self.parts_until(rank, id, (first, last), asked.end);
                self.add(last, rank, Event::Next(id));
            }
            StoreAnswer::Refusal(at) => {
                job.refusals += 1;
                self.load.traffic.refusals += 1;
                let random = self.store.random();
                let pause = default_pause(job.refusals).map(|(least, most)| least + (most - least).mul_f64(random));
                if pause.is_none() {
                    // The rows are bad: nothing else of them is asked for.
                    (self.load.failures, job.rest.start) = (self.load.failures + 1, job.rest.end);
                    self.parts_until(rank, id, (at, at), u64::MAX);
                }
                self.add(at + pause.map_or(0, |pause| pause.as_nanos() as u64), rank, Event::Next(id));
            }
        }
    }

    /// Lets the parts of a piece that end by a byte of the object arrive, from the first time to the last.
    fn parts_until(&mut self, rank: usize, id: u64, (first, last): (Nanos, Nanos), end: u64) {
        let Some(job) = self.ranks[rank].jobs.get_mut(&id) else { return };
        let JobOwner::Fetch { piece, sent, .. } = &mut job.owner else { return };
        let parts: Vec<u64> = piece.parts[*sent..].iter().map(|part| part.end).take_while(|at| *at <= end).collect();
        let Some(start) = piece.parts.get(*sent).map(|part| part.start) else { return };
        let bytes = end.min(piece.range().end).saturating_sub(start).max(1) as f64;
        *sent += parts.len();
        for part in parts {
            let share = (part - start) as f64 / bytes;
            self.add(first + ((last - first) as f64 * share) as Nanos, rank, Event::Part(id));
        }
    }

    /// The next part of a piece is here: the workers that wait for it go on.
    fn part(&mut self, rank: usize, id: u64) {
        let state = &mut self.ranks[rank];
        let Some(job) = state.jobs.get_mut(&id) else { return };
        let JobOwner::Fetch { piece, here, .. } = &mut job.owner else { return };
        let (key, end) = ((job.object, piece.parts[*here].start), piece.parts[*here].end);
        *here += 1;
        state.ahead.ended(piece.request, key, end, PartState::Here(Arc::default()));
        for read in state.waiting.remove(&key).unwrap_or_default() {
            self.read(rank, read);
        }
    }

    fn end(&mut self, rank: usize, id: u64) {
        let state = &mut self.ranks[rank];
        let Some(job) = state.jobs.remove(&id) else { return };
        match job.owner {
            JobOwner::Fetch { piece, .. } => {
                state.ahead.over(piece.request);
                state.idle_threads += 1;
                self.fetch(rank);
            }
            JobOwner::Worker { mut read, request } => {
                let Some((object, part)) = read.parts.pop_front() else { return };
                self.load.used += part.end - part.start;
                let key = (object, part.start);
                if let Some(request) = request {
                    state.ahead.ended(request, key, part.end, PartState::Taken);
                }
                for other in state.waiting.remove(&key).unwrap_or_default() {
                    self.read(rank, other);
                }
                self.read(rank, read);
            }
        }
    }
}
