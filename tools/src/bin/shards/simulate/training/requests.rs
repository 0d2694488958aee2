//! The requests of processes: what they ask the cache and the store for, and what arrives.

use super::{Event, Training, WAKE};
use crate::simulate::{
    cache::NextStep,
    rank::JobOwner,
    store::{Nanos, StoreAnswer},
};
use burn_pinned::data::for_tools::{PartState, default_pause};
use std::{mem, sync::Arc};

impl Training<'_, '_> {
    /// Goes on with a job: the cache, the store, or its end.
    pub(super) fn next(&mut self, rank: usize, id: u64) {
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
    pub(super) fn part(&mut self, rank: usize, id: u64) {
        let state = &mut self.ranks[rank];
        let Some(job) = state.jobs.get_mut(&id) else { return };
        let JobOwner::Fetch { piece, here, .. } = &mut job.owner else { return };
        let (key, end) = ((job.object, piece.parts[*here].start), piece.parts[*here].end);
        *here += 1;
        state.ahead.ended(piece.request, key, end, PartState::Here(Arc::default()));
        for read in state.waiting.remove(&key).unwrap_or_default() {
            self.add(self.now + WAKE, rank, Event::Wake(read));
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
                    self.add(self.now + WAKE, rank, Event::Wake(other));
                }
                self.read(rank, read);
            }
        }
    }
}
