//! What the loader delivers with some numbers of workers.

use burn::{
    data::{
        dataloader::DataLoader,
        dataset::{Dataset, DatasetError},
    },
    tensor::{DType, Device, Int, Tensor},
};
use burn_pinned::{
    BoxError, Collate, Field, PinnedDataLoaderBuilder, RawBatch, RowMut,
    memory::Decoder,
    vision::{Image, Limits, RandomHorizontalFlip, RandomResizedCrop},
};
use bytes::Bytes;
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

const BATCH: usize = 128;
const SIDE: usize = 224;
const ROW: usize = 3 * SIDE * SIDE;
/// More than an epoch is measured for.
const ENDLESS: usize = 1 << 30;

/// What came with each number of workers.
pub(crate) type Sweep = Vec<(usize, f64)>;

/// Numbers of workers to try: 1, 2, 4 .., or 1, 4, 16 .. where there are many cores. With more than two cores, the last
/// leaves one for the training loop.
pub(crate) fn counts(cores: usize) -> Vec<usize> {
    let last = if cores > 2 { cores - 1 } else { cores.max(1) };
    let factor: usize = if cores > 16 { 4 } else { 2 };
    (0..).map(|nth| factor.pow(nth)).take_while(|count| *count < last).chain([last]).collect()
}

/// The first, the middle and the last of them, for what takes longer to measure.
pub(crate) fn few(counts: &[usize]) -> Vec<usize> {
    let mut few: Vec<usize> =
        [0, counts.len() / 2, counts.len() - 1].into_iter().filter_map(|at| counts.get(at).copied()).collect();
    few.dedup();
    few
}

/// The number in words.
pub(crate) fn words(workers: usize) -> String {
    format!("{workers} worker{}", if workers == 1 { "" } else { "s" })
}

pub(crate) fn sweep(counts: &[usize], mut rate: impl FnMut(usize) -> Result<f64, BoxError>) -> Result<Sweep, String> {
    counts
        .iter()
        .map(|workers| Ok((*workers, rate(*workers)?)))
        .collect::<Result<_, BoxError>>()
        .map_err(|e| e.to_string())
}

/// Rows of bytes from memory.
struct Rows(Bytes);

impl Dataset<Bytes> for Rows {
    fn get(&self, index: usize) -> Result<Bytes, DatasetError> {
        let rows = self.0.len() / ROW;
        let start = index.wrapping_mul(7919) % rows * ROW; // neighbours are far apart
        Ok(self.0.slice(start..start + ROW))
    }

    fn len(&self) -> usize {
        ENDLESS
    }
}

struct Raw;

impl Collate<Bytes> for Raw {
    type Batch = Tensor<4, Int>;

    fn layout(&self) -> Vec<Field> {
        vec![Field::new("x", DType::U8, [3, SIDE, SIDE])]
    }

    fn write(&self, item: &Bytes, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        Ok(row.write::<u8>("x", item)?)
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
        Ok(batch.take("x")?)
    }
}

/// GB/s of images of 3 x 224 x 224 bytes from memory.
pub(crate) fn rows(device: &Device, workers: usize, time: Duration) -> Result<f64, BoxError> {
    let rows = Rows(Bytes::from(vec![7; 512 * ROW]));
    let loader = PinnedDataLoaderBuilder::new(Raw)
        .batch_size(BATCH)
        .num_workers(workers)
        .set_device(device.clone())
        .build(rows)?;
    Ok(drive(&*loader, device, time)? * (BATCH * ROW) as f64 / 1e9)
}

/// JPEGs from memory.
struct Jpegs(Vec<Bytes>);

impl Dataset<Image> for Jpegs {
    fn get(&self, index: usize) -> Result<Image, DatasetError> {
        Image::from_bytes(self.0[index % self.0.len()].clone(), &Limits::default()).map_err(DatasetError::new)
    }

    fn len(&self) -> usize {
        ENDLESS
    }
}

struct Images(Decoder);

impl Collate<Image> for Images {
    type Batch = Tensor<4, Int>;

    fn layout(&self) -> Vec<Field> {
        vec![Field::image("x", SIDE).decoder(self.0)]
    }

    fn write(&self, image: &Image, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        Ok(row.image("x", image)?)
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
        Ok(batch.take("x")?)
    }
}

/// Batches a second of JPEGs of 500 x 375, as images a second.
pub(crate) fn jpegs(
    files: &[Bytes],
    device: &Device,
    decoder: Decoder,
    workers: usize,
    time: Duration,
) -> Result<f64, BoxError> {
    let loader = PinnedDataLoaderBuilder::new(Images(decoder))
        .batch_size(BATCH)
        .num_workers(workers)
        .set_device(device.clone())
        .augment((RandomResizedCrop::new(SIDE)?, RandomHorizontalFlip::default()))
        .build(Jpegs(files.to_vec()))?;
    Ok(drive(&*loader, device, time)? * BATCH as f64)
}

/// A loader that holds the device's decoder open: to open it takes longer than to measure it.
///
/// # Errors
/// Why the device does not decode JPEGs.
pub(crate) fn decoder(device: &Device) -> Result<Arc<dyn DataLoader<Tensor<4, Int>>>, String> {
    let builder = PinnedDataLoaderBuilder::new(Images(Decoder::Device)).batch_size(1).set_device(device.clone());
    Ok(builder.build(Jpegs(Vec::new())).map_err(|error| error.to_string())?)
}

/// Batches a second.
fn drive<B>(loader: &dyn DataLoader<B>, device: &Device, time: Duration) -> Result<f64, BoxError> {
    let mut batches = loader.iter();
    let mut next = || batches.next().ok_or("the epoch ended").map_err(BoxError::from).and_then(|batch| Ok(batch?));
    // The first batches do not count: slots and decoders are made then.
    let (begun, mut first) = (Instant::now(), 0);
    while first < 4 || begun.elapsed() < time / 2 {
        drop(next()?);
        device.sync()?;
        first += 1;
    }
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < time {
        drop(next()?);
        // A training step would launch something. Without that, Burn keeps dropped batches for a while.
        device.sync()?;
        count += 1;
    }
    Ok(f64::from(count) / start.elapsed().as_secs_f64())
}

/// Files for [`jpegs`].
pub(crate) fn photos() -> Result<Vec<Bytes>, BoxError> {
    (0..32).map(photo).collect()
}

/// A JPEG of 500 x 375: slopes, waves and some noise.
fn photo(nth: u32) -> Result<Bytes, BoxError> {
    let (width, height) = (500u16, 375u16);
    let pixel = |at: u32| {
        let (x, y) = ((at % u32::from(width)) as f32, (at / u32::from(width)) as f32);
        let wave = 60.0 * (x * (0.02 + 0.003 * nth as f32)).sin() * (y * 0.05).cos();
        let noise = (at.wrapping_mul(2_654_435_761) >> 28) as f32;
        [70.0 + wave + noise, 110.0 + wave * 0.5 + noise, 90.0 + 80.0 * y / 375.0 + noise].map(|value| value as u8)
    };
    let pixels: Vec<u8> = (0..u32::from(width) * u32::from(height)).flat_map(pixel).collect();
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, 85);
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    encoder.encode(&pixels, width, height, ColorType::Rgb)?;
    Ok(file.into())
}
