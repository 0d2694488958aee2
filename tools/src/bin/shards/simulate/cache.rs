//! The cache of a node: which of its pages there are.

use super::store::Nanos;
use burn_pinned::data::for_tools::{PAGE, RUN, on_disk};
use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

/// A page of an object.
pub(super) type PageKey = (usize, u64);

/// Pages of a limited number of bytes. It fills up and then keeps what it has.
#[derive(Clone, Default)]
pub(super) struct NodeCache {
    limit: u64,
    held: u64,
    pages: HashSet<PageKey>,
}

impl NodeCache {
    pub(super) fn new(limit: Option<u64>) -> Self {
        Self { limit: limit.unwrap_or(0), ..Self::default() }
    }

    pub(super) fn has(&self, object: usize, part: &Range<u64>) -> bool {
        (part.start / PAGE..part.end.div_ceil(PAGE)).all(|page| self.pages.contains(&(object, page)))
    }

    /// What a request asks for at the start of a part whose first page is not here, and which pages will be kept. `flights` are the pages
    /// that the process is fetching.
    pub(super) fn request(
        &self,
        (object, bytes): (usize, u64),
        part: &Range<u64>,
        flights: &HashMap<PageKey, Nanos>,
    ) -> (Range<u64>, Range<u64>) {
        let (first, end) = (part.start / PAGE, |page: u64| ((page + 1) * PAGE).min(bytes));
        let missing = (first..part.end.div_ceil(PAGE)).take_while(|page| !self.pages.contains(&(object, *page)));
        let mut held = self.held;
        let run = missing.clone().take(RUN).take_while(|page| {
            held += on_disk(end(*page) - page * PAGE);
            held <= self.limit && !flights.contains_key(&(object, *page))
        });
        match run.last() {
            Some(last) => (first * PAGE..end(last), first..last + 1),
            None => (part.start..missing.last().map_or(part.end, end).min(part.end), 0..0),
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
