//! Image files through Burn's own `DataLoader`, changed at random. It draws images of two classes, shows one of them in three epochs, and
//! compares what loaders with 0, 1 and 3 workers deliver.
//!
//!     cargo run --release -p burn-augment --example burn_loader

use burn::data::dataloader::{DataLoaderBuilder, batcher::Batcher};
use burn::data::dataset::{Dataset, DatasetError};
use burn::prelude::*;
use burn_augment::image::{Rgb, RgbImage};
use burn_augment::{Augment, BoxError, KeyedRng, images::*, rand::RngExt};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, io, path::Path, sync::Arc};

const CLASSES: [&str; 2] = ["ring", "square"];
const SIDE: usize = 24;
const SEED: u64 = 42;

/// Writes PNG and JPEG files of 64 x 48 pixels, in a folder for each class.
fn draw(root: &Path) -> Result<(), BoxError> {
    for (class, name) in CLASSES.into_iter().enumerate() {
        fs::create_dir_all(root.join(name))?;
        for n in 0..40 {
            let mut rng = KeyedRng::for_order(class as u64, n);
            let ink = Rgb([0; 3].map(|_| rng.random_range(120..=255)));
            let (left, top) = (rng.random_range(20..44), rng.random_range(18..30));
            let image = RgbImage::from_fn(64, 48, |x, y| {
                let (x, y) = (x as i32 - left, y as i32 - top);
                let is_ring = (80..=220).contains(&(x * x + y * y));
                let is_inside = if class == 0 { is_ring } else { x.abs().max(y.abs()) <= 12 };
                if is_inside { ink } else { Rgb([20; 3]) }
            });
            image.save(root.join(name).join(format!("{n}.{}", ["png", "jpg"][n % 2])))?;
        }
    }
    Ok(())
}

/// The images of a folder, each changed in another way in each epoch.
struct Changed<A> {
    folder: ImageFolder,
    changes: A,
    /// Burn's loader does not pass the epoch to data sets.
    epoch: Arc<AtomicUsize>,
}

impl<A: Augment<(Image, usize)>> Dataset<(RgbImage, usize)> for Changed<A> {
    fn get(&self, index: usize) -> Result<(RgbImage, usize), DatasetError> {
        // Each sample of each epoch has a generator of its own, so it does not matter which worker calls this.
        let mut rng = KeyedRng::for_sample(SEED, self.epoch.load(Ordering::Relaxed), index);
        let changed = self.changes.apply(self.folder.get(index)?, &mut rng);
        let (image, label) = changed.map_err(|error| DatasetError::new(io::Error::other(error)))?;
        Ok((image.into_rgb()?, label)) // decodes
    }

    fn len(&self) -> usize {
        self.folder.len()
    }
}

struct ToTensors;

/// Bytes `[N, 3, SIDE, SIDE]` and labels `[N]`.
type Batch = (Tensor<4, Int>, Tensor<1, Int>);

impl Batcher<(RgbImage, usize), Batch> for ToTensors {
    fn batch(&self, items: Vec<(RgbImage, usize)>, device: &Device) -> Batch {
        let labels: Vec<i32> = items.iter().map(|(_, label)| *label as i32).collect();
        let bytes: Vec<u8> = items.into_iter().flat_map(|(image, _)| image.into_raw()).collect();
        let images = Tensor::<4, Int>::from_data(TensorData::new(bytes, [labels.len(), SIDE, SIDE, 3]), device);
        (images.permute([0, 3, 1, 2]), Tensor::from_ints(labels.as_slice(), device))
    }
}

fn main() -> Result<(), BoxError> {
    let root = tempfile::tempdir()?;
    draw(root.path())?;
    let folder = ImageFolder::open(root.path())?;
    println!("{} images of {}. The first one in three epochs:\n", folder.len(), folder.classes().join(" and "));

    let (crop, flip) = (RandomResizedCrop::new(SIDE)?.scale(0.4, 1.0)?, RandomHorizontalFlip::default());
    let changes = (crop, flip, ColorJitter::new().brightness(0.4)?, RandomErasing::new(0.5)?);
    let epoch = Arc::<AtomicUsize>::default();
    let changed = || Changed { folder: folder.clone(), changes: changes.clone(), epoch: Arc::clone(&epoch) };
    let view = |n| {
        epoch.store(n, Ordering::Relaxed);
        changed().get(0).map(|(image, _)| image)
    };
    let views = (0..3).map(view).collect::<Result<Vec<_>, _>>()?;
    for y in 0..SIDE as u32 {
        let shade = |pixel: &Rgb<u8>| ["  ", "..", "::", "oo", "@@"][usize::from(pixel.0[0].max(pixel.0[1])) / 52];
        let line = |view: &RgbImage| (0..SIDE as u32).map(|x| shade(view.get_pixel(x, y))).collect::<String>();
        println!("{}", views.iter().map(line).collect::<Vec<_>>().join("  |  "));
    }

    let (mixup, mut delivered) = (device::MixUp::new(0.2)?, Vec::new());
    for workers in [0, 1, 3] {
        let builder = DataLoaderBuilder::new(ToTensors).batch_size(32).shuffle(SEED).num_workers(workers);
        let (loader, mut images_seen, mut steps) = (builder.build(changed()), Vec::new(), 0);
        for n in 0..2 {
            epoch.store(n, Ordering::Relaxed);
            for batch in loader.iter() {
                let (images, labels) = batch?;
                let bytes: Vec<u8> = images.to_data().iter::<u8>().collect();
                images_seen.extend(bytes.chunks(3 * SIDE * SIDE).map(<[u8]>::to_vec));
                // What a training step gets: targets are rows of shares, since MixUp mixes two labels.
                let targets = device::one_hot(labels, CLASSES.len());
                let (images, targets) = mixup.apply(images, targets, &mut KeyedRng::for_order(SEED + 1, steps));
                let images = device::normalize(images, &[0.5; 3], &[0.25; 3])?;
                assert_eq!(images.dims()[0], targets.dims()[0]);
                steps += 1;
            }
        }
        println!("\n{workers} workers: {steps} batches, {} images in 2 epochs", images_seen.len());
        images_seen.sort_unstable(); // several workers deliver batches in the order in which they finish
        delivered.push(images_seen);
    }
    assert!(delivered.windows(2).all(|pair| pair[0] == pair[1]), "the loaders delivered different images");
    println!("\nAll loaders delivered the same images, byte for byte.");
    Ok(())
}
