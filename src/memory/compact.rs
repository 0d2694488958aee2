//! Closes the gaps in a slot: rows that were skipped, and unused padding.

use super::{layout::SlotLayout, slot::Slot};
use std::ops::Range;

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
    let moved = *first..rows;
    for field in 0..count {
        let (start, len) = (layout.offset(field), layout.row_bytes(field));
        close_up(&mut bytes[start..], len, moved.clone(), skipped);
    }
    if !lengths.is_empty() {
        close_up(lengths, count, moved, skipped);
        lengths.truncate((rows - skipped.len()) * count);
    }
}

/// Moves `rows` of this length down over those that are skipped. The first of them is skipped.
pub(crate) fn close_up<T: Copy>(values: &mut [T], len: usize, rows: Range<usize>, skipped: &[usize]) {
    let first = rows.start;
    // Rows only move down, in order: none is overwritten before it has moved.
    for (to, from) in (first..).zip(rows.filter(|row| skipped.binary_search(row).is_err())) {
        values.copy_within(from * len..(from + 1) * len, to * len);
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
