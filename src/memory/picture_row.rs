//! A row of images that the device decodes: what is in it, and what is to be made of it.

use bytes::Bytes;
use std::collections::BTreeMap;

/// The head of a row, before the bytes of a file or of pixels.
///
/// A pixel of the result is a pixel of the resized part: column `window.0 + x * mirror.0`, row `window.1 + y * mirror.1`.
/// A pixel of the part is one of the stored picture: column `start.0 + x * across.0 + y * down.0`, row
/// `start.1 + x * across.1 + y * down.1`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
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
}

/// What follows the head.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) enum PictureKind {
    /// The result itself, as bytes in planes.
    #[default]
    Pixels,
    /// A JPEG.
    Jpeg,
    /// Nothing: the JPEG is longer than the row, and lies elsewhere.
    LongJpeg,
}

impl PictureRow {
    /// The bytes of the head in the row.
    pub(crate) const BYTES: usize = 128;
    pub(crate) const WORDS: usize = 21;

    pub(crate) fn words(&self) -> [u32; Self::WORDS] {
        let [start, across, down, window, mirror] =
            [self.start, self.across, self.down, self.window, self.mirror].map(|pair| pair.map(|side| side as u32));
        let Self { bytes, stored, part, resized, filter, seen, .. } = *self;
        [
            self.kind as u32,
            bytes,
            stored[0],
            stored[1],
            start[0],
            start[1],
            across[0],
            across[1],
            down[0],
            down[1],
            part[0],
            part[1],
            resized[0],
            resized[1],
            filter,
            window[0],
            window[1],
            mirror[0],
            mirror[1],
            seen[0],
            seen[1],
        ]
    }

    /// Writes it to the start of a row.
    ///
    /// # Panics
    /// If the row is shorter than a head.
    pub(crate) fn write(&self, row: &mut [u8]) {
        row[..4 * Self::WORDS].copy_from_slice(bytemuck::cast_slice(&self.words()));
    }

    /// Reads it from the start of a row.
    ///
    /// # Panics
    /// If the row is shorter than a head.
    #[cfg_attr(not(any(feature = "cuda", test)), expect(dead_code, reason = "only CUDA decodes on the device"))]
    pub(crate) fn read(row: &[u8]) -> Self {
        let mut words = [0u32; Self::WORDS];
        bytemuck::cast_slice_mut(&mut words).copy_from_slice(&row[..4 * Self::WORDS]);
        let pair = |at: usize| [words[at] as i32, words[at + 1] as i32];
        let sides = |at: usize| [words[at], words[at + 1]];
        Self {
            kind: match words[0] {
                0 => PictureKind::Pixels,
                1 => PictureKind::Jpeg,
                _ => PictureKind::LongJpeg,
            },
            bytes: words[1],
            stored: sides(2),
            start: pair(4),
            across: pair(6),
            down: pair(8),
            part: sides(10),
            resized: sides(12),
            filter: words[14],
            window: pair(15),
            mirror: pair(17),
            seen: sides(19),
        }
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
            kind: PictureKind::Jpeg,
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
        };
        let mut row = [7; PictureRow::BYTES];
        head.write(&mut row);
        assert_eq!(PictureRow::read(&row), head);
    }
}
