//! AugMix: the image mixed with copies that went through chains of operations.

use super::{
    error::VisionError,
    geometry::{Interpolation, warp_options},
    parameters::{beta, checked, dirichlet},
    picture::{Picture, Transform},
    rand_augment::{OpKind, RandAugmentOp, Strengths},
};
use crate::{error::Error, rng::KeyedRng};
use image::RgbImage;
use rand::RngExt;

/// Mixes each image with copies of it, each changed by a chain of operations.
///
/// ```
/// use burn_augment::images::AugMix;
///
/// let mix = AugMix::new(3, 3)?.alpha(0.5)?.all_ops(false).fill([124, 116, 104]);
/// # Ok::<(), burn_augment::Error>(())
/// ```
///
/// The method is that of Hendrycks et al., "AugMix: A Simple Data Processing Method to Improve Robustness and
/// Uncertainty", 2019. Operations, strengths and defaults are torchvision's: chains of one to three operations, alpha 1, bilinear interpolation, black fill. The shares of the chains are drawn from a Dirichlet
/// distribution, and the share of the image itself from a beta distribution.
///
/// Masks, boxes and points stay, since the image itself stays in the mix: it is made for classification.
#[derive(Debug, Clone, Copy)]
pub struct AugMix {
    severity: u8,
    mixture_width: usize,
    chain_depth: usize,
    alpha: f64,
    all_ops: bool,
    interpolation: Interpolation,
    fill: [u8; 3],
}

impl AugMix {
    /// Mixes `mixture_width` chains with the image. `severity` is the number of strengths that operations draw from, of
    /// the ten from none to the greatest. torchvision's defaults are 3 and 3.
    ///
    /// # Errors
    /// If the severity is not from 1 to 10, or the number of chains not from 1 to 100.
    pub fn new(severity: u8, mixture_width: usize) -> Result<Self, Error> {
        let severity = checked("AugMix::new", severity.into(), 1.0, 10.0)? as u8;
        let mixture_width = checked("AugMix::new", mixture_width as f64, 1.0, 100.0)? as usize;
        let (interpolation, fill) = (Interpolation::Bilinear, [0; 3]);
        Ok(Self { severity, mixture_width, chain_depth: 0, alpha: 1.0, all_ops: true, interpolation, fill })
    }

    /// Sets the number of operations of each chain. 0, the default, draws one to three for each chain.
    ///
    /// # Errors
    /// If it is beyond 100.
    pub fn chain_depth(mut self, operations: usize) -> Result<Self, Error> {
        self.chain_depth = checked("AugMix::chain_depth", operations as f64, 0.0, 100.0)? as usize;
        Ok(self)
    }

    /// Sets the parameter of both distributions of shares. Below 1, one chain has most of the image. Default: 1.
    ///
    /// # Errors
    /// If it is not from 0.001 to 1000.
    pub fn alpha(mut self, alpha: f64) -> Result<Self, Error> {
        self.alpha = checked("AugMix::alpha", alpha, 0.001, 1000.0)?;
        Ok(self)
    }

    /// Sets whether brightness, colour, contrast and sharpness are among the operations. Default: true.
    pub fn all_ops(mut self, yes: bool) -> Self {
        self.all_ops = yes;
        self
    }

    /// Draws the chains for an image of `width` x `height`, each with its share of the result. The first has no
    /// operations: it is the image itself.
    pub fn draw(&self, width: u32, height: u32, rng: &mut KeyedRng) -> Vec<(f64, Vec<RandAugmentOp>)> {
        let shifts = [width, height].map(|side| f64::from(side) / 3.0);
        let most = Strengths { bits: [4.0, 0.0], shifts, ..Strengths::new(width, height) };
        // All but Identity, or all but that and the four of colours.
        let (shapes, colours, tones) = (&OpKind::ALL[1..6], &OpKind::ALL[6..10], &OpKind::ALL[10..]);
        let kinds = [shapes, if self.all_ops { colours } else { &[] }, tones].concat();
        let own = beta(self.alpha, rng);
        let mut chains = vec![(own, Vec::new())];
        for share in dirichlet(self.alpha, self.mixture_width, rng) {
            let depth = if self.chain_depth > 0 { self.chain_depth } else { rng.random_range(1..=3) };
            let mut draw = || most.draw(&kinds, f64::from(rng.random_range(0..self.severity)) / 9.0, rng);
            chains.push(((1.0 - own) * share, (0..depth).map(|_| draw()).collect()));
        }
        chains
    }

    fn mix(&self, image: &mut RgbImage, chains: &[(f64, Vec<RandAugmentOp>)]) -> Result<(), VisionError> {
        let mut sums = vec![0.0; image.len()];
        for (share, chain) in chains {
            let mut copy = image.clone();
            chain.iter().try_for_each(|op| op.apply(&mut copy, self.interpolation, self.fill))?;
            sums.iter_mut().zip(copy.iter()).for_each(|(sum, byte)| *sum += *share as f32 * f32::from(*byte));
        }
        image.iter_mut().zip(sums).for_each(|(byte, sum)| *byte = sum as u8);
        Ok(())
    }
}

warp_options!(AugMix);

impl Transform for AugMix {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        let (width, height) = image.dimensions();
        let (chains, mut done) = (self.draw(width, height, rng), Ok(()));
        image.repaint(&mut |image| self.mix(image, &chains).unwrap_or_else(|error| done = Err(error)))?;
        done
    }
}
