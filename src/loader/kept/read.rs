//! Reads a dataset once, through an ordinary loader, into tables on its device.

use super::{KeptData, KeptRows, fates::Fates, room::TableRoom, tables::Tables};
use crate::{
    batch::{Batch, BatchState, RawBatch},
    fault::{BoxError, Error},
    loader::data_loader::PinnedDataLoader,
    memory::{Field, IntegerFit, join_columns},
    sync::locks::Mutex,
};
use burn_shards::for_loader::Progress;
use std::{sync::Arc, time::Instant};

/// Reads the first epoch of a loader of plain tensors, which has the samples in the dataset's order.
///
/// # Errors
/// If the device has no memory for the dataset. The first error in place of a batch. The rows that were read until then
/// are dropped.
pub(in crate::loader) fn read<O>(
    reader: &PinnedDataLoader<RawBatch>,
    fields: Vec<Field>,
    columns: Vec<Field>,
    finish: impl Fn(RawBatch) -> Result<O, BoxError> + Send + Sync + 'static,
) -> Result<KeptData<O>, Error> {
    let (plan, target) = (reader.plan(), reader.plan().target());
    let len = plan.schedule.dataset_len;
    let room = TableRoom::of(&fields, len);
    room.check(&target)?;
    let mut tables = Tables::new(target.device.clone(), &fields, len)?;
    let mut kept = KeptRows {
        fields,
        columns: (columns, Vec::new()),
        finish: Box::new(finish),
        fates: Fates::default(),
        sizes: Vec::new(),
        compared: IntegerFit::default(),
        len,
        seed: plan.options.seed(),
        faults: plan.faults.clone(),
        devices: Mutex::default(),
    };
    let (started, gb) = (Instant::now(), |bytes: usize| bytes as f64 / 1e9);
    log::info!("burn-pinned reads {len} samples once, to keep them on the device in {:.3} GB", gb(room.bytes));
    let bar = Progress::new("keeping", room.bytes as u64);
    let rows = read_rows(reader, &mut kept, &mut tables, |rows| {
        bar.add((rows * (room.bytes / len)) as u64);
    });
    bar.end();
    let rows = rows?;
    if rows == 0 {
        let first = kept.fates.first_error().map(|error| format!("; the first: {error}")).unwrap_or_default();
        let problem = format!("all {len} samples of the dataset are bad or left out{first}");
        return Err(Error::config("build_kept", problem, "read a few by `Dataset::get`, and look at their errors"));
    }
    tables.cut(&kept.fields, &kept.sizes)?;
    let (took, gb) = (started.elapsed(), gb(tables.bytes()));
    log::info!("burn-pinned keeps {rows} rows on the device in {gb:.3} GB, read in {took:.1?}");
    let tables = Arc::new(tables);
    kept.faults.counters.watch_device(Arc::downgrade(&tables) as _);
    kept.devices.lock().push(Arc::downgrade(&tables));
    Ok(KeptData { rows: Arc::new(kept), tables: Mutex::new(tables) })
}

/// Reads all batches, and writes their rows to the tables. Calls `added` with the number of rows of each batch. Returns the total number of
/// rows.
fn read_rows<O>(
    reader: &PinnedDataLoader<RawBatch>,
    kept: &mut KeptRows<O>,
    tables: &mut Tables,
    added: impl Fn(usize),
) -> Result<usize, Error> {
    let schedule = &reader.plan().schedule;
    let (feed, order) = schedule.epoch(0)?;
    let mut epoch = reader.begin_epoch(0, feed, order.batches())?;
    let (mut rows, mut handed, mut columns) = (0, None, Vec::new());
    while let Some((Batch { key, state, skips }, waited)) = epoch.next() {
        let stepped = handed.map(|handed: Instant| handed.elapsed().saturating_sub(waited));
        let finished = match state {
            BatchState::OnDevice(content) => epoch.finish(*content)?,
            state => state,
        };
        kept.fates.note(key.number * schedule.max_batch_size(), &skips);
        match finished {
            BatchState::Ready { batch: mut raw, .. } => {
                let count = raw.len();
                columns.push((rows, raw.take_columns()));
                kept.compared = raw.compared.after(kept.compared);
                tables.write(rows, raw, &kept.fields, &mut kept.sizes)?;
                rows += count;
                added(count);
            }
            BatchState::Failed(error) => return Err(error),
            _ => {} // all of them are skipped or left out
        }
        epoch.handed(waited, stepped);
        handed = Some(Instant::now());
    }
    kept.columns.1 = join_columns(columns, &[]);
    Ok(rows)
}
