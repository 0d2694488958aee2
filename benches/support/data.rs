//! The data of the cases, the same for every loader: samples in memory, or JPEGs to decode.

#[path = "photos.rs"]
mod photos;

use burn::{
    data::dataset::{Dataset, DatasetError},
    tensor::DType,
};
use burn_pinned::{Augment, BoxError, KeyedRng, vision::*};
use bytes::Bytes;
use rand::{SeedableRng, rngs::ChaCha8Rng};
use std::{fs, path::Path};

pub(crate) const SIDE: usize = 224;

/// Raw values of `rows` samples, or compressed images.
pub(crate) enum Store {
    Raw { bytes: Vec<u8>, row: usize },
    Jpeg(Vec<Bytes>),
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

    /// An image that is not decoded, randomly cropped and mirrored.
    pub(crate) fn image(&self) -> Result<Image, BoxError> {
        let Store::Jpeg(files) = self.store else { return Err("no images".into()) };
        let mut rng = KeyedRng::for_order(self.index as u64, 0);
        let image = Image::from_bytes(files[self.index % files.len()].clone(), &Limits::default())?;
        let image = RandomResizedCrop::new(SIDE)?.apply(image, &mut rng)?;
        RandomHorizontalFlip::default().apply(image, &mut rng)
    }

    /// Writes the sample's values: a copy, or an image in planar order.
    pub(crate) fn write(&self, row: &mut [u8]) -> Result<(), BoxError> {
        match self.raw() {
            Some(raw) => row.copy_from_slice(raw),
            None => write_chw(&self.image()?.into_rgb()?, row)?,
        }
        Ok(())
    }
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

/// The JPEGs of a folder, in memory.
pub(crate) fn jpegs(folder: &Path, count: usize) -> Result<&'static Store, BoxError> {
    let files = photos::folder(folder, count)?;
    let files: Vec<Bytes> = files.iter().map(|file| Ok(fs::read(file)?.into())).collect::<Result<_, BoxError>>()?;
    if files.is_empty() {
        return Err(format!("no JPEG files below {}", folder.display()).into());
    }
    Ok(Box::leak(Box::new(Store::Jpeg(files))))
}
