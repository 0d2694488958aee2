//! All rows of tokens once, on all cores.

use super::{TextError, TokenRow, Tokenized, texts::Texts};
use crate::{
    error::DataError,
    source::cell::Record,
    system::{
        parallel::{cores, in_order},
        progress::Progress,
    },
};
use burn::data::dataset::Dataset;
use std::{
    ops::Range,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// The most rows that a thread reads in one piece of work. Their tokens wait in memory until the earlier ones are taken.
const ROWS_AT_ONCE: usize = 512;

impl Tokenized {
    /// Calls `one` with the tokens of each row on all cores, and `take` with the results of many rows, in order. It shows a progress bar. A
    /// skipped row is empty. `texts` are the texts of its record, if the rows have records.
    pub(super) fn each<O: Send>(
        &self,
        texts: fn(&Record) -> Texts,
        one: impl Fn(usize, TokenRow, Texts) -> Result<O, TextError> + Sync,
        mut take: impl FnMut(Vec<O>) -> Result<(), TextError>,
    ) -> Result<(), TextError> {
        let (progress, bad) = (Progress::rows("tokenising", self.len() as u64), AtomicUsize::new(0));
        let rows = self.rows().map(|rows| rows.clone().beside(texts));
        let good = |row, read: Result<(TokenRow, Texts), TextError>| match read {
            Err(error) if self.leaves_out && is_of_row(&error) => {
                log::debug!("left out: {error}");
                bad.fetch_add(1, Relaxed);
                one(row, TokenRow::default(), Texts::default())
            }
            read => read.and_then(|(tokens, texts)| one(row, tokens, texts)),
        };
        let take = |results: Vec<O>| {
            progress.add(results.len() as u64);
            take(results)
        };
        let cut = |start: usize| start..(start + ROWS_AT_ONCE).min(self.len());
        let (threads, runs) = match &rows {
            Some(rows) => (rows.readers(), rows.runs(ROWS_AT_ONCE)?),
            None => (cores(), (0..self.len()).step_by(ROWS_AT_ONCE).map(cut).collect()),
        };
        let _shown = self.rows().map(|rows| rows.options.busy.shown_in(&progress));
        let alone = |row| Ok((self.data.get(row)?, Texts::default()));
        let read = |run: &Range<usize>| match &rows {
            Some(rows) => rows.read_run(run.clone(), |row, read| good(row, read.map_err(Into::into))),
            None => run.clone().map(|row| good(row, alone(row))).collect(),
        };
        let done = in_order(threads, &runs, read, take);
        progress.end();
        let bad = bad.into_inner();
        if bad > 0 {
            log::warn!("{bad} rows give no tokens and are left out; the log names them at level debug");
        }
        done
    }
}

/// Whether an error belongs to its row. The error of a store does not.
fn is_of_row(error: &TextError) -> bool {
    !matches!(error, TextError::Rows(DataError::Read { .. } | DataError::Changed { .. } | DataError::Open { .. }))
}
