//! The tables of the fields on a device, and on which devices they are.

use super::room::TableRoom;
use crate::{
    device::{Table, Target},
    fault::{Error, guard},
    observe::OnDevice,
    sync::locks::Mutex,
    vocabulary::{BatchKey, Place, Stage},
};
use burn::tensor::Device;
use std::{
    mem,
    sync::{Arc, Weak},
};

/// One table for each field, in the layout's order, on one device.
#[derive(Debug)]
pub(super) struct Tables {
    /// Without autodiff.
    pub(super) device: Device,
    pub(super) fields: Vec<Table>,
    rows: usize,
}

impl Tables {
    pub(super) fn new(device: Device, fields: Vec<Table>, rows: usize) -> Self {
        Self { device, fields, rows }
    }

    pub(super) fn bytes(&self) -> usize {
        self.fields.iter().map(Table::bytes).sum()
    }

    pub(super) fn row_bytes(&self) -> usize {
        self.bytes() / self.rows
    }

    /// A copy of the tables on another device.
    fn to_device(&self, device: &Device, batch: BatchKey) -> Result<Self, Error> {
        let target = Target::of(device.clone().without_autodiff());
        let largest = self.fields.iter().map(Table::bytes).max().unwrap_or(0);
        TableRoom { rows: self.rows, bytes: self.bytes(), largest }.check(&target)?;
        let place = Place::batch(Stage::Transfer, batch);
        guard(place, || {
            let fields = self.fields.iter().map(|table| table.to_device(&target.device)).collect();
            target.device.sync()?;
            Ok(Self::new(target.device.clone(), fields, self.rows))
        })
    }
}

/// Memory that was allocated to stay goes back to the device only when it is asked to.
impl Drop for Tables {
    fn drop(&mut self) {
        let (target, fields) = (Target::of(self.device.clone()), mem::take(&mut self.fields));
        let free = || {
            drop(fields);
            if !target.host {
                target.device.sync()?; // queued operations may use the tables
                target.device.memory_cleanup();
            }
            Ok(())
        };
        if let Err(error) = guard(Place::batch(Stage::Transfer, BatchKey::NONE), free) {
            log::warn!("burn-pinned: an error while what was kept is freed: {error}");
        }
    }
}

/// Kept tables count as memory of batches, unless the device is the host.
impl OnDevice for Tables {
    fn bytes(&self, _: bool) -> usize {
        if Target::of(self.device.clone()).host { 0 } else { self.bytes() }
    }
}

/// The devices that have the tables. All copies of a loader on a device share them; they are freed with the last copy.
#[derive(Debug, Default)]
pub(super) struct TablePlaces(Mutex<Vec<Weak<Tables>>>);

impl TablePlaces {
    pub(super) fn new(tables: &Arc<Tables>) -> Self {
        Self(Mutex::new(vec![Arc::downgrade(tables)]))
    }

    /// The tables on a device. They are copied there from `other` if they are not there yet.
    pub(super) fn on(&self, device: &Device, other: &Arc<Tables>, batch: BatchKey) -> Result<Arc<Tables>, Error> {
        // The lock is held while they are copied, so that two copies of a loader do not do so at once.
        let mut places = self.0.lock();
        places.retain(|tables| tables.strong_count() > 0);
        // The autodiff setting does not matter when devices are compared.
        if let Some(there) = places.iter().filter_map(Weak::upgrade).find(|tables| tables.device == *device) {
            return Ok(there);
        }
        let there = Arc::new(other.to_device(device, batch)?);
        places.push(Arc::downgrade(&there));
        Ok(there)
    }
}
