//! Lets a collate write samples into rows.

use super::{collate::Collate, row::RowMut};
use crate::{
    fault::{Activity, Error, guard_at},
    memory::{Chunk, Field, RowExtras, RowSize},
    observe::TaskClock,
    vocabulary::{Place, Stage},
};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Where samples are written: the rows of a chunk from `first` on, and the sizes of their padded fields.
pub(crate) struct ChunkRows<'a> {
    pub(crate) chunk: &'a mut Chunk,
    pub(crate) first: usize,
    pub(crate) sizes: &'a mut [RowSize],
    /// Takes what is not in the slot.
    pub(crate) beside: &'a mut RowExtras,
}

/// A collate of any type, for samples of one type. It takes a group of them at a time, so a row costs no call through a
/// pointer.
pub(crate) trait RowWriter<I>: Send + Sync {
    fn fields(&self) -> Vec<Field>;

    /// Writes samples, and checks that all fields of each are written. Stops at the first failure, or once the batch is
    /// abandoned. Tells the clock of each sample.
    fn write_rows(
        &self,
        samples: &[I],
        rows: ChunkRows<'_>,
        abandoned: &AtomicBool,
        place: &dyn Fn(usize) -> Place,
        clock: Option<&mut TaskClock<'_>>,
    ) -> Result<(), (usize, Error)>;
}

impl<I, C: Collate<I>> RowWriter<I> for C {
    fn fields(&self) -> Vec<Field> {
        self.layout()
    }

    fn write_rows(
        &self,
        samples: &[I],
        rows: ChunkRows<'_>,
        abandoned: &AtomicBool,
        place: &dyn Fn(usize) -> Place,
        mut clock: Option<&mut TaskClock<'_>>,
    ) -> Result<(), (usize, Error)> {
        let ChunkRows { chunk, first, sizes, beside } = rows;
        let fields = chunk.layout().fields.len();
        let doing = Activity::here();
        let written = guard_at(
            || place(doing.noted().0),
            || {
                let doing = &*doing;
                for ((position, sample), sizes) in (first..).zip(samples).zip(sizes.chunks_mut(fields)) {
                    if abandoned.load(Relaxed) {
                        return Ok(());
                    }
                    doing.note(position, Stage::Collate);
                    let mut row = RowMut::new(chunk, position, sizes, beside);
                    self.write(sample, &mut row)?;
                    row.complete()?;
                    if let Some(clock) = &mut clock {
                        clock.sample(Stage::Collate);
                    }
                }
                Ok(())
            },
        );
        written.map_err(|error| (doing.noted().0, error))
    }
}
