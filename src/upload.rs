//! How bytes of host memory become tensors on the device.

#[cfg(feature = "cuda")]
use crate::cuda::CopyStream;
use crate::{
    error::BoxError,
    memory::{InUse, MemoryKind},
    target::Target,
};
use burn::tensor::{
    AllocationProperty, Bool, Bytes, DType, Device, Float, Int, Shape, Tensor, TensorData, kind::Basic,
};
use std::any::Any;
#[cfg(test)]
use std::time::Instant;

/// Who copies to the device. Each transfer thread has one of its own.
pub(crate) enum Uploader {
    /// Burn, on the calling thread's CubeCL stream.
    Burn,
    /// The crate itself, on a CUDA stream of its own, into memory that Burn allocated. CubeCL keeps sent bytes in a queue that it
    /// empties while its device thread, and so the step's launches, wait for the copies under way: on an H200 most batches
    /// took 2.4 ms from the upload to the slot's return, 0.8 ms of it the copy.
    #[cfg(feature = "cuda")]
    Direct(CopyStream),
    /// A device that fails.
    #[cfg(test)]
    Broken(Breaks),
}

/// Where a broken device fails.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Breaks {
    /// With an error, once so many tensors are made.
    Upload { after: usize },
    /// With a panic, once so many tensors are made.
    Panic { after: usize },
    /// In the wait for the copies.
    Settle,
    /// Nowhere; but what it was sent it uses up to some time, or for ever.
    Keeps { until: Option<Instant> },
}

/// Bytes of a slot, and the kind of memory they are in.
#[derive(Clone)]
pub(crate) struct HostBytes {
    pub(crate) bytes: bytes::Bytes,
    pub(crate) kind: MemoryKind,
}

impl HostBytes {
    pub(crate) fn slice(&self, range: std::ops::Range<usize>) -> Self {
        Self { bytes: self.bytes.slice(range), kind: self.kind }
    }
}

impl Uploader {
    /// The fastest way to a device.
    pub(crate) fn to(target: &Target) -> Self {
        #[cfg(feature = "cuda")]
        if let Some(ordinal) = crate::cuda::ordinal(&target.device) {
            match CopyStream::new(ordinal) {
                Ok(stream) => return Self::Direct(stream),
                Err(problem) => log::warn!("burn-pinned lets Burn copy, which is slower: {problem}"),
            }
        }
        let _ = target;
        Self::Burn
    }

    /// Starts to copy host bytes to the device, as a tensor of the kind that the dtype calls for; erases its type.
    ///
    /// # Errors
    /// If the device has no memory for it.
    pub(crate) fn tensor(
        &mut self,
        bytes: HostBytes,
        dtype: DType,
        shape: &Shape,
        device: &Device,
    ) -> Result<Box<dyn Any + Send>, BoxError> {
        match dtype {
            DType::Bool(store) => {
                // Where the device stores booleans in a byte too, they are taken as they are.
                let native = DType::from(device.settings().bool_dtype);
                let dtype = if native.size() == 1 && dtype.size() == 1 { native } else { DType::Bool(store) };
                self.tensor_of::<Bool>(bytes, dtype, shape, device)
            }
            dtype if dtype.is_float() => self.tensor_of::<Float>(bytes, dtype, shape, device),
            dtype => self.tensor_of::<Int>(bytes, dtype, shape, device),
        }
    }

    fn tensor_of<K: Basic + 'static>(
        &mut self,
        bytes: HostBytes,
        dtype: DType,
        shape: &Shape,
        device: &Device,
    ) -> Result<Box<dyn Any + Send>, BoxError> {
        macro_rules! reshaped {
            ($flat:expr, $($rank:literal)*) => {
                match shape.num_dims() {
                    // Burn reads a 0 in a reshape as "as it was".
                    $($rank if shape.num_elements() == 0 => {
                        Box::new(Tensor::<$rank, K>::empty(shape.clone(), (device, dtype))) as Box<dyn Any + Send>
                    })*
                    $($rank => Box::new($flat.reshape::<$rank, _>(shape.clone())) as Box<dyn Any + Send>,)*
                    rank => unreachable!("layouts have at most 8 dimensions, not {rank}"),
                }
            };
        }
        Ok(reshaped!(self.flat::<K>(bytes, shape.num_elements(), dtype, device)?, 1 2 3 4 5 6 7 8))
    }

    /// A tensor of one dimension: CubeCL gives tensors of several a pitched layout, whose upload is a slow copy of many short
    /// rows; the reshape afterwards costs nothing.
    fn flat<K: Basic + 'static>(
        &mut self,
        bytes: HostBytes,
        values: usize,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor<1, K>, BoxError> {
        match self {
            Self::Burn => {
                let kind = if bytes.kind.is_pinned() { AllocationProperty::Pinned } else { AllocationProperty::Other };
                let bytes = Bytes::from_shared(bytes.bytes, kind);
                Ok(Tensor::from_data(TensorData::from_bytes(bytes, Shape::new([values]), dtype), (device, dtype)))
            }
            #[cfg(feature = "cuda")]
            Self::Direct(stream) => Ok(stream.tensor(bytes.bytes, values, dtype, device)?),
            #[cfg(test)]
            Self::Broken(Breaks::Upload { after: 0 }) => Err("no room on the device".into()),
            #[cfg(test)]
            Self::Broken(Breaks::Panic { after: 0 }) => panic!("the device is gone"),
            #[cfg(test)]
            Self::Broken(breaks) => {
                if let Breaks::Upload { after } | Breaks::Panic { after } = breaks {
                    *after -= 1;
                }
                Self::Burn.flat(bytes, values, dtype, device)
            }
        }
    }

    /// Waits until the copies of a batch of so many bytes are done and its slot is free again.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn settle(&mut self, target: &Target, bytes: usize) -> Result<(), BoxError> {
        match self {
            Self::Burn if target.host => Ok(()),
            // Each flush frees what was sent before the flush ahead of it, so two free everything. The first would wait for the
            // copies on the device-runner thread: `sync` first waits here, but for copies that are over sooner than its round
            // trip.
            Self::Burn => {
                if bytes >= SMALL {
                    target.device.sync()?;
                }
                target.device.flush()?;
                Ok(target.device.flush()?)
            }
            #[cfg(feature = "cuda")]
            Self::Direct(stream) => Ok(stream.wait(bytes < SMALL)?),
            #[cfg(test)]
            Self::Broken(Breaks::Settle) => Err("the copy did not end".into()),
            #[cfg(test)]
            Self::Broken(_) => Self::Burn.settle(target, bytes),
        }
    }

    /// What tells how long the device uses the memory of the batch that was settled last, and its bytes, where that can be known.
    pub(crate) fn in_use(&mut self) -> Option<(InUse, usize)> {
        match self {
            Self::Burn => None,
            #[cfg(feature = "cuda")]
            Self::Direct(stream) => stream.in_use(),
            #[cfg(test)]
            Self::Broken(Breaks::Keeps { until }) => {
                let until = *until;
                Some((Box::new(move || until.is_none_or(|until| Instant::now() < until)), 80))
            }
            #[cfg(test)]
            Self::Broken(_) => None,
        }
    }
}

/// Copies of fewer bytes are over in some ten microseconds.
const SMALL: usize = 1 << 20;
