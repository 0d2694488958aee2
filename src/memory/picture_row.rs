//! A row of images that the device decodes: what is in it, and what is to be made of it.

use bytemuck::{Pod, Zeroable};
use bytes::Bytes;
use std::collections::BTreeMap;

/// The head of a row, before the bytes of a file or of pixels.
///
/// A pixel of the result is a pixel of the resized part: column `window.0 + x * mirror.0`, row `window.1 + y * mirror.1`.
/// A pixel of the part is one of the stored picture: column `start.0 + x * across.0 + y * down.0`, row
/// `start.1 + x * across.1 + y * down.1`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct PictureRow {
    pub(crate) kind: PictureKind,
    /// The bytes that follow. Of a JPEG that is longer than the row, the place of the row in its batch.
    pub(crate) bytes: u32,
    /// Columns and rows of the stored picture.
    pub(crate) stored: [u32; 2],
    pub(crate) start: [i32; 2],
    pub(crate) across: [i32; 2],
    pub(crate) down: [i32; 2],
    /// Columns and rows of the part.
    pub(crate) part: [u32; 2],
    /// Columns and rows of the part after it was resized.
    pub(crate) resized: [u32; 2],
    pub(crate) filter: u32,
    pub(crate) window: [i32; 2],
    pub(crate) mirror: [i32; 2],
    /// Columns and rows of the result.
    pub(crate) seen: [u32; 2],
    /// Changes of its colours: each a kind (1 to 4: brightness, contrast, saturation, hue; 0 is none) and the bits of its
    /// strength.
    pub(crate) changes: [[u32; 2]; 6],
    /// A part of it that gets one colour in the end: left, top, width, height. Without columns there is none.
    pub(crate) erased: [u32; 4],
    /// Its red, green and blue, from the lowest byte up.
    pub(crate) colour: u32,
}

/// What follows the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct PictureKind(u32);

impl PictureKind {
    /// The result itself, as bytes in planes.
    pub(crate) const PIXELS: Self = Self(0);
    /// A JPEG.
    pub(crate) const JPEG: Self = Self(1);
    /// Nothing: the JPEG is longer than the row, and lies elsewhere.
    pub(crate) const LONG_JPEG: Self = Self(2);
}

impl PictureRow {
    /// The bytes of the head in the row.
    pub(crate) const BYTES: usize = 192;
    /// The kind of a change that depends on the mean of all pixels.
    pub(crate) const CONTRAST: u32 = 2;

    /// All of it is words of 32 bits.
    #[cfg(feature = "cuda")]
    pub(crate) const WORDS: usize = size_of::<Self>() / 4;

    /// Whether a change depends on the mean of all pixels.
    #[cfg(feature = "cuda")]
    pub(crate) fn has_contrast(&self) -> bool {
        self.changes.iter().any(|[kind, _]| *kind == Self::CONTRAST)
    }

    /// Writes it to the start of a row.
    ///
    /// # Panics
    /// If the row is shorter than a head.
    pub(crate) fn write(&self, row: &mut [u8]) {
        row[..size_of::<Self>()].copy_from_slice(bytemuck::bytes_of(self));
    }

    /// Reads it from the start of a row.
    ///
    /// # Panics
    /// If the row is shorter than a head.
    #[cfg_attr(not(any(feature = "cuda", test)), expect(dead_code, reason = "only CUDA decodes on the device"))]
    pub(crate) fn read(row: &[u8]) -> Self {
        bytemuck::pod_read_unaligned(&row[..size_of::<Self>()])
    }
}

/// The files that are longer than their rows, by the places that the rows had in the batch as it was planned.
pub(crate) type LongFiles = BTreeMap<usize, Bytes>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let head = PictureRow {
            kind: PictureKind::JPEG,
            bytes: 52_000,
            stored: [500, 375],
            start: [499, 3],
            across: [-1, 0],
            down: [0, 1],
            part: [200, 100],
            resized: [224, 225],
            filter: 2,
            window: [223, 1],
            mirror: [-1, 1],
            seen: [224, 223],
            changes: [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10], [11, 12]],
            erased: [13, 14, 15, 16],
            colour: 17,
        };
        let mut row = [7; PictureRow::BYTES];
        head.write(&mut row);
        assert_eq!(PictureRow::read(&row), head);
    }
}
