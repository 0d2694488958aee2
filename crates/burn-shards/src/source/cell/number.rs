//! Numbers as NumPy writes them: little-endian, without padding.

use super::Cell;
use burn::tensor::f16;
#[cfg(any(feature = "parquet", test))]
use bytemuck::Pod;

/// The type of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    /// Only in NumPy files.
    Bool,
    U8,
    I8,
    U16,
    I16,
    F16,
    U32,
    I32,
    F32,
    U64,
    I64,
    F64,
}

/// The name of each type, and its code in arrays whose type is not known from the column.
const TYPES: [(Type, &str, u8); 11] = [
    (Type::U8, "uint8", 8),
    (Type::I8, "int8", 9),
    (Type::U16, "uint16", 16),
    (Type::I16, "int16", 17),
    (Type::F16, "float16", 18),
    (Type::U32, "uint32", 32),
    (Type::I32, "int32", 33),
    (Type::F32, "float32", 34),
    (Type::U64, "uint64", 64),
    (Type::I64, "int64", 65),
    (Type::F64, "float64", 66),
];

impl Type {
    pub(crate) fn named(name: &str) -> Option<Self> {
        TYPES.iter().find(|(_, it, _)| *it == name).map(|(kind, ..)| *kind)
    }

    pub(crate) fn of_code(code: u8) -> Option<Self> {
        TYPES.iter().find(|(_, _, it)| *it == code).map(|(kind, ..)| *kind)
    }

    /// The type with NumPy's letter (the first of its name) and this number of bytes.
    pub(crate) fn of_numpy(letter: &str, bytes: usize) -> Option<Self> {
        TYPES.iter().find(|(kind, name, _)| name.starts_with(letter) && kind.size() == bytes).map(|(kind, ..)| *kind)
    }

    /// Bytes of a number.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// A list of numbers of this type.
    #[cfg(any(feature = "parquet", test))]
    pub(crate) fn list<T: Pod>(self, numbers: &[T]) -> Cell {
        let mut bytes = bytemuck::cast_slice::<T, u8>(numbers).to_vec();
        if cfg!(target_endian = "big") {
            bytes.chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
        }
        Cell::Numbers(self, bytes.into())
    }

    /// One number. `None` if `bytes` has the wrong length.
    pub(crate) fn one(self, bytes: &[u8]) -> Option<Cell> {
        Some(match self {
            Self::Bool => Cell::Bool(u8::from_le_bytes(bytes.try_into().ok()?) != 0),
            Self::U8 => Cell::Unsigned(u8::from_le_bytes(bytes.try_into().ok()?).into()),
            Self::I8 => Cell::Int(i8::from_le_bytes(bytes.try_into().ok()?).into()),
            Self::U16 => Cell::Unsigned(u16::from_le_bytes(bytes.try_into().ok()?).into()),
            Self::I16 => Cell::Int(i16::from_le_bytes(bytes.try_into().ok()?).into()),
            Self::F16 => Cell::F32(f16::from_le_bytes(bytes.try_into().ok()?).to_f32()),
            Self::U32 => Cell::Unsigned(u32::from_le_bytes(bytes.try_into().ok()?).into()),
            Self::I32 => Cell::Int(i32::from_le_bytes(bytes.try_into().ok()?).into()),
            Self::F32 => Cell::F32(f32::from_le_bytes(bytes.try_into().ok()?)),
            Self::U64 => Cell::Unsigned(u64::from_le_bytes(bytes.try_into().ok()?)),
            Self::I64 => Cell::Int(i64::from_le_bytes(bytes.try_into().ok()?)),
            Self::F64 => Cell::F64(f64::from_le_bytes(bytes.try_into().ok()?)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_floats_are_what_they_mean() {
        let half = |bits: u16| match Type::F16.one(&bits.to_le_bytes()) {
            Some(Cell::F32(one)) => one,
            other => panic!("{other:?}"),
        };
        for (bits, value) in [
            (0x0000, 0.0),
            (0x0001, 2f32.powi(-24)),
            (0x03ff, 1023.0 * 2f32.powi(-24)),
            (0x0400, 2f32.powi(-14)),
            (0x3c00, 1.0),
            (0xc100, -2.5),
            (0x7bff, 65504.0),
            (0x7c00, f32::INFINITY),
            (0xfc00, f32::NEG_INFINITY),
        ] {
            assert_eq!(half(bits), value, "{bits:x}");
        }
        assert!(half(0x7e00).is_nan() && half(0x8000).is_sign_negative());
    }
}
