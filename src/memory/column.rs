//! Columns: the values of a sample that are not tensors. They are in ordinary memory, outside the slots.

use crate::{fault::UserValues, image_rows::LongFiles};
use std::{
    any::{Any, type_name},
    fmt, mem,
};

/// The values of a column, one for each row.
pub(crate) trait Column: Any + Send + Sync {
    /// The type name of the values.
    fn of(&self) -> &'static str;
    /// Moves all values of `other`, which has the same type, to the end.
    fn append(&mut self, other: Box<dyn Column>);
    /// Removes the rows at these positions, which are in order.
    fn remove(&mut self, rows: &[usize]);
    /// Copies some rows.
    fn select(&self, rows: &mut dyn Iterator<Item = usize>) -> Box<dyn Column>;
}

/// A column of `rows` rows without values.
pub(super) fn empty_column<T: Clone + Send + Sync + 'static>(rows: usize) -> Box<dyn Column> {
    Box::new(UserValues((0..rows).map(|_| None).collect::<Vec<Option<T>>>()))
}

/// A row has no value until it is written.
impl<T: Clone + Send + Sync + 'static> Column for UserValues<Option<T>> {
    fn of(&self) -> &'static str {
        type_name::<T>()
    }

    fn append(&mut self, other: Box<dyn Column>) {
        let other: Box<dyn Any> = other;
        if let Ok(mut other) = other.downcast::<Self>() {
            Vec::append(self, &mut other);
        }
    }

    fn remove(&mut self, rows: &[usize]) {
        let removed: Vec<_> = rows.iter().map(|row| self.get_mut(*row).and_then(Option::take)).collect();
        let mut row = 0..;
        self.retain(|_| row.next().is_some_and(|row| rows.binary_search(&row).is_err()));
        drop(UserValues(removed));
    }

    fn select(&self, rows: &mut dyn Iterator<Item = usize>) -> Box<dyn Column> {
        let mut selected = Self::default(); // if a clone panics, the earlier clones are dropped one by one
        rows.for_each(|row| selected.push(self.get(row).cloned().flatten()));
        Box::new(selected)
    }
}

impl dyn Column {
    /// The values, if this is their type.
    fn values<T: 'static>(&mut self) -> Option<&mut Vec<Option<T>>> {
        let values: &mut dyn Any = self;
        values.downcast_mut::<UserValues<Option<T>>>().map(|values| &mut **values)
    }

    /// Sets the value of a row. Returns false if the column has another type.
    pub(crate) fn set<T: 'static>(&mut self, row: usize, value: T) -> bool {
        let place = self.values().and_then(|values| values.get_mut(row));
        place.map(|place| *place = Some(value)).is_some()
    }

    /// Takes all values; `None` if the column has another type.
    pub(crate) fn take<T: 'static>(&mut self) -> Option<Vec<T>> {
        self.values().map(|values| mem::take(values).into_iter().flatten().collect())
    }
}

impl fmt::Debug for dyn Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Column")
    }
}

/// The data of a task's rows that is not in the slot.
#[derive(Debug, Default)]
pub(crate) struct RowExtras {
    /// Files that are longer than their rows.
    pub(crate) long: LongFiles,
    /// The columns of the layout; empty without columns.
    pub(crate) columns: Vec<Box<dyn Column>>,
    /// A bit for each field with a value that does not fit the device's integers.
    pub(crate) beyond: u64,
}

/// Joins the columns of tasks into the columns of the whole batch, without the skipped rows. Each part comes with the first row of its
/// task.
pub(crate) fn join_columns(mut parts: Vec<(usize, Vec<Box<dyn Column>>)>, skipped: &[usize]) -> Vec<Box<dyn Column>> {
    parts.sort_unstable_by_key(|(first, _)| *first);
    let mut parts = parts.into_iter().map(|(_, columns)| columns);
    let mut all = parts.next().unwrap_or_default();
    for part in parts {
        all.iter_mut().zip(part).for_each(|(column, part)| column.append(part));
    }
    if !skipped.is_empty() {
        all.iter_mut().for_each(|column| column.remove(skipped));
    }
    all
}
