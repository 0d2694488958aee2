//! Training on several devices: which ones, and Burn's strategy for them.

use burn::{
    tensor::{
        Device,
        distributed::{DistributedConfig, ReduceOperation},
    },
    train::{ExecutionStrategy, MultiDeviceOptim},
};
use clap::ValueEnum;

/// How Burn trains on several devices.
#[derive(Clone, Copy, PartialEq, Debug, Default, ValueEnum)]
pub(crate) enum Strategy {
    /// One loop takes a batch for each device, and one device updates the weights
    #[cfg_attr(not(feature = "cuda"), default)]
    Multi,
    /// A loop on each device, with collective operations, which a CPU does not have
    #[cfg_attr(feature = "cuda", default)]
    Ddp,
}

/// The first `count` devices. Without the feature `cuda`, one CPU device stands in for all.
pub(crate) fn devices(count: usize) -> Vec<Device> {
    #[cfg(feature = "cuda")]
    {
        (0..count).map(Device::cuda).collect()
    }
    #[cfg(not(feature = "cuda"))]
    vec![Device::default(); count]
}

impl Strategy {
    pub(crate) fn on(self, devices: Vec<Device>) -> ExecutionStrategy {
        match self {
            Self::Multi => ExecutionStrategy::multi(devices, MultiDeviceOptim::OptimMainDevice),
            Self::Ddp => ExecutionStrategy::ddp(devices, DistributedConfig { all_reduce_op: ReduceOperation::Mean }),
        }
    }
}
