//! Further conditions for formats with short magic bytes, or with none at a fixed place.

use std::str;

/// A text with fewer bytes may be numbers that look like letters: 16 tokens of `u16`.
const LEAST_TEXT: usize = 32;

/// Whether a text is too short to be distinguished from numbers.
pub(super) fn is_short(file: &[u8]) -> bool {
    file.len() < LEAST_TEXT
}

/// Letters, spaces and line ends. The last letter may be truncated.
pub(super) fn is_text(start: &[u8]) -> bool {
    let is_cut = |error: &str::Utf8Error| error.error_len().is_none() && error.valid_up_to() > 0;
    let is_utf8 = str::from_utf8(start).map_or_else(|error| is_cut(&error), |_| true);
    let is_letter = |byte: &u8| !byte.is_ascii_control() || b"\t\n\r\x0c".contains(byte);
    !start.is_empty() && is_utf8 && start.iter().all(is_letter)
}

/// The text from its first letter on, if it is a text.
fn text(start: &[u8]) -> Option<&[u8]> {
    is_text(start).then(|| start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start())
}

pub(super) fn is_json(start: &[u8]) -> bool {
    text(start).is_some_and(|text| match text {
        [b'{', rest @ ..] => matches!(rest.trim_ascii_start(), [b'"' | b'}', ..]),
        [b'[', rest @ ..] => matches!(rest.trim_ascii_start(), [b'{' | b'[' | b'"' | b'-' | b'0'..=b'9', ..]),
        _ => false,
    })
}

pub(super) fn is_html(start: &[u8]) -> bool {
    let begins =
        |text: &[u8], with: &str| text.get(..with.len()).is_some_and(|it| it.eq_ignore_ascii_case(with.as_bytes()));
    // After its first words, a page may have letters in another encoding.
    let first = &start[..start.len().min(16)];
    text(first).is_some_and(|text| ["<!doctype ", "<html", "<head", "<?xml "].iter().any(|with| begins(text, with)))
}

/// Whether the first lines have the same number of separators.
pub(super) fn is_table(start: &[u8]) -> bool {
    let Some(text) = text(start) else { return false };
    let lines: Vec<&[u8]> =
        text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).take(4).collect();
    b",\t;|".iter().any(|separator| {
        let mut counts = lines.iter().map(|line| separators(line, *separator));
        let first = counts.next().unwrap_or(0);
        lines.len() > 1 && first > 0 && counts.all(|count| count == first)
    })
}

/// The separators of a line outside of quotation marks.
fn separators(line: &[u8], separator: u8) -> usize {
    line.split(|byte| *byte == b'"').step_by(2).flatten().filter(|byte| **byte == separator).count()
}

/// A byte order mark, and letters of which every other byte is zero.
pub(super) fn is_utf16(start: &[u8]) -> bool {
    let letters = |text: &[u8], at: usize| {
        let pairs = text.as_chunks::<2>().0;
        let is_letter = |pair: &[u8; 2]| pair[1 - at] == 0 && is_text(&pair[at..=at]);
        pairs.len() >= 4 && pairs[0][at].is_ascii_graphic() && pairs[..4].iter().all(is_letter)
    };
    match start {
        [0xff, 0xfe, text @ ..] => letters(text, 0),
        [0xfe, 0xff, text @ ..] => letters(text, 1),
        _ => false,
    }
}

/// Three bits of the flags must be zero.
pub(super) fn is_gzip(start: &[u8]) -> bool {
    start.starts_with(b"\x1f\x8b\x08") && start.get(3).is_none_or(|flags| flags & 0xe0 == 0)
}

/// The name of the first file in a zip archive.
fn first_of_zip(start: &[u8]) -> Option<&[u8]> {
    let length = start.starts_with(b"PK\x03\x04").then(|| start.get(26..)?.first_chunk()).flatten()?;
    start.get(30..)?.get(..usize::from(u16::from_le_bytes(*length)))
}

pub(super) fn is_npz(start: &[u8]) -> bool {
    first_of_zip(start).is_some_and(|name| name.ends_with(b".npy"))
}

pub(super) fn is_torch(start: &[u8]) -> bool {
    first_of_zip(start).is_some_and(|name| name.ends_with(b"/data.pkl"))
}

/// A frame of less than 4 GiB, the first value with its place in the memory of a pickle, or the name of a module.
pub(super) fn is_pickle(start: &[u8]) -> bool {
    match start {
        [0x80, 4 | 5, 0x95, _, _, _, _, 0, 0, 0, 0, ..] | [0x80, 2 | 3, b']' | b'}', b'q', 0, ..] => true,
        [0x80, 2 | 3, b'c', module @ ..] => {
            let end = module.iter().position(|byte| *byte == b'\n').unwrap_or(0);
            end >= 4 && module[..end].iter().all(|byte| byte.is_ascii_alphanumeric() || b"._".contains(byte))
        }
        _ => start.starts_with(b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."), // as torch wrote before its zip archives
    }
}

/// The length of a JSON text, and the text.
pub(super) fn is_safetensors(start: &[u8]) -> bool {
    const LONGEST: u64 = 100_000_000;
    let Some((length, header)) = start.split_first_chunk() else { return false };
    let length = u64::from_le_bytes(*length);
    let header = &header[..header.len().min(length.min(LONGEST) as usize)];
    length <= LONGEST && header.len() >= 8 && is_json(header)
}

/// The length of the first segment leads to the next one.
pub(super) fn is_jpeg(start: &[u8]) -> bool {
    let [0xff, 0xd8, 0xff, 0xc0..=0xfe, high, low, ..] = *start else { return false };
    let length = u16::from_be_bytes([high, low]);
    length > 2 && start.get(4 + usize::from(length)).is_none_or(|next| *next == 0xff)
}

/// The length of the first frame leads to a frame of the same kind.
pub(super) fn is_mp3(start: &[u8]) -> bool {
    let next = frame(start).and_then(|length| start.get(length..));
    next.is_some_and(|next| frame(next).is_some() && next[..2] == start[..2])
}

/// The bytes of a frame of MPEG audio, layer III.
fn frame(start: &[u8]) -> Option<usize> {
    const RATES: [[usize; 14]; 2] = [
        [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
        [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
    ];
    let [0xff, kind, rates, ..] = *start else { return None };
    let (version, is_layer_3) = (kind >> 3 & 3, kind >> 1 & 3 == 1);
    let (is_1, slower) = match version {
        3 => (true, 1),
        2 => (false, 2),
        0 => (false, 4),
        _ => return None,
    };
    let bits = RATES[usize::from(is_1)].get(usize::from(rates >> 4).checked_sub(1)?)? * 1000;
    let samples = [44_100, 48_000, 32_000].get(usize::from(rates >> 2 & 3))? / slower;
    (kind >> 5 == 7 && is_layer_3).then(|| (if is_1 { 144 } else { 72 }) * bits / samples + usize::from(rates >> 1 & 1))
}
