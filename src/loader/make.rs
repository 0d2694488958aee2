//! The two ways of making batches: rows of a collate, or items of a batcher. Each returns what makes a source for a device.

use super::{kept::Room, plan::MakeSource};
use crate::{
    batch::{Collate, ItemsSource, RowsSource, Samples, Source, group},
    device::{MapTensors, Target},
    fault::{Error, guard},
    memory::{Decoder, SlotLayout},
    vocabulary::{BatchKey, Place, Stage},
};
use burn::{data::dataloader::batcher::Batcher, tensor::Device};
use std::sync::Arc;

/// What the ways of making batches need: the samples, the size of a batch, the device of batchers.
pub(crate) struct SourceParts<I> {
    pub(crate) samples: Arc<Samples<I>>,
    pub(crate) batch_size: usize,
    pub(crate) host_device: Option<Device>,
}

pub(crate) type Make<I, O> = Box<dyn FnOnce(SourceParts<I>) -> Result<MakeSource<O>, Error>>;

/// Returns what makes the source of a collate's batches.
pub(super) fn rows<I: Send + 'static, C: Collate<I>>(
    collate: Arc<C>,
    parts: SourceParts<I>,
) -> Result<MakeSource<C::Batch>, Error> {
    if parts.host_device.is_some() {
        let problem = "it is where a batcher runs, and this loader has a collate";
        return Err(Error::config("host_device", problem, "leave it out, or use `from_batcher`"));
    }
    let fields = guard(Place::batch(Stage::Collate, BatchKey::NONE), || Ok(collate.layout()))?;
    let room = Room::of(&fields, parts.samples.len);
    let layout = SlotLayout::new(fields, parts.batch_size)?;
    parts.samples.counters.set_images(layout.decoder().is_some());
    let layout = Arc::new(layout);
    Ok(Arc::new(move |target| {
        let samples = &parts.samples;
        samples.counters.set_keepable((samples.augment.is_none() && room.is_small(&target)).then_some(room.bytes));
        let (target, layout) = for_decoder(target, &layout)?;
        let collate = Arc::clone(&collate);
        let group = group(layout.bytes() / layout.rows());
        let source = RowsSource { samples: Arc::clone(&parts.samples), collate, layout, target, group };
        Ok(Arc::new(source) as Arc<dyn Source<C::Batch>>)
    }))
}

/// Returns what makes the source of a batcher's batches.
pub(super) fn items<I: Send + 'static, O: MapTensors + Send + 'static>(
    batcher: Arc<dyn Batcher<I, O>>,
    parts: SourceParts<I>,
) -> MakeSource<O> {
    Arc::new(move |target: Target| {
        let host_device = match &parts.host_device {
            _ if target.host => target.device.clone(),
            Some(device) if !Target::of(device.clone()).host => {
                let problem = format!("{device:?} does not compute in host memory");
                return Err(Error::config("host_device", problem, "use a CPU device, e.g. `Device::flex()`"));
            }
            Some(device) => device.clone(),
            None => default_host_device(&target.device)?,
        };
        let (samples, batcher) = (Arc::clone(&parts.samples), Arc::clone(&batcher));
        Ok(Arc::new(ItemsSource { samples, batcher, host_device, target }) as Arc<dyn Source<O>>)
    })
}

/// Chooses what decodes images, and returns the layout that it needs.
fn for_decoder(target: Target, layout: &Arc<SlotLayout>) -> Result<(Target, Arc<SlotLayout>), Error> {
    let (decoder, layout) = match layout.decoder() {
        Some(decoder) if decoder != Decoder::Host => (decoder, Arc::clone(layout)),
        _ => return Ok((target, Arc::clone(layout))),
    };
    match target.clone().decoding() {
        Ok(target) => Ok((target, Arc::new(layout.for_decoding()?))),
        Err(problem) if decoder == Decoder::Auto => {
            if !target.host {
                log::info!("burn-pinned decodes images on the workers: {problem}");
            }
            Ok((target, layout))
        }
        Err(problem) => {
            let advice = "use `Decoder::Auto` to decode on the workers where that cannot be done";
            Err(Error::config("Field::decoder", problem.to_string(), advice))
        }
    }
}

fn default_host_device(device: &Device) -> Result<Device, Error> {
    #[cfg(feature = "cuda")]
    {
        let _ = device;
        Ok(Device::flex())
    }
    #[cfg(not(feature = "cuda"))]
    {
        let problem = format!("a batcher needs a CPU device to make its batches on, before they go to {device:?}");
        Err(Error::config("host_device", problem, "add e.g. `.host_device(Device::flex())`"))
    }
}
