//! Local contrast.

use super::lab;
use crate::{
    error::Error,
    images::{
        error::VisionError,
        geometry::PaddingMode,
        parameters::{Interval, Size, checked},
        picture::{Picture, Transform},
    },
    rng::KeyedRng,
};
use image::RgbImage;

/// Makes the histogram of lightness flatter in each tile of every image: contrast limited adaptive histogram
/// equalization.
///
/// ```
/// use burn_augment::images::CLAHE;
///
/// let local = CLAHE::new(1.0, 2.0)?.tile_grid_size(4)?;
/// # Ok::<(), burn_augment::Error>(())
/// ```
///
/// It works as albumentations' `CLAHE`, which changes L of L*a*b* by OpenCV, but every time. Bytes differ from OpenCV's, whose
/// conversions of colours have less precision.
#[derive(Debug, Clone, Copy)]
pub struct CLAHE {
    limit: Interval,
    grid: Size,
}

impl CLAHE {
    /// Sets the least and the greatest limit of contrast. albumentations' defaults are 1 and 4.
    ///
    /// # Errors
    /// Unless `1 <= low <= high <= 256`.
    pub fn new(low: f64, high: f64) -> Result<Self, Error> {
        Ok(Self { limit: Interval::checked("CLAHE::new", low, high, 1.0, 256.0)?, grid: Size::from(8) })
    }

    /// Sets the number of tiles: of one side, or `[down, across]`. albumentations' pair is across and down. Default: 8.
    ///
    /// # Errors
    /// If a number is not from 1 to 256.
    pub fn tile_grid_size(mut self, tiles: impl Into<Size>) -> Result<Self, Error> {
        self.grid = tiles.into();
        for side in [self.grid.height, self.grid.width] {
            checked("CLAHE::tile_grid_size", side.into(), 1.0, 256.0)?;
        }
        Ok(self)
    }

    /// Draws the limit of contrast.
    pub fn draw(&self, rng: &mut KeyedRng) -> f64 {
        self.limit.uniform(rng)
    }
}

impl Transform for CLAHE {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        let limit = self.draw(rng);
        image.repaint(&mut |image| {
            image.pixels_mut().for_each(|pixel| pixel.0 = lab::of_rgb(pixel.0));
            flatten(image, limit, [self.grid.width, self.grid.height]);
            image.pixels_mut().for_each(|pixel| pixel.0 = lab::to_rgb(pixel.0));
        })
    }
}

/// Changes the first channel, tile by tile. Tiles have one size: OpenCV adds mirrored rows and columns for it.
fn flatten(image: &mut RgbImage, limit: f64, grid: [u32; 2]) {
    let sides = [image.width(), image.height()];
    let is_whole = sides[0].is_multiple_of(grid[0]) && sides[1].is_multiple_of(grid[1]);
    let tile = [0, 1].map(|n| if is_whole { sides[n] / grid[n] } else { sides[n] / grid[n] + 1 });
    let places = [0, 1].map(|n| -> Vec<u32> {
        (0..tile[n] * grid[n]).filter_map(|at| PaddingMode::Reflect.source(at.into(), sides[n])).collect()
    });
    let tables = (0..grid[0] * grid[1]).map(|at| {
        let [columns, rows] = [at % grid[0], at / grid[0]];
        let of = |n: usize, at: u32| &places[n][(at * tile[n]) as usize..][..tile[n] as usize];
        let rows = of(1, rows).iter();
        table(rows.flat_map(|y| of(0, columns).iter().map(|x| image.get_pixel(*x, *y).0[0])), tile[0] * tile[1], limit)
    });
    let tables: Vec<[u8; 256]> = tables.collect();
    for (x, y, pixel) in image.enumerate_pixels_mut() {
        // The tables of the four tiles whose middles are around the pixel.
        let [[left, right], [above, below]] = [(0, x), (1, y)].map(|(n, at)| {
            let place = at as f32 / tile[n] as f32 - 0.5;
            let (first, share) = (place.floor(), place - place.floor());
            [(first.max(0.0), 1.0 - share), ((first + 1.0).min(grid[n] as f32 - 1.0), share)]
        });
        let byte =
            |x: f32, y: f32| f32::from(tables[y as usize * grid[0] as usize + x as usize][usize::from(pixel.0[0])]);
        let row = |y: f32| byte(left.0, y) * left.1 + byte(right.0, y) * right.1;
        pixel.0[0] = (row(above.0) * above.1 + row(below.0) * below.1).round_ties_even() as u8;
    }
}

/// The new values of a tile's bytes.
fn table(bytes: impl Iterator<Item = u8>, area: u32, limit: f64) -> [u8; 256] {
    let mut counts = [0u32; 256];
    bytes.for_each(|byte| counts[usize::from(byte)] += 1);
    let most = ((limit * f64::from(area) / 256.0) as u32).max(1);
    let clipped: u32 = counts.iter().map(|count| count.saturating_sub(most)).sum();
    counts.iter_mut().for_each(|count| *count = (*count).min(most) + clipped / 256);
    // What is left over goes to values at equal distances.
    let rest = clipped % 256;
    let step = (256 / rest.max(1)).max(1) as usize;
    counts.iter_mut().step_by(step).take(rest as usize).for_each(|count| *count += 1);
    let mut sum = 0;
    counts.map(|count| {
        sum += count;
        (sum as f32 * (255.0 / area as f32)).round_ties_even() as u8
    })
}
