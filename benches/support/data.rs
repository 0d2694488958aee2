//! The data of the cases, the same for every loader: samples in memory, or JPEGs to decode.

use burn::{
    data::dataset::{Dataset, DatasetError},
    tensor::DType,
};
use image::{ImageReader, RgbImage, codecs::jpeg::JpegEncoder, imageops::FilterType};
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use std::io::Cursor;

pub(crate) const SIDE: usize = 224;

/// Raw values of `rows` samples, or compressed images.
pub(crate) enum Store {
    Raw { bytes: Vec<u8>, row: usize },
    Jpeg(Vec<Vec<u8>>),
}

/// A sample: where it is, not what it holds, so that reading it costs the dataset nothing. Nor is it counted: eight workers that
/// write to one count of references get 24 instead of 36 million small samples a second.
#[derive(Clone)]
pub(crate) struct Item {
    pub(crate) store: &'static Store,
    pub(crate) index: usize,
}

impl std::fmt::Debug for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Item({})", self.index)
    }
}

impl Item {
    pub(crate) fn label(&self) -> i64 {
        (self.index % 10) as i64
    }

    /// The values of a raw sample: a stride walks the store in an order that the prefetcher does not guess.
    pub(crate) fn raw(&self) -> Option<&[u8]> {
        match self.store {
            Store::Raw { bytes, row } => {
                let at = (self.index * 7919) % (bytes.len() / row);
                Some(&bytes[at * row..(at + 1) * row])
            }
            Store::Jpeg(_) => None,
        }
    }

    /// Writes the sample's values: a copy, or a decoded, randomly cropped and flipped image in planar order.
    pub(crate) fn write(&self, row: &mut [u8]) -> Result<(), image::ImageError> {
        if let Some(raw) = self.raw() {
            row.copy_from_slice(raw);
            return Ok(());
        }
        let Store::Jpeg(files) = self.store else { return Ok(()) };
        let file = &files[self.index % files.len()];
        let image = ImageReader::new(Cursor::new(file)).with_guessed_format()?.decode()?.into_rgb8();
        let mut rng = ChaCha8Rng::seed_from_u64(self.index as u64);
        let image = random_resized_crop(&image, &mut rng);
        let flip = rng.random_bool(0.5);
        for (x, y, pixel) in image.enumerate_pixels() {
            let x = if flip { SIDE - 1 - x as usize } else { x as usize };
            for channel in 0..3 {
                row[(channel * SIDE + y as usize) * SIDE + x] = pixel.0[channel];
            }
        }
        Ok(())
    }
}

/// 8 to 100 % of the area, sides 3:4 to 4:3, as torchvision's RandomResizedCrop samples them.
fn random_resized_crop(image: &RgbImage, rng: &mut ChaCha8Rng) -> RgbImage {
    let (width, height) = image.dimensions();
    let crop = (0..10).find_map(|_| {
        let area = f64::from(width * height) * rng.random_range(0.08..1.0);
        let ratio = rng.random_range((0.75f64).ln()..(4.0f64 / 3.0).ln()).exp();
        let (w, h) = ((area * ratio).sqrt().round() as u32, (area / ratio).sqrt().round() as u32);
        let fits = (1..=width).contains(&w) && (1..=height).contains(&h);
        fits.then(|| (rng.random_range(0..=width - w), rng.random_range(0..=height - h), w, h))
    });
    let (x, y, w, h) = crop.unwrap_or((0, 0, width, height));
    let part = image::imageops::crop_imm(image, x, y, w, h).to_image();
    image::imageops::resize(&part, SIDE as u32, SIDE as u32, FilterType::Triangle)
}

/// As many samples as a run asks for, over a store that repeats.
#[derive(Clone)]
pub(crate) struct Repeat {
    pub(crate) store: &'static Store,
    pub(crate) len: usize,
}

impl Dataset<Item> for Repeat {
    fn get(&self, index: usize) -> Result<Item, DatasetError> {
        Ok(Item { store: self.store, index })
    }

    fn len(&self) -> usize {
        self.len
    }
}

/// Random values, about 300 MB of them or 60,000 samples: more than any cache holds.
pub(crate) fn raw(shape: &[usize], dtype: DType) -> &'static Store {
    let row = shape.iter().product::<usize>() * dtype.size();
    let rows = (308usize << 20).div_ceil(row).min(60_000);
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut bytes = vec![0; rows * row];
    rand::Rng::fill_bytes(&mut rng, &mut bytes);
    if dtype == DType::F32 {
        // Plain numbers between 0 and 1 rather than any bits.
        for value in bytes.chunks_exact_mut(4) {
            let x = f32::from(value[0]) / 255.0;
            value.copy_from_slice(&x.to_ne_bytes());
        }
    }
    Box::leak(Box::new(Store::Raw { bytes, row }))
}

/// Photo-like JPEGs of 500 x 375, quality 90: a smooth random field plus grain.
pub(crate) fn jpegs(count: usize) -> Result<&'static Store, image::ImageError> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut file = || {
        let coarse = RgbImage::from_fn(64, 48, |_, _| image::Rgb([(); 3].map(|()| rng.random_range(28..228u8))));
        let mut image = image::imageops::resize(&coarse, 500, 375, FilterType::CatmullRom);
        for value in image.iter_mut() {
            *value = value.saturating_add(rng.random_range(0..20)).saturating_sub(10);
        }
        let mut bytes = Vec::new();
        JpegEncoder::new_with_quality(&mut bytes, 90).encode_image(&image)?;
        Ok::<_, image::ImageError>(bytes)
    };
    Ok(Box::leak(Box::new(Store::Jpeg((0..count).map(|_| file()).collect::<Result<_, _>>()?))))
}
