//! The integers that tokens are stored as.

use burn::tensor::DType;
use bytemuck::pod_read_unaligned;
use std::fmt;

/// The integer type of the tokens in a file.
///
/// ```
/// use burn::tensor::DType;
/// use burn_shards::TokenType;
///
/// assert_eq!(TokenType::U16.dtype(), DType::U16); // for a tensor, or a field of a loader
/// assert_eq!(TokenType::U16.size(), 2);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenType {
    /// One byte: the text itself, or a tiny vocabulary.
    U8,
    /// One byte, signed. Megatron's index supports it.
    I8,
    /// Two bytes: vocabularies of up to 65,536 tokens, such as GPT-2's.
    U16,
    /// Two bytes, signed. Megatron's index supports it.
    I16,
    /// Four bytes, as llm.c writes them for Llama 3.
    U32,
    /// Four bytes, signed, as Megatron writes them for larger vocabularies.
    I32,
    /// Eight bytes, signed.
    I64,
}

impl TokenType {
    /// The dtype of a tensor of such tokens.
    pub fn dtype(self) -> DType {
        match self {
            Self::U8 => DType::U8,
            Self::I8 => DType::I8,
            Self::U16 => DType::U16,
            Self::I16 => DType::I16,
            Self::U32 => DType::U32,
            Self::I32 => DType::I32,
            Self::I64 => DType::I64,
        }
    }

    /// The size of a token in bytes.
    pub fn size(self) -> usize {
        self.dtype().size()
    }

    /// The bytes of a token in a file, in the first [`size`](Self::size) places, if the type has such a value.
    pub(crate) fn bytes_of(self, token: i64) -> Option<[u8; 8]> {
        let bytes = token.to_le_bytes();
        (self.read(&bytes[..self.size()]) == token).then_some(bytes)
    }

    /// The value of one token. There must be as many bytes as a token has.
    pub(super) fn read(self, bytes: &[u8]) -> i64 {
        match self {
            Self::U8 => pod_read_unaligned::<u8>(bytes).into(),
            Self::I8 => pod_read_unaligned::<i8>(bytes).into(),
            Self::U16 => pod_read_unaligned::<u16>(bytes).into(),
            Self::I16 => pod_read_unaligned::<i16>(bytes).into(),
            Self::U32 => pod_read_unaligned::<u32>(bytes).into(),
            Self::I32 => pod_read_unaligned::<i32>(bytes).into(),
            Self::I64 => pod_read_unaligned::<i64>(bytes),
        }
    }
}

impl fmt::Display for TokenType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.dtype().name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_from_their_bytes_or_do_not_fit() {
        let all = [
            (TokenType::U8, 0, 255),
            (TokenType::I8, -128, 127),
            (TokenType::U16, 0, 65_535),
            (TokenType::I16, -32_768, 32_767),
            (TokenType::U32, 0, i64::from(u32::MAX)),
            (TokenType::I32, i64::from(i32::MIN), i64::from(i32::MAX)),
        ];
        for (kind, least, most) in all {
            for token in [least, most, 1, least + 3] {
                let bytes = kind.bytes_of(token).unwrap();
                assert_eq!(kind.read(&bytes[..kind.size()]), token, "{kind}");
            }
            assert_eq!((kind.bytes_of(least - 1), kind.bytes_of(most + 1)), (None, None), "{kind}");
        }
        assert_eq!(TokenType::I64.bytes_of(i64::MIN), Some(i64::MIN.to_le_bytes()));
        assert_eq!(TokenType::U16.to_string(), "u16");
    }
}
