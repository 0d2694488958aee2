//! The mean of a tensor over all devices, through host memory. No work of a device waits for another device, so no order
//! of launches, compilations and copies can make them wait for each other for ever, as it can with a collective operation.
//!
//! Nothing here is about page-locked memory, since CubeCL sees to it: what a transaction reads lies in page-locked memory of
//! its pool. The mean is written to the same memory, and goes to the device from there.

use super::barrier::{Barrier, locked};
use burn::tensor::{DataError, Tensor, TensorData, Transaction};
use burn_pinned::BoxError;
use std::sync::Mutex;

/// The elements of a piece. Two of them fit in the cache of a core, and the copy of one takes longer than to ask for it.
const PIECE: usize = 1 << 18;

/// A piece of the tensor of each rank.
type Parts = Mutex<Vec<Option<TensorData>>>;

pub(crate) struct HostMean {
    barrier: Barrier,
    piece: usize,
    /// The pieces of three rounds. In each round, every rank has one piece to average.
    rounds: [Vec<Parts>; 3],
}

impl HostMean {
    pub(crate) fn new(ranks: usize) -> Self {
        Self::with_piece(ranks, PIECE)
    }

    pub(crate) fn with_piece(ranks: usize, piece: usize) -> Self {
        let parts = || Mutex::new((0..ranks).map(|_| None).collect());
        let round = || (0..ranks).map(|_| parts()).collect();
        Self { barrier: Barrier::new(ranks), piece, rounds: [round(), round(), round()] }
    }

    pub(crate) fn barrier(&self) -> &Barrier {
        &self.barrier
    }

    /// The mean over all ranks of a tensor that is the sum of `batches` batches. It has the same bits on all ranks, since
    /// one of them adds up, in the order of the ranks. Blocks until all ranks have called it.
    ///
    /// Each turn of the loop writes the means of one round, averages a piece of the next, and reads those of the one after
    /// it. So a device copies while its thread adds, and while one rank waits for a copy, another one adds.
    ///
    /// # Errors
    /// Those of the device, and [`Broken`](super::barrier::Broken) if another rank has failed.
    pub(crate) fn mean(&self, rank: usize, flat: Tensor<1>, batches: usize) -> Result<Tensor<1>, BoxError> {
        let (ranks, device) = (self.barrier.ranks(), flat.device());
        let scale = 1.0 / (ranks * batches) as f32;
        if ranks == 1 {
            return Ok(flat * scale);
        }
        let pieces = flat.split(self.piece, 0);
        let rounds = pieces.len().div_ceil(ranks);
        let (mut pieces, mut means) = (pieces.into_iter(), Vec::new());
        for round in 0..rounds + 2 {
            let at = |back: usize| &self.rounds[(round + 3 - back) % 3];
            let done = at(2).iter().filter_map(|parts| locked(parts)[rank].take());
            means.extend(done.map(|data| Tensor::from_data(data, &device)));
            average(&mut locked(&at(1)[rank]), scale)?;
            let next: Vec<_> = pieces.by_ref().take(ranks).collect();
            if !next.is_empty() {
                let read = next.into_iter().fold(Transaction::default(), Transaction::register).try_execute()?;
                at(0).iter().zip(read).for_each(|(parts, data)| locked(parts)[rank] = Some(data));
            }
            self.barrier.wait()?;
        }
        Ok(Tensor::cat(means, 0))
    }
}

/// Puts the mean of all parts into each of them, if there are any.
fn average(parts: &mut [Option<TensorData>], scale: f32) -> Result<(), DataError> {
    let mut parts = parts.iter_mut().flatten().map(TensorData::as_mut_slice).collect::<Result<Vec<_>, _>>()?;
    let Some((mean, others)) = parts.split_first_mut() else { return Ok(()) };
    for other in &*others {
        mean.iter_mut().zip(other.iter()).for_each(|(sum, x): (&mut f32, _)| *sum += x);
    }
    mean.iter_mut().for_each(|sum| *sum *= scale);
    others.iter_mut().for_each(|other| other.copy_from_slice(mean));
    Ok(())
}
