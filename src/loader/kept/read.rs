//! Reads a data set once, through an ordinary loader, into tables on its device.

use super::{Reading, fates::Fates, lengths::Lengths, progress::Progress, room::TableRoom, tables::Tables};
use crate::{
    batch::{Batch, BatchState, RawBatch},
    device::Table,
    fault::{Error, guard},
    loader::data_loader::PinnedDataLoader,
    memory::{Column, Field, IntegerFit},
    vocabulary::{BatchKey, Place, Stage},
};
use std::{mem, time::Instant};

/// Reads the first epoch of a loader of plain tensors, which has the samples in the dataset's order.
///
/// # Errors
/// If the device has no room for the data set. The first error in place of a batch. The rows that were read by then are
/// dropped.
pub(in crate::loader) fn read(reader: &PinnedDataLoader<RawBatch>, fields: &[Field]) -> Result<Reading, Error> {
    let (plan, target) = (reader.plan(), reader.plan().target());
    let (rows, batch_size) = (plan.schedule.dataset_len, plan.schedule.max_batch_size());
    let room = TableRoom::of(fields, rows);
    room.check(&target)?;
    let whole = Place::batch(Stage::Transfer, BatchKey::NONE);
    // Tables that are dropped go back to the device, also after an error.
    let mut tables = Tables::new(target.device.clone(), Vec::new(), rows);
    tables.fields = guard(whole, || {
        let table = |field: &Field| {
            let width = field.shape.iter().product();
            Table::new(rows, width, field.dtype, field.pad.as_deref(), &target.device)
        };
        Ok(fields.iter().map(table).collect::<Vec<_>>())
    })?;
    let (mut fates, mut lengths) = (Fates::default(), Lengths::new(fields, rows));
    let progress = Progress::new(rows, room.bytes);
    let (feed, order) = plan.schedule.epoch(0)?;
    let mut epoch = reader.begin_epoch(0, feed, order.batches())?;
    let (mut row, mut handed, mut columns, mut compared) = (0, None, Vec::new(), IntegerFit::default());
    while let Some((Batch { key, state, skips }, waited)) = epoch.next() {
        let stepped = handed.map(|handed: Instant| handed.elapsed().saturating_sub(waited));
        let finished = match state {
            BatchState::OnDevice(content) => epoch.finish(*content)?,
            state => state,
        };
        let raw = match finished {
            BatchState::Ready { batch, .. } => Some(batch),
            BatchState::Failed(error) => return Err(error),
            _ => None, // all of them are skipped
        };
        fates.note(key.number * batch_size, &skips);
        if let Some(mut raw) = raw {
            let count = raw.len();
            append(&mut columns, raw.take_columns());
            compared = raw.compared.after(compared);
            let old = mem::take(&mut tables.fields);
            let wrote = || Ok(write(old, row, raw, fields, &mut lengths)?);
            tables.fields = guard(Place::batch(Stage::Transfer, key), wrote)?;
            row += count;
            progress.add(count);
        }
        epoch.handed(waited, stepped);
        handed = Some(Instant::now());
    }
    drop(epoch);
    if row == 0 {
        let first = fates.first_error().map(|error| format!("; the first: {error}")).unwrap_or_default();
        let problem = format!("all {rows} samples of the dataset are bad{first}");
        return Err(Error::config("build_kept", problem, "read a few by `Dataset::get`, and look at their errors"));
    }
    let whole_rows = mem::take(&mut tables.fields);
    tables.fields = guard(whole, || {
        let all = whole_rows.into_iter().zip(fields).enumerate();
        let tables = all.map(|(at, (table, field))| lengths.cut(at, field, table)).collect();
        target.device.sync()?;
        Ok(tables)
    })?;
    progress.end(row, tables.bytes());
    Ok(Reading { tables, fates, lengths, compared, columns })
}

/// Adds the columns of a batch to those of the batches before it.
fn append(all: &mut Vec<Box<dyn Column>>, columns: Vec<Box<dyn Column>>) {
    if all.is_empty() {
        *all = columns;
    } else {
        all.iter_mut().zip(columns).for_each(|(all, column)| all.append(column));
    }
}

/// Writes the rows of a batch, from this row on.
fn write(
    tables: Vec<Table>,
    row: usize,
    batch: RawBatch,
    fields: &[Field],
    lengths: &mut Lengths,
) -> Result<Vec<Table>, Error> {
    let count = batch.len();
    let (tensors, of_rows) = batch.into_tensors();
    lengths.add(&of_rows);
    let of = |(at, ((table, field), tensor)): (usize, ((Table, &Field), _))| {
        let shape = field.batch_shape(count, lengths.longest(at, row..row + count));
        table.write(row, tensor, &shape)
    };
    tables.into_iter().zip(fields).zip(tensors).enumerate().map(of).collect()
}
