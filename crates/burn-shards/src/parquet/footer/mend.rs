//! Repairs fields of footers that writers wrote before the format had them, or against the format. The crate `parquet` reads each field by
//! its number and ignores its type. So one such field corrupts all fields after it.

use crate::parquet::{
    fault::PartError,
    thrift::{FieldType, Thrift},
};
use std::{borrow::Cow, ops::Range};

/// A converted type of the first writers of Arrow: the column has only nulls.
const ALL_NULLS: i32 = 24;
/// The logical type that the format has for such a column: field 10, in which field 11 is an empty struct.
const LOGICAL_ALL_NULLS: [u8; 5] = [12, 20, 0xBC, 0, 0];
/// A number that no field of the format has, so that readers skip it.
const UNUSED_FIELD: i16 = 99;

/// The structs of a footer that contain the changed fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FooterStruct {
    File,
    Node,
    Group,
    Chunk,
    Column,
}

/// Reads a whole footer. Returns it repaired, and the name of its writer.
pub(crate) fn mend(footer: &[u8]) -> Result<(Cow<'_, [u8]>, String), PartError> {
    let mut walk = Mender { footer, thrift: Thrift::new(footer), edits: Vec::new(), writer: String::new() };
    walk.fields(FooterStruct::File)?;
    let Mender { edits, writer, .. } = walk;
    if edits.is_empty() {
        return Ok((footer.into(), writer));
    }
    let (mut mended, mut at) = (Vec::with_capacity(footer.len() + edits.len() * LOGICAL_ALL_NULLS.len()), 0);
    for (range, bytes) in edits {
        mended.extend_from_slice(footer.get(at..range.start).unwrap_or_default());
        mended.extend(bytes);
        at = range.end;
    }
    mended.extend_from_slice(footer.get(at..).unwrap_or_default());
    Ok((mended.into(), writer))
}

struct Mender<'a> {
    footer: &'a [u8],
    thrift: Thrift<'a>,
    /// Ranges of the footer with the bytes that replace them, in order.
    edits: Vec<(Range<usize>, Vec<u8>)>,
    writer: String,
}

impl Mender<'_> {
    fn fields(&mut self, part: FooterStruct) -> Result<(), PartError> {
        // The number of a field is stored as the difference from the previous field. If that field is changed or removed, the full number
        // is written.
        let (mut last, mut moved) = (0, false);
        loop {
            let start = self.thrift.read();
            let Some((field, kind)) = self.thrift.field(&mut last)? else { return Ok(()) };
            let head = start..self.thrift.read();
            let bits = self.footer.get(start).map_or(0, |byte| byte & 15);
            match (part, field, kind) {
                (FooterStruct::Column, 15, FieldType::List) => {
                    self.edits.push((head, full_head(bits, UNUSED_FIELD)));
                    self.thrift.skip(kind)?;
                    moved = true;
                    continue;
                }
                (FooterStruct::Node, 6, FieldType::I32) if self.thrift.i32()? == ALL_NULLS => {
                    self.edits.push((start..self.thrift.read(), LOGICAL_ALL_NULLS.into()));
                    moved = true;
                    continue;
                }
                _ if moved => self.edits.push((head, full_head(bits, field))),
                _ => {}
            }
            moved = false;
            match (part, field, kind) {
                (FooterStruct::Node, 6, FieldType::I32) => {} // it was read above
                (FooterStruct::File, 2, FieldType::List) => self.list(FooterStruct::Node)?,
                (FooterStruct::File, 4, FieldType::List) => self.list(FooterStruct::Group)?,
                (FooterStruct::Group, 1, FieldType::List) => self.list(FooterStruct::Chunk)?,
                (FooterStruct::Chunk, 3, FieldType::Struct) => self.fields(FooterStruct::Column)?,
                (FooterStruct::File, 6, FieldType::Binary) => {
                    self.writer = String::from_utf8_lossy(self.thrift.bytes()?).into()
                }
                _ => self.thrift.skip(kind)?,
            }
        }
    }

    fn list(&mut self, part: FooterStruct) -> Result<(), PartError> {
        let (length, item) = self.thrift.list()?;
        if length > 0 && item != FieldType::Struct {
            return Err(PartError::damaged("a field has another type than the format says"));
        }
        (0..length).try_for_each(|_| self.fields(part))
    }
}

/// The head of a field with its full number.
fn full_head(kind: u8, field: i16) -> Vec<u8> {
    let zigzag = (field << 1 ^ field >> 15) as u16;
    match zigzag {
        0..0x80 => vec![kind, zigzag as u8],
        0x80..0x4000 => vec![kind, zigzag as u8 | 0x80, (zigzag >> 7) as u8],
        _ => vec![kind, zigzag as u8 | 0x80, (zigzag >> 7) as u8 | 0x80, (zigzag >> 14) as u8],
    }
}
