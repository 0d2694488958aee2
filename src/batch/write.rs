//! Lets a collate write samples into rows.

use super::{collate::Collate, row::RowMut};
use crate::{
    fault::{Doing, Error, guard_at},
    memory::{Chunk, LongFiles},
    vocabulary::{Place, Stage},
};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Where samples are written: the rows of a chunk from `first` on, and the lengths of their padded fields.
pub(crate) struct Rows<'a> {
    pub(crate) chunk: &'a mut Chunk,
    pub(crate) first: usize,
    pub(crate) lengths: &'a mut [usize],
    /// Takes files that are longer than their rows.
    pub(crate) long: &'a mut LongFiles,
}

/// Lets a collate write samples, and checks that it writes all of each. Stops at the first failure, or once the batch
/// is abandoned. Calls `wrote` after each sample.
pub(crate) fn write_rows<I, C: Collate<I>>(
    collate: &C,
    samples: &[I],
    rows: Rows<'_>,
    abandoned: &AtomicBool,
    place: impl FnOnce(usize) -> Place,
    mut wrote: impl FnMut(),
) -> Result<(), (usize, Error)> {
    let Rows { chunk, first, lengths, long } = rows;
    let fields = chunk.layout().fields.len();
    let doing = Doing::here();
    let written = guard_at(
        || place(doing.noted().0),
        || {
            let doing = &*doing;
            for ((position, sample), lengths) in (first..).zip(samples).zip(lengths.chunks_mut(fields)) {
                if abandoned.load(Relaxed) {
                    return Ok(());
                }
                doing.note(position, Stage::Collate);
                let mut row = RowMut::new(chunk, position, lengths, long);
                collate.write(sample, &mut row)?;
                row.complete()?;
                wrote();
            }
            Ok(())
        },
    );
    written.map_err(|error| (doing.noted().0, error))
}
