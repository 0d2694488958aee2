//! Batches made row by row: workers write samples straight into the rows of a shared slot, and a collate finishes the
//! tensors on the device.

#[cfg(feature = "vision")]
use super::row_image::redo_on_host;
use super::{
    fill::{AnyCollate, ChunkRows, Fill, SampleSink},
    lifecycle::{Batch, BatchState, Content, OpenBatch, SlotRows, Source, Task},
    raw::RawBatch,
    samples::{BatchPlan, Samples},
};
use crate::{
    device::{DeviceTensor, FlatTensor, Target, Uploader, few_queues},
    fault::{Activity, Error, Faults, Panic, Skips, drop_each},
    image_rows::LongFiles,
    memory::{
        Chunk, Decoder, Field, Permit, Pool, RowSize, Slot, SlotLayout, Wait, join_columns, remove_rows, trim_padding,
    },
    observe::{Counters, TaskClock},
    vocabulary::{Place, Stage},
};
#[cfg(feature = "vision")]
use crate::{
    fault::{BadSamples, guard},
    image_rows::ImageRow,
    memory::close_up,
    observe::Span,
};
#[cfg(feature = "vision")]
use std::cell::Cell;
use std::{mem, sync::Arc};

/// A `Collate` over a dataset.
pub(crate) struct RowsSource<I, O> {
    pub(crate) samples: Arc<Samples<I>>,
    pub(crate) collate: Arc<dyn AnyCollate<I, Batch = O>>,
    /// The layout in which the workers decode images.
    pub(crate) plain: Arc<SlotLayout>,
    /// The layout of the slots: `plain`, or the layout for images that the device decodes.
    pub(crate) layout: Arc<SlotLayout>,
    pub(crate) target: Target,
}

/// Returns how many samples are read at a time. Small samples are read in groups, so that reading (reference counts,
/// locks) does not interrupt the copies and the CPU can overlap their cache misses. See benches/README.md. Large
/// samples are copied while they are in the cache.
fn group(row_bytes: usize) -> usize {
    (32 * 1024 / row_bytes.max(1)).clamp(1, 32)
}

/// Chooses whether the host or the device decodes images, and returns the layout for the device.
fn for_device(
    target: Target,
    layout: &Arc<SlotLayout>,
    counters: &Counters,
) -> Result<(Target, Arc<SlotLayout>), Error> {
    let int_dtype = target.device.settings().int_dtype.into();
    let plain = || Ok::<_, Error>(Arc::new(layout.on(int_dtype, false)?));
    let Some(decoder) = layout.decoder().filter(|decoder| *decoder != Decoder::Host) else {
        return Ok((target, plain()?));
    };
    if target.host && decoder == Decoder::Auto {
        return Ok((target, plain()?));
    }
    match target.clone().decoding(decoder == Decoder::Device) {
        Ok(target) => {
            if let Some(problem) = few_queues() {
                counters.warn(&format!("the device decodes images: {problem}"));
            }
            Ok((target, Arc::new(layout.on(int_dtype, true)?)))
        }
        Err(problem) if decoder == Decoder::Auto => {
            let (problem, text) = (problem.to_string(), format!("the workers decode images: {problem}"));
            if few_queues().is_some_and(|few| few == problem) {
                counters.warn(&text);
            } else if counters.remark(&text) {
                log::info!("{text}");
            }
            Ok((target, plain()?))
        }
        Err(problem) => {
            let advice = "use `Decoder::Auto` to decode on the workers where that cannot be done";
            Err(Error::config("Field::decoder", problem.to_string(), advice))
        }
    }
}

/// The rows of a task, and the collate that writes them.
struct TaskRows<'a, I, O> {
    collate: &'a dyn AnyCollate<I, Batch = O>,
    rows: ChunkRows<'a>,
}

impl<I: 'static, O: Send + 'static> SampleSink<I> for TaskRows<'_, I, O> {
    fn write(&mut self, first: usize, samples: &[I], clock: &mut TaskClock<'_>) -> Result<(), (usize, Error)> {
        let written = self.collate.write_rows(first, samples, &mut self.rows, Some(&mut *clock));
        clock.samples(Stage::Collate, written.as_ref().map_or_else(|(bad, _)| bad - first, |()| samples.len()));
        written
    }

    fn replace(&mut self, position: usize, sample: I) -> Result<(), Error> {
        self.collate.write_rows(position, &[sample], &mut self.rows, None).map_err(|(_, error)| error)
    }

    fn keep(&mut self, _: usize, samples: &mut Vec<I>) -> Result<(), Panic> {
        drop_each(samples.drain(..))
    }
}

impl<I: Send + 'static, O: Send + 'static> Source<O> for RowsSource<I, O> {
    fn target(&self) -> &Target {
        &self.target
    }

    fn on(&self, target: Target) -> Result<Arc<dyn Source<O>>, Error> {
        let (target, layout) = for_device(target, &self.plain, &self.samples.faults.counters)?;
        Ok(Arc::new(Self {
            samples: Arc::clone(&self.samples),
            collate: Arc::clone(&self.collate),
            plain: Arc::clone(&self.plain),
            layout,
            target,
        }))
    }

    fn faults(&self) -> &Faults {
        &self.samples.faults
    }

    fn slot_bytes(&self) -> Option<usize> {
        Some(self.layout.bytes())
    }

    fn is_uneven(&self) -> bool {
        self.layout.decoder().is_some()
    }

    fn open(
        &self,
        plan: Arc<BatchPlan>,
        permit: Permit,
        pool: &Arc<Pool>,
        wait: &Wait<'_>,
        chunk: usize,
    ) -> Result<Vec<Task<O>>, Error> {
        let (rows, max) = (plan.indices.len(), self.layout.rows());
        if rows > max {
            // The batch is larger than the sampler promised when the loader was built.
            return Err(Error::LargeBatch { place: plan.place(Stage::Sampler), got: rows, max });
        }
        let slot = pool.slot(permit, self.layout.bytes(), wait)?;
        let chunks = slot.split(&self.layout, rows, self.samples.chunk(chunk));
        let sizes = if self.layout.has_padded() { rows * self.layout.fields.len() } else { 0 };
        let content = Content::Rows(SlotRows {
            plan: Arc::clone(&plan),
            slot: None,
            largest: Vec::new(),
            sizes: vec![RowSize::default(); sizes],
            long: LongFiles::new(),
            of_tasks: Vec::new(),
            columns: Vec::new(),
            beyond: 0,
            decoded: Vec::new(),
        });
        let batch = OpenBatch::new(plan, chunks.len(), content);
        let task = |chunk: Chunk| Task { batch: Arc::clone(&batch), rows: chunk.rows(), chunk: Some(chunk) };
        Ok(chunks.into_iter().map(task).collect())
    }

    fn run(&self, task: Task<O>, clock: &mut TaskClock<'_>) -> Option<Batch<O>> {
        let Task { batch, rows, chunk } = task;
        let plan = &batch.plan;
        let place = Place { worker: Some(clock.worker()), ..plan.place(Stage::Collate) };
        let written = ChunkRows::new(chunk?, place, Some(&plan.indices), &plan.abandoned); // `open` gave it a chunk
        let mut sink = TaskRows { collate: &*self.collate, rows: written };
        let mut skips = Skips::default();
        let fill = Fill { samples: &self.samples, plan, skips: &mut skips, clock, sink: &mut sink };
        let filled = fill.run(rows.clone(), self.samples.group(group(self.layout.bytes() / self.layout.rows())));
        clock.end(rows.len());
        Activity::here().note_batch(place, None);
        let ChunkRows { chunk, sizes, extras, .. } = sink.rows;
        let add = |content: &mut Content<O>| {
            let Ok(all) = content.rows() else { return };
            let first = rows.start * self.layout.fields.len();
            if let Some(all) = all.sizes.get_mut(first..first + sizes.len()) {
                all.copy_from_slice(&sizes);
            }
            all.beyond |= extras.beyond;
            all.long.extend(extras.long);
            if !extras.columns.is_empty() {
                all.of_tasks.push((rows.start, extras.columns));
            }
            all.slot = chunk.finish();
        };
        batch.end(filled, skips, add, |mut content, skips| {
            let rows = content.rows()?;
            let slot = rows.slot.as_mut().ok_or(Error::Ended)?; // there is a slot, unless a chunk was dropped
            remove_rows(&self.layout, slot, &mut rows.sizes, plan.indices.len(), &skips.skipped);
            // Values of skipped rows are dropped here, which is user code.
            rows.columns = join_columns(mem::take(&mut rows.of_tasks), &skips.skipped);
            rows.plan = plan.without(skips);
            Ok(if self.layout.has_padded() { BatchState::Filled(content) } else { BatchState::Pinned(content) })
        })
    }

    fn pin(&self, mut content: Box<Content<O>>, _: &Arc<Pool>, _: &Wait<'_>) -> Result<Box<Content<O>>, Error> {
        let SlotRows { plan, slot, largest, sizes, .. } = content.rows()?;
        let slot = slot.as_mut().ok_or(Error::Ended)?;
        *largest = trim_padding(&self.layout, slot, plan.indices.len(), sizes);
        Ok(content)
    }

    #[cfg(feature = "vision")]
    fn decode(&self, content: &mut Content<O>, uploader: &mut Uploader) -> Result<Skips, Error> {
        let (rows, mut skips) = (content.rows()?, Skips::default());
        if !self.layout.decoding {
            return Ok(skips);
        }
        let _span = Span::new(&self.samples.faults.counters, Stage::Decode, rows.plan.key);
        while !rows.plan.indices.is_empty() {
            let refused = Cell::new(None);
            match self.decode_rows(rows, uploader, &refused) {
                Ok(decoded) => {
                    rows.decoded = decoded;
                    break;
                }
                Err(error) => {
                    let skips_it = matches!(self.samples.faults.policy, BadSamples::Skip(_));
                    let row = refused.take().filter(|_| skips_it && error.is_of_a_sample());
                    let Some(row) = row else { return Err(error) };
                    drop(skips.merge(self.leave_out(rows, row, error)?));
                }
            }
        }
        rows.long.clear();
        Ok(skips)
    }

    fn send(
        &self,
        content: Box<Content<O>>,
        pool: &Arc<Pool>,
        uploader: &mut Uploader,
    ) -> Result<BatchState<O>, Error> {
        let Content::Rows(rows) = *content else { return Err(Error::Ended) };
        if rows.plan.indices.is_empty() {
            return Ok(BatchState::Empty); // no file of the batch could be decoded
        }
        let SlotRows { plan, slot, largest, sizes, decoded, columns, beyond, .. } = rows;
        let (mut slot, Self { samples, layout, target, .. }) = (slot.ok_or(Error::Ended)?, self);
        let permit = if target.host { pool.detach(&mut slot) } else { None };
        let mut raw = RawBatch::new(plan.indices.len(), target.device.clone(), samples.seed, plan.key);
        (raw.indices, raw.sizes) = (Some(Arc::clone(&plan.indices)), sizes);
        raw.compared = layout.fit.with(beyond);
        raw.set_columns(&layout.columns, columns);
        let sent = upload_rows(layout, slot, &largest, decoded, &mut raw, uploader, plan.place(Stage::Transfer))?;
        if !target.host {
            samples.faults.counters.note_transfer(|stats| stats.sent_bytes += sent as u64);
        }
        Ok(BatchState::OnDevice(Box::new(Content::Tensors(raw, permit))))
    }

    fn finish(&self, content: Content<O>) -> Result<BatchState<O>, Error> {
        content.finish_rows(&self.samples.faults.counters, |raw| self.collate.finish(raw))
    }
}

#[cfg(feature = "vision")]
impl<I, O> RowsSource<I, O> {
    /// Decodes the images on the device. Notes the row of a file that neither the device nor the host can decode.
    fn decode_rows(
        &self,
        rows: &mut SlotRows,
        uploader: &mut Uploader,
        refused: &Cell<Option<usize>>,
    ) -> Result<Vec<DeviceTensor>, Error> {
        let SlotRows { slot, plan, largest, long, .. } = rows;
        let all = parts(&self.layout, plan.indices.len(), largest);
        let place = plan.place(Stage::Decode);
        let redo = |row: usize, picture: &ImageRow, file: &[u8]| {
            let place = Place { index: plan.indices.get(row).copied(), ..place };
            guard(place, || Ok(redo_on_host(picture, file)?)).inspect_err(|_| refused.set(Some(row)))
        };
        uploader.decode(slot.as_mut().ok_or(Error::Ended)?, &all, long, place, &redo)
    }

    /// Skips the row of a bad sample if the policy allows it. Returns its position in the batch as requested.
    fn leave_out(&self, rows: &mut SlotRows, row: usize, error: Error) -> Result<Skips, Error> {
        let (count, mut skips, mut left) = (rows.plan.indices.len(), Skips::default(), Skips::default());
        let bad = (rows.plan.position(row), error);
        let decided = self.samples.faults.decide(bad, &mut skips, 0, |_| Err(Error::Ended));
        decided.map_err(|(_, error)| error)?;
        left.skip(row, None);
        let slot = rows.slot.as_mut().ok_or(Error::Ended)?;
        for FlatTensor { range, .. } in parts(&self.layout, count, &rows.largest) {
            let len = range.len() / count;
            close_up(&mut slot.as_mut_slice()[range], len, row..count, &left.skipped);
        }
        if !rows.sizes.is_empty() {
            let fields = self.layout.fields.len();
            close_up(&mut rows.sizes, fields, row..count, &left.skipped);
            rows.sizes.truncate((count - 1) * fields);
        }
        rows.columns.iter_mut().for_each(|column| column.remove(&left.skipped));
        rows.plan = rows.plan.without(&left);
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

/// Copies the fields of a slot to the device, except the images that are `decoded` there. Returns the number of bytes
/// copied.
pub(crate) fn upload_rows(
    layout: &SlotLayout,
    slot: Slot,
    largest: &[RowSize],
    decoded: Vec<DeviceTensor>,
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
