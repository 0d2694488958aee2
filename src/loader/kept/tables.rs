//! The tables of the fields on a device.

use super::{lengths, room::TableRoom};
use crate::{
    batch::RawBatch,
    device::{Table, Target},
    fault::{Error, guard},
    memory::{Field, RowSize},
    observe::BatchMemory,
    vocabulary::{BatchKey, Place, Stage},
};
use burn::tensor::Device;
use std::mem;

/// One table for each field, in the layout's order, on one device.
#[derive(Debug)]
pub(super) struct Tables {
    /// Without autodiff.
    pub(super) device: Device,
    pub(super) fields: Vec<Table>,
    pub(super) rows: usize,
}

impl Tables {
    /// Makes tables for `rows` rows of these fields.
    pub(super) fn new(device: Device, fields: &[Field], rows: usize) -> Result<Self, Error> {
        // Tables that are dropped go back to the device, also after an error.
        let mut tables = Self { device, fields: Vec::new(), rows };
        tables.fields = guard(Place::batch(Stage::Transfer, BatchKey::NONE), || {
            let table = |field: &Field| {
                let width = field.shape.iter().product();
                Table::new(rows, width, field.dtype, field.pad.as_deref(), &tables.device)
            };
            Ok(fields.iter().map(table).collect())
        })?;
        Ok(tables)
    }

    /// Writes the rows of a batch, from this row on. Appends their sizes to those of the earlier rows.
    pub(super) fn write(
        &mut self,
        row: usize,
        batch: RawBatch,
        fields: &[Field],
        sizes: &mut Vec<RowSize>,
    ) -> Result<(), Error> {
        let (count, place) = (batch.len(), Place::batch(Stage::Transfer, batch.key()));
        let tables = mem::take(&mut self.fields);
        self.fields = guard(place, || {
            let (tensors, of_rows) = batch.into_tensors();
            if row == 0 && !of_rows.is_empty() {
                sizes.reserve_exact(self.rows * fields.len());
            }
            sizes.extend(of_rows);
            let shapes = lengths::batch_shapes(fields, sizes, row..row + count);
            let each = tables.into_iter().zip(tensors).zip(shapes);
            each.map(|((table, tensor), shape)| Ok(table.write(row, tensor, &shape)?)).collect()
        })?;
        Ok(())
    }

    /// Cuts the tables of padded fields to their longest rows. `sizes` are the sizes of all rows, by row and then by
    /// field.
    pub(super) fn cut(&mut self, fields: &[Field], sizes: &[RowSize]) -> Result<(), Error> {
        let whole = mem::take(&mut self.fields);
        self.fields = guard(Place::batch(Stage::Transfer, BatchKey::NONE), || {
            let of_field = |at| sizes.iter().skip(at).step_by(fields.len());
            let each = whole.into_iter().zip(fields).enumerate();
            let tables = each.map(|(at, (table, field))| lengths::cut(table, field, of_field(at))).collect();
            self.device.sync()?;
            Ok(tables)
        })?;
        Ok(())
    }

    pub(super) fn bytes(&self) -> usize {
        self.fields.iter().map(Table::bytes).sum()
    }

    /// Copies the tables to another device.
    pub(super) fn to_device(&self, device: &Device, batch: BatchKey) -> Result<Self, Error> {
        let target = Target::of(device.clone().without_autodiff());
        let largest = self.fields.iter().map(Table::bytes).max().unwrap_or(0);
        TableRoom { rows: self.rows, bytes: self.bytes(), largest }.check(&target)?;
        let place = Place::batch(Stage::Transfer, batch);
        guard(place, || {
            let fields = self.fields.iter().map(|table| table.to_device(&target.device)).collect();
            target.device.sync()?;
            Ok(Self { device: target.device.clone(), fields, rows: self.rows })
        })
    }
}

/// Persistent memory goes back to the device only on request.
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
impl BatchMemory for Tables {
    fn bytes(&self, _: bool) -> usize {
        if Target::of(self.device.clone()).host { 0 } else { self.bytes() }
    }
}
