//! `image_bench` measures the training of a small image classifier by Burn's learner: on shards, with Burn's own loader on the same
//! data, on several devices, with other decoders, with timelines. If a batch fails, it says why, and its exit code is 1. The README of
//! the package shows how.

mod args;
mod augment;
mod bad;
mod burns_way;
mod checkpoint;
mod collate;
mod data;
mod devices;
mod flush;
mod kept;
mod log;
mod model;
mod norm;
mod progress;
mod shapes;
mod shards;
mod square;
#[cfg(test)]
mod tests;

use args::{Args, Which};
use augment::training;
use bad::{Bad, Named};
use burn::{
    data::{
        dataloader::{DataLoader, DataLoaderBuilder},
        dataset::Dataset,
    },
    lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig,
    optim::AdamConfig,
    prelude::*,
    train::{
        Learner, LearnerSummary, LearningResult, SupervisedTraining,
        metric::{AccuracyMetric, LossMetric},
    },
};
use burn_pinned::{BoxError, LoaderMetric, PinnedDataLoader, PinnedDataLoaderBuilder, Stats, observe::Timeline};
use burn_pinned_tools::end::end;
use burns_way::Decoded;
use clap::Parser;
use collate::{ImageBatch, ImageCollate, Sample};
use data::Data;
use devices::Strategy;
use flush::Flushers;
use kept::KeptCollate;
use log::Warnings;
use model::Model;
use progress::{Clock, PlainProgress, Timed};
use square::CentreSquare;
use std::{
    fs,
    io::IsTerminal,
    process::ExitCode,
    sync::Arc,
    thread::available_parallelism,
    time::{Duration, Instant},
};

fn threads() -> usize {
    available_parallelism().map_or(1, usize::from)
}

type Loader = Arc<dyn DataLoader<ImageBatch>>;

/// A loader with its clock, and its own statistics where it has some.
struct Fed {
    loader: Loader,
    clock: Arc<Clock>,
    pinned: Option<Arc<PinnedDataLoader<ImageBatch>>>,
    bad: Named,
}

impl Args {
    fn loader(&self, images: Arc<dyn Dataset<Sample>>, train: bool, device: &Device) -> Result<Fed, BoxError> {
        let (side, decoder) = (self.side, self.decoder);
        let collate = ImageCollate { side, decoder };
        let (mut pinned, bad) = (None, Named::default());
        let loader: Loader = match self.loader {
            Which::Pinned => {
                let mut builder = match self.keep {
                    true => PinnedDataLoaderBuilder::new(KeptCollate::new(side, decoder, train)?),
                    false => PinnedDataLoaderBuilder::new(collate),
                };
                builder = builder
                    .batch_size(self.batch_size)
                    .prefetch(self.prefetch)
                    .bad_samples(self.bad_samples.policy())
                    .on_fault({
                        let bad = bad.clone();
                        move |error| bad.fault(error)
                    })
                    .set_device(device.clone());
                if let Some(workers) = self.workers {
                    builder = builder.num_workers(workers);
                }
                if let Some(transfers) = self.transfers {
                    builder = builder.transfer_threads(transfers);
                }
                if train {
                    // Burn counts epochs from 1, the loader from 0: the epoch after Burn's N is the loader's N.
                    let epoch = self.checkpoint_epoch.unwrap_or(0);
                    builder = builder.shuffle(self.seed).start_epoch(epoch).devices(self.devices);
                }
                let loader = match (self.keep, train) {
                    (true, _) => builder.build_kept(images)?,
                    (false, true) => builder.augment(training::<Sample>(side, self.augment)?).build(images)?,
                    (false, false) => builder.augment(CentreSquare(side)).build(images)?,
                };
                pinned = Some(Arc::clone(&loader));
                loader
            }
            Which::Burn => {
                let builder = DataLoaderBuilder::new(collate)
                    .batch_size(self.batch_size)
                    .num_workers(self.workers.unwrap_or_else(threads))
                    .set_device(device.clone());
                let images = Decoded { images, side };
                if train { builder.shuffle(self.seed).build(images) } else { builder.build(images) }
            }
        };
        let clock = Arc::<Clock>::default();
        let loader = Arc::new(Timed { loader, clock: Arc::clone(&clock) });
        Ok(Fed { loader, clock, pinned, bad })
    }

    /// The images to train on, drawn first if none are named.
    fn images(&self) -> Result<Data, BoxError> {
        if !self.data.is_empty() {
            return Data::open(&self.data, &self.valid, self.seed);
        }
        let root = std::env::temp_dir().join(format!("burn-pinned-shapes-{}-{}", self.per_class, self.seed));
        if !root.exists() {
            println!("drawing {} images of each shape into {}", self.per_class, root.display());
        }
        shapes::generate(&root, self.per_class, self.seed)?;
        Data::open(&[root], &[], self.seed)
    }
}

/// The share of images that the model classifies right.
fn accuracy(model: &Model, loader: &dyn DataLoader<ImageBatch>) -> Result<f64, BoxError> {
    let (mut right, mut all) = (0.0, 0);
    for batch in loader.iter() {
        let batch = batch?;
        all += batch.labels.dims()[0];
        let guess = model.forward(batch.images).argmax(1).flatten::<1>(0, 1);
        right += guess.equal(batch.labels).int().sum().into_scalar::<f64>();
    }
    Ok(right / f64::from(u32::try_from(all.max(1))?))
}

/// Events to keep so that the last epoch's second half is there: of a batch, one for each sample at most, and some ten others.
fn events(batches: usize, batch_size: usize) -> usize {
    ((batches / 2 + 24) * (batch_size + 10)).min(500_000) // 40 MB
}

fn run(args: &Args) -> Result<(), BoxError> {
    burn_pinned::prepare()?;
    if args.keep && args.loader == Which::Burn {
        return Err("--keep is for burn-pinned: leave out `--loader burn`".into());
    }
    // What would fail after the training fails before it.
    if let Some(file) = &args.timeline {
        if args.loader == Which::Burn {
            return Err("--timeline shows what burn-pinned does: leave out `--loader burn`".into());
        }
        Timeline::default().save(file)?;
    }
    let device = Device::default();
    device.seed(args.seed);
    let Data { train, valid, classes } = args.images()?;
    println!("{} training and {} validation images of {}", train.len(), valid.len(), classes.join(", "));
    // Burn steps the rate once for all devices.
    let batches = train.len().div_ceil(args.devices.max(1)).div_ceil(args.batch_size.max(1));
    let (train, valid) = (args.loader(train, true, &device)?, args.loader(valid, false, &device)?);

    if let (Some(_), Some(loader)) = (&args.timeline, &train.pinned) {
        loader.record(events(batches * args.devices, args.batch_size));
    }
    let artifacts = std::env::temp_dir().join("burn-pinned-image-bench");
    let model = Model::new(classes.len(), args.strategy == Strategy::Ddp, &device.clone().autodiff());
    match args.checkpoint_epoch {
        Some(epoch) => checkpoint::check(&artifacts, epoch, args.epochs, &model)?,
        None if artifacts.exists() => fs::remove_dir_all(&artifacts)?, // the summary would count an earlier run's epochs too
        None => {}
    }
    let rate = CosineAnnealingLrSchedulerConfig::new(3e-3, args.epochs * batches).init()?;
    let learner = Learner::new(model, AdamConfig::new().init(), rate);
    let mut training = SupervisedTraining::new(&artifacts, Arc::clone(&train.loader), Arc::clone(&valid.loader))
        .metrics((AccuracyMetric::new(), LossMetric::new()))
        .num_epochs(args.epochs)
        .with_default_checkpointers()
        .with_application_logger(Some(Box::new(Warnings(artifacts.clone()))));
    if let Some(epoch) = args.checkpoint_epoch {
        training = training.checkpoint(epoch);
    }
    let mut flushers = None;
    if args.devices > 1 {
        let devices = devices::devices(args.devices);
        if args.flush_every > 0 {
            flushers = Some(Flushers::start(&devices, Duration::from_millis(args.flush_every))?);
        }
        let strategy = args.strategy.on(devices);
        training = training.with_training_strategy(strategy.into());
    }
    if let (Some(train), Some(valid)) = (&train.pinned, &valid.pinned) {
        training = training
            .metric_train_numeric(LoaderMetric::data_wait(train))
            .metric_valid_numeric(LoaderMetric::data_wait(valid))
            .metric_train_numeric(LoaderMetric::sample_rate(train))
            .metric_valid_numeric(LoaderMetric::sample_rate(valid));
    }
    if !std::io::stdout().is_terminal() {
        training = training.renderer(Box::<PlainProgress>::default());
    }
    let started = Instant::now();
    let LearningResult { model, renderer, error, .. } = training.launch(learner);
    let time = started.elapsed();
    drop(flushers);
    drop(renderer); // the dashboard leaves the terminal
    // Burn tells of a batch that failed only here. And in a terminal not even here.
    if let Some(error) = error {
        return Err(error.into());
    }
    if let Some(error) = [&train, &valid].into_iter().find_map(|fed| fed.clock.failed()) {
        return Err(error.into());
    }
    // With `.summary()`, Burn would print this after a failure too.
    let summary = LearnerSummary::new(&artifacts, &["Accuracy", "Loss", "Data Wait", "Sample Rate"]);
    if let (true, Ok(summary)) = (std::io::stdout().is_terminal(), summary) {
        println!("{summary}");
    }
    let accuracy = accuracy(&model, &*valid.loader)?;
    report(args, &device, accuracy, time.as_secs_f64(), &train);
    let bad = train.bad.count() + valid.bad.count();
    if bad > 0 {
        let done = if args.bad_samples == Bad::Replace { "replaced" } else { "left out" };
        println!("  bad samples          {bad}, {done}; {} names them", artifacts.join("experiment.log").display());
    }
    if let (Some(file), Some(loader)) = (&args.timeline, &train.pinned) {
        loader.timeline().save(file)?;
        println!("  timeline             {}", file.display());
    }
    Ok(())
}

fn report(args: &Args, device: &Device, accuracy: f64, seconds: f64, train: &Fed) {
    let loader = if args.loader == Which::Pinned { "burn-pinned" } else { "Burn's own" };
    // One loop takes the batches of all devices in turn, so the times of their iterators are the same time.
    let loops = if args.strategy == Strategy::Multi { args.devices as f64 } else { 1.0 };
    let waited = 100.0 * (loops * train.clock.wait_share()).min(1.0);
    let stats = train.pinned.as_ref().map(|loader| loader.stats());
    let workers = stats.as_ref().map_or_else(|| args.workers.unwrap_or_else(threads), |stats| stats.workers);
    let devices = if args.devices > 1 { format!("{} devices", args.devices) } else { format!("{device:?}") };
    println!("\n  loader               {loader}, {workers} workers, on {devices}");
    println!("  decoder              {}", decoder(stats.as_ref()));
    println!("  validation accuracy  {:.1} %", 100.0 * accuracy);
    println!(
        "  training             {seconds:.1} s for {} epochs, {:.0} images/s",
        args.epochs - args.checkpoint_epoch.unwrap_or(0),
        args.devices as f64 * train.clock.items_per_s()
    );
    println!("  the step waited      {waited:.1} % of its time for data");
    if let Some(stats) = stats {
        let kind = stats.memory.map_or_else(|| "no".into(), |kind| kind.to_string());
        println!("  slot memory          {:.2} MB of {kind} memory at peak", stats.host_bytes_peak as f64 / 1e6);
        println!("  verdict              {}", stats.verdict());
    }
}

/// What decodes JPEGs. Burn's own loader has no statistics.
fn decoder(stats: Option<&Stats>) -> String {
    let host = if cfg!(feature = "turbo") { "libjpeg-turbo" } else { "zune-jpeg" };
    match stats.is_some_and(|stats| stats.stages.decode.count > 0) {
        true => format!("the device's engines, and {host} for files that they do not take"),
        false => host.into(),
    }
}

fn main() -> ExitCode {
    end(run(&Args::parse()))
}
