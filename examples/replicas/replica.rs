//! What the thread of one device does.

use super::{
    checkpoint::{self, Place},
    gradients::{flatten, unflatten},
    mean::Mean,
    train::{Epoch, Plan},
};
use burn::{
    data::dataloader::DataLoader,
    module::Module,
    optim::{GradientsAccumulator, GradientsParams, ModuleOptimizer},
    store::ModuleRecord,
    tensor::{Bytes, Device, Tensor},
};
use burn_pinned::BoxError;
use std::time::{Duration, Instant};

/// What the threads share.
pub(crate) struct Run<'a, I, S, T> {
    pub(crate) plan: &'a Plan<'a>,
    pub(crate) mean: Mean,
    pub(crate) first_epoch: usize,
    pub(crate) init: I,
    pub(crate) step: S,
    pub(crate) tell: T,
}

/// A replica with its optimizer, and the steps done.
pub(crate) struct Start<M> {
    model: M,
    optim: ModuleOptimizer,
    step: usize,
}

impl<I, S, T> Run<'_, I, S, T> {
    /// The first model, or the checkpoint's.
    pub(crate) fn start<M>(&self, rank: usize, first: Vec<u8>, optim: ModuleOptimizer) -> Result<Start<M>, BoxError>
    where
        M: Module,
        I: Fn(&Device) -> M,
    {
        let model = (self.init)(&self.plan.devices[rank]);
        Ok(match &self.plan.resume {
            Some((place, folder)) => {
                let (model, optim) = checkpoint::load(folder, model, optim)?;
                Start { model, optim, step: place.step }
            }
            None => {
                let record = ModuleRecord::from_bytes(Bytes::from_bytes_vec(first))?;
                Start { model: model.try_load_record(record)?, optim, step: 0 }
            }
        })
    }

    /// Trains to the end.
    pub(crate) fn replica<M, B>(&self, rank: usize, slice: &dyn DataLoader<B>, start: Start<M>) -> Result<M, BoxError>
    where
        M: Module,
        S: Fn(&M, B) -> Result<(Tensor<1>, GradientsParams), BoxError>,
        T: Fn(Epoch, M) -> Result<(), BoxError>,
    {
        let Start { mut model, mut optim, mut step } = start;
        let mut in_turn = self.plan.resume.is_some();
        for epoch in self.first_epoch..self.plan.epochs {
            let (began, mut waited, first_step) = (Instant::now(), Duration::ZERO, step);
            let mut losses: Option<Tensor<1>> = None;
            let mut batches = slice.iter().fuse();
            loop {
                let (mut sum, mut loss, mut count) = (GradientsAccumulator::new(), None::<Tensor<1>>, 0);
                while count < self.plan.accumulate {
                    let asked = Instant::now();
                    let Some(batch) = batches.next() else { break };
                    waited += asked.elapsed();
                    let (of_batch, grads) = (self.step)(&model, batch?)?;
                    sum.accumulate(&model, grads);
                    loss = Some(loss.map_or_else(|| of_batch.clone(), |loss| loss + of_batch.clone()));
                    count += 1;
                }
                let Some(loss) = loss else { break };
                let flat = self.mean.of(rank, flatten(&model, sum.grads(), loss), [epoch, count])?;
                let (grads, loss) = unflatten(&model, flat);
                let rate = self.plan.rate;
                // Burn loads the state of an optimizer to the default device, and moves it in the first step.
                model = if std::mem::take(&mut in_turn) {
                    self.in_turn(rank, || optim.step(rate, model, grads))?
                } else {
                    optim.step(rate, model, grads)
                };
                step += 1;
                losses = Some(losses.map_or_else(|| loss.clone(), |sum| sum + loss.clone()));
                self.save(rank, step, &model, &optim)?;
            }
            let Some(losses) = losses.filter(|_| rank == 0) else { continue };
            let steps = step - first_step;
            let loss = losses.into_scalar::<f64>() / steps as f64; // waits for the device
            let took = began.elapsed();
            (self.tell)(Epoch { number: epoch + 1, step, steps, loss, took, waited }, model.valid())?;
        }
        Ok(model)
    }

    /// Runs `act` on one device after the other, so that transfers between devices do not overlap.
    fn in_turn<R>(&self, rank: usize, act: impl FnOnce() -> R) -> Result<R, BoxError> {
        let barrier = self.mean.barrier();
        (0..rank).try_for_each(|_| barrier.wait())?;
        let result = act();
        self.plan.devices[rank].sync()?;
        (rank..barrier.ranks()).try_for_each(|_| barrier.wait())?;
        Ok(result)
    }

    /// Saves a checkpoint if it is due. Meanwhile no device takes a batch, so the loader's state matches the model.
    fn save<M: Module>(&self, rank: usize, step: usize, model: &M, optim: &ModuleOptimizer) -> Result<(), BoxError> {
        let Some((root, _)) = self.plan.save.filter(|(_, every)| step.is_multiple_of(*every)) else { return Ok(()) };
        self.mean.barrier().wait()?;
        if rank == 0 {
            checkpoint::save(root, model, optim, &Place { step, loader: (self.plan.state)() })?;
        }
        Ok(self.mean.barrier().wait()?)
    }
}
