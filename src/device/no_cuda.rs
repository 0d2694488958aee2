//! The interface of `cuda.rs` for builds without CUDA: no device is a CUDA device.

use super::transport::Transport;
use crate::{
    fault::{BoxError, Error},
    memory::HostAlloc,
    observe::Counters,
};
use burn::tensor::{Device, Tensor, kind::Autodiff};
use std::{ops::Range, sync::Arc};

pub(super) use std::convert::Infallible as Engine;

/// Nothing is shared by transfer threads.
#[derive(Debug, Default, Clone)]
pub(crate) struct NoTransferState {}

pub(crate) use NoTransferState as TransferState;

impl NoTransferState {
    pub(crate) fn find_free(&self, _: bool) {}

    pub(crate) fn hurry(&self) {}

    pub(crate) fn make_room(&self) {}

    pub(crate) fn end_epoch(&self, _: Option<usize>) {}
}

pub(crate) fn prepare() -> Result<(), Error> {
    Ok(())
}

pub(crate) fn few_queues() -> Option<String> {
    None
}

pub(super) fn transport(_: &Device, _: &TransferState) -> Option<Result<Box<dyn Transport>, BoxError>> {
    None
}

pub(super) fn engine(_: &Device, _: usize) -> Option<Result<Arc<Engine>, BoxError>> {
    None
}

pub(super) fn pinned_alloc(_: &Device, _: bool, _: &Arc<Counters>) -> Option<Result<Arc<dyn HostAlloc>, String>> {
    None
}

pub(super) fn device_memory(_: &Device) -> Option<(usize, usize)> {
    None
}

pub(super) fn copied<const D: usize, K: Autodiff>(
    _: &Tensor<D, K>,
    _: &Device,
) -> Result<Option<Tensor<D, K>>, BoxError> {
    Ok(None)
}

pub(super) fn parts<const D: usize, K: Autodiff>(
    _: &Tensor<D, K>,
) -> Option<impl Fn(&[Range<usize>; D]) -> Option<Tensor<D, K>> + use<D, K>> {
    None::<fn(&[Range<usize>; D]) -> Option<Tensor<D, K>>>
}
