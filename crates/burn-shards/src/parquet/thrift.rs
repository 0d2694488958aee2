//! Reads Thrift's compact protocol, the format of page headers, offset indices and footers.

use super::fault::PartError;

/// The deepest nesting of values.
const DEPTH: usize = 32;

/// The type of a field, as numbered by the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldType {
    Bool(bool),
    Byte,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List,
    Map,
    Struct,
}

/// The bytes that are not read yet, and how many bytes there were at the start.
#[derive(Debug)]
pub(crate) struct Thrift<'a> {
    rest: &'a [u8],
    all: usize,
}

impl<'a> Thrift<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, all: bytes.len() }
    }

    /// How many bytes were read.
    pub(crate) fn read(&self) -> usize {
        self.all - self.rest.len()
    }

    fn byte(&mut self) -> Result<u8, PartError> {
        self.rest.split_off_first().copied().ok_or_else(|| PartError::damaged("a header ends too early"))
    }

    pub(crate) fn i64(&mut self) -> Result<i64, PartError> {
        varint(&mut self.rest).map(unzigzag)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, PartError> {
        i32::try_from(self.i64()?).map_err(|_| PartError::damaged("a number in a header is too large"))
    }

    /// A size or count: not negative.
    pub(crate) fn count(&mut self) -> Result<u32, PartError> {
        u32::try_from(self.i32()?).map_err(|_| PartError::damaged("a size in a header is negative"))
    }

    /// The next field of a struct, `None` at its end. `last` is the number of the previous field.
    pub(crate) fn field(&mut self, last: &mut i16) -> Result<Option<(i16, FieldType)>, PartError> {
        let byte = self.byte()?;
        if byte == 0 {
            return Ok(None);
        }
        *last = match byte >> 4 {
            0 => i16::try_from(self.i64()?).map_err(|_| PartError::damaged("a header has a field of no number"))?,
            more => last.checked_add(more.into()).ok_or_else(|| PartError::damaged("a header has too many fields"))?,
        };
        Ok(Some((*last, kind(byte & 15)?)))
    }

    /// The length of a list that follows. Each item takes at least a byte.
    pub(crate) fn list(&mut self) -> Result<(usize, FieldType), PartError> {
        let byte = self.byte()?;
        let length = match byte >> 4 {
            15 => varint(&mut self.rest)?,
            length => length.into(),
        };
        let length = usize::try_from(length).ok().filter(|length| *length <= self.rest.len());
        let length = length.ok_or_else(|| PartError::damaged("a list is longer than its file"))?;
        // Some writers give an empty list no type.
        let item = if byte == 0 { FieldType::Byte } else { kind(byte & 15)? };
        Ok((length, item))
    }

    /// Reads the fields of a struct. `field` reads the value of one, or returns false and leaves it.
    pub(crate) fn fields(
        &mut self,
        mut field: impl FnMut(&mut Self, i16, FieldType) -> Result<bool, PartError>,
    ) -> Result<(), PartError> {
        let mut last = 0;
        while let Some((number, kind)) = self.field(&mut last)? {
            if !field(self, number, kind)? {
                self.skip(kind)?;
            }
        }
        Ok(())
    }

    /// Skips the value of a field.
    pub(crate) fn skip(&mut self, kind: FieldType) -> Result<(), PartError> {
        self.skip_nested(kind, false, DEPTH)
    }

    fn skip_nested(&mut self, kind: FieldType, in_list: bool, depth: usize) -> Result<(), PartError> {
        let deeper = depth.checked_sub(1).ok_or_else(|| PartError::damaged("a header is nested too deep"))?;
        match kind {
            FieldType::Bool(_) if !in_list => {}
            FieldType::Bool(_) | FieldType::Byte => _ = self.byte()?,
            FieldType::I16 | FieldType::I32 | FieldType::I64 => _ = varint(&mut self.rest)?,
            FieldType::Double => _ = self.take(8)?,
            FieldType::Binary => _ = self.bytes()?,
            FieldType::List => {
                let (length, item) = self.list()?;
                for _ in 0..length {
                    self.skip_nested(item, true, deeper)?;
                }
            }
            FieldType::Map => {
                let length = varint(&mut self.rest)?;
                if length > 0 {
                    let kinds = self.byte()?;
                    let (key, value) = (self::kind(kinds >> 4)?, self::kind(kinds & 15)?);
                    for _ in 0..length {
                        self.skip_nested(key, true, deeper)?;
                        self.skip_nested(value, true, deeper)?;
                    }
                }
            }
            FieldType::Struct => {
                let mut last = 0;
                while let Some((_, kind)) = self.field(&mut last)? {
                    self.skip_nested(kind, false, deeper)?;
                }
            }
        }
        Ok(())
    }

    /// The value of a field of bytes.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], PartError> {
        let length = varint(&mut self.rest)?;
        self.take(length)
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], PartError> {
        let bytes = usize::try_from(length).ok().and_then(|length| self.rest.split_off(..length));
        bytes.ok_or_else(|| PartError::damaged("a text in a header is longer than its file"))
    }
}

/// A number with seven bits in each byte, the lowest first. The encodings of pages use such numbers too.
pub(crate) fn varint(data: &mut &[u8]) -> Result<u64, PartError> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let byte = data.split_off_first().ok_or_else(|| PartError::damaged("a number is cut off"))?;
        value |= u64::from(byte & 0x7F).checked_shl(shift).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(PartError::damaged("a number has no end"))
}

/// Decodes a number whose lowest bit is its sign.
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn kind(number: u8) -> Result<FieldType, PartError> {
    Ok(match number {
        1 => FieldType::Bool(true),
        2 => FieldType::Bool(false),
        3 => FieldType::Byte,
        4 => FieldType::I16,
        5 => FieldType::I32,
        6 => FieldType::I64,
        7 => FieldType::Double,
        8 => FieldType::Binary,
        9 | 10 => FieldType::List,
        11 => FieldType::Map,
        12 => FieldType::Struct,
        _ => return Err(PartError::damaged(format!("a header has a field of type {number}"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_needs_no_type() {
        // Field 1: an empty list of type 0. Field 2: a number.
        let bytes = [0x19, 0x00, 0x15, 6, 0];
        let mut number = None;
        let fields = Thrift::new(&bytes).fields(|thrift, field, _| {
            if field == 2 {
                number = Some(thrift.i32()?);
            }
            Ok(field == 2)
        });
        assert!(fields.is_ok() && number == Some(3));
        assert_eq!(Thrift::new(&[0x00]).list().unwrap().0, 0);
        assert!(Thrift::new(&[0x10, 0]).list().is_err(), "an item must have a type");
    }
}
