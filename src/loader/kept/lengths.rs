//! The lengths of the rows of padded fields. Batches are as long as their longest row.

use crate::{
    device::Table,
    memory::{Field, RowSize},
    observe::warn,
};
use burn::tensor::Shape;

/// If a field's table has a larger share of padding than this, the loader logs it.
const WASTED: f64 = 0.5;

/// The shapes of the tensors of some rows. `sizes` are the sizes of all rows, by row and then by field. As in the
/// batches of `build`, padded rows have at least one step.
pub(super) fn batch_shapes(
    fields: &[Field],
    sizes: &[RowSize],
    rows: impl ExactSizeIterator<Item = usize>,
) -> Vec<Shape> {
    let (count, mut longest) = (rows.len(), vec![RowSize::new(1, 1); fields.len()]);
    for row in rows {
        let of_row = sizes.iter().skip(row * fields.len());
        longest.iter_mut().zip(of_row).for_each(|(longest, size)| *longest = longest.cover(*size));
    }
    fields.iter().zip(longest).map(|(field, longest)| field.batch_shape(count, longest)).collect()
}

/// Cuts the table of a padded field to its longest row. `sizes` are the sizes of its rows.
pub(super) fn cut<'a>(table: Table, field: &Field, sizes: impl Iterator<Item = &'a RowSize> + Clone) -> Table {
    if field.pad.is_none() {
        return table;
    }
    let steps = sizes.map(|size| size.steps());
    let (rows, values) = (steps.clone().count(), steps.clone().sum::<usize>());
    let longest = steps.max().unwrap_or(0).max(1);
    let padding = 1.0 - values as f64 / (longest as f64 * rows.max(1) as f64);
    if padding > WASTED {
        warn(&format!(
            "{:.0} % of what is kept of the field `{}` is padding: its longest row has {longest} steps. \
             Lower the most that the field takes, or use `build` with a `LengthBucketSampler`",
            100.0 * padding,
            field.name
        ));
    }
    let width = longest * field.shape.iter().skip(1).product::<usize>();
    if width < table.width() { table.cut(width) } else { table }
}
