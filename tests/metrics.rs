//! The loader in Burn's training: its figures in the log files, and its position in the checkpoints.
#![cfg(feature = "metrics")]

#[path = "common/regression.rs"]
mod regression;

use burn::{
    data::dataset::{Dataset, DatasetError},
    nn::{Initializer, LinearConfig},
    optim::SgdConfig,
    prelude::*,
    train::{
        Learner, SupervisedTraining,
        checkpoint::{Checkpointer, FileCheckpointer},
        metric::LossMetric,
    },
};
use burn_pinned::{KeyedRng, LoaderCheckpointer, LoaderMetric, PinnedDataLoader, PinnedDataLoaderBuilder};
use rand::RngExt;
use regression::{Column, Model};
use std::{
    fs, io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread::sleep,
    time::Duration,
};

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

/// Samples of which one cannot be read once a training has come so far.
struct Stops {
    numbers: usize,
    reads: AtomicUsize,
    stops: usize,
}

impl Dataset<f32> for Stops {
    fn get(&self, index: usize) -> Result<f32, DatasetError> {
        if self.reads.fetch_add(1, Ordering::Relaxed) >= self.stops {
            return Err(DatasetError::new(io::Error::other("the machine is gone")));
        }
        Ok(index as f32 / 64.0)
    }

    fn len(&self) -> usize {
        self.numbers
    }
}

/// Trains up to epoch 5, after the checkpoint of an epoch if there is one. Returns the logged losses of each epoch, and whether it failed.
fn train(folder: &Path, after: usize, stops: usize, steps: Option<usize>) -> (Vec<String>, bool) {
    let device = Device::flex();
    let dataset = |stops| Stops { numbers: 50, reads: AtomicUsize::new(0), stops };
    let builder = || PinnedDataLoaderBuilder::new(Column).batch_size(8).num_workers(2).set_device(device.clone());
    let shuffled = builder().shuffle(42).augment(|x: f32, rng: &mut KeyedRng| Ok(x + rng.random_range(0.0..0.1)));
    let shuffled = match steps {
        Some(steps) => shuffled.steps_per_epoch(steps),
        None => shuffled,
    };
    let (train, valid) = (shuffled.build(dataset(stops)).unwrap(), builder().build(dataset(usize::MAX)).unwrap());
    let model = Model { linear: LinearConfig::new(1, 1).with_initializer(Initializer::Zeros).init(&device.autodiff()) };
    let learner = Learner::new(model, SgdConfig::new().init(), 1e-2);
    let checkpoints = folder.join("checkpoint");
    let file = |name| FileCheckpointer::new(&checkpoints, name);
    let mut training = SupervisedTraining::new(folder, Arc::clone(&train) as _, valid as _)
        .metrics((LossMetric::new(),))
        .renderer(Box::new(burn::train::renderer::CliMetricsRenderer::new()))
        .num_epochs(5)
        .with_custom_checkpointers(
            LoaderCheckpointer::new(file("model"), &train, &checkpoints),
            file("optim"),
            file("scheduler"),
        );
    if after > 0 {
        training = training.checkpoint(after);
    }
    let failed = training.launch(learner).error.is_some();
    let logs = (after + 1..=5).map(|epoch| fs::read_to_string(folder.join(format!("train/epoch-{epoch}/Loss.log"))));
    (logs.map_while(Result::ok).collect(), failed)
}

/// The learner is stopped in the middle of its fourth epoch. A later process has the losses that it would have had.
#[test]
fn a_learner_that_was_stopped_goes_on_with_the_same_losses() {
    for steps in [None, Some(4)] {
        let [whole, stopped] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let (expected, failed) = train(whole.path(), 0, usize::MAX, steps);
        assert!(!failed && expected.len() == 5, "{expected:?}");
        assert!(expected.iter().all(|losses| losses.lines().count() == steps.unwrap_or(7) + 1), "{expected:?}");
        let samples = steps.map_or(50, |steps| 8 * steps);
        let (_, failed) = train(stopped.path(), 0, 3 * samples + 10, steps);
        assert!(failed, "it was stopped");
        let kept: Vec<_> =
            (1..=5).filter(|epoch| stopped.path().join(format!("checkpoint/loader-{epoch}.json")).exists()).collect();
        assert_eq!(kept, [2, 3], "Burn keeps the last two checkpoints, and so does this");
        let (after, failed) = train(stopped.path(), 3, usize::MAX, steps);
        assert!(!failed);
        assert_eq!(after, expected[3..], "the losses of epochs 4 and 5");
    }
}

#[test]
fn a_checkpoint_of_another_loader_is_refused() {
    let (folder, device) = (tempfile::tempdir().unwrap(), Device::flex());
    let checkpointer = |samples| {
        let loader = loader(samples, &device);
        LoaderCheckpointer::new(FileCheckpointer::new(folder.path(), "nothing"), &loader, folder.path())
    };
    Checkpointer::<()>::save(&checkpointer(16), 3, ()).unwrap();
    let error = Checkpointer::<()>::restore(&checkpointer(24), 3).unwrap_err().to_string();
    assert!(error.contains("then 16, now 24"), "{error}");
    let error = Checkpointer::<()>::restore(&checkpointer(16), 4).unwrap_err().to_string();
    assert!(error.contains("loader-4.json"), "{error}");
    Checkpointer::<()>::restore(&checkpointer(16), 3).unwrap();
    Checkpointer::<()>::delete(&checkpointer(16), 3).unwrap();
    assert!(!folder.path().join("loader-3.json").exists());
}

#[test]
fn a_loader_in_the_middle_of_an_epoch_is_refused() {
    let (folder, device) = (tempfile::tempdir().unwrap(), Device::flex());
    let file = || FileCheckpointer::new(folder.path(), "nothing");
    let first = loader(32, &device);
    Checkpointer::<()>::save(&LoaderCheckpointer::new(file(), &first, folder.path()), 0, ()).unwrap();
    first.iter().next().unwrap().unwrap();
    let builder = PinnedDataLoaderBuilder::new(Column).batch_size(8).num_workers(2).set_device(device);
    let resumed = builder.resume(first.state()).build(Numbers(32)).unwrap();
    let error = Checkpointer::<()>::restore(&LoaderCheckpointer::new(file(), &resumed, folder.path()), 0).unwrap_err();
    assert!(error.to_string().contains("in the middle of an epoch"), "{error}");
}
