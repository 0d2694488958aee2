//! The headers of a tar: blocks of 512 bytes. Formats: v7, ustar, GNU, PAX (POSIX.1-2024, `pax`; GNU tar's manual,
//! "Basic Tar Format").

use std::str;

/// The size of a block. Headers are one block, and data are padded to whole blocks.
pub(super) const BLOCK: u64 = 512;
const SIZE: usize = BLOCK as usize;

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    File,
    /// Its data are the name of the next entry (GNU).
    LongName,
    /// Its data describe the next entry (PAX).
    Extended,
    /// It neither describes the next entry nor cancels such a description: PAX records for all entries, and the target of a link (GNU).
    Aside,
    /// A folder, a link or a comment, without a sample.
    Other,
    /// A file with holes, whose data are not the plain file.
    Sparse,
}

/// One header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TarHeader {
    pub(super) kind: EntryKind,
    pub(super) name: Vec<u8>,
    /// The bytes of data after it.
    pub(super) bytes: u64,
}

/// Reads a header. `Ok(None)` is the block of zeros at the end.
pub(super) fn header(block: &[u8; SIZE]) -> Result<Option<TarHeader>, &'static str> {
    if block.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let told = octal(&block[148..156]).ok_or("the checksum of a header is no number")?;
    // The checksum counts its own field as spaces. Old writers added the bytes as signed numbers.
    let unsigned = |at: usize| if (148..156).contains(&at) { b' ' } else { block[at] };
    let sum: u64 = (0..SIZE).map(|at| u64::from(unsigned(at))).sum();
    let signed: i64 = (0..SIZE).map(|at| i64::from(unsigned(at) as i8)).sum();
    if told != sum && i64::try_from(told) != Ok(signed) {
        return Err("a header has a wrong checksum");
    }
    let kind = match block[156] {
        b'0' | b'7' | 0 => EntryKind::File,
        b'L' => EntryKind::LongName,
        b'x' => EntryKind::Extended,
        b'g' | b'K' => EntryKind::Aside,
        b'S' => EntryKind::Sparse,
        _ => EntryKind::Other,
    };
    let bytes = match block[156] {
        b'1'..=b'6' => 0, // links, devices and folders have no data, whatever the header says
        _ => number(&block[124..136]).ok_or("the size of an entry is no number")?,
    };
    let mut name = text(&block[..100]).to_vec();
    if &block[257..263] == b"ustar\0" && block[345] != 0 {
        name = [text(&block[345..500]), b"/", &name].concat();
    }
    Ok(Some(TarHeader { kind, name, bytes }))
}

/// A field up to its first zero.
fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// A number, which ends at the first zero or space. Some writers leave meaningless bytes after it.
fn octal(field: &[u8]) -> Option<u64> {
    let digits = text(field).trim_ascii_start().split(|byte| *byte == b' ').next().unwrap_or_default();
    digits.iter().try_fold(0u64, |sum, digit| match digit {
        b'0'..=b'7' => Some(sum.checked_mul(8)? + u64::from(digit - b'0')),
        _ => None,
    })
}

/// A number in octal digits or, if its first bit is set, in base 256 (GNU, for large sizes).
fn number(field: &[u8]) -> Option<u64> {
    let [first, rest @ ..] = field else { return None };
    if first & 0x80 == 0 {
        return octal(field);
    }
    let start = u64::from(first & 0x7f);
    rest.iter().try_fold(start, |sum, byte| Some(sum.checked_mul(256)? | u64::from(*byte)))
}

/// The description of the next entry from PAX records or from a header with a long name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct HeaderExtension {
    pub(super) path: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) sparse: bool,
}

impl HeaderExtension {
    /// Combines two headers of one entry. The first takes precedence, as in Python.
    pub(super) fn or(self, other: Self) -> Self {
        Self { path: self.path.or(other.path), size: self.size.or(other.size), sparse: self.sparse || other.sparse }
    }
}

/// Reads PAX records: `length key=value\n`, where the length counts all of it.
pub(super) fn extended(mut records: &[u8]) -> Result<HeaderExtension, &'static str> {
    const WRONG: &str = "an extended header cannot be read";
    let mut found = HeaderExtension::default();
    while records.iter().any(|byte| *byte != 0) {
        let space = records.iter().position(|byte| *byte == b' ').ok_or(WRONG)?;
        let length: usize = str::from_utf8(&records[..space]).ok().and_then(|text| text.parse().ok()).ok_or(WRONG)?;
        let record = records.get(space + 1..length).and_then(|record| record.strip_suffix(b"\n")).ok_or(WRONG)?;
        let equals = record.iter().position(|byte| *byte == b'=').ok_or(WRONG)?;
        let (key, value) = (&record[..equals], &record[equals + 1..]);
        match key {
            // An empty value cancels an earlier one.
            b"path" => found.path = Some(value.to_vec()).filter(|path| !path.is_empty()),
            b"size" if value.is_empty() => found.size = None,
            b"size" => {
                found.size = Some(str::from_utf8(value).ok().and_then(|text| text.parse().ok()).ok_or(WRONG)?);
            }
            _ => found.sparse |= key.starts_with(b"GNU.sparse."),
        }
        records = &records[length..];
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_octal_or_in_base_256() {
        assert_eq!(number(b"00000000144\0"), Some(100));
        assert_eq!(number(b"        144 "), Some(100));
        assert_eq!(number(&[0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 1]), Some((2 << 24) + 1));
        assert_eq!(number(&[0xff; 12]), None);
        assert_eq!(number(b"9"), None);
        assert_eq!((number(b"0000144\0x9\0?"), number(b"144 xyz"), number(b"\0junk")), (Some(100), Some(100), Some(0)));
        assert_eq!((number(b"14x\0"), number(b"+14\0"), number(b"-1")), (None, None, None));
    }

    #[test]
    fn extended_headers_are_records() {
        let found = extended(b"13 path=a/b.c\n12 size=1000\n10 mtime=\n\0\0").unwrap_err();
        assert_eq!(found, "an extended header cannot be read"); // the first record is 14 long
        let found = extended(b"14 path=a/b.c\n13 size=1000\n9 mtime=\n\0\0").unwrap();
        assert_eq!(found, HeaderExtension { path: Some(b"a/b.c".to_vec()), size: Some(1000), sparse: false });
        assert!(extended(b"21 GNU.sparse.major=1\n").unwrap_err().contains("extended"));
        assert!(extended(b"22 GNU.sparse.major=1\n").unwrap().sparse);
        for wrong in [&b"999999999999999999999 a=b\n"[..], b"5 a=b\n", b"x", b"0 a=b\n", b"3 a"] {
            assert!(extended(wrong).is_err(), "{wrong:?}");
        }
    }
}
