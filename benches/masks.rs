//! Images and their masks, through the same random crop and flip: JSON lines, a line a case and round.
//!
//!     cargo bench --bench masks -- DIR [seconds, 5 by default] [rounds, 5 by default] [workers, 2 by default]
//!
//! An empty folder is first given 512 JPEGs like photographs. Each JPEG gets a grey PNG of 21 classes beside it.
//!
//! - `image`: the image alone, on one thread, from the bytes of its file to pixels.
//! - `together`: a sample of the image and its mask.
//! - `by-hand`: one draw; the image is cropped by it, and then the mask, decoded by the crate image, by a loop.
//! - `loader`: batches of 32 from files, on workers. benches/peer_masks.py has torchvision's of the same files.

#[path = "support/photos.rs"]
mod photos;

use burn::{
    data::dataset::{Dataset, DatasetError},
    prelude::*,
    tensor::DType,
};
use burn_pinned::{Augment, BoxError, Field, KeyedRng, PinnedDataLoaderBuilder, collate, vision::*};
use image::GrayImage;
use rand::RngExt;
use std::{
    fs,
    hint::black_box,
    path::PathBuf,
    time::{Duration, Instant},
};

const SIDE: u32 = 224;

/// JPEGs, each with its mask beside it.
#[derive(Clone)]
struct Files {
    paths: Vec<PathBuf>,
    len: usize,
}

impl Dataset<(Image, Mask)> for Files {
    fn get(&self, index: usize) -> Result<(Image, Mask), DatasetError> {
        let (limits, path) = (Limits::default(), &self.paths[index % self.paths.len()]);
        let mask = Mask::open(path.with_extension("png"), &limits).map_err(DatasetError::new)?;
        Ok((Image::open(path, &limits).map_err(DatasetError::new)?, mask))
    }

    fn len(&self) -> usize {
        self.len
    }
}

/// Draws the masks that are not there yet: fields of classes with slanted borders.
fn draw_masks(paths: &[PathBuf]) -> Result<(), BoxError> {
    for (index, path) in paths.iter().enumerate() {
        let file = path.with_extension("png");
        if !file.exists() {
            let (width, height) = Image::open(path, &Limits::default())?.dimensions();
            let mut rng = KeyedRng::for_order(1, index);
            let fields: [u8; 64] = std::array::from_fn(|_| rng.random_range(0..21));
            let field = |x: u32, y: u32| fields[((x + y / 3) / 97 % 8 + (y + x / 5) / 71 % 8 * 8) as usize];
            GrayImage::from_fn(width, height, |x, y| image::Luma([field(x, y)])).save(file)?;
        }
    }
    Ok(())
}

type Pair = (Vec<u8>, Vec<u8>);

fn change() -> Result<impl Augment<Image> + Augment<(Image, Mask)>, BoxError> {
    Ok((RandomResizedCrop::new(SIDE)?, RandomHorizontalFlip::default()))
}

fn alone((jpeg, _): &Pair, rng: &mut KeyedRng) -> Result<(), BoxError> {
    let image: Image = change()?.apply(Image::from_bytes(jpeg.clone(), &Limits::default())?, rng)?;
    black_box(image.into_rgb()?);
    Ok(())
}

fn together((jpeg, png): &Pair, rng: &mut KeyedRng) -> Result<(), BoxError> {
    let limits = Limits::default();
    let sample = (Image::from_bytes(jpeg.clone(), &limits)?, Mask::from_bytes(png.clone(), &limits)?);
    let (image, mask): (Image, Mask) = change()?.apply(sample, rng)?;
    black_box((image.into_rgb()?, mask.to_numbers()?));
    Ok(())
}

fn by_hand((jpeg, png): &Pair, rng: &mut KeyedRng) -> Result<(), BoxError> {
    let mut image = Image::from_bytes(jpeg.clone(), &Limits::default())?;
    let (width, height) = image.dimensions();
    let (part, flips) = (RandomResizedCrop::new(SIDE)?.draw(width, height, rng), rng.random_bool(0.5));
    image.resized_crop(part, Size { width: SIDE, height: SIDE }, Interpolation::Bilinear)?;
    if flips {
        image.flip_horizontal();
    }
    let classes = image::load_from_memory(png)?.into_luma8();
    let place = |at: u32, from: i64, side: u32| from as u32 + (at * 2 + 1) * side / (2 * SIDE);
    let mask = GrayImage::from_fn(SIDE, SIDE, |x, y| {
        let x = if flips { SIDE - 1 - x } else { x };
        *classes.get_pixel(place(x, part.left, part.width), place(y, part.top, part.height))
    });
    black_box((image.into_rgb()?, mask));
    Ok(())
}

/// Samples a second on one thread.
fn timed(pairs: &[Pair], seconds: u64, run: fn(&Pair, &mut KeyedRng) -> Result<(), BoxError>) -> Result<f64, BoxError> {
    let (begun, mut done) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(seconds) {
        run(&pairs[done % pairs.len()], &mut KeyedRng::for_order(7, done))?;
        done += 1;
    }
    Ok(done as f64 / begun.elapsed().as_secs_f64())
}

/// Samples a second of a loader.
fn loaded(paths: &[PathBuf], seconds: u64, workers: usize) -> Result<f64, BoxError> {
    let side = SIDE as usize;
    let batches = collate(
        [Field::image("image", side), Field::new("mask", DType::U8, [side, side])],
        |(image, mask): &(Image, Mask), row| Ok(row.image("image", image).and_then(|()| row.mask("mask", mask))?),
        |mut batch| Ok((batch.take::<4, Int>("image")?, batch.take::<3, Int>("mask")?)),
    );
    let builder = PinnedDataLoaderBuilder::new(batches).batch_size(32).num_workers(workers).shuffle(7);
    let files = Files { paths: paths.to_vec(), len: 1 << 20 };
    let loader = builder.augment(change()?).set_device(Device::flex()).build(files)?;
    let mut epoch = loader.iter();
    for _ in 0..8 {
        epoch.next().ok_or("no batch")??;
    }
    let (begun, mut done) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(seconds) {
        done += black_box(epoch.next().ok_or("no batch")??).0.dims()[0];
    }
    Ok(done as f64 / begun.elapsed().as_secs_f64())
}

fn main() -> Result<(), BoxError> {
    // `cargo bench` adds this word.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let folder = args.first().ok_or("give a folder of JPEGs, or an empty one")?;
    let number = |at: usize, usual: u64| args.get(at).map_or(Ok(usual), |text| text.parse());
    let (seconds, rounds, workers) = (number(1, 5)?, number(2, 5)?, number(3, 2)? as usize);
    let paths = photos::folder(folder.as_ref(), 512)?;
    draw_masks(&paths)?;
    // Photographs of 12 megapixels would be most of the time.
    let small = |path: &&PathBuf| fs::metadata(path).is_ok_and(|meta| meta.len() < 1 << 20);
    let paths: Vec<PathBuf> = paths.iter().filter(small).cloned().collect();
    let read = |path: &PathBuf| Ok((fs::read(path)?, fs::read(path.with_extension("png"))?));
    let pairs = paths.iter().map(read).collect::<Result<Vec<Pair>, BoxError>>()?;
    for round in 0..rounds {
        let say = |case: &str, rate: f64| {
            let line = serde_json::json!({"bench": "masks", "case": case, "files": paths.len(), "workers": workers, "round": round, "items_per_s": rate.round()});
            println!("{line}");
        };
        say("image", timed(&pairs, seconds, alone)?);
        say("together", timed(&pairs, seconds, together)?);
        say("by-hand", timed(&pairs, seconds, by_hand)?);
        say("loader", loaded(&paths, seconds, workers)?);
    }
    Ok(())
}
