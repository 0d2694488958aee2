//! The lengths of the rows of padded fields. Batches are as long as their longest row.

use crate::{
    device::Table,
    memory::{Field, RowSize},
};

/// The share of padding in a field's table beyond which the log tells of the field.
const WASTED: f64 = 0.5;

/// The lengths of all rows of each padded field; empty for the other fields.
#[derive(Debug)]
pub(super) struct Lengths(Vec<Option<Vec<u32>>>);

impl Lengths {
    pub(super) fn new(fields: &[Field], rows: usize) -> Self {
        Self(fields.iter().map(|field| field.pad.as_ref().map(|_| Vec::with_capacity(rows))).collect())
    }

    /// Adds rows: their sizes by row and then by field.
    pub(super) fn add(&mut self, rows: &[RowSize]) {
        let fields = self.0.len();
        for (at, all) in self.0.iter_mut().enumerate() {
            let new = rows.iter().skip(at).step_by(fields);
            // Rows that are longer than this are beyond any memory.
            all.iter_mut().for_each(|all| all.extend(new.clone().map(|size| size.steps() as u32)));
        }
    }

    /// The longest of some rows of a field; at least 1, as in the batches of `build`.
    pub(super) fn longest(&self, field: usize, rows: impl Iterator<Item = usize>) -> RowSize {
        let all = self.0[field].as_deref().unwrap_or_default();
        RowSize::new(1, rows.filter_map(|row| all.get(row)).max().map_or(1, |longest| (*longest).max(1) as usize))
    }

    /// Cuts the table of a padded field to its longest row.
    pub(super) fn cut(&self, at: usize, field: &Field, table: Table) -> Table {
        let Some(all) = &self.0[at] else { return table };
        let longest = self.longest(at, 0..all.len()).steps();
        let values: u64 = all.iter().map(|length| u64::from(*length)).sum();
        let padding = 1.0 - values as f64 / (longest as f64 * all.len().max(1) as f64);
        if padding > WASTED {
            log::warn!(
                "burn-pinned: {:.0} % of what is kept of the field `{}` is padding: its longest row has {longest} steps. \
                 Lower the most that the field takes, or use `build` with a `LengthBucketSampler`",
                100.0 * padding,
                field.name
            );
        }
        let width = longest * field.shape.iter().skip(1).product::<usize>();
        if width < table.width() { table.cut(width) } else { table }
    }
}
