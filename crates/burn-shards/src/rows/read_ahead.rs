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
        Some((row < source.len()).then(|| PlannedRow { row, parts: parts(&*source, row) }))
    }))
}

/// The parts of a row. A part that is too large for a sample is not fetched, because the read refuses it.
fn parts(source: &dyn Source, row: usize) -> Vec<(usize, Range<u64>)> {
    let mut parts = Vec::new();
    let mut add = |object, part: Range<u64>| match source.objects().allow_read(object, part.end - part.start) {
        Ok(()) => parts.push((object, part)),
        Err(error) => log::debug!("a part of row {row} is not read ahead: {error}"),
    };
    if let Err(error) = source.parts(row, &mut add) {
        log::debug!("row {row} is not read ahead: {error}");
    }
    parts
}

/// Finds the parts of a row: objects, and ranges of them.
pub type FindParts = dyn Fn(usize) -> Vec<(usize, Range<u64>)> + Send + Sync;

/// Where the bytes of rows are. It is for simulations, which move none of them.
#[derive(Clone, derive_more::Debug)]
pub struct RowLayout {
    /// The bytes of each object.
    pub objects: Vec<u64>,
    /// Whether each row reads its parts again. Otherwise a part is decoded once for all rows that need it.
    pub again: bool,
    /// What a row needs.
    #[debug(skip)]
    pub parts: Arc<FindParts>,
}

impl RowLayout {
    /// The layout of these rows.
    pub fn new<T>(rows: &Rows<T>) -> Self {
        let (source, picks) = (Arc::clone(&rows.source), rows.picks.clone());
        let at = move |row: usize| picks.as_ref().map_or(Some(row), |picks| picks.nth(row));
        Self {
            objects: source.objects().list().iter().map(|object| object.bytes).collect(),
            again: !source.decodes(),
            parts: Arc::new(move |row| at(row).map_or_else(Vec::new, |row| parts(&*source, row))),
        }
    }
}
