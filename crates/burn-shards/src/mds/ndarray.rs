//! Arrays. The type of the numbers and the shape are in the column's encoding or in each array.

use crate::source::{
    cell::{Cell, Type},
    sample,
};
use bytes::Bytes;

/// The type of the numbers and the shape of a column's arrays, as far as the encoding has them. The rest is at the start of each array.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ArrayType {
    kind: Option<Type>,
    shape: Option<Vec<usize>>,
}

impl ArrayType {
    /// Reads `dtype` or `dtype:2,3`. `None` if it is neither.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (kind, shape) = text.split_once(':').map_or((text, None), |(kind, shape)| (kind, Some(shape)));
        let kind = if kind.is_empty() { None } else { Some(Type::named(kind)?) };
        let shape = shape.map(|shape| shape.split(',').map(|size| size.trim().parse().ok()).collect());
        Some(Self { kind, shape: shape.map_or(Some(None), |shape: Option<_>| shape.map(Some))? })
    }

    /// An array with one number.
    pub(super) fn sample(&self) -> Cell {
        let number = |kind: Type| Cell::Array(vec![1], kind, Bytes::from_static(&[0; 8][..kind.size()]));
        self.kind.map_or_else(sample::unknown, number)
    }

    /// Reads an array. The error is the problem with it.
    pub(super) fn read(&self, bytes: &[u8]) -> Result<Cell, String> {
        let mut rest = bytes;
        let kind = match self.kind {
            Some(kind) => kind,
            None => {
                let code = take(&mut rest, 1)?[0];
                Type::of_code(code).ok_or_else(|| format!("{code} is no type of numbers"))?
            }
        };
        let shape = match &self.shape {
            Some(shape) => shape.clone(),
            None => shape(&mut rest)?,
        };
        let numbers = shape.iter().try_fold(kind.size(), |bytes, size| bytes.checked_mul(*size));
        if numbers != Some(rest.len()) {
            return Err(format!("an array of the shape {shape:?} does not have {} bytes", rest.len()));
        }
        Ok(Cell::Array(shape, kind, Bytes::copy_from_slice(rest)))
    }
}

/// One byte has the number of dimensions, and the bytes of each: 1, 2, 4 or 8.
fn shape(rest: &mut &[u8]) -> Result<Vec<usize>, String> {
    let head = take(rest, 1)?[0];
    let width = 1 << (head & 3);
    let sizes = take(rest, usize::from(head >> 2) * width)?;
    let size = |bytes: &[u8]| {
        let mut all = [0; 8];
        all[..width].copy_from_slice(bytes);
        usize::try_from(u64::from_le_bytes(all)).map_err(|_| "a dimension is too large".to_string())
    };
    sizes.chunks_exact(width).map(size).collect()
}

/// Reads `bytes` bytes from the front.
pub(super) fn take<'a>(rest: &mut &'a [u8], bytes: usize) -> Result<&'a [u8], String> {
    rest.split_off(..bytes).ok_or_else(|| format!("it ends {} bytes too early", bytes - rest.len()))
}
