//! Statistics of a loader for Burn's dashboard and logs.

use super::data_loader::PinnedDataLoader;
use crate::observe::{Counters, Stats, Sums};
use burn::{
    tensor::TensorReadError,
    train::metric::{
        Metric, MetricAttributes, MetricMetadata, MetricName, Numeric, NumericAttributes, NumericEntry,
        SerializedEntry, format_float,
    },
};
use std::sync::Arc;

/// A loader metric for `SupervisedTraining`, used like Burn's `CpuUse`. It needs the feature `metrics`.
///
/// ```
/// # use burn::{data::dataset::InMemDataset, prelude::*, tensor::DType, train::metric::Metric};
/// # use burn_pinned::{BoxError, Collate, Field, LoaderMetric, PinnedDataLoaderBuilder, RawBatch, RowMut};
/// # struct Squares;
/// # impl Collate<f32> for Squares {
/// #     type Batch = Tensor<1>;
/// #     fn layout(&self) -> Vec<Field> { vec![Field::new("x", DType::F32, [])] }
/// #     fn write(&self, x: &f32, row: &mut RowMut<'_>) -> Result<(), BoxError> { Ok(row.put("x", x * x)?) }
/// #     fn finish(&self, mut batch: RawBatch) -> Result<Tensor<1>, BoxError> { Ok(batch.take("x")?) }
/// # }
/// # let train = PinnedDataLoaderBuilder::new(Squares).batch_size(2).build(InMemDataset::new(vec![1.0, 2.0, 3.0]))?;
/// // let training = SupervisedTraining::new(folder, train.clone(), valid.clone())
/// //     .metric_train_numeric(LoaderMetric::data_wait(&train))
/// //     .metric_valid_numeric(LoaderMetric::data_wait(&valid));
/// // let result = training.launch(learner);
/// // if let Some(error) = result.error { return Err(error.into()) } // a batch failed
/// let metric = LoaderMetric::data_wait(&train);
/// assert_eq!(metric.name().as_str(), "Data Wait");
/// # Ok::<(), burn_pinned::Error>(())
/// ```
///
/// Each update reads a number of counters on Burn's metric thread. It shows the value since the previous update, and
/// since the start of the epoch.
#[derive(Debug, Clone)]
pub struct LoaderMetric {
    figure: Figure,
    name: MetricName,
    counters: Arc<Counters>,
    /// The totals at the end of the previous epoch.
    start: (Sums, Stats),
    /// The totals at the last update that had something new.
    last: (Sums, Stats),
    /// `None` until a step of the epoch has ended.
    batch: Option<f64>,
    epoch: Option<f64>,
}

#[derive(Debug, Clone, Copy)]
enum Figure {
    DataWait,
    SampleRate,
    TransferRate,
    SlotMemory,
}

impl Figure {
    /// The unit, and a description of the metric.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::DataWait => ("%", "The share of its time that the training loop waits for the loader."),
            Self::SampleRate => ("samples/s", "Samples a second, over steps and waits."),
            Self::TransferRate => ("GB/s", "Bytes a second to the device, over steps and waits."),
            Self::SlotMemory => ("MB", "Host memory of the loader's slots."),
        }
    }

    /// The value between two moments; `None` if no batch was delivered or no step ended between them. A wait without
    /// its step, as for the first batch of an epoch, has no meaning. Neither has a step without its wait.
    fn between(self, (from, before): &(Sums, Stats), (to, now): &(Sums, Stats)) -> Option<f64> {
        let waited = to.waited.saturating_sub(from.waited).as_secs_f64();
        let time = to.elapsed.saturating_sub(from.elapsed).as_secs_f64();
        let value = match self {
            Self::DataWait => 100.0 * (waited / time),
            Self::SampleRate => now.items.saturating_sub(before.items) as f64 / time,
            Self::TransferRate => now.sent_bytes.saturating_sub(before.sent_bytes) as f64 / time / 1e9,
            Self::SlotMemory => now.host_bytes as f64 / 1e6,
        };
        (to.steps > from.steps && now.items > before.items && time > 0.0).then_some(value)
    }
}

impl LoaderMetric {
    fn new<O: Send + 'static>(loader: &PinnedDataLoader<O>, figure: Figure, name: &str) -> Self {
        let counters = Arc::clone(loader.plan().counters());
        let start = counters.totals();
        Self {
            figure,
            name: Arc::new(name.into()),
            counters,
            start: start.clone(),
            last: start,
            batch: None,
            epoch: None,
        }
    }

    /// The percentage of the training loop's time that it waits in `next()`.
    pub fn data_wait<O: Send + 'static>(loader: &PinnedDataLoader<O>) -> Self {
        Self::new(loader, Figure::DataWait, "Data Wait")
    }

    /// Samples per second, over steps and waits.
    pub fn sample_rate<O: Send + 'static>(loader: &PinnedDataLoader<O>) -> Self {
        Self::new(loader, Figure::SampleRate, "Sample Rate")
    }

    /// Gigabytes (10^9 bytes) per second to the device, over steps and waits; 0 on a CPU backend.
    pub fn transfer_rate<O: Send + 'static>(loader: &PinnedDataLoader<O>) -> Self {
        Self::new(loader, Figure::TransferRate, "Transfer Rate")
    }

    /// Megabytes (10^6 bytes) of slot memory, which is page-locked on CUDA.
    pub fn slot_memory<O: Send + 'static>(loader: &PinnedDataLoader<O>) -> Self {
        Self::new(loader, Figure::SlotMemory, "Slot Memory")
    }

    fn entry(&self, value: Option<NumericEntry>) -> SerializedEntry {
        let (unit, _) = self.figure.words();
        let Some(value) = value else { return SerializedEntry::not_available(Some(unit)) };
        let text = |value: Option<f64>| value.map_or_else(|| "N/A".into(), |value| format_float(value, 2));
        let (epoch, batch) = (text(self.epoch), text(self.batch));
        SerializedEntry::new(format!("epoch {epoch} {unit} - batch {batch} {unit}"), value.serialize())
    }
}

impl Metric for LoaderMetric {
    type Input = ();

    fn name(&self) -> MetricName {
        Arc::clone(&self.name)
    }

    fn description(&self) -> Option<String> {
        Some(self.figure.words().1.into())
    }

    fn attributes(&self) -> MetricAttributes {
        let higher_is_better = matches!(self.figure, Figure::SampleRate | Figure::TransferRate);
        NumericAttributes { unit: Some(self.figure.words().0.into()), higher_is_better }.into()
    }

    fn update(&mut self, (): &(), _: &MetricMetadata) -> Result<SerializedEntry, TensorReadError> {
        let now = self.counters.totals();
        self.epoch = self.figure.between(&self.start, &now).or(self.epoch);
        if let Some(value) = self.figure.between(&self.last, &now) {
            (self.batch, self.last) = (Some(value), now);
        }
        Ok(self.entry(self.batch.map(NumericEntry::Value)))
    }

    fn compute(&mut self) -> Result<SerializedEntry, TensorReadError> {
        self.epoch = self.figure.between(&self.start, &self.counters.totals()).or(self.epoch); // the last step counts too
        Ok(self.entry(self.epoch.map(NumericEntry::Final)))
    }

    fn clear(&mut self) {
        self.start = self.counters.totals();
        self.last = self.start.clone();
        (self.batch, self.epoch) = (None, None);
    }
}

impl Numeric for LoaderMetric {
    fn value(&self) -> Option<NumericEntry> {
        self.batch.map(NumericEntry::Value)
    }

    fn running_value(&self) -> Option<NumericEntry> {
        self.epoch.map(NumericEntry::Value)
    }

    fn final_value(&self) -> NumericEntry {
        NumericEntry::Final(self.epoch.unwrap_or(0.0)) // an epoch without batches has the value 0
    }
}
