//! The segments of a JPEG (ITU-T T.81, annex B).

/// Goes from segment to segment. Bytes between them that decoders skip are skipped: padding, stray bytes, and markers
/// without a length.
pub(super) struct Segments<'a> {
    rest: &'a [u8],
}

impl<'a> Segments<'a> {
    pub(super) fn new(file: &'a [u8]) -> Self {
        Self { rest: file.get(2..).unwrap_or_default() }
    }

    /// The bytes behind the last segment.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

/// The second byte of the marker, and the data without their length. A segment that is cut off has no data.
impl<'a> Iterator for Segments<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let step = match *self.rest {
                [0xFF, 0xFF, ..] => 1,
                [0xFF, 0x00 | 0x01 | 0xD0..=0xD9, ..] => 2,
                [0xFF, marker, high, low, ref data @ ..] => {
                    let length = usize::from(u16::from_be_bytes([high, low]));
                    let data = data.get(..length.saturating_sub(2)).unwrap_or_default();
                    self.rest = self.rest.get(2 + length..).unwrap_or_default();
                    return Some((marker, data));
                }
                [] | [0xFF, ..] => return None,
                [..] => self.rest.iter().position(|byte| *byte == 0xFF).unwrap_or(self.rest.len()),
            };
            self.rest = &self.rest[step..];
        }
    }
}
