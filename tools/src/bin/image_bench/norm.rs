//! Batch normalisation for several devices.

use burn::{
    module::{Content, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor, RunningState},
    nn::BatchNorm,
    prelude::*,
};

/// Batch normalisation whose running averages are each replica's own, as `ddp` needs it.
///
/// In Burn 0.22.1 the clones of a `RunningState` share one value, and `fork` keeps that. So each replica of `ddp` takes in the averages
/// of the others, by transfers between the devices beside the collective operations. Then they deadlock, or the averages become
/// NaN: see upstream/burn-running-state.md. `multi` needs the shared value: it forks one model for each step.
#[derive(Clone, Debug)]
pub(crate) struct ReplicaNorm {
    norm: BatchNorm,
    own: bool,
}

impl ReplicaNorm {
    pub(crate) fn new(norm: BatchNorm, own: bool) -> Self {
        Self { norm, own }
    }

    pub(crate) fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        self.norm.forward(x)
    }
}

impl Module for ReplicaNorm {
    fn fork(self, device: &Device) -> Self {
        let Self { norm, own } = self;
        if !own {
            return Self { norm: norm.fork(device), own };
        }
        let averages = |state: RunningState<Tensor<1>>| RunningState::new(state.value().to_device(device));
        let BatchNorm { gamma, beta, training, running_mean, running_var, momentum, epsilon } = norm;
        let (gamma, beta, training) = (gamma.fork(device), beta.fork(device), training.fork(device));
        let (running_mean, running_var) = (averages(running_mean), averages(running_var));
        Self { norm: BatchNorm { gamma, beta, training, running_mean, running_var, momentum, epsilon }, own }
    }

    fn to_device(self, device: &Device) -> Self {
        Self { norm: self.norm.to_device(device), ..self }
    }

    fn collect_devices(&self, devices: Vec<Device>) -> Vec<Device> {
        self.norm.collect_devices(devices)
    }

    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        self.norm.visit(visitor);
    }

    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        Self { norm: self.norm.map(mapper), ..self }
    }

    fn valid(&self) -> Self {
        Self { norm: self.norm.valid(), own: self.own }
    }

    fn train(self) -> Self {
        Self { norm: self.norm.train(), ..self }
    }

    fn materialize(self) -> Self {
        Self { norm: self.norm.materialize(), ..self }
    }
}

impl ModuleDisplayDefault for ReplicaNorm {
    fn content(&self, content: Content) -> Option<Content> {
        self.norm.content(content)
    }
}

impl ModuleDisplay for ReplicaNorm {}
