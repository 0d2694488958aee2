//! Closes the gaps in a slot: rows that were skipped, and unused padding.

use super::{
    field::{Field, Role},
    layout::SlotLayout,
    row_size::{Planes, RowSize},
    slot::Slot,
};
use std::{iter, ops::Range};

/// Removes the skipped rows of every field: moves the later rows down.
pub(crate) fn remove_rows(
    layout: &SlotLayout,
    slot: &mut Slot,
    sizes: &mut Vec<RowSize>,
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
    if !sizes.is_empty() {
        close_up(sizes, count, moved, skipped);
        sizes.truncate((rows - skipped.len()) * count);
    }
}

/// Moves rows of `len` values down over the skipped ones. The first of `rows` is skipped.
pub(crate) fn close_up<T: Copy>(values: &mut [T], len: usize, rows: Range<usize>, skipped: &[usize]) {
    let first = rows.start;
    // Rows only move down, in order: none is overwritten before it has moved.
    for (to, from) in (first..).zip(rows.filter(|row| skipped.binary_search(row).is_err())) {
        values.copy_within(from * len..(from + 1) * len, to * len);
    }
}

/// Moves the rows of padded fields together, and pads each row to the size of the batch's largest one. Returns this size for each field. It
/// is at least 1, because models cannot use a tensor of width 0. Rows of jagged fields end up end to end: their size is the total size,
/// which may be 0. Masks, offsets and the rows of steps are filled here.
pub(crate) fn trim_padding(layout: &SlotLayout, slot: &mut Slot, rows: usize, sizes: &[RowSize]) -> Vec<RowSize> {
    let count = layout.fields.len();
    let bytes = slot.as_mut_slice();
    let close = |(at, field): (usize, &Field)| {
        let of_field = || sizes.iter().skip(at).step_by(count).take(rows);
        let start = layout.offset(at);
        match field.role {
            Role::Jagged => return join(&mut bytes[start..], field.planes(), of_field()),
            Role::Rows => return number_steps(&mut bytes[start..], of_field()),
            Role::Offsets => write_offsets(&mut bytes[start..], of_field()),
            Role::Plain | Role::Masked | Role::Mask => {}
        }
        let Some(pad) = &field.pad else { return RowSize::new(1, 1) };
        let largest = of_field().fold(RowSize::new(1, 1), |largest, size| largest.cover(*size));
        let Planes { planes, lines, steps, step_bytes } = field.planes();
        let (from_line, to_line) = (steps * step_bytes, largest.steps() * step_bytes);
        let fill = |bytes: &mut [u8]| bytes.chunks_exact_mut(pad.len()).for_each(|value| value.copy_from_slice(pad));
        for (plane, size) in of_field().flat_map(|size| iter::repeat_n(size, planes)).enumerate() {
            // Lines only move down, in order: none is overwritten before it has moved.
            let (from, to) = (start + plane * lines * from_line, start + plane * largest.lines() * to_line);
            let len = size.steps() * step_bytes;
            for line in 0..size.lines() {
                let (from, to) = (from + line * from_line, to + line * to_line);
                match field.role {
                    Role::Mask => bytes[to..to + len].fill(1),
                    _ => bytes.copy_within(from..from + len, to),
                }
                fill(&mut bytes[to + len..to + to_line]);
            }
            fill(&mut bytes[to + size.lines() * to_line..to + largest.lines() * to_line]);
        }
        largest
    };
    layout.fields.iter().enumerate().map(close).collect()
}

/// Moves rows of one line together, end to end. Returns their total size.
fn join<'a>(bytes: &mut [u8], whole: Planes, sizes: impl Iterator<Item = &'a RowSize>) -> RowSize {
    let (mut end, step) = (0, whole.step_bytes);
    for (row, size) in sizes.enumerate() {
        // Rows only move down, in order: none is overwritten before it has moved.
        let from = row * whole.steps * step;
        bytes.copy_within(from..from + size.steps() * step, end);
        end += size.steps() * step;
    }
    RowSize::new(1, end / step)
}

/// Writes the start of each row among rows that lie end to end, and the end of the last one.
fn write_offsets<'a>(bytes: &mut [u8], sizes: impl Iterator<Item = &'a RowSize>) {
    let ends = sizes.scan(0, |end, size| {
        *end += size.steps() as i32; // the layout is refused if this may be too large
        Some(*end)
    });
    for (place, end) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(iter::once(0).chain(ends)) {
        *place = end.to_ne_bytes();
    }
}

/// Writes the row of each step of rows that lie end to end. Returns the total size of the rows.
fn number_steps<'a>(bytes: &mut [u8], sizes: impl Iterator<Item = &'a RowSize>) -> RowSize {
    let (places, mut end) = (bytes.as_chunks_mut::<4>().0, 0);
    for (row, size) in (0i32..).zip(sizes) {
        places[end..][..size.steps()].fill(row.to_ne_bytes());
        end += size.steps();
    }
    RowSize::new(1, end)
}

/// Spreads the adjacent lines of a row to the positions that lines of the largest size would have.
pub(crate) fn spread(bytes: &mut [u8], Planes { planes, lines, steps, step_bytes }: Planes, size: RowSize) {
    let (from_line, to_line) = (size.steps() * step_bytes, steps * step_bytes);
    for plane in (0..planes).rev() {
        for line in (0..size.lines()).rev() {
            // Lines only move up, from the last to the first: none is overwritten before it has moved.
            let from = (plane * size.lines() + line) * from_line;
            bytes.copy_within(from..from + from_line, (plane * lines + line) * to_line);
        }
    }
}
