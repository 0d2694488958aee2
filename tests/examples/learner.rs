//! A batch that fails ends a training by Burn's learner. How a caller finds out, as the tool `image_bench` does.
#![allow(dead_code, reason = "the tool uses all of its module, this test a part")]

#[path = "../../tools/src/bin/image_bench/progress.rs"]
mod progress;
#[path = "../common/regression.rs"]
mod regression;

use burn::{
    data::{dataloader::DataLoader, dataset::Dataset},
    nn::LinearConfig,
    optim::SgdConfig,
    prelude::*,
    train::{
        Interrupter, Learner, LearnerSummary, LearningResult, SupervisedTraining,
        logger::{EvaluationProgressLogger, TrainingProgressLogger},
        metric::{
            LossMetric, MetricAttributes, MetricDefinition, MetricEntry, MetricId, NumericEntry, SerializedEntry,
        },
        renderer::{
            CliMetricsRenderer, EvaluationName, MetricState, MetricsRenderer, MetricsRendererEvaluation,
            MetricsRendererTraining,
        },
    },
};
use burn_pinned::{PinnedDataLoader, PinnedDataLoaderBuilder};
use progress::{Clock, PlainProgress, Timed};
use regression::{Column, Model};
use std::{error::Error as StdError, iter::successors, sync::Arc};

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("row {0} is locked")]
struct Locked(usize);

/// Numbers, of which one may be locked.
struct Table(Option<usize>);

impl Dataset<f32, Locked> for Table {
    fn get(&self, index: usize) -> Result<f32, Locked> {
        if self.0 == Some(index) { Err(Locked(index)) } else { Ok(index as f32 / 64.0) }
    }

    fn len(&self) -> usize {
        64
    }
}

/// Does what Burn's dashboard does at the end of a training.
struct Dashboard(Interrupter);

impl MetricsRendererTraining for Dashboard {
    fn update_train(&mut self, _: MetricState) {}
    fn update_valid(&mut self, _: MetricState) {}
    fn on_train_end(&mut self, _: Option<LearnerSummary>) -> Result<(), Box<dyn StdError>> {
        self.0.reset();
        Ok(())
    }
}

impl TrainingProgressLogger for Dashboard {
    fn start(&mut self, _: usize, _: usize, _: Option<usize>, _: Option<&str>) {}
    fn start_split(&mut self, _: &str, _: usize) {}
    fn update_split(&mut self, _: usize) {}
    fn end_split(&mut self) {}
    fn update_epoch(&mut self, _: usize) {}
    fn end(&mut self) {}
    fn log_event_training(&mut self, _: String) {}
}

impl MetricsRendererEvaluation for Dashboard {
    fn update_test(&mut self, _: EvaluationName, _: MetricState) {}
}

impl EvaluationProgressLogger for Dashboard {
    fn start_global_progress(&mut self, _: usize) {}
    fn start_test(&mut self, _: &str, _: usize) {}
    fn update_test_progress(&mut self, _: usize) {}
    fn end_test(&mut self) {}
    fn end_global_progress(&mut self) {}
    fn log_event_evaluation(&mut self, _: String) {}
}

impl MetricsRenderer for Dashboard {
    fn manual_close(&mut self) {}
    fn register_metric(&mut self, _: MetricDefinition) {}
}

/// The loader and its clock after a training on a table, and the result.
fn trained(table: Table, dashboard: bool) -> (Arc<PinnedDataLoader<Tensor<2>>>, Arc<Clock>, LearningResult<Model>) {
    let (folder, device) = (tempfile::tempdir().unwrap(), Device::flex());
    let loader = |table| {
        let builder = PinnedDataLoaderBuilder::new(Column).batch_size(8).num_workers(2).set_device(device.clone());
        builder.build(table).unwrap()
    };
    let (train, valid) = (loader(table), loader(Table(None)));
    let clock = Arc::<Clock>::default();
    let timed: Arc<dyn DataLoader<_>> = Arc::new(Timed { loader: Arc::clone(&train) as _, clock: Arc::clone(&clock) });
    let model = Model { linear: LinearConfig::new(1, 1).init(&device.clone().autodiff()) };
    let interrupter = Interrupter::new();
    let renderer: Box<dyn MetricsRenderer> = match dashboard {
        true => Box::new(Dashboard(interrupter.clone())),
        false => Box::new(CliMetricsRenderer::new()),
    };
    let training = SupervisedTraining::new(folder.path(), timed, valid as _)
        .metrics((LossMetric::new(),))
        .with_interrupter(interrupter)
        .renderer(renderer)
        .num_epochs(2);
    let result = training.launch(Learner::new(model, SgdConfig::new().init(), 1e-3));
    (train, clock, result)
}

fn finds_the_row(error: &(dyn StdError + 'static)) -> bool {
    successors(Some(error), |error| (*error).source()).any(|error| error.downcast_ref() == Some(&Locked(20)))
}

#[test]
fn the_result_has_the_error_of_a_batch() {
    let (loader, clock, result) = trained(Table(Some(20)), false);
    let error = result.error.expect("a batch failed");
    assert!(finds_the_row(&*error), "{error:?}");
    assert!(finds_the_row(&*clock.failed().unwrap()));
    assert_eq!(loader.stats().errors, 1);
    let (loader, clock, result) = trained(Table(None), false);
    assert!(result.error.is_none() && clock.failed().is_none());
    assert_eq!((loader.stats().errors, loader.stats().epochs), (0, 2));
}

/// Burn's dashboard takes the error out of the result. If this fails, it does so no more: see upstream/burn-dashboard-error.md.
#[test]
fn the_loader_knows_of_an_error_that_the_dashboard_forgets() {
    let (loader, clock, result) = trained(Table(Some(20)), true);
    assert!(result.error.is_none());
    assert_eq!(loader.stats().errors, 1);
    assert!(finds_the_row(&*clock.failed().unwrap()));
}

/// A split whose first batch failed prints no row of NaN.
#[test]
fn a_split_without_numbers_prints_nothing() {
    let mut plain = PlainProgress::default();
    let id = MetricId::new(Arc::new("Loss".to_string()));
    let definition = MetricDefinition {
        metric_id: id.clone(),
        name: Arc::new("Loss".into()),
        description: None,
        attributes: MetricAttributes::None,
    };
    plain.register_metric(definition);
    let update = |plain: &mut PlainProgress, value| {
        let entry = MetricEntry::new(id.clone(), SerializedEntry::new(String::new(), String::new()));
        plain.update_train(MetricState::Numeric(entry, Some(value)));
    };
    plain.start_split("Train", 64);
    assert_eq!(plain.line(), None);
    update(&mut plain, NumericEntry::Value(f64::NAN));
    assert_eq!(plain.line(), None);
    plain.start_split("Train", 64);
    update(&mut plain, NumericEntry::Value(0.5));
    assert!(plain.line().unwrap().contains("loss 0.500"), "{:?}", plain.line());
    update(&mut plain, NumericEntry::Value(0.7));
    assert!(plain.line().unwrap().contains("loss 0.600"), "{:?}", plain.line());
    // One of these batches was larger.
    update(&mut plain, NumericEntry::Final(0.65));
    assert!(plain.line().unwrap().contains("loss 0.650"), "{:?}", plain.line());
}
