//! A batch whose rows are written: its steps to the consumer.

use super::{
    collate::Collate,
    next::{Finished, Next, ToFinish, ToPin, ToSend},
    raw::RawBatch,
    rows_source::RowsSource,
    samples::BatchPlan,
};
use crate::{
    device::{Part, Uploader},
    fault::{Error, guard},
    memory::{Field, Patience, Permit, Pool, Slot, SlotLayout, trim_padding},
    observe::Span,
    vocabulary::{Place, Stage},
};
use std::sync::Arc;

/// A batch with padded fields, each row as long as a row can be.
pub(super) struct PaddedRows<I, C> {
    pub(super) rows: FilledRows<I, C>,
    /// The lengths of padded fields, by row and then by field.
    pub(super) lengths: Vec<usize>,
}

impl<I, C> ToPin<C::Batch> for PaddedRows<I, C>
where
    I: Send + 'static,
    C: Collate<I>,
{
    fn pin(self: Box<Self>, _: &Arc<Pool>, _: Patience<'_>) -> Result<Next<C::Batch>, Error> {
        let Self { mut rows, lengths } = *self;
        let count = rows.plan.indices.len();
        rows.longest = trim_padding(&rows.source.layout, &mut rows.slot, count, &lengths);
        Ok(Next::Send(Box::new(rows)))
    }
}

/// A batch whose rows lie as they go to the device.
pub(super) struct FilledRows<I, C> {
    pub(super) source: Arc<RowsSource<I, C>>,
    pub(super) slot: Slot,
    pub(super) plan: Arc<BatchPlan>,
    /// The longest row of each field, if any field is padded.
    pub(super) longest: Vec<usize>,
}

impl<I, C> ToSend<C::Batch> for FilledRows<I, C>
where
    I: Send + 'static,
    C: Collate<I>,
{
    fn send(self: Box<Self>, pool: &Arc<Pool>, uploader: &mut Uploader) -> Result<Next<C::Batch>, Error> {
        let Self { source, mut slot, plan, longest } = *self;
        let RowsSource { samples, layout, target, .. } = &*source;
        let permit = if target.host { pool.detach(&mut slot) } else { None };
        let mut raw = RawBatch::new(plan.indices.len(), target.device.clone(), samples.seed, plan.at);
        raw.set_indices(Arc::clone(&plan.indices));
        let sent = upload_rows(layout, slot, &longest, &mut raw, pool, uploader, plan.place(Stage::Transfer))?;
        samples.counters.sent(if target.host { 0 } else { sent });
        Ok(Next::Finish(Box::new(RawRows { source, raw, permit })))
    }
}

/// The tensors of a batch, before the collate makes the user's batch of them.
struct RawRows<I, C> {
    source: Arc<RowsSource<I, C>>,
    raw: RawBatch,
    permit: Option<Permit>,
}

impl<I, C> ToFinish<C::Batch> for RawRows<I, C>
where
    I: Send + 'static,
    C: Collate<I>,
{
    fn finish(self: Box<Self>) -> Result<Finished<C::Batch>, Error> {
        let Self { source, raw, permit } = *self;
        let (items, key) = (raw.len(), raw.key());
        let _span = Span::new(&source.samples.counters, Stage::Finish, key);
        let batch = guard(Place::batch(Stage::Finish, key), || source.collate.finish(raw))?;
        Ok(Finished { batch, items, permit })
    }
}

/// Copies the fields of a slot to the device; returns the number of bytes.
pub(crate) fn upload_rows(
    layout: &SlotLayout,
    slot: Slot,
    longest: &[usize],
    raw: &mut RawBatch,
    pool: &Pool,
    uploader: &mut Uploader,
    place: Place,
) -> Result<usize, Error> {
    let part = |(at, field): (usize, &Field)| {
        let shape = field.batch_shape(raw.len(), longest.get(at).copied().unwrap_or(0));
        let start = layout.offset(at);
        Part { range: start..start + shape.num_elements() * field.dtype.size(), dtype: field.dtype, shape }
    };
    let parts: Vec<Part> = layout.fields.iter().enumerate().map(part).collect();
    let tensors = uploader.upload(slot, &parts, pool, place)?;
    for ((field, part), tensor) in layout.fields.iter().zip(&parts).zip(tensors) {
        raw.push(field, &part.shape, tensor);
    }
    Ok(parts.iter().map(|part| part.range.len()).sum())
}
