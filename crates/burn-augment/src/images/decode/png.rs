//! The metadata of a PNG, which may lie behind its data.

use super::orientation::of_metadata;
use flate2::read::ZlibDecoder;
use image::metadata::Orientation;
use std::{borrow::Cow, io::Read};

const PROFILE: &[u8] = b"Raw profile type exif\0";
const XMP: &[u8] = b"XML:com.adobe.xmp\0";

/// Reads the orientation. ImageMagick's raw profile is EXIF too.
pub(super) fn orientation(file: &[u8]) -> Orientation {
    let (mut exif, mut profile, mut xmp) = (None, None, None);
    let mut rest = file.get(8..).unwrap_or_default();
    while let Some((head, behind)) = rest.split_first_chunk::<8>() {
        let [a, b, c, d, kind @ ..] = *head;
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        let Some(data) = behind.get(..length) else { break };
        rest = behind.get(length.saturating_add(4)..).unwrap_or_default(); // there is a checksum
        match &kind {
            b"eXIf" => exif = exif.or(Some(data)),
            // The first of each kind counts, even if it cannot be read.
            b"tEXt" | b"zTXt" if profile.is_none() && data.starts_with(PROFILE) => {
                profile = Some(text(&kind, data, PROFILE).unwrap_or_default());
            }
            b"iTXt" if xmp.is_none() && data.starts_with(XMP) => {
                xmp = Some(text(&kind, data, XMP).unwrap_or_default());
            }
            _ => {}
        }
    }
    let profile = profile.and_then(|text| raw_profile(&text));
    of_metadata(exif.or(profile.as_deref()), xmp.as_deref())
}

/// Returns the text of a chunk, if it has this name.
fn text<'a>(kind: &[u8; 4], data: &'a [u8], name: &[u8]) -> Option<Cow<'a, [u8]>> {
    let data = data.strip_prefix(name)?;
    match kind {
        b"tEXt" => Some(data.into()),
        b"zTXt" => inflated(data.get(1..)?),
        _ => {
            // Two texts come before the XMP: a language, and the name in that language.
            let (&[packed, _], data) = data.split_first_chunk()?;
            let text = data.splitn(3, |byte| *byte == 0).nth(2)?;
            if packed == 0 { Some(text.into()) } else { inflated(text) }
        }
    }
}

/// Returns the beginning of compressed bytes, which has the orientation.
fn inflated(bytes: &[u8]) -> Option<Cow<'static, [u8]>> {
    const MOST_BYTES: u64 = 1 << 20;
    let mut out = Vec::new();
    ZlibDecoder::new(bytes).take(MOST_BYTES).read_to_end(&mut out).ok()?;
    Some(out.into())
}

/// Reads a profile as ImageMagick writes it: an empty line, a name, a length, and digits of base 16 in lines.
fn raw_profile(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text.splitn(4, |byte| *byte == b'\n').nth(3)?.iter().filter(|byte| !byte.is_ascii_whitespace());
    let digits: Option<Vec<_>> = digits.map(|byte| char::from(*byte).to_digit(16)).collect();
    Some(digits?.as_chunks::<2>().0.iter().map(|[high, low]| (high << 4 | low) as u8).collect())
}
