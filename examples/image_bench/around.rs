//! Ways around a `ddp` or `multi` that stands still: see docs/upstream/burn-ddp-circle.md. Only the flushes are on by themselves.

use super::{collate::ImageBatch, model::Model};
use burn::{
    prelude::*,
    tensor::distributed::{ReduceOperation, all_reduce},
    train::TrainStep,
};
use burn_pinned::BoxError;
use std::{
    io,
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

/// Two steps on each device, one device after the other: kernels are compiled and tuned before any collective operation.
pub(crate) fn warm_up(devices: &[Device], classes: usize, batch: usize, side: usize) -> Result<(), BoxError> {
    for device in devices {
        let device = device.clone().autodiff();
        for _ in 0..2 {
            let (images, labels) = (Tensor::zeros([batch, 3, side, side], &device), Tensor::zeros([batch], &device));
            let output = TrainStep::step(&Model::new(classes, &device), ImageBatch { images, labels });
            drop(output);
            device.sync()?;
        }
    }
    Ok(())
}
