//! Tells a store behind a network which rows an epoch needs, so that it fetches them ahead.

use super::{
    rows::Rows,
    source::Source,
    store::ahead::{Plan, Planned},
    traffic::Fetched,
};
use crate::order::{Guard, ReadAhead};
use std::{
    ops::Range,
    sync::{Arc, Weak},
};

/// Does nothing for local files: the system reads those ahead.
impl<T> ReadAhead for Rows<T> {
    fn begin(&self, order: Box<dyn Iterator<Item = usize> + Send>) -> Guard {
        let source = self.source();
        let ahead = source.objects().far.as_ref().and_then(|far| far.ahead.as_ref());
        Guard::new(ahead.map(|ahead| ahead.begin(plan(Arc::downgrade(source), order), !source.decodes())))
    }
}

impl<T> Rows<T> {
    /// What went over the network for these rows and their clones since they were opened. `None` for local files.
    pub fn fetched(&self) -> Option<Fetched> {
        self.source().objects().far.as_ref().map(|far| far.traffic.seen())
    }
}

/// The parts of rows, as long as there is a source to ask. A row that cannot be planned has none: its read says why.
fn plan(source: Weak<dyn Source>, order: Box<dyn Iterator<Item = usize> + Send>) -> Plan {
    Box::new(order.map_while(move |row| {
        let source = source.upgrade()?;
        Some((row < source.len()).then(|| {
            let mut parts = Vec::new();
            // A read refuses what no sample may have.
            let mut add = |object, part: Range<u64>| match source.objects().allow_read(object, part.end - part.start) {
                Ok(()) => parts.push((object, part)),
                Err(error) => log::debug!("a part of row {row} is not read ahead: {error}"),
            };
            if let Err(error) = source.parts(row, &mut add) {
                log::debug!("row {row} is not read ahead: {error}");
            }
            Planned { row, parts }
        }))
    }))
}
