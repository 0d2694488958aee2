//! The two ways to make batches.

use super::{
    fill::AnyCollate, items::ItemsSource, lifecycle::Source, rows::RowsSource, samples::Samples, visit::TensorVisit,
};
use crate::{
    device::Target,
    fault::{Error, guard},
    memory::{Field, SlotLayout, with_companions},
    vocabulary::{BatchKey, Place, Stage},
};
use burn::{data::dataloader::batcher::Batcher, tensor::Device};
use std::sync::Arc;

/// How samples become batches.
pub(crate) enum Way<I, O> {
    /// A collate writes rows, and finishes their tensors.
    Rows(Arc<dyn AnyCollate<I, Batch = O>>),
    /// A Burn batcher makes the batch from items. The function visits the tensors of a batch.
    Items(Arc<dyn Batcher<I, O>>, fn(O, TensorVisit<'_>) -> O),
}

impl<I: Send + 'static, O: Send + 'static> Way<I, O> {
    /// Calls the collate for the fields of a row, and adds the loader's own fields. A batcher has none.
    ///
    /// # Errors
    /// If the collate panics.
    pub(crate) fn fields(&self) -> Result<Vec<Field>, Error> {
        match self {
            Self::Rows(collate) => {
                guard(Place::batch(Stage::Collate, BatchKey::NONE), || Ok(with_companions(collate.layout())))
            }
            Self::Items(..) => Ok(Vec::new()),
        }
    }

    /// Returns a source of batches of at most `batch_size` of these samples, with these fields. The source is not for a
    /// particular device yet.
    ///
    /// # Errors
    /// If an option is for the other way, or a field is wrong.
    pub(crate) fn source(
        self,
        fields: Vec<Field>,
        samples: Arc<Samples<I>>,
        batch_size: usize,
        host_device: Option<Device>,
        target: Target,
    ) -> Result<Arc<dyn Source<O>>, Error> {
        let source: Arc<dyn Source<O>> = match self {
            Self::Rows(_) if host_device.is_some() => {
                let problem = "it is where a batcher runs, and this loader has a collate";
                return Err(Error::config("host_device", problem, "leave it out, or use `from_batcher`"));
            }
            Self::Rows(collate) => {
                let plain = Arc::new(SlotLayout::new(fields, batch_size)?);
                samples.faults.counters.note(|stats| stats.images = plain.decoder().is_some());
                Arc::new(RowsSource { samples, collate, layout: Arc::clone(&plain), plain, target })
            }
            Self::Items(batcher, visit_tensors) => {
                let device = target.device.clone();
                Arc::new(ItemsSource {
                    samples,
                    batcher,
                    visit_tensors,
                    asked: host_device,
                    host_device: device,
                    target,
                })
            }
        };
        Ok(source)
    }
}
