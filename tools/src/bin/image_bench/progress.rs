//! What is printed where there is no terminal. And what it knows of any loader: how long the loop waited for it, and
//! which batch failed.

use burn::{
    data::{
        dataloader::{DataLoader, DataLoaderIterator, Progress},
        dataset::DatasetError,
    },
    tensor::Device,
    train::{
        LearnerSummary,
        logger::{EvaluationProgressLogger, TrainingProgressLogger},
        metric::{MetricDefinition, MetricId, NumericEntry},
        renderer::{EvaluationName, MetricState, MetricsRenderer, MetricsRendererEvaluation, MetricsRendererTraining},
    },
};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

/// Nanoseconds that loops have waited for and spent on batches, the samples in them, and the first error.
#[derive(Default, Debug)]
pub(crate) struct Clock {
    waited: AtomicU64,
    worked: AtomicU64,
    items: AtomicU64,
    failed: OnceLock<Arc<DatasetError>>,
}

impl Clock {
    /// The error of the first batch that failed. Burn's learner stops there, and puts the error into its result. But in a
    /// terminal, Burn's dashboard takes it out again: see upstream/burn-dashboard-error.md.
    pub(crate) fn failed(&self) -> Option<Arc<DatasetError>> {
        self.failed.get().cloned()
    }

    fn keep(&self, error: DatasetError) -> DatasetError {
        let error = Arc::new(error);
        let _ = self.failed.set(Arc::clone(&error)); // only the first is kept
        DatasetError::new(error)
    }

    pub(crate) fn wait_share(&self) -> f64 {
        let (waited, worked) = (self.waited.load(Relaxed) as f64, self.worked.load(Relaxed) as f64);
        waited / (waited + worked).max(1.0)
    }

    pub(crate) fn items_per_s(&self) -> f64 {
        let time = (self.waited.load(Relaxed) + self.worked.load(Relaxed)) as f64 / 1e9;
        self.items.load(Relaxed) as f64 / time.max(1e-9)
    }
}

/// Any loader, with a clock on its `next()`.
pub(crate) struct Timed<O> {
    pub(crate) loader: Arc<dyn DataLoader<O>>,
    pub(crate) clock: Arc<Clock>,
}

struct TimedIter<'a, O> {
    iter: Box<dyn DataLoaderIterator<O> + 'a>,
    clock: &'a Clock,
    handed: Option<Instant>,
    items: usize,
}

impl<O> Iterator for TimedIter<'_, O> {
    type Item = Result<O, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        let asked = Instant::now();
        if let Some(handed) = self.handed {
            self.clock.worked.fetch_add((asked - handed).as_nanos() as u64, Relaxed);
        }
        let batch = self.iter.next().map(|batch| batch.map_err(|error| self.clock.keep(error)));
        let now = Instant::now();
        self.clock.waited.fetch_add((now - asked).as_nanos() as u64, Relaxed);
        let items = self.iter.progress().items_processed;
        self.clock.items.fetch_add((items - self.items) as u64, Relaxed);
        (self.handed, self.items) = (Some(now), items);
        batch
    }
}

impl<O> DataLoaderIterator<O> for TimedIter<'_, O> {
    fn progress(&self) -> Progress {
        self.iter.progress()
    }
}

impl<O: 'static> DataLoader<O> for Timed<O> {
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<O> + 'a> {
        Box::new(TimedIter { iter: self.loader.iter(), clock: &self.clock, handed: None, items: 0 })
    }

    fn num_items(&self) -> usize {
        self.loader.num_items()
    }

    fn to_device(&self, device: &Device) -> Arc<dyn DataLoader<O>> {
        Arc::new(Self { loader: self.loader.to_device(device), clock: Arc::clone(&self.clock) })
    }

    fn slice(&self, start: usize, end: usize) -> Arc<dyn DataLoader<O>> {
        Arc::new(Self { loader: self.loader.slice(start, end), clock: Arc::clone(&self.clock) })
    }
}

/// One line a split: what Burn's dashboard shows, for a log file.
#[derive(Default)]
pub(crate) struct PlainProgress {
    names: HashMap<MetricId, String>,
    values: BTreeMap<String, (f64, f64)>,
    split: String,
    items: usize,
    epochs: usize,
    epoch: usize,
    started: Option<Instant>,
}

impl PlainProgress {
    fn note(&mut self, state: MetricState) {
        if let MetricState::Numeric(entry, Some(value)) = state
            && let Some(name) = self.names.get(&entry.metric_id)
        {
            let (sum, count) = self.values.entry(name.clone()).or_default();
            (*sum, *count) = match value {
                // The last value of a split is that of all its batches, which the mean of theirs need not be.
                NumericEntry::Final(value) => (value, 1.0),
                value => (*sum + value.current(), *count + 1.0),
            };
        }
    }

    /// What to print of a split. If its first batch failed, Burn has no numbers, and there is nothing to print.
    pub(crate) fn line(&self) -> Option<String> {
        if self.values.values().all(|(sum, _)| sum.is_nan()) {
            return None;
        }
        let time = self.started.map_or(0.0, |started| started.elapsed().as_secs_f64());
        let values =
            self.values.iter().map(|(name, (sum, count))| format!("{} {:.3}", name.to_lowercase(), sum / count));
        let values = values.collect::<Vec<_>>().join("  ");
        let rate = self.items as f64 / time.max(1e-9);
        Some(format!("epoch {:>2}/{}  {:<5}  {values}  {rate:.0} images/s", self.epoch, self.epochs, self.split))
    }
}

impl MetricsRendererTraining for PlainProgress {
    fn update_train(&mut self, state: MetricState) {
        self.note(state);
    }

    fn update_valid(&mut self, state: MetricState) {
        self.note(state);
    }

    fn on_train_end(&mut self, _: Option<LearnerSummary>) -> Result<(), Box<dyn std::error::Error>> {
        Ok(()) // `main.rs` prints its own table
    }
}

impl TrainingProgressLogger for PlainProgress {
    fn start(&mut self, epochs: usize, first: usize, _: Option<usize>, _: Option<&str>) {
        (self.epochs, self.epoch) = (epochs, first);
    }

    fn start_split(&mut self, split: &str, items: usize) {
        self.values.clear();
        (self.split, self.items, self.started) = (split.to_lowercase(), items, Some(Instant::now()));
    }

    fn update_split(&mut self, _: usize) {}

    fn end_split(&mut self) {
        if let Some(line) = self.line() {
            println!("{line}");
        }
    }

    fn update_epoch(&mut self, epoch: usize) {
        self.epoch = epoch + 1;
    }

    fn end(&mut self) {}

    fn log_event_training(&mut self, _: String) {}
}

impl MetricsRendererEvaluation for PlainProgress {
    fn update_test(&mut self, _: EvaluationName, _: MetricState) {}
}

impl EvaluationProgressLogger for PlainProgress {
    fn start_global_progress(&mut self, _: usize) {}
    fn start_test(&mut self, _: &str, _: usize) {}
    fn update_test_progress(&mut self, _: usize) {}
    fn end_test(&mut self) {}
    fn end_global_progress(&mut self) {}
    fn log_event_evaluation(&mut self, _: String) {}
}

impl MetricsRenderer for PlainProgress {
    fn manual_close(&mut self) {}

    fn register_metric(&mut self, definition: MetricDefinition) {
        self.names.insert(definition.metric_id, definition.name.to_string());
    }
}
