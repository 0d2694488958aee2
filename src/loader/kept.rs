//! A data set that is kept on the device. It is read once, through an ordinary loader. Then batches are gathered on the
//! device.

mod fates;
mod gather;
mod lengths;
mod progress;
pub(super) mod read;
mod room;
mod tables;

pub(super) use self::gather::Gather;
pub(crate) use self::room::TableRoom;
use self::{
    fates::Fates,
    lengths::Lengths,
    tables::{TablePlaces, Tables},
};
use crate::{
    batch::RawBatch,
    fault::{BoxError, Error, Faults},
    memory::{Column, Field, IntegerFit},
    observe::OnDevice,
    order::Feed,
    sync::locks::Mutex,
    vocabulary::BatchKey,
};
use burn::tensor::Device;
use std::{mem, ops::Range, sync::Arc};

/// The bytes of the rows that are read at once, or gathered at once, unless one batch has more. Burn needs several
/// operations each time. Its CPU backend gathers this number of bytes on several threads.
pub(super) const AT_ONCE: usize = 8 << 20;

/// A data set that was read.
pub(super) struct Reading {
    tables: Tables,
    fates: Fates,
    lengths: Lengths,
    /// Which fields are known to fit the integers of the device, in all rows.
    compared: IntegerFit,
    /// The columns of all rows, on the host.
    columns: Vec<Box<dyn Column>>,
}

/// The kept data set of one copy of a loader.
pub(crate) struct KeptData<O> {
    of_all: Arc<OfAll<O>>,
    /// The tables on the device of this copy, from its first epoch on. Before, those of the loader that it was made from.
    tables: Mutex<Arc<Tables>>,
}

/// Makes the user's batch of plain tensors, as `Collate::finish` does.
type Finish<O> = Arc<dyn Fn(RawBatch) -> Result<O, BoxError> + Send + Sync>;

/// What all copies share.
struct OfAll<O> {
    fields: Vec<Field>,
    columns: (Vec<Field>, Vec<Box<dyn Column>>),
    finish: Finish<O>,
    fates: Fates,
    lengths: Lengths,
    compared: IntegerFit,
    /// The length of the data set.
    len: usize,
    seed: u64,
    faults: Faults,
    places: TablePlaces,
}

/// Not derived: `O` need not be `Clone`.
impl<O> Clone for KeptData<O> {
    fn clone(&self) -> Self {
        Self { of_all: Arc::clone(&self.of_all), tables: Mutex::new(Arc::clone(&self.tables.lock())) }
    }
}

impl<O: 'static> KeptData<O> {
    /// A kept data set of `len` samples, from what was read, with the seed of its loader.
    pub(super) fn new(
        (fields, columns): (Vec<Field>, Vec<Field>),
        finish: Finish<O>,
        reading: Reading,
        (len, seed): (usize, u64),
        faults: Faults,
    ) -> Self {
        let Reading { tables, fates, lengths, compared, columns: values } = reading;
        let tables = Arc::new(tables);
        let watched: Arc<dyn OnDevice> = Arc::clone(&tables) as _;
        faults.counters.watch_device(Arc::downgrade(&watched));
        let places = TablePlaces::new(&tables);
        let columns = (columns, values);
        let of_all = OfAll { fields, columns, finish, fates, lengths, compared, len, seed, faults, places };
        Self { of_all: Arc::new(of_all), tables: Mutex::new(tables) }
    }

    /// Begins an epoch of the batches with these numbers, on the device of this copy.
    ///
    /// # Errors
    /// If the device is not the one that the rows were read to, and has no room for them or fails.
    pub(super) fn begin(
        &self,
        device: &Device,
        feed: Feed,
        batches: Range<usize>,
        first: BatchKey,
    ) -> Result<Gather<O>, Error> {
        let mut tables = Arc::clone(&self.tables.lock());
        // The autodiff setting does not matter when devices are compared.
        if tables.device != *device {
            let copied = self.of_all.places.on(device, &tables, first)?;
            // The tables that were here may free memory of their device as they drop: not under the lock.
            tables = Arc::clone(&copied);
            let before = mem::replace(&mut *self.tables.lock(), copied);
            drop(before);
        }
        Ok(Gather::new(Arc::clone(&self.of_all), tables, device.clone(), feed, batches, first))
    }
}
