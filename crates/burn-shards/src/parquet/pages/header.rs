//! Headers of pages. Their claims are checked before anything relies on them.

use crate::parquet::{
    fault::PartError,
    thrift::{FieldType, Thrift},
};
use parquet::basic::Encoding;

/// A page's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageHeader {
    /// The bytes of the header itself.
    pub(crate) length: usize,
    /// The number of bytes that follow the header in the file. They are known to exist.
    pub(crate) stored: usize,
    /// The decompressed size of these bytes, as the header claims.
    pub(crate) size: usize,
    /// The checksum of the stored bytes, if the writer made one.
    pub(crate) checksum: Option<u32>,
    pub(crate) page: PageKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageKind {
    V1 {
        values: u32,
        encoding: Encoding,
        defs: Encoding,
        reps: Encoding,
    },
    /// `defs` and `reps` are the bytes of the levels, which are not compressed.
    V2 {
        values: u32,
        nulls: u32,
        rows: u32,
        encoding: Encoding,
        defs: u32,
        reps: u32,
        compressed: bool,
    },
    Dictionary {
        values: u32,
        encoding: Encoding,
    },
    /// A page that holds no data.
    Other,
}

impl PageHeader {
    /// Whether there is something to decode. Some writers begin a column with empty pages.
    pub(crate) fn is_used(&self) -> bool {
        match self.page {
            PageKind::V1 { values, .. } | PageKind::V2 { values, .. } => values > 0,
            PageKind::Dictionary { .. } => true,
            PageKind::Other => false,
        }
    }

    /// Checks the stored bytes by the checksum, if there is one.
    pub(crate) fn check(&self, stored: &[u8]) -> Result<(), PartError> {
        match self.checksum {
            Some(checksum) if checksum != crc32fast::hash(stored) => {
                Err(PartError::damaged("a page does not fit its checksum"))
            }
            _ => Ok(()),
        }
    }

    /// Reads the header of a page that has at most the given bytes.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, PartError> {
        let header = Self::read_start(bytes)?;
        if header.stored > bytes.len() - header.length {
            let (claims, has) = (header.stored, bytes.len() - header.length);
            return Err(PartError::damaged(format!("a page claims {claims} bytes, and there are {has}")));
        }
        Ok(header)
    }

    /// Reads the header of a page from its first bytes.
    pub(crate) fn read_start(bytes: &[u8]) -> Result<Self, PartError> {
        let mut thrift = Thrift::new(bytes);
        let (mut kind, mut size, mut stored, mut checksum) = (None, None, None, None);
        let (mut v1, mut v2, mut dictionary) = (None, None, None);
        thrift.fields(|thrift, field, is| {
            match (field, is) {
                (1, FieldType::I32) => kind = Some(thrift.i32()?),
                (2, FieldType::I32) => size = Some(thrift.count()?),
                (3, FieldType::I32) => stored = Some(thrift.count()?),
                (4, FieldType::I32) => checksum = Some(thrift.i32()? as u32),
                (5, FieldType::Struct) => v1 = Some(read_v1(thrift)?),
                (7, FieldType::Struct) => dictionary = Some(read_dictionary(thrift)?),
                (8, FieldType::Struct) => v2 = Some(read_v2(thrift)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let page = match kind {
            Some(0) => v1,
            Some(2) => dictionary,
            Some(3) => v2,
            Some(_) => Some(PageKind::Other),
            None => None,
        };
        let (Some(size), Some(stored), Some(page)) = (size, stored, page) else { return Err(missing()) };
        Ok(Self { length: thrift.read(), stored: stored as usize, size: size as usize, checksum, page })
    }
}

fn read_v1(thrift: &mut Thrift<'_>) -> Result<PageKind, PartError> {
    let [values, encoding, defs, reps] = numbers(thrift)?.0;
    Ok(PageKind::V1 {
        values: count(values)?,
        encoding: self::encoding(encoding)?,
        defs: self::encoding(defs)?,
        reps: self::encoding(reps)?,
    })
}

fn read_v2(thrift: &mut Thrift<'_>) -> Result<PageKind, PartError> {
    let ([values, nulls, rows, encoding, defs, reps], compressed) = numbers(thrift)?;
    Ok(PageKind::V2 {
        values: count(values)?,
        nulls: count(nulls)?,
        rows: count(rows)?,
        encoding: self::encoding(encoding)?,
        defs: count(defs)?,
        reps: count(reps)?,
        compressed,
    })
}

fn read_dictionary(thrift: &mut Thrift<'_>) -> Result<PageKind, PartError> {
    let [values, encoding] = numbers(thrift)?.0;
    Ok(PageKind::Dictionary { values: count(values)?, encoding: self::encoding(encoding)? })
}

/// The first fields of a struct, which are numbers, and a flag in field 7, true by default.
fn numbers<const N: usize>(thrift: &mut Thrift<'_>) -> Result<([Option<i32>; N], bool), PartError> {
    let (mut numbers, mut flag) = ([None; N], true);
    thrift.fields(|thrift, field, kind| {
        let place = usize::try_from(field).ok().and_then(|field| numbers.get_mut(field.checked_sub(1)?));
        match (place, field, kind) {
            (Some(place), _, FieldType::I32) => *place = Some(thrift.i32()?),
            (None, 7, FieldType::Bool(is)) => flag = is,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok((numbers, flag))
}

/// A number that is not negative.
fn count(number: Option<i32>) -> Result<u32, PartError> {
    u32::try_from(number.ok_or_else(missing)?).map_err(|_| PartError::damaged("a size in a header is negative"))
}

fn encoding(number: Option<i32>) -> Result<Encoding, PartError> {
    Ok(match number.ok_or_else(missing)? {
        0 => Encoding::PLAIN,
        2 => Encoding::PLAIN_DICTIONARY,
        3 => Encoding::RLE,
        #[expect(deprecated)] // levels of old files
        4 => Encoding::BIT_PACKED,
        5 => Encoding::DELTA_BINARY_PACKED,
        6 => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        7 => Encoding::DELTA_BYTE_ARRAY,
        8 => Encoding::RLE_DICTIONARY,
        9 => Encoding::BYTE_STREAM_SPLIT,
        number => return Err(PartError::Unsupported(format!("the encoding {number}"))),
    })
}

fn missing() -> PartError {
    PartError::damaged("the header of a page lacks a field")
}
