//! Whether training can go on from one of Burn's checkpoints: where it cannot, the learner would panic.

use super::model::Model;
use burn::prelude::*;
use burn_pinned::BoxError;
use std::path::Path;

/// Checks that there is a checkpoint of an epoch (from 1), that it is of such a model, and that epochs are left after it.
pub(crate) fn check(artifacts: &Path, epoch: usize, epochs: usize, model: &Model) -> Result<(), BoxError> {
    if !(1..epochs).contains(&epoch) {
        return Err(format!("--checkpoint-epoch {epoch}: it must be at least 1 and less than --epochs {epochs}").into());
    }
    let file = |part: &str| artifacts.join(format!("checkpoint/{part}-{epoch}.bpk"));
    for part in ["model", "optim", "scheduler"].map(file) {
        if !part.is_file() {
            return Err(format!("no checkpoint of epoch {epoch}: there is no {}", part.display()).into());
        }
    }
    match model.clone().try_load_file(file("model")) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("the checkpoint of epoch {epoch} does not fit the model: {error}").into()),
    }
}
