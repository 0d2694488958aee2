//! The loaders, built as the options say.

use crate::{
    args::Args,
    case::Case,
    data::{Item, Repeat},
    fail,
    finish::{Batch, Finish},
    kept::{Costs, keep},
};
use burn::{
    data::{
        dataloader::{DataLoader, DataLoaderBuilder, batcher::Batcher},
        dataset::{Dataset, DatasetError},
    },
    tensor::{Device, Tensor},
};
use burn_pinned::{BoxError, Error, KeyedRng, PinnedDataLoader, PinnedDataLoaderBuilder};
use std::{iter::repeat_with, sync::Arc, thread::sleep, time::Duration};

/// Storage that makes each read wait.
#[derive(Clone)]
struct Sleeps {
    dataset: Repeat,
    time: Duration,
}

impl Dataset<Item> for Sleeps {
    fn get(&self, index: usize) -> Result<Item, DatasetError> {
        sleep(self.time);
        self.dataset.get(index)
    }

    fn len(&self) -> usize {
        self.dataset.len()
    }
}

/// Every loader behind one face.
pub(crate) enum Source {
    Pinned(Arc<PinnedDataLoader<Batch>>),
    Kept(Arc<PinnedDataLoader<Batch>>, Costs),
    Burn(Arc<dyn DataLoader<Batch>>),
    Resident(Box<Batch>),
    /// Bytes on the device, and whether each step makes tensors besides.
    Finishing {
        raw: Box<Batch>,
        finish: Finish,
        fresh: bool,
    },
}

impl Source {
    pub(crate) fn iter(&self, device: &Device) -> Box<dyn Iterator<Item = Result<Batch, BoxError>> + '_> {
        match self {
            Self::Pinned(loader) | Self::Kept(loader, _) => Box::new(loader.iter().map(|batch| Ok(batch?))),
            Self::Burn(loader) => Box::new(loader.iter().map(|batch| Ok(batch?))),
            Self::Resident(batch) => Box::new(repeat_with(|| Ok(Batch::clone(batch)))),
            Self::Finishing { raw, finish, fresh } => {
                let (mut rng, device) = (KeyedRng::for_order(0, 0), device.clone());
                Box::new(repeat_with(move || {
                    // A batch has two tensors.
                    drop(fresh.then(|| [1.0, 2.0].map(|number| Tensor::<1>::from_data([number], &device))));
                    let (x, labels) = Batch::clone(raw);
                    finish.run(x, labels, &mut rng)
                }))
            }
        }
    }
}

impl Args {
    pub(crate) fn builder(&self, case: &Case, workers: usize) -> PinnedDataLoaderBuilder<Item, Batch> {
        let mut builder = PinnedDataLoaderBuilder::new(case.clone()).batch_size(case.batch);
        builder = match workers {
            0 => builder,
            workers => builder.num_workers(workers),
        };
        builder = builder.prefetch(self.prefetch);
        if self.shuffle {
            builder = builder.shuffle(1);
        }
        if let Some(transfers) = self.transfers {
            builder = builder.transfer_threads(transfers);
        }
        if let Some(slots) = self.slots {
            builder = builder.pinned_limit(slots * (case.batch_bytes() + 128));
        }
        builder
    }

    fn build(
        &self,
        builder: PinnedDataLoaderBuilder<Item, Batch>,
        dataset: Repeat,
    ) -> Result<Arc<PinnedDataLoader<Batch>>, Error> {
        match self.slow(&dataset) {
            None => builder.build(dataset),
            Some(slow) => builder.build(slow),
        }
    }

    fn slow(&self, dataset: &Repeat) -> Option<Sleeps> {
        self.sleep.map(|ms| Sleeps { dataset: dataset.clone(), time: Duration::from_millis(ms) })
    }

    pub(crate) fn source(&self, loader: &str, case: &Case, workers: usize, device: &Device, len: usize) -> Source {
        let dataset = Repeat { store: case.store, len };
        match loader {
            "pinned" => match self.build(self.builder(case, workers).set_device(device.clone()), dataset) {
                Ok(loader) => {
                    if self.timeline.is_some() {
                        loader.record(200_000); // 16 MB
                    }
                    Source::Pinned(loader)
                }
                Err(error) => fail(&error.to_string()),
            },
            "kept" => match self.slow(&dataset).map_or_else(
                || keep(self, case, workers, device, dataset.clone()),
                |slow| keep(self, case, workers, device, slow),
            ) {
                Ok((loader, costs)) => Source::Kept(loader, costs),
                Err(error) => fail(&error.to_string()),
            },
            "burn" => {
                let builder = DataLoaderBuilder::new(case.clone()).batch_size(case.batch).num_workers(workers);
                let builder = if self.shuffle { builder.shuffle(1) } else { builder };
                Source::Burn(builder.set_device(device.clone()).build(dataset))
            }
            "resident" | "finishing" | "fresh" => {
                let items = (0..case.batch).map(|index| Item { store: case.store, index }).collect();
                let (x, labels) = case.batch(items, device);
                if loader != "resident" {
                    let (raw, finish) = (Box::new((x, labels)), case.finish);
                    return Source::Finishing { raw, finish, fresh: loader == "fresh" };
                }
                let finished = case.finish.run(x, labels, &mut KeyedRng::for_order(0, 0));
                Source::Resident(Box::new(finished.unwrap_or_else(|error| fail(&error.to_string()))))
            }
            other => fail(&format!("--loader {other}: use pinned, kept, burn, resident, finishing or fresh")),
        }
    }
}
