//! Columns: what a sample has besides numbers. The values are in ordinary memory, beside the slots.

use crate::{fault::catch, picture_row::LongFiles};
use std::{
    any::{Any, type_name},
    mem,
};

/// The values of a column, one for each row.
#[derive(derive_more::Debug)]
#[debug("Column")]
pub(crate) struct Column(Option<Box<dyn Values>>);

/// What can be done with values of an unknown type.
trait Values: Any + Send + Sync {
    /// The name of their type.
    fn of(&self) -> &'static str;
    /// Moves all values of `other`, which are of the same type, to the end.
    fn append(&mut self, other: &mut dyn Any);
    /// Removes the rows at these positions, which are in order, and returns them.
    fn remove(&mut self, rows: &[usize]) -> Box<dyn Values>;
    /// Copies some rows.
    fn select(&self, rows: &mut dyn Iterator<Item = usize>) -> Box<dyn Values>;
}

/// A row has no value until it is written.
impl<T: Clone + Send + Sync + 'static> Values for Vec<Option<T>> {
    fn of(&self) -> &'static str {
        type_name::<T>()
    }

    fn append(&mut self, other: &mut dyn Any) {
        if let Some(other) = other.downcast_mut::<Self>() {
            Vec::append(self, other);
        }
    }

    fn remove(&mut self, rows: &[usize]) -> Box<dyn Values> {
        let removed: Self = rows.iter().map(|row| self.get_mut(*row).and_then(Option::take)).collect();
        let mut row = 0..;
        self.retain(|_| row.next().is_some_and(|row| rows.binary_search(&row).is_err()));
        Box::new(removed)
    }

    fn select(&self, rows: &mut dyn Iterator<Item = usize>) -> Box<dyn Values> {
        Box::new(rows.map(|row| self.get(row).cloned().flatten()).collect::<Self>())
    }
}

impl Column {
    /// A column of `rows` rows without values.
    pub(crate) fn new<T: Clone + Send + Sync + 'static>(rows: usize) -> Self {
        Self(Some(Box::new((0..rows).map(|_| None).collect::<Vec<Option<T>>>())))
    }

    /// The values, if this is their type.
    fn values<T: 'static>(&mut self) -> Option<&mut Vec<Option<T>>> {
        let values: &mut dyn Any = self.0.as_deref_mut()?;
        values.downcast_mut()
    }

    /// The name of its values' type.
    pub(crate) fn of(&self) -> &'static str {
        self.0.as_ref().map_or("", |values| values.of())
    }

    /// Sets the value of a row. Returns false if the column has another type.
    pub(crate) fn put<T: 'static>(&mut self, row: usize, value: T) -> bool {
        let place = self.values().and_then(|values| values.get_mut(row));
        place.map(|place| *place = Some(value)).is_some()
    }

    /// Takes all values; `None` if the column has another type.
    pub(crate) fn take<T: 'static>(&mut self) -> Option<Vec<T>> {
        self.values().map(|values| mem::take(values).into_iter().flatten().collect())
    }

    pub(crate) fn append(&mut self, mut other: Self) {
        if let (Some(values), Some(other)) = (&mut self.0, &mut other.0) {
            values.append(other.as_mut());
        }
    }

    pub(crate) fn remove(&mut self, rows: &[usize]) {
        if let Some(values) = self.0.as_mut().filter(|_| !rows.is_empty()) {
            drop(Self(Some(values.remove(rows)))); // with care, as any column
        }
    }

    pub(crate) fn select(&self, mut rows: impl Iterator<Item = usize>) -> Self {
        Self(self.0.as_ref().map(|values| values.select(&mut rows)))
    }
}

/// The values' own `drop` is user code: a panic in it must not end a thread of the loader.
impl Drop for Column {
    fn drop(&mut self) {
        let values = self.0.take();
        if let Err(caught) = catch(|| drop(values)) {
            log::error!("burn-pinned: a panic in a `drop` of a column's value: {}", caught.message);
        }
    }
}

/// What the rows of a task have beside the slot.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// Files that are longer than their rows.
    pub(crate) long: LongFiles,
    /// The columns of the layout; empty without columns.
    pub(crate) columns: Vec<Column>,
    /// A bit for each field with a value that does not fit the device's integers.
    pub(crate) beyond: u64,
}

/// Joins the columns of tasks, each with the first row of its task, to those of the whole batch, without the skipped rows.
pub(crate) fn join_columns(mut parts: Vec<(usize, Vec<Column>)>, skipped: &[usize]) -> Vec<Column> {
    parts.sort_unstable_by_key(|(first, _)| *first);
    let mut parts = parts.into_iter().map(|(_, columns)| columns);
    let mut all = parts.next().unwrap_or_default();
    for part in parts {
        all.iter_mut().zip(part).for_each(|(column, part)| column.append(part));
    }
    all.iter_mut().for_each(|column| column.remove(skipped));
    all
}
