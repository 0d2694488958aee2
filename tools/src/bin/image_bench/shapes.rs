//! Writes a folder of small PNG and JPEG files of six shapes, so that nothing is downloaded.
//!
//! Colours, position, size, angle, noise and file format say nothing about the class: only the shape does.

use std::f32::consts::TAU;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::{ImageError, Rgb, RgbImage};
use rand::rngs::ChaCha8Rng;
use rand::{Rng, RngExt, SeedableRng};

/// The classes, which are also the names of the sub-folders.
pub(crate) const CLASSES: [&str; 6] = ["cross", "disc", "ring", "square", "stripes", "triangle"];

/// Samples per pixel and axis, for smooth edges.
const SUPERSAMPLE: u32 = 3;
/// How much lighter or darker than its background a shape is at the least, of 255.
const MIN_CONTRAST: f32 = 70.0;

type Colour = [f32; 3];

#[derive(Debug, thiserror::Error)]
pub(crate) enum ShapesError {
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot encode {}: {source}", path.display())]
    Encode { path: PathBuf, source: ImageError },
}

/// Writes `per_class` images of each class under `root`, the same for the same seed. Does nothing if `root` exists.
///
/// The files are written beside `root` and moved at the end: an interrupted run leaves no `root` that lacks some files.
pub(crate) fn generate(root: &Path, per_class: usize, seed: u64) -> Result<(), ShapesError> {
    let cannot_write = |path: &Path| {
        let path = path.to_path_buf();
        move |source| ShapesError::Write { path, source }
    };
    if root.try_exists().map_err(cannot_write(root))? {
        return Ok(());
    }
    // The parent of a bare name is the empty path.
    let parent = root.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(cannot_write(parent))?;
    // Removed on every return. What is moved is a folder within it, because it is itself closed to other users.
    let scratch = tempfile::Builder::new().prefix(".shapes-").tempdir_in(parent).map_err(cannot_write(parent))?;
    let partial = scratch.path().join("partial");
    for class in CLASSES {
        let folder = partial.join(class);
        fs::create_dir_all(&folder).map_err(cannot_write(&folder))?;
    }

    let threads = thread::available_parallelism().map_or(1, |n| n.get()).min(8);
    let total = CLASSES.len() * per_class;
    thread::scope(|scope| {
        let partial = &partial;
        let write_share = move |first: usize| {
            (first..total).step_by(threads).try_for_each(|i| write_image(partial, i / per_class, i % per_class, seed))
        };
        let writers: Vec<_> = (0..threads).map(|first| scope.spawn(move || write_share(first))).collect();
        let results = writers.into_iter().map(|w| w.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        results.collect::<Result<(), _>>()
    })?;

    match fs::rename(&partial, root) {
        // Another process was faster; its files are as good.
        Err(_) if root.is_dir() => Ok(()),
        moved => moved.map_err(cannot_write(root)),
    }
}

fn write_image(folder: &Path, class: usize, number: usize, seed: u64) -> Result<(), ShapesError> {
    // A stream per file: neither the number of threads nor `per_class` changes an image.
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(((class as u64) << 32) | number as u64);

    let image = draw(CLASSES[class], &mut rng);
    let png = rng.random_bool(0.5);
    let quality = rng.random_range(85..=95);
    let path = folder.join(CLASSES[class]).join(format!("{number:04}.{}", if png { "png" } else { "jpg" }));
    let mut bytes = Vec::new();
    let encoded = if png {
        image.write_with_encoder(PngEncoder::new(&mut bytes))
    } else {
        image.write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, quality))
    };
    match encoded {
        Ok(()) => fs::write(&path, bytes).map_err(|source| ShapesError::Write { path, source }),
        Err(source) => Err(ShapesError::Encode { path, source }),
    }
}

fn draw(class: &str, rng: &mut ChaCha8Rng) -> RgbImage {
    let (width, height) = (rng.random_range(36..=64u32), rng.random_range(36..=64u32));
    let smaller = width.min(height) as f32;

    // The background runs from one colour to a similar one, in a random direction.
    let from: Colour = std::array::from_fn(|_| rng.random_range(0.0..255.0));
    let to: Colour = from.map(|c| (c + rng.random_range(-50.0..50.0f32)).clamp(0.0, 255.0));
    let (down, right) = rng.random_range(0.0..TAU).sin_cos();
    let colour = loop {
        // Ends soon: the background's lightness spans 50 at most, which leaves room above it or below.
        let colour: Colour = std::array::from_fn(|_| rng.random_range(0.0..255.0));
        if [from, to].iter().all(|&end| (lightness(colour) - lightness(end)).abs() >= MIN_CONTRAST) {
            break colour;
        }
    };

    // The shape lies within a circle of this radius, and the circle within the centre square, which loaders crop to.
    let radius = smaller / 2.0 * rng.random_range(0.55..0.9f32);
    let slack = smaller / 2.0 - radius;
    let (x0, y0) = (width as f32 / 2.0 + slack * spread(rng), height as f32 / 2.0 + slack * spread(rng));
    let (sin, cos) = rng.random_range(0.0..TAU).sin_cos();
    let stretch = rng.random_range(1.0..1.08f32);
    let shape = Shape::new(class, rng);

    let count = rng.random_range(3..=5);
    let specks: Vec<(f32, f32, f32, Colour)> = (0..count)
        .map(|_| {
            let (x, y) = (rng.random_range(0.0..width as f32), rng.random_range(0.0..height as f32));
            (x, y, rng.random_range(0.7..1.5), std::array::from_fn(|_| rng.random_range(0.0..255.0)))
        })
        .collect();
    let noise = rng.random_range(4.0..12.0);

    let colour_at = |x: f32, y: f32| {
        if let Some(speck) = specks.iter().find(|s| (s.0 - x).powi(2) + (s.1 - y).powi(2) <= s.2 * s.2) {
            return speck.3;
        }
        let (dx, dy) = ((x - x0) / radius, (y - y0) / radius);
        if shape.contains(dx * cos + dy * sin, (dy * cos - dx * sin) * stretch) {
            return colour;
        }
        let along = (x / width as f32 - 0.5) * right + (y / height as f32 - 0.5) * down;
        mix(from, to, (along + 0.5).clamp(0.0, 1.0))
    };
    RgbImage::from_fn(width, height, |x, y| {
        let mut sum = [0.0; 3];
        for i in 0..SUPERSAMPLE * SUPERSAMPLE {
            let sub = |step: u32| (step as f32 + 0.5) / SUPERSAMPLE as f32;
            let sample = colour_at(x as f32 + sub(i % SUPERSAMPLE), y as f32 + sub(i / SUPERSAMPLE));
            sum = std::array::from_fn(|c| sum[c] + sample[c]);
        }
        let mean = sum.map(|c| c / (SUPERSAMPLE * SUPERSAMPLE) as f32);
        Rgb(mean.map(|c| (c + noise * gaussian(rng)).round() as u8))
    })
}

/// A shape within the unit circle, with its own proportions.
enum Shape {
    Cross { arm: f32 },
    Disc,
    Ring { hole: f32 },
    Square,
    Stripes { bars: f32 },
    Triangle,
}

impl Shape {
    fn new(class: &str, rng: &mut ChaCha8Rng) -> Self {
        match class {
            "cross" => Self::Cross { arm: rng.random_range(0.2..0.32) },
            "disc" => Self::Disc,
            "ring" => Self::Ring { hole: rng.random_range(0.5..0.7) },
            "square" => Self::Square,
            "stripes" => Self::Stripes { bars: if rng.random_bool(0.5) { 3.0 } else { 4.0 } },
            "triangle" => Self::Triangle,
            other => unreachable!("{other} is not one of CLASSES"),
        }
    }

    fn contains(&self, x: f32, y: f32) -> bool {
        let square = x.abs().max(y.abs());
        let circle = x.hypot(y);
        match self {
            Self::Cross { arm } => square <= 0.95 && x.abs().min(y.abs()) <= *arm,
            Self::Disc => circle <= 0.9,
            Self::Ring { hole } => circle <= 1.0 && circle >= *hole,
            Self::Square => square <= 0.7,
            // Bars and gaps of one width, with a bar at either edge.
            Self::Stripes { bars } => square <= 0.7 && ((x / 1.4 + 0.5) * (bars - 0.5)).fract() <= 0.5,
            Self::Triangle => y <= 0.5 && 0.866 * x.abs() - 0.5 * y <= 0.5,
        }
    }
}

fn mix(from: Colour, to: Colour, t: f32) -> Colour {
    std::array::from_fn(|c| from[c] + (to[c] - from[c]) * t)
}

fn lightness([red, green, blue]: Colour) -> f32 {
    0.3 * red + 0.59 * green + 0.11 * blue
}

fn spread(rng: &mut ChaCha8Rng) -> f32 {
    rng.random_range(-1.0..1.0)
}

/// Nearly normal, with mean 0 and deviation 1: the sum of four 16-bit uniform numbers, from one draw.
fn gaussian(rng: &mut ChaCha8Rng) -> f32 {
    let bits = rng.next_u64();
    let sum: f32 = (0..4).map(|i| f32::from((bits >> (16 * i)) as u16) / 65536.0).sum();
    (sum - 2.0) * 3f32.sqrt()
}
