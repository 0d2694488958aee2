//! The loader's figures in Burn's training: its log files for train and validation.
#![cfg(feature = "metrics")]

#[path = "common/regression.rs"]
mod regression;

use burn::{
    data::dataset::{Dataset, DatasetError},
    nn::LinearConfig,
    optim::SgdConfig,
    prelude::*,
    train::{Learner, SupervisedTraining, metric::LossMetric},
};
use burn_pinned::{LoaderMetric, PinnedDataLoader, PinnedDataLoaderBuilder};
use regression::{Column, Model};
use std::{fs, path::Path, sync::Arc, thread::sleep, time::Duration};

/// Numbers that take a while to read.
struct Numbers(usize);

impl Dataset<f32> for Numbers {
    fn get(&self, index: usize) -> Result<f32, DatasetError> {
        sleep(Duration::from_millis(2)); // much longer than a step, on a busy machine too
        Ok(index as f32 / 64.0)
    }

    fn len(&self) -> usize {
        self.0
    }
}

fn loader(samples: usize, device: &Device) -> Arc<PinnedDataLoader<Tensor<2>>> {
    let builder = PinnedDataLoaderBuilder::new(Column).batch_size(8).num_workers(2).set_device(device.clone());
    builder.build(Numbers(samples)).unwrap()
}

/// The logged values of an epoch, and the final one.
fn log(folder: &Path, split: &str, epoch: usize, name: &str) -> (Vec<f64>, f64) {
    let path = folder.join(format!("{split}/epoch-{epoch}/{name}.log"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut lines: Vec<&str> = text.lines().collect();
    let last = lines.pop().unwrap().strip_suffix(",final").unwrap().parse().unwrap();
    (lines.into_iter().map(|line| line.parse().unwrap()).collect(), last)
}

#[test]
fn supervised_training_logs_them() {
    let folder = tempfile::tempdir().unwrap();
    let device = Device::flex();
    let (train, valid) = (loader(160, &device), loader(80, &device));
    let model = Model { linear: LinearConfig::new(1, 1).init(&device.clone().autodiff()) };
    let learner = Learner::new(model, SgdConfig::new().init(), 1e-3);
    let mut training = SupervisedTraining::new(folder.path(), Arc::clone(&train) as _, Arc::clone(&valid) as _)
        .metrics((LossMetric::new(),))
        .renderer(Box::new(burn::train::renderer::CliMetricsRenderer::new()))
        .num_epochs(2);
    for metric in
        [LoaderMetric::data_wait, LoaderMetric::sample_rate, LoaderMetric::transfer_rate, LoaderMetric::slot_memory]
    {
        training = training.metric_train_numeric(metric(&train)).metric_valid_numeric(metric(&valid));
    }
    let result = training.launch(learner);
    assert!(result.error.is_none());
    for (split, batches) in [("train", 20), ("valid", 10)] {
        for epoch in 1..=2 {
            let of = |name| log(folder.path(), split, epoch, name);
            let (waits, wait) = of("Data_Wait");
            // A batch is logged only after a step has ended. So no more than the first few of an epoch are missing.
            assert!((batches / 2..=batches).contains(&waits.len()), "{waits:?}");
            assert!(waits.iter().all(|wait| *wait > 0.0 && *wait <= 100.0), "{waits:?}");
            assert!(wait > 30.0 && wait <= 100.0, "reading is slow, yet the step waited {wait} %");
            // Two workers read 8 samples in 8 ms at best.
            let (rates, rate) = of("Sample_Rate");
            assert!(rate > 15.0 && rate < 1200.0, "{rate}");
            assert!(rates.iter().all(|rate| *rate > 0.0), "{rates:?}");
            assert_eq!(of("Transfer_Rate").1, 0.0);
            assert!(of("Slot_Memory").1 > 0.0);
        }
    }
}
