//! Moves rows of a slot together: over rows that were skipped, and over unused padding.

use super::{layout::SlotLayout, slot::Slot};

/// Removes the skipped rows of every field: moves the rows behind them down.
pub(crate) fn remove_rows(
    layout: &SlotLayout,
    slot: &mut Slot,
    lengths: &mut Vec<usize>,
    rows: usize,
    skipped: &[usize],
) {
    let Some(first) = skipped.first() else { return };
    let (bytes, count) = (slot.as_mut_slice(), layout.fields.len());
    let kept = || (*first..rows).filter(|row| skipped.binary_search(row).is_err());
    for field in 0..count {
        let (start, len) = (layout.offset(field), layout.row_bytes(field));
        // Rows only move down, in order: none is overwritten before it has moved.
        (*first..)
            .zip(kept())
            .for_each(|(to, from)| bytes.copy_within(start + from * len..start + (from + 1) * len, start + to * len));
    }
    if !lengths.is_empty() {
        (*first..).zip(kept()).for_each(|(to, from)| lengths.copy_within(from * count..(from + 1) * count, to * count));
        lengths.truncate((rows - skipped.len()) * count);
    }
}

/// Moves the rows of padded fields together, and fills each row up to the batch's longest one. Returns the width of
/// each field, in elements of its first dimension. A width is at least 1, since an empty tensor is of no use to a model.
pub(crate) fn trim_padding(layout: &SlotLayout, slot: &mut Slot, rows: usize, lengths: &[usize]) -> Vec<usize> {
    let count = layout.fields.len();
    let bytes = slot.as_mut_slice();
    let close = |(at, field): (usize, &crate::memory::layout::Field)| {
        let Some(pad) = &field.pad else { return 1 };
        let longest = (0..rows).map(|row| lengths[row * count + at]).max().unwrap_or(0).max(1);
        let (step, from, start) = (field.step_bytes(), layout.row_bytes(at), layout.offset(at));
        for row in 0..rows {
            let (len, to) = (lengths[row * count + at] * step, start + row * longest * step);
            // Rows only move down, in order: none is overwritten before it has moved.
            bytes.copy_within(start + row * from..start + row * from + len, to);
            bytes[to + len..to + longest * step]
                .chunks_exact_mut(pad.len())
                .for_each(|value| value.copy_from_slice(pad));
        }
        longest
    };
    layout.fields.iter().enumerate().map(close).collect()
}
