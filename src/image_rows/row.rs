//! The header of a row whose image the device decodes: what the row holds, and how to make the image from it.

use bytemuck::{Pod, Zeroable};
use bytes::Bytes;
use std::collections::BTreeMap;

/// The header of a row, before the bytes of a file or of pixels.
///
/// A pixel of the result is a pixel of the resized part: column `window.0 + x * mirror.0`, row `window.1 + y * mirror.1`. A pixel of the
/// part is a pixel of the stored picture, the decoded file: column `start.0 + x * across.0 + y * down.0`, row `start.1 + x * across.1 + y *
/// down.1`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct ImageRow {
    /// What follows: [`PIXELS`](Self::PIXELS), [`JPEG`](Self::JPEG) or [`LONG_JPEG`](Self::LONG_JPEG).
    pub(crate) kind: u32,
    /// The number of bytes that follow. For a JPEG that is longer than the row, the place of the row in its batch.
    pub(crate) bytes: u32,
    /// Columns and rows of the stored picture.
    pub(crate) stored: [u32; 2],
    pub(crate) start: [i32; 2],
    pub(crate) across: [i32; 2],
    pub(crate) down: [i32; 2],
    /// Columns and rows of the part.
    pub(crate) part: [u32; 2],
    /// Columns and rows of the part after resizing.
    pub(crate) resized: [u32; 2],
    pub(crate) filter: u32,
    pub(crate) window: [i32; 2],
    pub(crate) mirror: [i32; 2],
    /// Columns and rows of the result.
    pub(crate) seen: [u32; 2],
    /// Colour changes: each has a kind (1 to 4: brightness, contrast, saturation, hue; 0 is none) and the bits of its
    /// strength.
    pub(crate) changes: [[u32; 2]; 6],
    /// A rectangle of the result that is finally filled with one colour: left, top, width, height. A width of 0 means
    /// none.
    pub(crate) erased: [u32; 4],
    /// The red, green and blue of that rectangle, from the lowest byte up.
    pub(crate) colour: u32,
}

impl ImageRow {
    /// The number of bytes of the header in the row.
    pub(crate) const BYTES: usize = 192;
    /// The kind of a row that holds the result itself, as bytes in planes.
    pub(crate) const PIXELS: u32 = 0;
    /// The kind of a row that holds a JPEG.
    pub(crate) const JPEG: u32 = 1;
    /// The kind of an empty row: its JPEG is longer than the row, and is stored elsewhere.
    pub(crate) const LONG_JPEG: u32 = 2;
    /// The kind of a change that depends on the mean of all pixels.
    pub(crate) const CONTRAST: u32 = 2;

    /// The header's number of 32-bit words.
    #[cfg(feature = "cuda")]
    pub(crate) const WORDS: usize = size_of::<Self>() / 4;

    /// Whether a change depends on the mean of all pixels.
    #[cfg(feature = "cuda")]
    pub(crate) fn has_contrast(&self) -> bool {
        self.changes.iter().any(|[kind, _]| *kind == Self::CONTRAST)
    }

    /// Writes the header to the start of a row.
    ///
    /// # Panics
    /// If the row is shorter than a header.
    pub(crate) fn write(&self, row: &mut [u8]) {
        row[..size_of::<Self>()].copy_from_slice(bytemuck::bytes_of(self));
    }

    /// Reads a row for a result of `[columns, rows]`: the header, and the pixels or the file. The kernels trust the
    /// header without checks, so everything is checked here.
    ///
    /// # Errors
    /// If the header is invalid.
    #[cfg_attr(not(any(feature = "cuda", test)), expect(dead_code, reason = "only CUDA decodes on the device"))]
    pub(crate) fn open<'a>(
        row: &'a [u8],
        long: &'a LongFiles,
        result: [u32; 2],
    ) -> Result<(Self, &'a [u8]), HeadError> {
        let (head, room) = row.split_at_checked(Self::BYTES).ok_or(HeadError::Short(row.len()))?;
        let head: Self = bytemuck::pod_read_unaligned(&head[..size_of::<Self>()]);
        let behind = room.get(..head.bytes as usize);
        let behind = behind.ok_or(HeadError::Bytes { bytes: head.bytes, room: room.len() });
        let bytes = match head.kind {
            Self::PIXELS => {
                let (pixels, [width, height]) = (behind?, result.map(|side| side as usize));
                head.expect("bytes", pixels.len() == 3 * width * height)?;
                head.expect("kind", head == Self { bytes: head.bytes, ..Self::default() })?;
                return Ok((head, pixels));
            }
            Self::JPEG => behind?,
            Self::LONG_JPEG => long.get(&(head.bytes as usize)).ok_or(HeadError::NoFile(head.bytes))?,
            kind => return Err(HeadError::Kind(kind)),
        };
        head.check(result)?;
        Ok((head, bytes))
    }

    /// Checks that each pixel of the result comes from a pixel of the stored picture.
    fn check(&self, result: [u32; 2]) -> Result<(), HeadError> {
        let all = |sides: [u32; 2], most: u32| sides.into_iter().all(|side| (1..=most).contains(&side));
        self.expect("stored", all(self.stored, LONGEST_STORED))?;
        self.expect("part", all(self.part, LONGEST_STORED))?;
        let straight = matches!((self.across, self.down), ([-1 | 1, 0], [0, -1 | 1]) | ([0, -1 | 1], [-1 | 1, 0]));
        self.expect("across", straight)?;
        self.expect("resized", all(self.resized, LONGEST_SIDE))?;
        self.expect("filter", self.filter <= 2)?;
        self.expect("seen", self.seen == result && all(result, LONGEST_SIDE))?;
        self.expect("mirror", self.mirror.into_iter().all(|step| step.abs_diff(0) == 1))?;
        let [columns, rows] = self.part.map(|side| i64::from(side) - 1);
        for (axis, side) in result.into_iter().enumerate() {
            let within = |at: i64, side: u32| (0..i64::from(side)).contains(&at);
            let ends = |from: i32, way: i64, side| within(from.into(), side) && within(i64::from(from) + way, side);
            let walk = columns * i64::from(self.across[axis]) + rows * i64::from(self.down[axis]);
            self.expect("start", ends(self.start[axis], walk, self.stored[axis]))?;
            let way = (i64::from(side) - 1) * i64::from(self.mirror[axis]);
            self.expect("window", ends(self.window[axis], way, self.resized[axis]))?;
            let erased = u64::from(self.erased[axis]) + u64::from(self.erased[axis + 2]);
            self.expect("erased", erased <= side.into())?;
        }
        let contrasts = self.changes.iter().filter(|[kind, _]| *kind == Self::CONTRAST).count();
        self.expect("changes", contrasts <= 1 && self.changes.iter().all(|[kind, _]| *kind <= 4))?;
        self.expect("colour", self.colour < 1 << 24)
    }

    fn expect(&self, field: &'static str, holds: bool) -> Result<(), HeadError> {
        if holds { Ok(()) } else { Err(HeadError::Field { field, head: Box::new(*self) }) }
    }
}

/// The longest side of a stored picture. NVIDIA's engines accept no longer side, and the kernel has 48 KiB for a line.
const LONGEST_STORED: u32 = 16_384;
/// The longest side of any other picture.
const LONGEST_SIDE: u32 = 65_535;

/// The problem with the header of a row. This crate writes the headers. So an invalid one is a bug in this crate, or
/// other code has overwritten its memory.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum HeadError {
    #[error("a row of images has {0} bytes, which is too short for a head")]
    Short(usize),
    #[error("the head of a row of images says {bytes} bytes, and there is room for {room}")]
    Bytes { bytes: u32, room: usize },
    #[error("the head of a row of images names the long file {0}, which is missing")]
    NoFile(u32),
    #[error("the head of a row of images has the kind {0}")]
    Kind(u32),
    #[error("`{field}` is wrong in the head of a row of images: {head:?}")]
    Field { field: &'static str, head: Box<ImageRow> },
}

/// The files that are longer than their rows, by the position of the row in the batch as planned.
pub(crate) type LongFiles = BTreeMap<usize, Bytes>;

#[cfg(test)]
mod tests {
    use super::*;

    const RESULT: [u32; 2] = [224, 223];

    /// A head with each change of a picture: it is turned, resized, cut and mirrored.
    fn head() -> ImageRow {
        ImageRow {
            kind: ImageRow::JPEG,
            bytes: 52,
            stored: [500, 375],
            start: [499, 0],
            across: [0, 1],
            down: [-1, 0],
            part: [375, 500],
            resized: [225, 230],
            filter: 2,
            window: [224, 7],
            mirror: [-1, 1],
            seen: RESULT,
            changes: [[1, 2], [2, 4], [3, 6], [4, 8], [4, 10], [0, 0]],
            erased: [100, 0, 124, 223],
            colour: 0xFF_FFFF,
        }
    }

    fn row(head: ImageRow, behind: usize) -> Vec<u8> {
        let mut row = vec![7; ImageRow::BYTES + behind];
        head.write(&mut row);
        row
    }

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let row = row(head(), 60);
        assert_eq!(ImageRow::open(&row, &LongFiles::new(), RESULT), Ok((head(), &[7; 52][..])));
    }

    #[test]
    fn a_long_file_lies_beside_the_rows() {
        let long = LongFiles::from([(52, Bytes::from_static(b"a file"))]);
        let head = ImageRow { kind: ImageRow::LONG_JPEG, ..head() };
        assert_eq!(ImageRow::open(&row(head, 0), &long, RESULT), Ok((head, &b"a file"[..])));
        let missing = ImageRow::open(&row(head, 0), &LongFiles::new(), RESULT).map(|_| ());
        assert_eq!(missing, Err(HeadError::NoFile(52)));
    }

    #[test]
    fn pixels_are_as_many_as_the_result_has() {
        let pixels = |bytes| ImageRow { bytes, ..ImageRow::default() };
        let open =
            |head, room| ImageRow::open(&row(head, room), &LongFiles::new(), [2, 3]).map(|(_, bytes)| bytes.len());
        assert_eq!(open(pixels(18), 20), Ok(18));
        assert_eq!(open(pixels(18), 17), Err(HeadError::Bytes { bytes: 18, room: 17 }));
        for bytes in [17, 19] {
            assert!(matches!(open(pixels(bytes), 20), Err(HeadError::Field { field: "bytes", .. })), "{bytes}");
        }
        let part = ImageRow { part: [9, 0], ..pixels(18) };
        assert!(matches!(open(part, 20), Err(HeadError::Field { field: "kind", .. })));
    }

    /// Each field alone, just beyond what a kernel may read.
    #[test]
    fn a_head_that_says_what_no_row_has_is_refused() {
        let open = |head| ImageRow::open(&row(head, 60), &LongFiles::new(), RESULT).map(|_| ());
        assert_eq!(open(ImageRow { bytes: 61, ..head() }), Err(HeadError::Bytes { bytes: 61, room: 60 }));
        assert_eq!(open(ImageRow { kind: 3, ..head() }), Err(HeadError::Kind(3)));
        let short = ImageRow::open(&[0; ImageRow::BYTES - 1], &LongFiles::new(), RESULT).map(|_| ());
        assert_eq!(short, Err(HeadError::Short(ImageRow::BYTES - 1)));
        let second = [[2, 2], [2, 4], [0; 2], [0; 2], [0; 2], [0; 2]];
        let wrong: [(&str, ImageRow); 27] = [
            ("stored", ImageRow { stored: [0, 375], ..head() }),
            ("stored", ImageRow { stored: [500, 16_385], ..head() }),
            ("start", ImageRow { stored: [499, 375], ..head() }),
            ("start", ImageRow { stored: [500, 374], ..head() }),
            ("start", ImageRow { start: [500, 0], ..head() }),
            ("start", ImageRow { start: [498, 0], ..head() }),
            ("start", ImageRow { start: [499, -1], ..head() }),
            ("start", ImageRow { start: [499, 1], ..head() }),
            ("start", ImageRow { start: [i32::MIN, i32::MAX], ..head() }),
            ("across", ImageRow { across: [1, 0], ..head() }),
            ("across", ImageRow { across: [0, 2], ..head() }),
            ("across", ImageRow { down: [i32::MIN, 0], ..head() }),
            ("part", ImageRow { part: [0, 500], ..head() }),
            ("part", ImageRow { part: [375, u32::MAX], ..head() }),
            ("start", ImageRow { part: [376, 500], ..head() }),
            ("resized", ImageRow { resized: [0, 230], ..head() }),
            ("resized", ImageRow { resized: [225, 65_536], ..head() }),
            ("window", ImageRow { resized: [224, 230], ..head() }),
            ("window", ImageRow { window: [224, 8], ..head() }),
            ("window", ImageRow { window: [222, 7], ..head() }),
            ("mirror", ImageRow { mirror: [-1, 0], ..head() }),
            ("filter", ImageRow { filter: 3, ..head() }),
            ("seen", ImageRow { seen: [224, 224], ..head() }),
            ("changes", ImageRow { changes: [[5, 0]; 6], ..head() }),
            ("changes", ImageRow { changes: second, ..head() }),
            ("erased", ImageRow { erased: [100, 0, 125, 223], ..head() }),
            ("colour", ImageRow { colour: 1 << 24, ..head() }),
        ];
        for (name, head) in wrong {
            match open(head) {
                Err(HeadError::Field { field, .. }) => assert_eq!(field, name, "{head:?}"),
                other => panic!("{name}: {other:?}"),
            }
        }
    }
}
