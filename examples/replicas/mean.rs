//! The mean of a tensor over all devices. Each device adds up one part of it, and the others fetch the result.

use super::barrier::{Barrier, locked};
use burn::tensor::Tensor;
use burn_pinned::{BoxError, copy_to};
use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering::Relaxed},
};

/// A tensor that one device has for another.
type Place = Mutex<Option<Tensor<1>>>;

pub(crate) struct Mean {
    barrier: Barrier,
    /// Parts to add up, and their means: from each rank to each.
    parts: Vec<Vec<Place>>,
    means: Vec<Vec<Place>>,
    /// The epoch of each rank, and the number of batches of its step.
    steps: Mutex<Vec<[usize; 2]>>,
    /// Whether a rank has finished its training.
    is_over: AtomicBool,
}

/// The devices do not take the same steps.
#[derive(Debug, thiserror::Error)]
#[error("the devices have different numbers of batches: build the loader with `.devices(n)`")]
pub(crate) struct UnevenSteps;

impl Mean {
    pub(crate) fn new(ranks: usize) -> Self {
        let places = || (0..ranks).map(|_| (0..ranks).map(|_| Place::default()).collect()).collect();
        Self {
            barrier: Barrier::new(ranks),
            parts: places(),
            means: places(),
            steps: Mutex::new(vec![[0; 2]; ranks]),
            is_over: AtomicBool::new(false),
        }
    }

    pub(crate) fn barrier(&self) -> &Barrier {
        &self.barrier
    }

    /// Ends the waits of ranks that have more batches than the calling rank, which has finished.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Relaxed);
        self.barrier.break_up();
    }

    /// Waits for all ranks.
    fn meet(&self) -> Result<(), BoxError> {
        let met = self.barrier.wait();
        met.map_err(|broken| if self.is_over.load(Relaxed) { UnevenSteps.into() } else { broken.into() })
    }

    /// The mean over all ranks of a tensor that is the sum of `batches` batches of an epoch. It has the same bits on all ranks, because
    /// each part is added up by one rank, in the order of the ranks. Blocks until all ranks have called it.
    ///
    /// # Errors
    /// Those of the device, [`UnevenSteps`], and [`Broken`](super::barrier::Broken) if another rank has failed.
    pub(crate) fn of(&self, rank: usize, flat: Tensor<1>, [epoch, batches]: [usize; 2]) -> Result<Tensor<1>, BoxError> {
        let (ranks, device) = (self.barrier.ranks(), flat.device());
        let scale = 1.0 / (ranks * batches) as f32;
        if ranks == 1 {
            return Ok(flat * scale);
        }
        let length = flat.dims()[0].div_ceil(ranks).max(1);
        let fetch = |places: &[Vec<Place>], from: usize| {
            locked(&places[from][rank]).take().map(|part| copy_to(part, &device)).transpose()
        };

        for (to, part) in flat.split(length, 0).into_iter().enumerate() {
            *locked(&self.parts[rank][to]) = Some(part);
        }
        locked(&self.steps)[rank] = [epoch, batches];
        self.meet()?;
        if locked(&self.steps).iter().any(|step| *step != [epoch, batches]) {
            return Err(UnevenSteps.into());
        }
        let mut sum: Option<Tensor<1>> = None;
        for from in 0..ranks {
            let Some(part) = fetch(&self.parts, from)? else { continue };
            sum = Some(sum.map_or_else(|| part.clone(), |sum| sum + part.clone()));
        }
        // Each rank gets its own tensor, because threads that share one wait for each other.
        for to in 0..ranks {
            *locked(&self.means[rank][to]) = sum.clone().map(|sum| sum * scale);
        }
        self.meet()?;
        let means = (0..ranks).map(|from| fetch(&self.means, from));
        Ok(Tensor::cat(means.filter_map(Result::transpose).collect::<Result<_, _>>()?, 0))
    }
}
