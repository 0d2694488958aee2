//! A dataset that is kept on the device. It is read once, through an ordinary loader. Then batches are gathered on the
//! device.

mod fates;
mod gather;
mod lengths;
pub(super) mod read;
mod room;
mod tables;

pub(super) use self::gather::Gather;
pub(crate) use self::room::TableRoom;
use self::{fates::Fates, tables::Tables};
use crate::{
    batch::RawBatch,
    fault::{BoxError, Error, Faults},
    memory::{Column, Field, IntegerFit, RowSize},
    sync::locks::Mutex,
    vocabulary::BatchKey,
};
use burn::tensor::Device;
use std::{
    mem,
    sync::{Arc, Weak},
};

/// The number of bytes of rows that are read or gathered at once, unless one batch has more. Burn needs several
/// operations each time. Its CPU backend gathers this many bytes on several threads.
pub(super) const AT_ONCE: usize = 8 << 20;

/// The kept dataset of one copy of a loader.
pub(crate) struct KeptData<O> {
    rows: Arc<KeptRows<O>>,
    /// The tables on this copy's device, from its first epoch on. Before that, the tables of the loader that it was copied from.
    tables: Mutex<Arc<Tables>>,
}

/// The rows of a dataset that was read. All copies of the loader share it.
struct KeptRows<O> {
    fields: Vec<Field>,
    /// The columns of all rows, on the host.
    columns: (Vec<Field>, Vec<Box<dyn Column>>),
    /// Makes the user's batch from plain tensors, like `Collate::finish`.
    finish: Box<dyn Fn(RawBatch) -> Result<O, BoxError> + Send + Sync>,
    fates: Fates,
    /// The sizes of padded fields, by row and then by field; empty without such fields.
    sizes: Vec<RowSize>,
    /// Which fields are known to fit the integers of the device, in all rows.
    compared: IntegerFit,
    /// The length of the dataset.
    len: usize,
    seed: u64,
    faults: Faults,
    /// The tables of each device that has them. Copies of the loader on that device own them.
    devices: Mutex<Vec<Weak<Tables>>>,
}

/// Not derived: `O` need not be `Clone`.
impl<O> Clone for KeptData<O> {
    fn clone(&self) -> Self {
        Self { rows: Arc::clone(&self.rows), tables: Mutex::new(Arc::clone(&self.tables.lock())) }
    }
}

impl<O> KeptData<O> {
    /// The tables on the device of this copy. They are copied there if they are not there yet.
    fn tables_on(&self, device: &Device, batch: BatchKey) -> Result<Arc<Tables>, Error> {
        let tables = Arc::clone(&self.tables.lock());
        // The autodiff setting does not matter when devices are compared.
        if tables.device == *device {
            return Ok(tables);
        }
        // The lock is held while they are copied, so that two copies of a loader do not do so at once.
        let mut devices = self.rows.devices.lock();
        devices.retain(|tables| tables.strong_count() > 0);
        let there = devices.iter().filter_map(Weak::upgrade).find(|tables| tables.device == *device);
        let there = match there {
            Some(there) => there,
            None => {
                let copied = Arc::new(tables.to_device(device, batch)?);
                devices.push(Arc::downgrade(&copied));
                copied
            }
        };
        drop(devices);
        // Dropping the old tables may free memory of their device: not under a lock.
        let before = mem::replace(&mut *self.tables.lock(), Arc::clone(&there));
        drop((before, tables));
        Ok(there)
    }
}
