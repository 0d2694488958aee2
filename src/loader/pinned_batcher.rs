//! A collate as a `Batcher` for Burn's own loader.

use crate::{
    batch::{AnyCollate, ChunkRows, Collate, RawBatch, upload_rows},
    device::{Target, Uploader, host_alloc},
    fault::{Error, UserValues, aside, guard},
    memory::{Field, Pool, PoolLimits, SlotLayout, Wait, trim_padding, with_companions},
    observe::Counters,
    sync::locks::Mutex,
    vocabulary::{BatchKey, Place, Stage},
};
use burn::{data::dataloader::batcher::Batcher, tensor::Device};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

/// A [`Collate`] as a Burn `Batcher`, for Burn's own `DataLoaderBuilder`.
///
/// Samples are written into recycled memory (page-locked on CUDA) and are copied to the device in the layout's dtypes.
/// The rest is Burn's: each of Burn's workers makes whole batches, and waits for their copies. An error or a panic
/// names its sample by the position in the batch, because Burn does not pass the index. With `num_workers`, Burn does
/// not report the error at all: its epoch ends early, as if it were complete (see upstream/burn-batcher-panic.md).
///
/// It keeps the slots that it has used, up to 64 for each device (66 on a CPU backend), without a limit in bytes. A
/// call that gets no slot within 60 s panics. Here [`RawBatch::rng`] has the seed 0 and counts batches in the order in
/// which they are made. So it is not reproducible with several of Burn's workers.
///
/// ```
/// use burn::data::{dataloader::DataLoaderBuilder, dataset::InMemDataset};
/// use burn::{prelude::*, tensor::DType};
/// use burn_pinned::{BoxError, Collate, Field, PinnedBatcher, RawBatch, RowMut};
/// # struct Squares;
/// # impl Collate<f32> for Squares {
/// #     type Batch = Tensor<1>;
/// #     fn layout(&self) -> Vec<Field> { vec![Field::new("x", DType::F32, [])] }
/// #     fn write(&self, x: &f32, row: &mut RowMut<'_>) -> Result<(), BoxError> { Ok(row.put("x", x * x)?) }
/// #     fn finish(&self, mut batch: RawBatch) -> Result<Tensor<1>, BoxError> { Ok(batch.take("x")?) }
/// # }
///
/// let batcher = PinnedBatcher::new(Squares)?; // any Collate
/// let loader = DataLoaderBuilder::new(batcher).batch_size(2).build(InMemDataset::new(vec![1.0f32, 2.0, 3.0]));
/// let batch = loader.iter().next().unwrap().unwrap();
/// assert_eq!(batch.to_data().try_to_vec::<f32>().unwrap(), [1.0, 4.0]);
/// # Ok::<(), burn_pinned::Error>(())
/// ```
#[derive(derive_more::Debug)]
#[debug("PinnedBatcher {{ fields: {fields:?}, .. }}")]
pub struct PinnedBatcher<C> {
    collate: C,
    fields: Vec<Field>,
    /// A pool for each device that a batch was made for.
    pools: Mutex<Vec<(Device, Arc<Pool>)>>,
    batches: AtomicUsize,
}

/// The most workers that may call at once. Burn does not say how many workers there are.
const SLOTS: usize = 64;
/// How long to wait for a slot. A copy that has not ended by then never will.
const PATIENCE: Duration = Duration::from_secs(60);

impl<C> PinnedBatcher<C> {
    /// Makes a batcher from this collate.
    ///
    /// # Errors
    /// [`Error::Config`] if the layout is wrong.
    ///
    /// # Panics
    /// If [`Collate::layout`] panics.
    pub fn new<I>(collate: C) -> Result<Self, Error>
    where
        C: Collate<I>,
    {
        let fields = with_companions(collate.layout());
        SlotLayout::new(fields.clone(), 1)?;
        Ok(Self { collate, fields, pools: Mutex::default(), batches: AtomicUsize::new(0) })
    }

    fn pool(&self, target: &Target) -> Result<Arc<Pool>, Error> {
        let mut pools = self.pools.lock();
        if let Some((_, pool)) = pools.iter().find(|(device, _)| *device == target.device) {
            return Ok(Arc::clone(pool));
        }
        let alloc = host_alloc(&target.device, false)?;
        let limits = PoolLimits { slots: SLOTS, bytes: usize::MAX };
        let pool = Pool::new(alloc, limits, Arc::<Counters>::default());
        pools.push((target.device.clone(), Arc::clone(&pool)));
        Ok(pool)
    }

    fn make<I>(&self, items: Vec<I>, device: &Device) -> Result<C::Batch, Error>
    where
        C: Collate<I>,
    {
        let (items, target) = (UserValues(items), Target::of(device.clone()));
        let number = self.batches.fetch_add(1, Relaxed);
        let key = BatchKey { position: number, ..BatchKey::new(0, number) };
        let place = Place::batch(Stage::Collate, key);
        let rows = items.len();
        if rows == 0 {
            return Err(Error::config("batch", "there are no items to batch", "give at least one"));
        }
        let int_dtype = device.settings().int_dtype.into();
        let layout = Arc::new(SlotLayout::new(self.fields.clone(), rows)?.on(int_dtype, false)?);
        let pool = self.pool(&target)?;
        let permit = pool.permit(PATIENCE).ok_or_else(|| pool.lease_timeout(PATIENCE, 0))?;
        let slot = pool.slot(permit, layout.bytes(), &Wait::at_most(PATIENCE))?;
        let chunk = slot.split(&layout, rows, rows).pop().ok_or(Error::Ended)?; // one chunk: this thread writes all
        let never = AtomicBool::new(false); // nobody can leave in the middle of a batch
        let mut written = ChunkRows::new(chunk, place, None, &never); // Burn does not pass the indices
        self.collate.write_rows(0, &items, &mut written, None).map_err(|(_, error)| error)?;
        let ChunkRows { chunk, sizes, extras, .. } = written;
        let mut slot = chunk.finish().ok_or(Error::Ended)?;
        let largest = if layout.has_padded() { trim_padding(&layout, &mut slot, rows, &sizes) } else { Vec::new() };
        let permit = if target.host { pool.detach(&mut slot) } else { None };
        let transfer = Place { stage: Stage::Transfer, ..place };
        let mut raw = RawBatch::new(rows, device.clone(), 0, key);
        (raw.sizes, raw.compared) = (sizes, layout.fit.with(extras.beyond));
        raw.set_columns(&layout.columns, extras.columns);
        let mut uploader = Uploader::burn(&target); // Burn's workers come and go, so none keeps a copy stream
        upload_rows(&layout, slot, &largest, Vec::new(), &mut raw, &mut uploader, transfer)?;
        drop(permit);
        guard(Place { stage: Stage::Finish, ..place }, || self.collate.finish(raw))
    }
}

impl<I, C: Collate<I>> Batcher<I, C::Batch> for PinnedBatcher<C> {
    /// Makes one batch on the calling thread.
    ///
    /// # Panics
    /// On any error, with the error as the panic's message. Burn's trait has no other way to report it.
    fn batch(&self, items: Vec<I>, device: &Device) -> C::Batch {
        match aside(|| self.make(items, device)) {
            Ok(batch) => batch,
            Err(error) => panic!("burn-pinned: {error}"),
        }
    }
}
