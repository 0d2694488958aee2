//! What the steps cost without a loader: each device takes its first batch of an epoch again and again.

use burn::{
    data::{
        dataloader::{DataLoader, DataLoaderIterator, Progress},
        dataset::DatasetError,
    },
    prelude::*,
};
use std::{iter::repeat_n, sync::Arc};

pub(crate) struct Resident<B> {
    pub(crate) loader: Arc<dyn DataLoader<B>>,
    /// Batches of an epoch.
    pub(crate) batches: usize,
}

struct Again<I> {
    batches: I,
    progress: Progress,
}

impl<I: Iterator> Iterator for Again<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        self.batches.next()
    }
}

impl<B, I: Iterator<Item = Result<B, DatasetError>>> DataLoaderIterator<B> for Again<I> {
    fn progress(&self) -> Progress {
        self.progress.clone()
    }
}

impl<B: Clone + 'static> DataLoader<B> for Resident<B> {
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<B> + 'a> {
        let mut first = self.loader.iter();
        let (batch, progress) = (first.next(), first.progress());
        match batch {
            Some(Ok(batch)) => Box::new(Again { batches: repeat_n(batch, self.batches).map(Ok), progress }),
            failed => Box::new(Again { batches: failed.into_iter(), progress }),
        }
    }

    fn num_items(&self) -> usize {
        self.loader.num_items()
    }

    fn to_device(&self, device: &Device) -> Arc<dyn DataLoader<B>> {
        Arc::new(Self { loader: self.loader.to_device(device), batches: self.batches })
    }

    fn slice(&self, start: usize, end: usize) -> Arc<dyn DataLoader<B>> {
        Arc::new(Self { loader: self.loader.slice(start, end), batches: self.batches })
    }
}
