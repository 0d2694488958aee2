//! The kinds of values that a leaf may have.

use crate::parquet::fault::PartError;
use parquet::{
    basic::{ConvertedType, LogicalType, Type as Stored},
    schema::types::Type,
};

/// The most digits after the point of a decimal. A decimal of 256 bits has no more.
const DIGITS: u8 = 76;

/// The meaning of a leaf's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    /// An integer with this number of bits. Also days, times in their unit, and decimals without a scale.
    Int(u8),
    Unsigned(u8),
    F16,
    F32,
    F64,
    Text,
    Json,
    Bytes,
    /// An integer, with this number of digits after the point. Bytes are big-endian.
    Decimal(u8),
    /// Only nulls. Such a leaf has no other type.
    Null,
}

impl Kind {
    /// `None` if values of this type are not supported.
    pub(crate) fn of(node: &Type) -> Result<Option<Self>, PartError> {
        let (info, stored) = (node.get_basic_info(), node.get_physical_type());
        let (converted, logical) = (info.converted_type(), info.logical_type_ref());
        let decimal = converted == ConvertedType::DECIMAL || matches!(logical, Some(LogicalType::Decimal(_)));
        if matches!(logical, Some(LogicalType::Unknown)) {
            return Ok(Some(Self::Null));
        }
        let Some(scale) =
            u8::try_from(if decimal { node.get_scale() } else { 0 }).ok().filter(|scale| *scale <= DIGITS)
        else {
            return Ok(None);
        };
        Ok(Some(match stored {
            Stored::BOOLEAN => Self::Bool,
            Stored::INT32 | Stored::INT64 if scale > 0 => Self::Decimal(scale),
            Stored::INT32 | Stored::INT64 => {
                let all = if stored == Stored::INT32 { 32 } else { 64 };
                let (bits, signed) = integer(converted, logical).unwrap_or((all, true));
                match () {
                    () if bits > all => return Err(PartError::damaged(format!("the schema has {bits} bits in {all}"))),
                    () if signed => Self::Int(bits),
                    () => Self::Unsigned(bits),
                }
            }
            Stored::INT96 => return Ok(None),
            Stored::FLOAT => Self::F32,
            Stored::DOUBLE => Self::F64,
            Stored::BYTE_ARRAY | Stored::FIXED_LEN_BYTE_ARRAY if decimal => Self::Decimal(scale),
            Stored::BYTE_ARRAY => match (logical, converted) {
                (Some(LogicalType::Json), _) | (None, ConvertedType::JSON) => Self::Json,
                (Some(LogicalType::String | LogicalType::Enum), _) => Self::Text,
                (None, ConvertedType::UTF8 | ConvertedType::ENUM) => Self::Text,
                _ => Self::Bytes,
            },
            Stored::FIXED_LEN_BYTE_ARRAY => {
                let length = width(node);
                match logical {
                    _ if length == 0 => return Ok(None),
                    Some(LogicalType::Float16) if length == 2 => Self::F16,
                    _ => Self::Bytes,
                }
            }
        }))
    }
}

/// The bytes of each value of a node of fixed length, else 0.
pub(crate) fn width(node: &Type) -> usize {
    match node {
        Type::PrimitiveType { physical_type: Stored::FIXED_LEN_BYTE_ARRAY, type_length, .. } => {
            usize::try_from(*type_length).unwrap_or(0)
        }
        _ => 0,
    }
}

/// Bits and sign of an integer that is marked as one.
pub(crate) fn integer(converted: ConvertedType, logical: Option<&LogicalType>) -> Option<(u8, bool)> {
    if let Some(LogicalType::Integer(int)) = logical {
        return Some((u8::try_from(int.bit_width).ok()?, int.is_signed));
    }
    Some(match converted {
        ConvertedType::INT_8 => (8, true),
        ConvertedType::INT_16 => (16, true),
        ConvertedType::INT_32 => (32, true),
        ConvertedType::INT_64 => (64, true),
        ConvertedType::UINT_8 => (8, false),
        ConvertedType::UINT_16 => (16, false),
        ConvertedType::UINT_32 => (32, false),
        ConvertedType::UINT_64 => (64, false),
        _ => return None,
    })
}
