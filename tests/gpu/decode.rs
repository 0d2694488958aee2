//! Images that the device decodes: the pixels of the host, whatever the file.

use crate::{
    common::{keep_log, logged},
    scenes::{files, jpeg},
};
use burn::{
    data::dataset::{Dataset, DatasetError},
    tensor::{DType, Device, Int, Tensor},
};
use burn_pinned::{
    Augment, BoxError, Collate, Field, KeyedRng, PinnedDataLoader, PinnedDataLoaderBuilder, RawBatch, RowMut,
    fault::{BadSamples, Quota},
    memory::Decoder,
    vision::*,
};
use jpeg_encoder::SamplingFactor;
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use std::{env, process::Command, sync::Arc, time::Instant};

const SIDE: usize = 96;

struct Files(Arc<Vec<Vec<u8>>>);

impl Dataset<(Image, usize)> for Files {
    fn get(&self, index: usize) -> Result<(Image, usize), DatasetError> {
        let image = Image::from_bytes(self.0[index].clone(), &Limits::default()).map_err(DatasetError::new)?;
        Ok((image, index))
    }
    fn len(&self) -> usize {
        self.0.len()
    }
}

struct Images {
    field: Field,
}

/// Bits of values, and the indices of their samples.
type Batch = (Vec<u8>, Vec<i64>);

impl Collate<(Image, usize)> for Images {
    type Batch = Batch;
    fn layout(&self) -> Vec<Field> {
        vec![self.field.clone(), Field::new("index", DType::I64, [])]
    }
    fn write(&self, (image, index): &(Image, usize), row: &mut RowMut<'_>) -> Result<(), BoxError> {
        row.image("image", image)?;
        Ok(row.put("index", *index as i64)?)
    }
    fn finish(&self, mut batch: RawBatch) -> Result<Batch, BoxError> {
        let bytes = match self.field.dtype() {
            DType::U8 => batch.take::<4, Int>("image")?.into_data().as_bytes().to_vec(),
            _ => batch.take::<4, burn::tensor::Float>("image")?.into_data().as_bytes().to_vec(),
        };
        let index: Tensor<1, Int> = batch.take("index")?;
        Ok((bytes, index.into_data().try_to_vec::<i64>()?))
    }
}

fn field(decoder: Decoder) -> Field {
    Field::image("image", SIDE).decoder(decoder)
}

fn loader(files: &Arc<Vec<Vec<u8>>>, field: Field, workers: usize, batch: usize) -> Arc<PinnedDataLoader<Batch>> {
    let train = (RandomResizedCrop::new(SIDE).unwrap(), RandomHorizontalFlip::default(), RandomVerticalFlip::default());
    augmented(files, field, workers, batch, train)
}

fn augmented(
    files: &Arc<Vec<Vec<u8>>>,
    field: Field,
    workers: usize,
    batch: usize,
    train: impl Augment<(Image, usize)> + 'static,
) -> Arc<PinnedDataLoader<Batch>> {
    PinnedDataLoaderBuilder::new(Images { field })
        .batch_size(batch)
        .num_workers(workers)
        .shuffle(5)
        .augment(train)
        .bad_samples(BadSamples::Skip(Quota::Share(1.0)))
        .set_device(Device::cuda(0))
        .build(Files(Arc::clone(files)))
        .unwrap()
}

fn all(loader: &PinnedDataLoader<Batch>) -> Vec<Batch> {
    loader.iter().map(|batch| batch.unwrap()).collect()
}

/// The share of batches that the device decoded some of.
fn decoded(loader: &PinnedDataLoader<Batch>) -> u64 {
    loader.stats().stages.decode.count
}

#[test]
#[ignore = "needs a GPU"]
fn the_device_makes_the_pixels_of_the_host() {
    let crop = |by| RandomResizedCrop::new(SIDE).unwrap().interpolation(by);
    let flips = (RandomHorizontalFlip::default(), RandomVerticalFlip::default());
    compare((crop(Interpolation::Bilinear), flips));
    compare((D4, crop(Interpolation::Bicubic), flips));
    compare((crop(Interpolation::Bicubic), D4)); // turns behind the resize are the workers'
}

fn compare(train: impl Augment<(Image, usize)> + Clone + 'static) {
    let files = Arc::new(files());
    let loader = |decoder| augmented(&files, field(decoder), 4, 20, train.clone());
    let (host, device) = (loader(Decoder::Host), loader(Decoder::Device));
    let (mut most, mut sum, mut count, mut worst) = (0, 0u64, 0u64, 0);
    for _ in 0..3 {
        for ((a, at), (b, other)) in all(&host).into_iter().zip(all(&device)) {
            assert_eq!(at, other);
            assert_eq!(a.len(), b.len());
            for (row, (a, b)) in a.chunks(3 * SIDE * SIDE).zip(b.chunks(3 * SIDE * SIDE)).enumerate() {
                let far = a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
                if far > most {
                    (most, worst) = (far, at[row]);
                }
                if far > 2 {
                    println!("file {} differs by {far}", at[row]);
                }
                sum += a.iter().zip(b).map(|(a, b)| u64::from(a.abs_diff(*b))).sum::<u64>();
                count += a.len() as u64;
            }
        }
    }
    let mean = sum as f64 / count as f64;
    println!("differences of device and host: at most {most} (file {worst}), mean {mean:.4}");
    assert!(decoded(&device) > 0 && decoded(&host) == 0);
    // docs/images.md says so. What zune-jpeg adds to it, decoders.rs in the tests of burn-augment measures without a GPU.
    let (far, on_average) = if cfg!(feature = "turbo") { (2, 0.1) } else { (2 + 6, 0.1 + 0.3) };
    assert!(most <= far && mean <= on_average, "{most} {mean}");
}

#[test]
#[ignore = "needs a GPU"]
fn values_and_pixels_and_workers() {
    let files = Arc::new(files());
    // The same bytes for any number of workers and size of batches. Without room for a file the device gets pixels.
    let bytes = |field, workers, batch| -> Vec<u8> {
        all(&loader(&files, field, workers, batch)).into_iter().flat_map(|(bytes, _)| bytes).collect()
    };
    let device = field(Decoder::Device);
    assert!(bytes(device.clone(), 1, 96) == bytes(device.clone(), 7, 13));
    assert!(bytes(device.clone().room(0), 3, 20) == bytes(field(Decoder::Host), 8, 20));
    // Values are those of the bytes.
    let (mean, std) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let floats = |field: Field| all(&loader(&files, field.with_dtype(dtype).normalize(mean, std), 4, 24));
        let plain = bytes(device.clone(), 4, 24);
        let (a, b): (Vec<u8>, Vec<u8>) = (
            floats(device.clone()).into_iter().flat_map(|(bytes, _)| bytes).collect(),
            floats(device.clone().room(0)).into_iter().flat_map(|(bytes, _)| bytes).collect(),
        );
        assert_eq!(a.len(), plain.len() * dtype.size());
        assert_eq!(b.len(), a.len());
        let hosts = floats(field(Decoder::Host)).into_iter().flat_map(|(bytes, _)| bytes).collect::<Vec<_>>();
        assert!(hosts == b, "{dtype:?}: the kernel's values of host pixels are the host's");
        if dtype == DType::F32 {
            let plane = SIDE * SIDE;
            for (at, (value, byte)) in a.chunks(4).zip(&plain).enumerate() {
                let channel = at / plane % 3;
                let expected = (f32::from(*byte) / 255.0 - mean[channel]) / std[channel];
                assert_eq!(f32::from_ne_bytes(value.try_into().unwrap()), expected);
            }
        }
    }
}

/// Changes the colours of the picture of an index, erases a part, and mirrors it.
fn recolour(picture: &mut impl Picture, index: usize) -> Result<(), VisionError> {
    let rng = &mut KeyedRng::for_order(77, index);
    let jitter = ColorJitter::new();
    let jitter = jitter.brightness(0.6).and_then(|jitter| jitter.contrast(0.6)?.saturation(0.6)?.hue(0.5)).unwrap();
    for change in jitter.draw(rng).into_iter().skip(index % 3) {
        picture.adjust(change)?;
    }
    if index % 5 == 1 {
        picture.adjust(Adjust::Saturation(0.0))?;
    }
    let (width, height) = picture.dimensions();
    if let Some(part) = RandomErasing::new(0.7).unwrap().draw(width, height, rng) {
        picture.erase(part, [124, 116, index as u8])?;
    }
    picture.flip_horizontal();
    Ok(())
}

/// Colours that the device changes, against those of the host: on the device's own pixels.
#[test]
#[ignore = "needs a GPU"]
fn the_device_makes_the_colours_of_the_host() {
    let files = Arc::new(files());
    let crop = || (RandomResizedCrop::new(SIDE).unwrap(), RandomVerticalFlip::default());
    let change = |(mut image, index): (Image, usize), _: &mut KeyedRng| {
        recolour(&mut image, index).unwrap();
        assert!(!image.is_decoded(), "all of it is noted");
        Ok((image, index))
    };
    let plain = augmented(&files, field(Decoder::Device), 4, 20, crop());
    let coloured = augmented(&files, field(Decoder::Device), 4, 20, (crop(), change));
    let (mut most, mut changed) = (0, 0);
    for ((a, at), (b, other)) in all(&plain).into_iter().zip(all(&coloured)) {
        assert_eq!(at, other);
        for ((a, b), index) in a.chunks(3 * SIDE * SIDE).zip(b.chunks(3 * SIDE * SIDE)).zip(at) {
            let plane = SIDE * SIDE;
            let mut image = image::RgbImage::from_fn(SIDE as u32, SIDE as u32, |x, y| {
                let at = y as usize * SIDE + x as usize;
                image::Rgb([a[at], a[plane + at], a[2 * plane + at]])
            });
            recolour(&mut image, index as usize).unwrap();
            let mut expected = vec![0; 3 * plane];
            write_chw(&image, &mut expected).unwrap();
            let far = expected.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
            if far > 0 {
                println!("file {index} differs by {far}");
            }
            most = most.max(far);
            changed += 1;
        }
    }
    println!("colours of {changed} images: device and host differ by at most {most}");
    assert_eq!(changed, files.len());
    assert_eq!(most, 0);
    // Floats are those of the bytes.
    let normalized = field(Decoder::Device).with_dtype(DType::F32);
    let floats = augmented(&files, normalized, 7, 13, (crop(), change));
    let bytes = augmented(&files, field(Decoder::Device), 2, 96, (crop(), change));
    let floats: Vec<u8> = all(&floats).into_iter().flat_map(|(bytes, _)| bytes).collect();
    let bytes: Vec<u8> = all(&bytes).into_iter().flat_map(|(bytes, _)| bytes).collect();
    assert_eq!(floats.len(), 4 * bytes.len());
    for (value, byte) in floats.chunks(4).zip(bytes) {
        assert_eq!(f32::from_ne_bytes(value.try_into().unwrap()), f32::from(byte) / 255.0);
    }
}

/// Damages a file at random: half of them in their headers, half anywhere. Every eighth has a marker where none may be.
fn damage(file: &mut [u8], nth: usize, rng: &mut ChaCha8Rng) {
    let end = if nth.is_multiple_of(2) { file.len() } else { file.len().min(700) };
    for _ in 0..rng.random_range(1..6) {
        let at = rng.random_range(2..end);
        file[at] = rng.random();
    }
    if nth % 8 == 1 {
        let at = rng.random_range(file.len() / 2..file.len() - 8);
        file[at..at + 4].copy_from_slice(&[0xFF, 0xDA, 0, 2]);
    }
}

/// Files that are damaged at random: no crash, no hang, and no batch fails. Each file that is whole has the pixels that
/// the device makes of it among whole files alone. Decoders differ in what damage they notice. But the host is asked for
/// each file that the device refuses, so what the host decodes is delivered.
#[test]
#[ignore = "needs a GPU"]
fn damaged_files_harm_no_other() {
    keep_log(log::LevelFilter::Debug);
    let count = std::env::var("DAMAGED").ok().and_then(|count| count.parse().ok()).unwrap_or(2000);
    let good = files();
    let whole: Vec<_> = (0..count).map(|nth| good[nth % 22].clone()).collect();
    let (mut damaged, mut rng) = (whole.clone(), ChaCha8Rng::seed_from_u64(9));
    for (nth, file) in damaged.iter_mut().enumerate().filter(|(nth, _)| nth % 4 != 0) {
        damage(file, nth, &mut rng);
    }
    let (whole, damaged) = (Arc::new(whole), Arc::new(damaged));
    let outcome = |files: &Arc<Vec<Vec<u8>>>, decoder| {
        let mut rows = std::collections::BTreeMap::new();
        for batch in loader(files, field(decoder), 8, 64).iter() {
            let (bytes, index) = batch.unwrap();
            for (row, index) in bytes.chunks(3 * SIDE * SIDE).zip(index) {
                rows.insert(index as usize, row.to_vec());
            }
        }
        rows
    };
    let host = outcome(&damaged, Decoder::Host);
    let alone = outcome(&whole, Decoder::Device);
    let refused = || logged().iter().filter(|line| line.contains("a file is decoded on the host")).count();
    let before = refused();
    let device = outcome(&damaged, Decoder::Device);
    let refused = refused() - before;
    let left_out = [&host, &device].map(|rows| count - rows.len());
    println!("{count} files: host and device left out {left_out:?}, the device alone refused {refused}");
    assert_eq!(alone.len(), count, "whole files");
    // libjpeg-turbo refuses more heads, so none of these files makes a call of the library fail.
    assert!(refused > 0 || cfg!(feature = "turbo"), "no call of the library failed, so nothing is shown");
    let missing: Vec<_> = host.keys().filter(|index| !device.contains_key(index)).collect();
    assert!(missing.is_empty(), "the host decodes them, and the device left them out: {missing:?}");
    for index in (0..count).step_by(4) {
        assert!(device.get(&index) == alone.get(&index), "file {index} differs beside damaged ones");
    }
}

/// The library frees its memory in the device's context, also on a thread that has none, and leaves none there.
#[test]
#[ignore = "needs a GPU"]
fn a_thread_without_a_context_ends_the_decoder() {
    use cudarc::driver::result::ctx;
    let files = Arc::new(files());
    let thread = || {
        let loader = loader(&files, field(Decoder::Device), 4, 20);
        assert_eq!(all(&loader).iter().map(|(_, index)| index.len()).sum::<usize>(), files.len());
        assert!(decoded(&loader) > 0);
        // SAFETY: null stands for none. Burn may have left one here.
        #[expect(unsafe_code, reason = "cudarc has no other way to set a context")]
        unsafe { ctx::set_current(std::ptr::null_mut()) }.unwrap();
        drop(loader);
        assert_eq!(ctx::get_current().unwrap(), None, "the library made a context current");
    };
    std::thread::scope(|scope| scope.spawn(thread).join()).unwrap();
}

/// `build` opens the decoder to check the options. The first epoch needs no other.
#[test]
#[ignore = "needs a GPU"]
fn the_decoder_stays_open_for_the_first_epoch() {
    let files = Arc::new(files());
    all(&loader(&files, field(Decoder::Device), 4, 20)); // kernels are compiled
    let start = Instant::now();
    let loader = loader(&files, field(Decoder::Device), 4, 20);
    let built = start.elapsed();
    let mut epoch = loader.iter();
    let start = Instant::now();
    epoch.next().unwrap().unwrap();
    let first = start.elapsed();
    println!("build {built:?}, first batch {first:?}");
    assert!(decoded(&loader) > 0 && first < built / 2, "build {built:?}, first batch {first:?}");
}

/// Photographs of 12 megapixels, and memory of the device.
#[test]
#[ignore = "needs a GPU"]
fn memory_of_the_device_is_bounded() {
    let large: Vec<_> = (0..4).map(|nth| jpeg(8 * nth, SamplingFactor::F_2_2, false, (4000, 3000))).collect();
    println!("12 megapixels: {} bytes", large[0].len());
    let files = Arc::new((0..128).map(|nth| large[nth % 4].clone()).collect::<Vec<_>>());
    let before = crate::leaks::device_mb();
    let field = Field::image("image", SIDE).decoder(Decoder::Device);
    let device = loader(&files, field, 8, 64);
    let batches = all(&device);
    assert_eq!(batches.iter().map(|(_, index)| index.len()).sum::<usize>(), 128);
    println!(
        "device MB: {before:?} before, {:?} with 64 photographs of 12 megapixels a batch",
        crate::leaks::device_mb()
    );
}

/// Set in a process that has as many hardware queues as CUDA gives by itself.
const CHILD: &str = "BURN_PINNED_FEW_QUEUES";

/// Steps would wait for the device's decoder. So 8 workers decode themselves, unless the layout says where.
#[test]
#[ignore = "needs a GPU"]
fn with_few_hardware_queues_many_workers_decode() {
    if env::var(CHILD).is_err() {
        let mut child = Command::new(env::current_exe().unwrap());
        child.args(["decode::with_few_hardware_queues_many_workers_decode", "--exact", "--ignored"]);
        assert!(child.env(CHILD, "").env("CUDA_DEVICE_MAX_CONNECTIONS", "8").status().unwrap().success());
        return;
    }
    let files = Arc::new(files());
    for (decoder, workers, on_device) in
        [(Decoder::Auto, 8, false), (Decoder::Auto, 7, true), (Decoder::Device, 8, true)]
    {
        let loader = loader(&files, field(decoder), workers, 20);
        let seen: usize = all(&loader).iter().map(|(_, indices)| indices.len()).sum();
        assert!(seen > 0);
        assert_eq!(decoded(&loader) > 0, on_device, "{decoder:?}, {workers} workers");
        let verdict = loader.stats().verdict().to_string();
        let place = if on_device { "note: the device decodes images" } else { "note: the workers decode images" };
        assert!(verdict.contains(place) && verdict.contains("call `burn_pinned::prepare()` first"), "{verdict}");
    }
}
