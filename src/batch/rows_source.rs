//! A collate over a dataset, which all batches made row by row share. Its `Source` is in `rows_task.rs`, beside the
//! tasks that it opens.

use super::{raw::RawBatch, samples::Samples, write::RowWriter};
use crate::{
    device::Target,
    fault::{BoxError, Error},
    memory::{Decoder, SlotLayout},
};
use std::sync::Arc;

/// Makes the user's batch of the tensors on the device, as `Collate::finish` does.
pub(crate) type Finish<O> = Arc<dyn Fn(RawBatch) -> Result<O, BoxError> + Send + Sync>;

/// A `Collate` over a dataset.
pub(crate) struct RowsSource<I, O> {
    pub(crate) samples: Arc<Samples<I>>,
    pub(crate) collate: Arc<dyn RowWriter<I>>,
    pub(crate) finish: Finish<O>,
    /// The layout in which the workers decode images.
    pub(crate) plain: Arc<SlotLayout>,
    /// The layout of the slots: `plain`, or the one for images that the device decodes.
    pub(crate) layout: Arc<SlotLayout>,
    pub(crate) target: Target,
    /// The number of samples that are read before they are written.
    pub(crate) group: usize,
}

/// Returns how many samples are read at a time. Small samples are read several at a time, so that the work of reading
/// (reference counts, locks) does not come between the copies. There it would keep the CPU from overlapping their cache
/// misses. See benches/README.md. Large samples are copied while they are in the cache.
pub(super) fn group(row_bytes: usize) -> usize {
    (32 * 1024 / row_bytes.max(1)).clamp(1, 32)
}

/// Chooses whether the host or the device decodes images, and returns the layout for the device.
pub(super) fn for_device(target: Target, layout: &Arc<SlotLayout>) -> Result<(Target, Arc<SlotLayout>), Error> {
    let own = target.device.settings().int_dtype.into();
    let plain = || Ok::<_, Error>(Arc::new(layout.on(own, false)?));
    let Some(decoder) = layout.decoder().filter(|decoder| *decoder != Decoder::Host) else {
        return Ok((target, plain()?));
    };
    match target.clone().decoding() {
        Ok(target) => Ok((target, Arc::new(layout.on(own, true)?))),
        Err(problem) if decoder == Decoder::Auto => {
            if !target.host {
                log::info!("burn-pinned decodes images on the workers: {problem}");
            }
            Ok((target, plain()?))
        }
        Err(problem) => {
            let advice = "use `Decoder::Auto` to decode on the workers where that cannot be done";
            Err(Error::config("Field::decoder", problem.to_string(), advice))
        }
    }
}
