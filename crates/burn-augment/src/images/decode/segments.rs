//! The segments of a JPEG (ITU-T T.81, annex B).

/// Takes the next segment off the rest of a file: the second byte of its marker, and the data without their length. A
/// segment that is cut off has no data. Bytes between segments that decoders skip are skipped: padding, stray bytes, and
/// markers without a length. The rest begins behind the two bytes that a JPEG begins with.
pub(super) fn next_segment<'a>(rest: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    loop {
        let step = match **rest {
            [0xFF, 0xFF, ..] => 1,
            [0xFF, 0x00 | 0x01 | 0xD0..=0xD9, ..] => 2,
            [0xFF, marker, high, low, ref data @ ..] => {
                let length = usize::from(u16::from_be_bytes([high, low]));
                let data = data.get(..length.saturating_sub(2)).unwrap_or_default();
                *rest = rest.get(2 + length..).unwrap_or_default();
                return Some((marker, data));
            }
            [] | [0xFF, ..] => return None,
            [..] => rest.iter().position(|byte| *byte == 0xFF).unwrap_or(rest.len()),
        };
        *rest = &rest[step..];
    }
}
