//! The cache of a node: which of its pages there are.

use super::store::Nanos;
use burn_pinned::data::for_tools::{PAGE, RUN, on_disk};
use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

/// A page of an object.
pub(super) type PageKey = (usize, u64);

/// How a process gets the next bytes of a part.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    /// From the cache, up to this byte.
    Kept(u64),
    /// Another thread of the process fetches them: it asks again at this time.
    Wait(Nanos),
    /// From the store: this part of the object, of which these pages will be kept.
    Ask(Range<u64>, Vec<PageKey>),
}

/// Pages of a limited number of bytes. It fills up and then keeps what it has.
#[derive(Clone)]
pub(super) struct NodeCache {
    limit: u64,
    held: u64,
    pages: HashSet<PageKey>,
}

impl NodeCache {
    pub(super) fn new(limit: Option<u64>) -> Self {
        Self { limit: limit.unwrap_or(0), held: 0, pages: HashSet::new() }
    }

    pub(super) fn has(&self, object: usize, part: &Range<u64>) -> bool {
        (part.start / PAGE..part.end.div_ceil(PAGE)).all(|page| self.pages.contains(&(object, page)))
    }

    /// `flights` are the pages that the process is fetching, each with the time of its next event.
    pub(super) fn next(
        &self,
        (object, bytes): (usize, u64),
        part: &Range<u64>,
        flights: &HashMap<PageKey, Nanos>,
    ) -> NextStep {
        let end = |page: u64| ((page + 1) * PAGE).min(bytes);
        let key = (object, part.start / PAGE);
        if self.limit == 0 {
            return NextStep::Ask(part.clone(), Vec::new());
        }
        if self.pages.contains(&key) {
            return NextStep::Kept(end(key.1).min(part.end));
        }
        if let Some(until) = flights.get(&key) {
            return NextStep::Wait(*until);
        }
        let missing = (key.1..part.end.div_ceil(PAGE)).take_while(|page| !self.pages.contains(&(object, *page)));
        let mut held = self.held;
        let run = missing.clone().take(RUN).take_while(|page| {
            held += on_disk(end(*page) - page * PAGE);
            held <= self.limit && !flights.contains_key(&(object, *page))
        });
        let run: Vec<PageKey> = run.map(|page| (object, page)).collect();
        match run.last() {
            Some((_, last)) => NextStep::Ask(key.1 * PAGE..end(*last), run),
            None => NextStep::Ask(part.start..missing.last().map_or(part.end, end).min(part.end), run),
        }
    }

    /// Keeps a page, if there is space.
    pub(super) fn keep(&mut self, page: PageKey, bytes: u64) {
        let on_disk = on_disk(PAGE.min(bytes - page.1 * PAGE));
        if self.held + on_disk <= self.limit && self.pages.insert(page) {
            self.held += on_disk;
        }
    }
}
