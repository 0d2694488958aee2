//! One model, trained on several devices: each device has a thread, a replica of the model, an optimizer and a slice of the loader.

use super::{barrier::Broken, checkpoint::Place, mean::Mean, replica::Run};
use burn::{
    data::dataloader::{DataLoader, split::split_dataloader},
    module::Module,
    optim::{GradientsParams, ModuleOptimizer},
    tensor::{Device, Tensor},
};
use burn_pinned::{BoxError, LoaderState};
use std::{
    any::Any,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
    thread::{self, ScopedJoinHandle},
    time::Duration,
};

/// How to train.
pub(crate) struct Plan<'a> {
    /// With autodiff. The same device may come twice.
    pub(crate) devices: &'a [Device],
    /// Returns the loader's state.
    pub(crate) state: &'a (dyn Fn() -> LoaderState + Sync),
    /// The total number of epochs, including those before a resume.
    pub(crate) epochs: usize,
    /// Batches of each device per step.
    pub(crate) accumulate: usize,
    pub(crate) rate: f64,
    /// A folder for checkpoints, and the number of steps between them.
    pub(crate) save: Option<(&'a Path, usize)>,
    /// The checkpoint to resume from. The loader must have been built with its state.
    pub(crate) resume: Option<(Place, PathBuf)>,
}

/// The result of an epoch.
pub(crate) struct Epoch {
    /// From 1.
    pub(crate) number: usize,
    /// Steps since the first epoch.
    pub(crate) step: usize,
    /// Steps of this epoch in this run: fewer if it was resumed.
    pub(crate) steps: usize,
    /// The mean over all batches of all devices.
    pub(crate) loss: f64,
    pub(crate) took: Duration,
    /// How long device 0 waited for its batches.
    pub(crate) waited: Duration,
}

/// Why training ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ended {
    #[error("device {rank}: {error}")]
    Failed { rank: usize, error: BoxError },
    #[error("device {rank} panicked: {message}")]
    Panicked { rank: usize, message: String },
    #[error("device {rank} got no thread: {error}")]
    NoThread { rank: usize, error: io::Error },
    #[error("the first model: {0}")]
    NoModel(BoxError),
}

impl Ended {
    /// Whether this is only a consequence of another device's failure.
    fn is_echo(&self) -> bool {
        matches!(self, Self::Failed { error, .. } if error.is::<Broken>())
    }
}

/// Trains, and returns the replicas of all devices, which are equal. Only values that are not trained, such as the averages of batch
/// normalisation, differ.
///
/// `init` makes a model on a device; all replicas start as copies of the first one. `step` returns the loss of a batch and its gradients.
/// `tell` gets the result of each epoch, and the model of device 0 for validation. It runs on the thread of device 0, and the others wait
/// for it in their next step, so validate there.
///
/// # Errors
/// The first error or panic on any device ends all of them. So does a slice with more batches than another one.
pub(crate) fn train<M: Module, B: Send + 'static>(
    plan: &Plan<'_>,
    loader: Arc<dyn DataLoader<B>>,
    optim: &ModuleOptimizer,
    init: impl Fn(&Device) -> M + Sync,
    step: impl Fn(&M, B) -> Result<(Tensor<1>, GradientsParams), BoxError> + Sync,
    tell: impl Fn(Epoch, M) -> Result<(), BoxError> + Sync,
) -> Result<Vec<M>, Ended> {
    let slices = split_dataloader(loader, plan.devices);
    // The replicas get the first model's values from host memory, so no transfer goes from device to device.
    let first = init(&plan.devices[0]).into_record().into_bytes().map_err(|error| Ended::NoModel(error.into()))?;
    let run = Run { plan, mean: Mean::new(slices.len()), first_epoch: (plan.state)().epoch(), init, step, tell };
    let one = |rank: usize| {
        let replica = || {
            let start = run.start(rank, first.to_vec(), optim.clone())?;
            run.replica(rank, &*slices[rank], start)
        };
        let ended = match catch_unwind(AssertUnwindSafe(replica)) {
            Ok(Ok(model)) => {
                run.mean.end();
                return Ok(model);
            }
            Ok(Err(error)) => Ended::Failed { rank, error },
            Err(panic) => Ended::Panicked { rank, message: message(&*panic) },
        };
        run.mean.barrier().break_up();
        Err(ended)
    };
    let all: Vec<Result<M, Ended>> = thread::scope(|scope| {
        let spawn = |rank| {
            let one = &one;
            let thread = thread::Builder::new().name(format!("replica-{rank}")).spawn_scoped(scope, move || one(rank));
            thread.map_err(|error| {
                run.mean.barrier().break_up();
                Ended::NoThread { rank, error }
            })
        };
        let threads: Vec<_> = (0..slices.len()).map(spawn).collect();
        let join = |(rank, thread): (usize, ScopedJoinHandle<'_, _>)| {
            thread.join().unwrap_or_else(|panic| Err(Ended::Panicked { rank, message: message(&*panic) }))
        };
        threads.into_iter().enumerate().map(|(rank, thread)| join((rank, thread?))).collect()
    });
    // The cause, if there is one, rather than a consequence.
    match all.iter().position(|end| end.as_ref().is_err_and(|ended| !ended.is_echo())) {
        Some(cause) => all.into_iter().nth(cause).into_iter().collect(),
        None => all.into_iter().collect(),
    }
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref().copied()).unwrap_or("no message").into()
}
