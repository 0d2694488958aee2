//! Files like photographs: smooth parts, fine detail, grain and hard edges. They are written to a folder once.

use burn_pinned::BoxError;
use jpeg_encoder::{ChromaSubsamplingMethod, ColorType, Encoder, SamplingFactor};
use rand::{Rng, RngExt, SeedableRng, rngs::ChaCha8Rng};
use std::iter::{from_fn, successors};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, thread};

/// The sorted JPEGs below `dir`. A folder without any is first given `count` of them; one with JPEGs is used as it is.
pub(crate) fn folder(dir: &Path, count: usize) -> Result<Vec<PathBuf>, BoxError> {
    fs::create_dir_all(dir)?;
    // It stands here while files are written. Without it, part of a set would pass for a folder of the user's own.
    let unfinished = dir.join(".unfinished");
    if unfinished.exists() || list(dir)?.is_empty() {
        fs::write(&unfinished, "")?;
        write_all(dir, count)?;
        fs::remove_file(&unfinished)?;
    }
    let mut files = list(dir)?;
    files.sort();
    Ok(files)
}

fn list(dir: &Path) -> Result<Vec<PathBuf>, BoxError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let end = path.extension().unwrap_or_default().to_ascii_lowercase();
        if path.is_dir() {
            files.append(&mut list(&path)?);
        } else if end == "jpg" || end == "jpeg" {
            files.push(path);
        }
    }
    Ok(files)
}

/// Writes the files that are not there yet, on all cores.
fn write_all(dir: &Path, count: usize) -> Result<(), BoxError> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<(), BoxError> {
        for index in from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < count)) {
            let class = dir.join(format!("class_{}", index % 10));
            fs::create_dir_all(&class)?;
            let path = class.join(format!("{index:05}.jpg"));
            if !path.exists() {
                // An interrupted run leaves no half file under the name of a whole one.
                let part = path.with_extension(format!("{}.part", std::process::id()));
                fs::write(&part, photo(index as u64)?)?;
                fs::rename(&part, &path)?;
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("writing a photograph does not panic"))
    })
}

/// One file: baseline, 4:2:0, quality 75 to 95. The index alone decides what is in it.
fn photo(index: u64) -> Result<Vec<u8>, BoxError> {
    let mut rng = ChaCha8Rng::seed_from_u64(index);
    let (width, height) = if index % 128 == 64 {
        (4000, 3000)
    } else if rng.random_bool(0.6) {
        if rng.random_bool(0.7) { (500, 375) } else { (375, 500) }
    } else {
        let width = rng.random_range(300..=640usize);
        (width, rng.random_range((width * 2).div_ceil(3).max(300)..=(width * 3 / 2).min(640)))
    };
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, rng.random_range(75..=95));
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    encoder.set_chroma_subsampling_method(ChromaSubsamplingMethod::Average);
    encoder.encode(&pixels(&mut rng, width, height), width as u16, height as u16, ColorType::Ycbcr)?;
    Ok(bytes)
}

/// Y, Cb and Cr of every pixel, made line by line of five planes: these three, fine detail, and a mask of where it shows.
fn pixels(rng: &mut ChaCha8Rng, width: usize, height: usize) -> Vec<u8> {
    let (level, longer) = (rng.random_range(90.0..150.0f32), width.max(height) as f32);
    // Photographs differ in detail more than in anything else, and so does the size of their files.
    let detail = rng.random_range(0.3..2.5f32);
    // Five kinds of noise: the widest and the finest cell in pixels, the strength at the widest, and its fall at each half.
    let noise = [
        (longer / 1.5, 8.0, 90.0, 0.55),
        (longer / 2.0, 8.0, 20.0, 0.8),
        (longer / 2.0, 8.0, 20.0, 0.8),
        (20.0, 2.0, 40.0 * detail, 0.7),
        (longer / 4.0, 24.0, 2.5, 0.7),
    ]
    .map(|(cell, finest, strength, fall)| {
        let scales = successors(Some((cell, strength)), |(cell, strength)| Some((cell / 2.0, strength * fall)));
        let scales = scales.take_while(|(cell, _)| *cell >= finest);
        scales.map(|(cell, strength)| Octave::new(rng, width, height, cell, strength)).collect::<Vec<_>>()
    });
    let shapes: Vec<_> = (0..rng.random_range(8..32)).map(|_| Shape::new(rng, width as f32, height as f32)).collect();
    let (mut row, mut line) = ([(); 5].map(|()| vec![0.0; width]), Vec::new());
    let (mut grains, mut pixels) = (vec![0; width], Vec::with_capacity(width * height * 3));
    for y in 0..height {
        for (plane, octaves) in row.iter_mut().zip(&noise) {
            plane.fill(0.0);
            octaves.iter().for_each(|octave| octave.add(y, &mut line, plane));
        }
        shapes.iter().for_each(|shape| shape.add(y, &mut row));
        rng.fill_bytes(&mut grains);
        let [luma, cb, cr, fine, mask] = &row;
        for (x, grain) in grains.iter().enumerate() {
            let fine = fine[x] + (f32::from(*grain) - 127.5) * (0.1 * detail);
            // A number beyond 0 to 255 becomes 0 or 255.
            let luma = (level + luma[x] + fine * (mask[x] + 0.3).clamp(0.0, 1.0)) as u8;
            pixels.extend([luma, (128.0 + cb[x]) as u8, (128.0 + cr[x]) as u8]);
        }
    }
    pixels
}

/// Noise of one scale: random values on a grid, and smooth ways from one to the next.
struct Octave {
    grid: Vec<f32>,
    stride: usize,
    /// Of each column and row of the picture: the place on the grid before it, and the weight of the place after.
    columns: Vec<(usize, f32)>,
    rows: Vec<(usize, f32)>,
}

impl Octave {
    fn new(rng: &mut ChaCha8Rng, width: usize, height: usize, cell: f32, strength: f32) -> Self {
        let [columns, rows] = [width, height].map(|side| {
            // A random start: else the grid could lie on the blocks of 8 x 8, and they would compress too well.
            let start = rng.random_range(0.0..1.0f32);
            let places = (0..side).map(|at| start + at as f32 / cell);
            places.map(|at| (at as usize, at.fract().powi(2) * (3.0 - 2.0 * at.fract()))).collect::<Vec<_>>()
        });
        let stride = columns[width - 1].0 + 2;
        let values = stride * (rows[height - 1].0 + 2);
        let grid = (0..values).map(|_| strength * rng.random_range(-1.0..1.0f32)).collect();
        Self { grid, stride, columns, rows }
    }

    /// Adds row `y` to `out`. `line` is room for a row of the grid.
    fn add(&self, y: usize, line: &mut Vec<f32>, out: &mut [f32]) {
        let (at, weight) = self.rows[y];
        let (above, below) = self.grid[at * self.stride..(at + 2) * self.stride].split_at(self.stride);
        line.clear();
        line.extend(above.iter().zip(below).map(|(above, below)| above + weight * (below - above)));
        for (value, &(at, weight)) in out.iter_mut().zip(&self.columns) {
            *value += line[at] + weight * (line[at + 1] - line[at]);
        }
    }
}

/// An ellipse or a rectangle with hard edges: its middle, half its sides, and what it adds to each plane inside.
struct Shape(f32, f32, f32, f32, bool, [f32; 5]);

impl Shape {
    fn new(rng: &mut ChaCha8Rng, width: f32, height: f32) -> Self {
        let adds = [45.0, 10.0, 10.0, 0.0, 0.5].map(|limit: f32| limit * rng.random_range(-1.0..1.0f32));
        let (x, half_width) = (rng.random_range(0.0..width), rng.random_range(0.01..0.2) * width);
        let (y, half_height) = (rng.random_range(0.0..height), rng.random_range(0.01..0.2) * height);
        Self(x, y, half_width, half_height, rng.random_bool(0.7), adds)
    }

    fn add(&self, row: usize, planes: &mut [Vec<f32>; 5]) {
        let Self(x, y, half_width, half_height, round, adds) = self;
        let down = (row as f32 - y) / half_height;
        if down.abs() < 1.0 {
            let half = half_width * if *round { (1.0 - down * down).sqrt() } else { 1.0 };
            // A left end before the first pixel becomes 0 too.
            let (from, to) = ((x - half) as usize, (x + half) as usize);
            for (plane, add) in planes.iter_mut().zip(adds) {
                plane.iter_mut().take(to).skip(from).for_each(|value| *value += add);
            }
        }
    }
}
