//! The requests of processes: what they ask the cache and the store for, and what arrives.

use super::{Training, WAKE};
use crate::simulate::{run::RowRead, store::Nanos};
use burn_pinned::data::for_tools::{PAGE, PartState, default_pause};
use std::{collections::VecDeque, mem, ops::Range, sync::Arc};

/// Bytes of an object on their way to a process, by one request after the other.
pub(super) struct Job {
    pub(super) object: usize,
    /// What was not asked for yet.
    pub(super) rest: Range<u64>,
    /// The parts that are not under way yet.
    pub(super) parts: VecDeque<Range<u64>>,
    /// The number of the request in the state of reading ahead.
    pub(super) request: Option<u64>,
    /// The worker that reads the part. Without it, a thread fetches ahead.
    pub(super) reader: Option<RowRead>,
    /// What the request under way fetches for the cache.
    pub(super) pages: Range<u64>,
    pub(super) refusals: u32,
}

impl Job {
    /// Reads neighbouring parts.
    pub(super) fn new(object: usize, parts: Vec<Range<u64>>, request: Option<u64>, reader: Option<RowRead>) -> Self {
        let rest = parts.first().map_or(0, |part| part.start)..parts.last().map_or(0, |part| part.end);
        Self { object, rest, parts: parts.into(), request, reader, pages: 0..0, refusals: 0 }
    }
}

impl Training<'_> {
    /// Goes on with a job: the cache, the store, or its end.
    pub(super) fn next(&mut self, rank: usize, mut job: Job) {
        let state = &mut self.ranks[rank];
        let (cache, object) = (&mut self.caches[state.node], job.object);
        let bytes = self.run.data.layout.objects[object];
        for page in mem::take(&mut job.pages) {
            state.flights.remove(&(object, page));
            cache.keep((object, page), bytes);
        }
        if job.rest.is_empty() {
            self.send(rank, &mut job, self.now..self.now); // empty parts
            match (job.reader, job.request) {
                (Some(read), _) => return self.read(rank, read),
                (None, Some(request)) => self.ranks[rank].ahead.over(request),
                (None, None) => {}
            }
            return self.thread_is_free(rank);
        }
        let (start, page) = (job.rest.start, job.rest.start / PAGE);
        let times = if cache.has(object, &(start..start + 1)) {
            job.rest.start = ((page + 1) * PAGE).min(job.rest.end);
            self.load.cache_hits += (job.rest.start - start) as f64;
            self.now..self.now
        } else if let Some(until) = state.flights.get(&(object, page)) {
            *until..*until // another thread fetches the page
        } else {
            let (asked, pages) = cache.request((object, bytes), &job.rest, &state.flights);
            self.ask(rank, &mut job, asked, pages)
        };
        self.send(rank, &mut job, times.clone());
        self.at(times.end, move |training| training.next(rank, job));
    }

    /// Asks the store. Returns when the answer begins, and when the job goes on.
    fn ask(&mut self, rank: usize, job: &mut Job, asked: Range<u64>, pages: Range<u64>) -> Range<Nanos> {
        let (state, bytes) = (&mut self.ranks[rank], asked.end - asked.start);
        self.load.requests += 1.0;
        let at = match self.store.ask(self.now, state.node, bytes) {
            Ok(times) => {
                self.load.bytes += bytes as f64;
                state.flights.extend(pages.clone().map(|page| ((job.object, page), times.end)));
                (job.refusals, job.rest.start, job.pages) = (0, asked.end.min(job.rest.end), pages);
                return times;
            }
            Err(at) => at,
        };
        job.refusals += 1;
        self.load.refused_per_s += 1.0;
        let random = self.store.random();
        if let Some((least, most)) = default_pause(job.refusals) {
            return at..at + (least + (most - least).mul_f64(random)).as_nanos() as Nanos;
        }
        // The rows are bad: nothing else of them is asked for.
        self.load.failed += 1.0;
        job.rest.start = job.rest.end;
        at..at
    }

    /// Lets the parts arrive that end in what was asked for, from the first time to the last.
    fn send(&mut self, rank: usize, job: &mut Job, times: Range<Nanos>) {
        let (object, request, reads, end) = (job.object, job.request, job.reader.is_some(), job.rest.start);
        let Some(start) = job.parts.front().map(|part| part.start) else { return };
        while let Some(part) = job.parts.pop_front_if(|part| part.end <= end) {
            let share = (part.end - start) as f64 / (end - start).max(1) as f64;
            let at = times.start + ((times.end - times.start) as f64 * share) as Nanos;
            self.at(at, move |training| {
                let (state, key) = (&mut training.ranks[rank], (object, part.start));
                if let Some(request) = request {
                    let becomes = if reads { PartState::Taken } else { PartState::Here(Arc::default()) };
                    state.ahead.ended(request, key, part.end, becomes);
                }
                for read in state.waiting.remove(&key).unwrap_or_default() {
                    training.at(training.now + WAKE, move |training| training.read(rank, read));
                }
            });
        }
    }
}
