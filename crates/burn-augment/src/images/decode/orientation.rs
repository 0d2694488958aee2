//! The orientation of an image by its EXIF, or else by its XMP.

use image::metadata::Orientation;

/// Reads the orientation from the first EXIF and the first XMP of a file. Metadata that cannot be read are ignored:
/// they are no reason to refuse the pixels.
pub(super) fn of_metadata(exif: Option<&[u8]>, xmp: Option<&[u8]>) -> Orientation {
    let value = exif.and_then(of_exif).or_else(|| xmp.and_then(of_xmp)).unwrap_or(1);
    u8::try_from(value).ok().and_then(Orientation::from_exif).unwrap_or(Orientation::NoTransforms)
}

/// Reads the tag of the first directory. Some writers put the prefix of JPEG's segments before it.
fn of_exif(exif: &[u8]) -> Option<u32> {
    const TAG: u32 = 0x112;
    const SHORT: u32 = 3;
    const LONG: u32 = 4;
    let tiff = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
    let big = match tiff.first_chunk()? {
        b"II*\0" => false,
        b"MM\0*" => true,
        _ => return None,
    };
    let number = |bytes: &[u8]| {
        let add = |value: u32, byte: &u8| value << 8 | u32::from(*byte);
        if big { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) }
    };
    let directory = tiff.get(number(tiff.get(4..8)?) as usize..)?;
    let (count, entries) = directory.split_at_checked(2)?;
    let mut entries = entries.as_chunks::<12>().0.iter().take(number(count) as usize);
    let entry = entries.find(|entry| number(&entry[..2]) == TAG)?;
    match (number(&entry[2..4]), number(&entry[4..8])) {
        (SHORT, 1) => Some(number(&entry[8..10])),
        (LONG, 1) => Some(number(&entry[8..])),
        _ => None,
    }
}

/// Finds `tiff:Orientation`, an attribute or an element.
fn of_xmp(xmp: &[u8]) -> Option<u32> {
    const NAME: &[u8] = b"tiff:Orientation";
    let behind = xmp.windows(NAME.len()).position(|name| name == NAME)? + NAME.len();
    let mut text = xmp[behind..].iter().filter(|byte| !byte.is_ascii_whitespace());
    match text.next()? {
        b'>' => {}
        b'=' => drop(text.next().filter(|quote| matches!(quote, b'"' | b'\''))?),
        _ => return None,
    }
    let (digit, end) = (text.next()?, text.next()?);
    if end.is_ascii_digit() { None } else { char::from(*digit).to_digit(10) }
}
