//! Gaussian blur.

use crate::{
    error::Error,
    images::{
        error::VisionError,
        geometry::PaddingMode,
        parameters::{Interval, Size},
        picture::{Picture, Transform},
    },
    rng::KeyedRng,
};

/// Blurs with a Gaussian. Its standard deviation is uniform in a range.
///
/// ```
/// use burn_augment::images::GaussianBlur;
///
/// let blur = GaussianBlur::new(23)?.sigma(0.1, 2.0)?; // 23 x 23 pixels
/// # Ok::<(), burn_augment::Error>(())
/// ```
///
/// It works as torchvision's `GaussianBlur`, with the image mirrored at its border (`PaddingMode::Reflect`). Half of
/// the kernel may be longer than the image; torchvision fails there. To blur with a probability, use
/// [`RandomApply`](crate::augment::RandomApply).
#[derive(Debug, Clone, Copy)]
pub struct GaussianBlur {
    kernel: Size,
    sigma: Interval,
}

impl GaussianBlur {
    /// Sets the size of the kernel, in pixels: one side or `[height, width]`, all odd.
    ///
    /// # Errors
    /// If a side is even, or beyond 65,535.
    pub fn new(kernel_size: impl Into<Size>) -> Result<Self, Error> {
        let kernel = kernel_size.into().checked("GaussianBlur::new")?;
        if kernel.height % 2 == 0 || kernel.width % 2 == 0 {
            let problem = format!("a kernel of {} x {} pixels has no middle", kernel.height, kernel.width);
            return Err(Error::config("GaussianBlur::new", problem, "give odd sides"));
        }
        Ok(Self { kernel, sigma: Interval::new(0.1, 2.0) })
    }

    /// Sets the least and the greatest standard deviation, in pixels. Default: 0.1 and 2.
    ///
    /// # Errors
    /// Unless `0 < low <= high`.
    pub fn sigma(mut self, low: f64, high: f64) -> Result<Self, Error> {
        self.sigma = Interval::checked("GaussianBlur::sigma", low, high, f64::MIN_POSITIVE, f64::MAX)?;
        Ok(self)
    }

    /// Draws the standard deviation.
    pub fn draw(&self, rng: &mut KeyedRng) -> f64 {
        self.sigma.uniform(rng)
    }
}

impl Transform for GaussianBlur {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        let sigma = self.draw(rng);
        let bytes = |sum: [f32; 3]| sum.map(|value| value.round_ties_even() as u8);
        image.repaint(&mut |image| {
            let size = image.dimensions();
            blur(image.as_chunks_mut().0, size, self.kernel, sigma, |pixel| pixel.map(f32::from), bytes);
        })
    }
}

/// Blurs rows, and then columns, of an image of this size. `values` are those of a pixel, and `pixel` is made of them.
pub(crate) fn blur<P: Copy, const N: usize>(
    pixels: &mut [P],
    (width, height): (u32, u32),
    kernel: Size,
    sigma: f64,
    values: impl Fn(P) -> [f32; N],
    pixel: impl Fn([f32; N]) -> P,
) {
    let (columns, across) = (seen(width, kernel.width), weights(kernel.width, sigma));
    let (lines, down) = (seen(height, kernel.height), weights(kernel.height, sigma));
    let mut rows = Vec::with_capacity(pixels.len());
    for row in pixels.chunks_exact(width as usize) {
        rows.extend((0..width as usize).map(|at| sum(&across, &columns[at..], |at| values(row[at]))));
    }
    for (y, row) in pixels.chunks_exact_mut(width as usize).enumerate() {
        for (x, place) in row.iter_mut().enumerate() {
            *place = pixel(sum(&down, &lines[y..], |y| rows[y * width as usize + x]));
        }
    }
}

/// The weights of a kernel.
fn weights(kernel: u32, sigma: f64) -> Vec<f32> {
    let half = i64::from(kernel / 2);
    let heights = (-half..=half).map(|at| at as f64 / sigma).map(|at| libm::exp(-0.5 * (at * at)));
    let heights: Vec<f64> = heights.collect();
    let sum: f64 = heights.iter().sum();
    heights.into_iter().map(|height| (height / sum) as f32).collect()
}

/// The pixels of a side that the weights apply to: for the pixel at `at`, these are the entries from `at` on.
fn seen(side: u32, kernel: u32) -> Vec<usize> {
    let half = i64::from(kernel / 2);
    let pixels = (-half..i64::from(side) + half).filter_map(|at| PaddingMode::Reflect.source(at, side));
    pixels.map(|at| at as usize).collect()
}

fn sum<const N: usize>(weights: &[f32], pixels: &[usize], pixel: impl Fn(usize) -> [f32; N]) -> [f32; N] {
    weights.iter().zip(pixels).fold([0.0; N], |sum, (weight, at)| {
        let pixel = pixel(*at);
        std::array::from_fn(|n| sum[n] + weight * pixel[n])
    })
}
