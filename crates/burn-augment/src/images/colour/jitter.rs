//! Random changes of colour.

use super::adjust::Adjust;
use crate::{
    error::Error,
    images::{
        error::VisionError,
        parameters::{Interval, Spread, checked},
        picture::{Picture, Transform},
    },
    rng::KeyedRng,
};
use rand::{RngExt, seq::SliceRandom};

/// Changes brightness, contrast, saturation and hue by uniform random amounts, in random order. It changes only those
/// that are set.
///
/// ```
/// use burn_augment::images::ColorJitter;
///
/// let jitter = ColorJitter::new().brightness(0.4)?.contrast((0.8, 1.5))?.saturation(0.4)?.hue(0.1)?;
/// # Ok::<(), burn_augment::Error>(())
/// ```
///
/// It works as torchvision's `ColorJitter`, with grey by ITU-R BT.601.
#[derive(Debug, Clone, Default)]
pub struct ColorJitter {
    brightness: Option<Interval>,
    contrast: Option<Interval>,
    saturation: Option<Interval>,
    hue: Option<Interval>,
}

impl ColorJitter {
    /// Changes nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the range of the factor: a number `x` means `max(0, 1 - x)` to `1 + x`, and a pair is the range itself.
    ///
    /// # Errors
    /// If the number is negative, or the pair is not a range from 0 up.
    pub fn brightness(mut self, spread: impl Into<Spread>) -> Result<Self, Error> {
        self.brightness = factor("ColorJitter::brightness", spread.into())?;
        Ok(self)
    }

    /// Sets the range of the factor, as [`brightness`](Self::brightness) does.
    ///
    /// # Errors
    /// The errors of [`brightness`](Self::brightness).
    pub fn contrast(mut self, spread: impl Into<Spread>) -> Result<Self, Error> {
        self.contrast = factor("ColorJitter::contrast", spread.into())?;
        Ok(self)
    }

    /// Sets the range of the factor, as [`brightness`](Self::brightness) does.
    ///
    /// # Errors
    /// The errors of [`brightness`](Self::brightness).
    pub fn saturation(mut self, spread: impl Into<Spread>) -> Result<Self, Error> {
        self.saturation = factor("ColorJitter::saturation", spread.into())?;
        Ok(self)
    }

    /// Sets the range of the rotation of the hue: a number `x` means `-x` to `x` of the colour circle, and a pair is
    /// the range itself. 0.5 is half of the circle.
    ///
    /// # Errors
    /// If the number is not from 0 to 0.5, or the pair is not a range from -0.5 to 0.5.
    pub fn hue(mut self, spread: impl Into<Spread>) -> Result<Self, Error> {
        self.hue = Some(spread.into().either_way("ColorJitter::hue", 0.5)?)
            .filter(|interval| *interval != Interval::new(0.0, 0.0));
        Ok(self)
    }

    /// Draws the changes to make, in their order.
    pub fn draw(&self, rng: &mut KeyedRng) -> Vec<Adjust> {
        let mut all: Vec<Adjust> = self.draw_each(1.0, rng).into_iter().flatten().collect();
        all.shuffle(rng);
        all
    }

    /// Draws the changes of brightness, contrast, saturation and hue, each with probability `p`.
    pub(super) fn draw_each(&self, p: f64, rng: &mut KeyedRng) -> [Option<Adjust>; 4] {
        let mut drawn = |interval: Option<Interval>, adjust: fn(f32) -> Adjust| {
            interval.filter(|_| rng.random_bool(p)).map(|interval| adjust(interval.uniform(rng) as f32))
        };
        [
            drawn(self.brightness, Adjust::Brightness),
            drawn(self.contrast, Adjust::Contrast),
            drawn(self.saturation, Adjust::Saturation),
            drawn(self.hue, Adjust::Hue),
        ]
    }
}

impl Transform for ColorJitter {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        self.draw(rng).into_iter().try_for_each(|adjust| image.adjust(adjust))
    }
}

/// Returns the range of a factor, or `None` if it is always 1.
fn factor(option: &'static str, spread: Spread) -> Result<Option<Interval>, Error> {
    let (low, high) = match spread {
        Spread::Around(by) => checked(option, by, 0.0, f64::MAX).map(|by| ((1.0 - by).max(0.0), 1.0 + by))?,
        Spread::Between(low, high) => (low, high),
    };
    Ok(Some(Interval::checked(option, low, high, 0.0, f64::MAX)?)
        .filter(|interval| *interval != Interval::new(1.0, 1.0)))
}

/// Makes every image grey. It keeps three channels, with the bytes of torchvision's `Grayscale` of a PIL image. Nothing
/// is random.
#[derive(Debug, Clone, Copy, Default)]
pub struct Grayscale;

impl Transform for Grayscale {
    fn change(&self, image: &mut impl Picture, _: &mut KeyedRng) -> Result<(), VisionError> {
        image.adjust(Adjust::Saturation(0.0))
    }
}

/// Puts red, green and blue of every image into a random order, all equally likely: torchvision's
/// `RandomChannelPermutation`.
///
/// ```
/// use burn_augment::{augment::RandomApply, images::RandomChannelPermutation};
///
/// let sometimes = RandomApply::new(0.1, RandomChannelPermutation)?;
/// # Ok::<(), burn_augment::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomChannelPermutation;

impl Transform for RandomChannelPermutation {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        let mut order = [0, 1, 2];
        order.shuffle(rng);
        permute(image, order)
    }
}

/// Gives each channel the values of the one with this number.
pub(super) fn permute(image: &mut impl Picture, order: [usize; 3]) -> Result<(), VisionError> {
    image.repaint(&mut |image| image.pixels_mut().for_each(|pixel| pixel.0 = order.map(|channel| pixel.0[channel])))
}
