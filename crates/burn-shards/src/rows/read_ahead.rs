//! Tells a remote store which rows an epoch needs, so that it fetches them ahead.

use super::dataset::Rows;
use crate::{
    source::Source,
    store::{
        ahead::{FetchAhead, Plan, PlannedRow},
        traffic::Fetched,
    },
};
use std::{
    ops::Range,
    sync::{Arc, Weak},
};

impl<T> Rows<T> {
    /// Starts to fetch these rows from a remote store, in this order, and returns at once. It does nothing for local files, which the
    /// system reads ahead. The loader `burn-pinned` calls it for each epoch.
    ///
    /// ```no_run
    /// use burn::data::dataset::Dataset;
    /// use burn_shards::Rows;
    ///
    /// let rows = Rows::<(String,)>::jsonl("https://example.org/train-{0..9}.jsonl").columns(["text"]).open()?;
    /// let ahead = rows.fetch_ahead(0..rows.len());
    /// for row in 0..rows.len() {
    ///     println!("{}", rows.get(row)?.0);
    /// }
    /// drop(ahead);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The order may be long, or endless. This call takes its first 64 rows, and the fetching threads, `bp-fetch`, take the others. So its
    /// iterator must not block. Row numbers that do not exist are skipped. The option [`read_ahead`](crate::RowsBuilder::read_ahead) limits
    /// how much is fetched ahead.
    pub fn fetch_ahead(&self, order: impl IntoIterator<Item = usize, IntoIter: Send + 'static>) -> FetchAhead {
        let source = &self.source;
        let ahead = source.objects().ahead.as_ref();
        let (picks, order) = (self.picks.clone(), order.into_iter());
        // A number that a part of the rows lacks becomes one beyond the source.
        let at = move |row: usize| picks.as_ref().map_or(row, |picks| picks.nth(row).unwrap_or(usize::MAX));
        let plan = |order| plan(Arc::downgrade(source), order);
        match ahead {
            Some(ahead) => ahead.begin(plan(order.map(at)), !source.decodes()),
            None => FetchAhead { epoch: None },
        }
    }

    /// The network traffic of these rows and their clones since they were opened. `None` for local files.
    pub fn fetched(&self) -> Option<Fetched> {
        self.source.objects().traffic.as_ref().map(|traffic| traffic.seen())
    }
}

/// The rows of an order with their parts, as long as the source lives. A row whose parts cannot be found has none; reading it returns the
/// error.
fn plan(source: Weak<dyn Source>, order: impl Iterator<Item = usize> + Send + 'static) -> Plan {
    Box::new(order.map_while(move |row| {
        let source = source.upgrade()?;
        Some((row < source.len()).then(|| {
            let mut parts = Vec::new();
            // A part that is too large for a sample is not fetched, because the read refuses it.
            let mut add = |object, part: Range<u64>| match source.objects().allow_read(object, part.end - part.start) {
                Ok(()) => parts.push((object, part)),
                Err(error) => log::debug!("a part of row {row} is not read ahead: {error}"),
            };
            if let Err(error) = source.parts(row, &mut add) {
                log::debug!("row {row} is not read ahead: {error}");
            }
            PlannedRow { row, parts }
        }))
    }))
}
