//! Tar shards through Burn's own `DataLoader`: draws pictures, writes them as shards, and learns the mean picture of each class.
//!
//!     cargo run --release -p burn-shards --example burn_loader

use burn::data::dataloader::{DataLoaderBuilder, batcher::Batcher};
use burn::data::dataset::Dataset;
use burn::prelude::*;
use burn_shards::Rows;
use bytes::Bytes;
use image::{GrayImage, ImageError, ImageFormat, Luma};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde::Deserialize;
use std::{error::Error, fs::File, io::Cursor, path::Path, time::Instant};

const CLASSES: [&str; 3] = ["disc", "square", "cross"];
const SIDE: usize = 16;
const ROWS: usize = 3_000;
const SHARDS: usize = 4;

/// A picture of a shape somewhere near the middle, as a PNG file.
fn picture(class: usize, rng: &mut StdRng) -> Result<Vec<u8>, Box<dyn Error>> {
    let (left, top) = (rng.random_range(6..10), rng.random_range(6..10));
    let image = GrayImage::from_fn(SIDE as u32, SIDE as u32, |x, y| {
        let (x, y) = ((x as i32 - left).abs(), (y as i32 - top).abs());
        let is_inside = match class {
            0 => x * x + y * y <= 20,
            1 => x <= 4 && y <= 4,
            _ => x.min(y) <= 1 && x.max(y) <= 5,
        };
        Luma([if is_inside { 255 } else { 0 }])
    });
    let mut file = Vec::new();
    image.write_to(&mut Cursor::new(&mut file), ImageFormat::Png)?;
    Ok(file)
}

/// Writes shards as WebDataset does: `000000.png` and `000000.cls` are one row.
fn write(folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut rng = StdRng::seed_from_u64(42);
    for shard in 0..SHARDS {
        let mut tar = tar::Builder::new(File::create(folder.join(format!("train-{shard}.tar")))?);
        for row in (0..ROWS).skip(shard).step_by(SHARDS) {
            let class = row % CLASSES.len();
            for (extension, bytes) in [("png", picture(class, &mut rng)?), ("cls", class.to_string().into_bytes())] {
                let mut header = tar::Header::new_ustar();
                header.set_size(bytes.len() as u64);
                tar.append_data(&mut header, format!("{row:06}.{extension}"), bytes.as_slice())?;
            }
        }
        tar.finish()?;
    }
    Ok(())
}

/// A PNG file is decoded as its row is read: a damaged one is an error that names its row.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Bytes")]
struct Pixels(Vec<f32>);

impl TryFrom<Bytes> for Pixels {
    type Error = ImageError;

    fn try_from(file: Bytes) -> Result<Self, ImageError> {
        let image = image::load_from_memory(&file)?.into_luma8();
        Ok(Self(image.iter().map(|byte| f32::from(*byte) / 255.0).collect()))
    }
}

#[derive(Clone, Debug)]
struct Pictures {
    pixels: Tensor<2>,  // [batch, SIDE * SIDE], from 0 to 1
    classes: Tensor<2>, // [batch, CLASSES], a 1 in the column of the class
}

struct ToTensors;

impl Batcher<(Pixels, usize), Pictures> for ToTensors {
    fn batch(&self, rows: Vec<(Pixels, usize)>, device: &Device) -> Pictures {
        let pixels: Vec<f32> = rows.iter().flat_map(|(pixels, _)| pixels.0.iter().copied()).collect();
        let one = |class: usize| (0..CLASSES.len()).map(move |n| f32::from(u8::from(n == class)));
        let classes: Vec<f32> = rows.iter().flat_map(|(_, class)| one(*class)).collect();
        Pictures {
            pixels: Tensor::<1>::from_floats(pixels.as_slice(), device).reshape([rows.len(), SIDE * SIDE]),
            classes: Tensor::<1>::from_floats(classes.as_slice(), device).reshape([rows.len(), CLASSES.len()]),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    write(folder.path())?;
    let rows = Rows::<(Pixels, usize)>::tar(folder.path().join("train-*.tar")).columns(["png", "cls"]).open()?;
    println!("{} rows in {SHARDS} shards with {:?}\n", rows.len(), rows.there_is());

    let mut sums = Tensor::<2>::zeros([CLASSES.len(), SIDE * SIDE], &Device::default());
    let mut counts = Tensor::<1>::zeros([CLASSES.len()], &Device::default());
    for workers in [0, 1, 2, 4] {
        let builder = DataLoaderBuilder::new(ToTensors).batch_size(32).shuffle(42).num_workers(workers);
        let (loader, start, mut batches) = (builder.build(rows.clone()), Instant::now(), 0_u32);
        for batch in loader.iter() {
            let Pictures { pixels, classes } = batch?;
            counts = counts + classes.clone().sum_dim(0).squeeze::<1>();
            sums = sums + classes.transpose().matmul(pixels);
            batches += 1;
        }
        println!("{workers} workers: {:.0} batches a second", f64::from(batches) / start.elapsed().as_secs_f64());
    }

    let means = (sums / counts.clone().unsqueeze_dim::<2>(1)).into_data().try_to_vec::<f32>()?;
    let counts = counts.into_data().try_to_vec::<f32>()?;
    let name = |(name, n): (&&str, &f32)| format!("{:32}", format!("{name}, {n} seen"));
    println!("\n{}", CLASSES.iter().zip(&counts).map(name).collect::<Vec<_>>().join("  "));
    for y in 0..SIDE {
        let shade = |mean: &f32| ["  ", "..", "::", "oo", "OO", "@@"][(mean * 5.0) as usize];
        let line = |n: usize| means[(n * SIDE + y) * SIDE..][..SIDE].iter().map(shade).collect::<String>();
        println!("{}", (0..CLASSES.len()).map(line).collect::<Vec<_>>().join("  "));
    }
    Ok(())
}
