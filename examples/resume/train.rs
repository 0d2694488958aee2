//! The training: it goes on from the newest checkpoint, if there is one, and tells of each step.

use super::{
    augment::{Changes, training},
    batches::{Indexed, IndexedFolder, TracedCollate},
    checkpoint::{self, Place},
    collate::ImageCollate,
    model::Model,
};
use burn::{
    module::{ModuleVisitor, Param},
    optim::AdamConfig,
    prelude::*,
    train::TrainStep,
};
use burn_pinned::{BoxError, PinnedDataLoaderBuilder, memory::Decoder, vision::ImageFolder};
use serde::{Deserialize, Serialize};
use std::{
    hash::{DefaultHasher, Hasher},
    path::Path,
};

const SEED: u64 = 42;
const SIDE: u32 = 32;
const BATCH: usize = 32;
pub(crate) const EPOCHS: usize = 4;
/// Steps between checkpoints.
pub(crate) const EVERY: usize = 10;

/// What a training tells, in this order: where it starts, each step, and the model it ends with.
#[derive(Serialize, Deserialize)]
pub(crate) enum Told {
    Start { step: usize },
    Step(Step),
    End { weights: u64 },
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Step {
    /// The hash of the batch.
    pub(crate) batch: u64,
    pub(crate) loss: f32,
}

/// Trains on a folder of images, with checkpoints in a folder that exists, or without.
pub(crate) fn train(
    images: &Path,
    checkpoints: Option<&Path>,
    workers: usize,
    mut tell: impl FnMut(Told) -> Result<(), BoxError>,
) -> Result<(), BoxError> {
    // Every device gets the same batches; the same weights need sums in the same order too, which a GPU does not promise.
    let device = Device::flex().autodiff();
    device.seed(SEED);
    let folder = ImageFolder::open(images)?;
    let mut model = Model::new(folder.classes().len(), false, &device);
    let mut optim = AdamConfig::new().init();
    let mut builder = PinnedDataLoaderBuilder::new(TracedCollate(ImageCollate { side: SIDE, decoder: Decoder::Auto }))
        .batch_size(BATCH)
        .shuffle(SEED)
        .augment(training::<Indexed>(SIDE, Changes::Light)?)
        .num_workers(workers)
        .set_device(device);

    let mut step = 0;
    if let Some((place, folder)) = checkpoints.map(checkpoint::newest).transpose()?.flatten() {
        (model, optim) = checkpoint::load(&folder, model, optim)?;
        builder = builder.resume(place.loader);
        step = place.step;
    }
    let loader = builder.build(IndexedFolder(folder))?;
    let steps = EPOCHS * loader.num_batches();
    tell(Told::Start { step })?;

    while loader.state().epoch() < EPOCHS {
        for traced in loader.iter() {
            let traced = traced?;
            let output = TrainStep::step(&model, traced.batch);
            // The rate follows from the step alone. A scheduler of Burn's would be saved as model and optimiser are.
            let rate = 3e-3 * (1.0 - step as f64 / steps as f64);
            model = optim.step(rate, model, output.grads);
            step += 1;
            tell(Told::Step(Step { batch: traced.hash, loss: output.item.loss.into_scalar() }))?;
            if let Some(root) = checkpoints.filter(|_| step.is_multiple_of(EVERY)) {
                checkpoint::save(root, &model, &optim, &Place { step, loader: loader.state() })?;
            }
        }
    }
    tell(Told::End { weights: weights(&model) })
}

/// A hash of every number in the model.
fn weights(model: &Model) -> u64 {
    struct Weights(DefaultHasher);
    impl ModuleVisitor for Weights {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.write(param.val().into_data().as_bytes());
        }
    }
    let mut weights = Weights(DefaultHasher::new());
    model.valid().visit(&mut weights);
    weights.0.finish()
}
