//! A batch whose rows are written: its way to the consumer.

#[cfg(feature = "vision")]
use super::row_image::redo_on_host;
use super::{
    next::{Filled, Finished, Ready},
    raw::RawBatch,
    rows_source::RowsSource,
    samples::BatchPlan,
};
use crate::{
    device::{FlatTensor, Uploaded, Uploader},
    fault::{Error, guard},
    memory::{Column, Field, Pool, RowSize, Slot, SlotLayout, Wait, trim_padding},
    observe::Span,
    picture_row::LongFiles,
    vocabulary::{Place, Stage},
};
#[cfg(feature = "vision")]
use crate::{
    fault::{BadSamples, Skips},
    memory::close_up,
    picture_row::PictureRow,
};
#[cfg(feature = "vision")]
use std::cell::Cell;
use std::sync::Arc;

/// A batch whose rows are written. Rows of padded fields are as long as a row can be, until the batch is pinned.
pub(super) struct FilledRows<I, O> {
    pub(super) source: Arc<RowsSource<I, O>>,
    pub(super) slot: Slot,
    pub(super) plan: Arc<BatchPlan>,
    /// The largest row of each field, if any field is padded.
    pub(super) largest: Vec<RowSize>,
    /// The sizes of padded fields, by row and then by field; empty without such fields.
    pub(super) sizes: Vec<RowSize>,
    /// Files for the device that are longer than their rows.
    #[cfg_attr(not(feature = "vision"), expect(dead_code, reason = "only images are files"))]
    pub(super) long: LongFiles,
    /// The columns of the layout; empty without columns.
    pub(super) columns: Vec<Column>,
    /// A bit for each field with a value that does not fit the device's integers.
    pub(super) beyond: u64,
    /// The tensors of images, which the device has made already, in the order of the fields.
    pub(super) decoded: Vec<Uploaded>,
}

impl<I: Send + 'static, O: Send + 'static> Filled<O> for FilledRows<I, O> {
    fn pin(mut self: Box<Self>, _: &Arc<Pool>, _: &Wait<'_>) -> Result<Box<dyn Filled<O>>, Error> {
        let rows = self.plan.indices.len();
        self.largest = trim_padding(&self.source.layout, &mut self.slot, rows, &self.sizes);
        Ok(self)
    }

    #[cfg(feature = "vision")]
    fn decodes(&self) -> bool {
        self.source.layout.decoding
    }

    #[cfg(feature = "vision")]
    fn decode(&mut self, uploader: &mut Uploader) -> Result<Skips, Error> {
        let mut skips = Skips::default();
        while !self.plan.indices.is_empty() {
            let refused = Cell::new(None);
            match self.decode_rows(uploader, &refused) {
                Ok(decoded) => {
                    self.decoded = decoded;
                    break;
                }
                Err(error) => {
                    let skips_it = matches!(self.source.samples.faults.policy, BadSamples::Skip(_));
                    let row = refused.take().filter(|_| skips_it && error.is_of_a_sample());
                    let Some(row) = row else { return Err(error) };
                    drop(skips.merge(self.leave_out(row, error)?));
                }
            }
        }
        self.long.clear();
        Ok(skips)
    }

    fn send(self: Box<Self>, pool: &Arc<Pool>, uploader: &mut Uploader) -> Result<Ready<O>, Error> {
        if self.plan.indices.is_empty() {
            return Ok(Ready::Empty); // no file of the batch could be decoded
        }
        let Self { source, mut slot, plan, largest, sizes, decoded, columns, beyond, .. } = *self;
        let RowsSource { samples, layout, target, .. } = &*source;
        let permit = if target.host { pool.detach(&mut slot) } else { None };
        let mut raw = RawBatch::new(plan.indices.len(), target.device.clone(), samples.seed, plan.key);
        (raw.indices, raw.sizes) = (Some(Arc::clone(&plan.indices)), sizes);
        raw.compared = layout.casts.compared(beyond);
        raw.set_columns(&layout.columns, columns);
        let sent = upload_rows(layout, slot, &largest, decoded, &mut raw, uploader, plan.place(Stage::Transfer))?;
        samples.counters.sent(if target.host { 0 } else { sent });
        Ok(Ready::Raw(Box::new(move || {
            let (items, key) = (raw.len(), raw.key());
            let _span = Span::new(&source.samples.counters, Stage::Finish, key);
            let batch = guard(Place::batch(Stage::Finish, key), || (source.finish)(raw))?;
            Ok(Finished { batch, items, permit })
        })))
    }
}

#[cfg(feature = "vision")]
impl<I, O> FilledRows<I, O> {
    /// Makes the images on the device. Notes the row of a file that can be decoded neither there nor here.
    fn decode_rows(&mut self, uploader: &mut Uploader, refused: &Cell<Option<usize>>) -> Result<Vec<Uploaded>, Error> {
        let Self { source, slot, plan, largest, long, .. } = self;
        let all = parts(&source.layout, plan.indices.len(), largest);
        let place = plan.place(Stage::Decode);
        let redo = |row: usize, picture: &PictureRow, file: &[u8]| {
            let place = Place { index: plan.indices.get(row).copied(), ..place };
            guard(place, || Ok(redo_on_host(picture, file)?)).inspect_err(|_| refused.set(Some(row)))
        };
        uploader.decode(slot, &all, long, place, &redo)
    }

    /// Leaves out the row of a bad sample, as the policy wants. Returns its position in the batch as it was asked for.
    fn leave_out(&mut self, row: usize, error: Error) -> Result<Skips, Error> {
        let (rows, mut skips, mut left) = (self.plan.indices.len(), Skips::default(), Skips::default());
        let bad = (self.plan.position(row), error);
        let decided = self.source.samples.faults.decide(bad, &mut skips, 0, |_| Err(Error::Ended));
        decided.map_err(|(_, error)| error)?;
        left.skip(row, None);
        for FlatTensor { range, .. } in parts(&self.source.layout, rows, &self.largest) {
            let len = range.len() / rows;
            close_up(&mut self.slot.as_mut_slice()[range], len, row..rows, &left.skipped);
        }
        if !self.sizes.is_empty() {
            let fields = self.source.layout.fields.len();
            close_up(&mut self.sizes, fields, row..rows, &left.skipped);
            self.sizes.truncate((rows - 1) * fields);
        }
        self.columns.iter_mut().for_each(|column| column.remove(&left.skipped));
        self.plan = self.plan.without(&left);
        Ok(skips)
    }
}

/// The tensors of the first `rows` rows of a slot.
fn parts(layout: &SlotLayout, rows: usize, largest: &[RowSize]) -> Vec<FlatTensor> {
    let part = |(at, field): (usize, &Field)| {
        let shape = field.batch_shape(rows, largest.get(at).copied().unwrap_or_default());
        let (start, images) = (layout.offset(at), layout.image_values(at).filter(|_| layout.decoding));
        let len = match images {
            Some(_) => rows * layout.row_bytes(at),
            None => shape.num_elements() * field.dtype.size(),
        };
        FlatTensor { range: start..start + len, dtype: field.dtype, shape, images: images.cloned() }
    };
    layout.fields.iter().enumerate().map(part).collect()
}

/// Copies the fields of a slot to the device, without those that are `decoded` there. Returns the bytes that were
/// copied.
pub(crate) fn upload_rows(
    layout: &SlotLayout,
    slot: Slot,
    largest: &[RowSize],
    decoded: Vec<Uploaded>,
    raw: &mut RawBatch,
    uploader: &mut Uploader,
    place: Place,
) -> Result<usize, Error> {
    let all = parts(layout, raw.len(), largest);
    let mut tensors = uploader.upload(slot, &all, place)?.into_iter();
    let mut decoded = decoded.into_iter();
    for (field, part) in layout.fields.iter().zip(&all) {
        let tensor = if part.images.is_some() { decoded.next() } else { tensors.next() };
        raw.push(field, &part.shape, tensor.ok_or(Error::Ended)?);
    }
    Ok(all.iter().filter(|part| part.images.is_none()).map(|part| part.range.len()).sum())
}
