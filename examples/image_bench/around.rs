//! Ways around a `ddp` or `multi` that stands still: see docs/upstream/burn-ddp-circle.md. Only the flushes are on by themselves.

use super::{args::Args, collate::Sample, data::Data, learner, model::Model, progress::PlainProgress};
use burn::{
    data::dataset::{Dataset, transform::PartialDataset},
    prelude::*,
    tensor::distributed::{ReduceOperation, all_reduce},
    train::{
        SupervisedTraining,
        metric::{AccuracyMetric, LossMetric},
    },
};
use burn_pinned::BoxError;
use std::{
    fs, io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// Threads that flush a device again and again, so that no part of a collective operation stays in a buffer of CubeCL's
/// clients. They end when this is dropped.
pub(crate) struct Flushers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Flushers {
    pub(crate) fn start(devices: &[Device], every: Duration) -> io::Result<Self> {
        let mut flushers = Self { stop: Arc::default(), threads: Vec::new() };
        for (number, device) in devices.iter().cloned().enumerate() {
            let stop = Arc::clone(&flushers.stop);
            let flush = move || {
                while !stop.load(Relaxed) && device.flush().is_ok() {
                    thread::sleep(every);
                }
            };
            flushers.threads.push(thread::Builder::new().name(format!("flush-{number}")).spawn(flush)?);
        }
        Ok(flushers)
    }
}

impl Drop for Flushers {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            drop(thread.join()); // a panic of it has been printed
        }
    }
}

/// Lets the devices meet in some collective operations before the training, so that NCCL has connected them.
pub(crate) fn connect(devices: &[Device]) -> Result<(), BoxError> {
    let sum = |device: &Device| -> Result<f32, BoxError> {
        let mut seen = 0.0;
        for len in [1, 1 << 10, 1 << 20] {
            let ones = Tensor::<1>::ones([len], device);
            seen += all_reduce(ones, ReduceOperation::Mean, devices.to_vec()).resolve().mean().into_scalar::<f32>();
        }
        device.sync()?;
        Ok(seen)
    };
    thread::scope(|scope| {
        let all: Vec<_> = devices.iter().map(|device| scope.spawn(move || sum(device))).collect();
        for device in all {
            let seen = device.join().map_err(|_| "a device panicked while it was connected")??;
            if seen != 3.0 {
                return Err(format!("a first all-reduce of ones gave {seen} instead of 3").into());
            }
        }
        Ok(())
    })
}

/// Trains each device alone for a few steps, one after the other, in the way of the training that follows: by Burn's strategy of one
/// device, with a validation. So every kernel is compiled, loaded and tuned before devices wait for each other. A module that is loaded
/// while a collective operation runs may wait for it, and hold up the other device's part of it.
pub(crate) fn rehearse(args: &Args, data: &Data, devices: &[Device]) -> Result<(), BoxError> {
    // Two full batches, and one that is as short as the last one of an epoch.
    let part = |all: &Arc<dyn Dataset<Sample>>, share: usize| {
        let some = 2 * args.batch_size + share % args.batch_size.max(1);
        Arc::new(PartialDataset::new(Arc::clone(all), 0, some.min(all.len()))) as Arc<dyn Dataset<Sample>>
    };
    let alone = Args { devices: 1, checkpoint_epoch: None, keep: false, ..args.clone() };
    let folder = std::env::temp_dir().join(format!("burn-pinned-rehearsal-{}", std::process::id()));
    for device in devices {
        let train = alone.loader(part(&data.train, data.train.len().div_ceil(devices.len())), true, device)?;
        let valid = alone.loader(part(&data.valid, data.valid.len()), false, device)?;
        let learner = learner(Model::new(data.classes.len(), &device.clone().autodiff()), 3)?;
        let done = SupervisedTraining::new(&folder, train.loader, valid.loader)
            .metrics((AccuracyMetric::new(), LossMetric::new()))
            .num_epochs(1)
            .with_application_logger(None)
            .renderer(Box::<PlainProgress>::default())
            .with_training_strategy(args.strategy.on(vec![device.clone()]).into())
            .launch(learner);
        device.sync()?;
        if let Some(error) = done.error {
            return Err(error.into());
        }
    }
    drop(fs::remove_dir_all(&folder)); // the system empties its folder of temporary files
    Ok(())
}
