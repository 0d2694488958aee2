//! From decoded values to cells.

use super::{
    kind::Kind,
    piece::{Piece, Values},
    schema::Leaf,
    wrong::Wrong,
};
use crate::data::cell::{Cell, Numbers, Raw};
use burn::tensor::f16;
use std::ops::Range;

/// The value of a row of a piece, and its definition level.
pub(super) fn cell(piece: &Piece, leaf: &Leaf, row: usize) -> Result<(u8, Cell), Wrong> {
    if row >= piece.rows {
        return Err(Wrong::damaged("a page has fewer rows than its file says"));
    }
    let def = piece.def(row, leaf.full);
    let cell = match leaf.list {
        Some(list) if def < list.there => Cell::Null,
        Some(_) => list(piece, leaf, piece.elements(row))?,
        None if def < leaf.full => Cell::Null,
        None => value(&piece.values, leaf.kind, row)?,
    };
    Ok((def, cell))
}

/// A byte string as the leaf has it.
pub(super) fn bytes(kind: Kind, bytes: Vec<u8>) -> Result<Cell, Wrong> {
    Ok(match kind {
        // A text that is none is an error of its row, unless bytes are wanted there.
        Kind::Text => String::from_utf8(bytes).map_or_else(|error| Cell::Bytes(error.into_bytes()), Cell::Text),
        Kind::Decimal => decimal(&bytes)?,
        Kind::Json => Cell::Raw(bytes, Raw::Json),
        Kind::F16 => match bytes[..] {
            [low, high] => Cell::F32(half([low, high])),
            _ => return Err(short()),
        },
        _ => Cell::Bytes(bytes),
    })
}

fn value(values: &Values, kind: Kind, at: usize) -> Result<Cell, Wrong> {
    if kind == Kind::Null {
        return Err(Wrong::damaged("a column of nulls has a value"));
    }
    let cell = match values {
        Values::Bool(values) => values.get(at).map(|value| Cell::Bool(*value)),
        Values::I32(values) => values.get(at).map(|value| match kind {
            Kind::Unsigned(_) => Cell::Unsigned((*value as u32).into()),
            _ => Cell::Int((*value).into()),
        }),
        Values::I64(values) => values.get(at).map(|value| match kind {
            Kind::Unsigned(_) => Cell::Unsigned(*value as u64),
            _ => Cell::Int(*value),
        }),
        Values::F32(values) => values.get(at).map(|value| Cell::F32(*value)),
        Values::F64(values) => values.get(at).map(|value| Cell::F64(*value)),
        Values::Bytes(blob) => return bytes(kind, blob.get(at).ok_or_else(short)?.to_vec()),
    };
    cell.ok_or_else(short)
}

fn list(piece: &Piece, leaf: &Leaf, elements: Range<usize>) -> Result<Cell, Wrong> {
    let holes = elements.clone().any(|element| piece.is_hole(element));
    if !holes && let Some(numbers) = numbers(&piece.values, leaf.kind, elements.clone())? {
        return Ok(Cell::Numbers(numbers));
    }
    let one = |element| match piece.is_hole(element) {
        true => Ok(Cell::Null),
        false => value(&piece.values, leaf.kind, element),
    };
    elements.map(one).collect::<Result<_, _>>().map(Cell::List)
}

/// A list of numbers. `None` if the values are no numbers.
fn numbers(values: &Values, kind: Kind, elements: Range<usize>) -> Result<Option<Numbers>, Wrong> {
    fn part<T>(values: &[T], elements: Range<usize>) -> Result<&[T], Wrong> {
        values.get(elements).ok_or_else(short)
    }
    fn narrow<T: Copy, S: TryFrom<T>>(values: &[T]) -> Result<Vec<S>, Wrong> {
        let outside = |_| Wrong::damaged("a number does not fit its type");
        values.iter().map(|value| S::try_from(*value).map_err(outside)).collect()
    }
    Ok(Some(match (values, kind) {
        (_, Kind::Null) => return Ok(None),
        (Values::I32(values), _) => {
            let values = part(values, elements)?;
            match kind {
                Kind::Int(8) => Numbers::I8(narrow(values)?),
                Kind::Int(16) => Numbers::I16(narrow(values)?),
                Kind::Unsigned(8) => Numbers::U8(narrow(values)?),
                Kind::Unsigned(16) => Numbers::U16(narrow(values)?),
                Kind::Unsigned(_) => Numbers::U32(values.iter().map(|value| *value as u32).collect()),
                _ => Numbers::I32(values.to_vec()),
            }
        }
        (Values::I64(values), Kind::Unsigned(_)) => {
            Numbers::U64(part(values, elements)?.iter().map(|value| *value as u64).collect())
        }
        (Values::I64(values), _) => Numbers::I64(part(values, elements)?.to_vec()),
        (Values::F32(values), _) => Numbers::F32(part(values, elements)?.to_vec()),
        (Values::F64(values), _) => Numbers::F64(part(values, elements)?.to_vec()),
        (Values::Bytes(blob), Kind::F16) => {
            let one = |element| match blob.get(element) {
                Some([low, high]) => Ok(half([*low, *high])),
                _ => Err(short()),
            };
            Numbers::F32(elements.map(one).collect::<Result<_, _>>()?)
        }
        _ => return Ok(None),
    }))
}

/// The digits of an integer, whose highest byte comes first. They are an integer, a float or a text, as the row type asks.
fn decimal(bytes: &[u8]) -> Result<Cell, Wrong> {
    let sign = match bytes.first() {
        Some(first) if *first >= 0x80 => 0xFF,
        _ => 0,
    };
    let (high, low) = bytes.split_at(bytes.len().saturating_sub(size_of::<i128>()));
    let mut all = [sign; size_of::<i128>()];
    all[size_of::<i128>() - low.len()..].copy_from_slice(low);
    let number = i128::from_be_bytes(all);
    if high.iter().any(|byte| *byte != sign) || (number < 0) != (sign == 0xFF) {
        return Err(Wrong::Value("a decimal has more than 128 bits".into()));
    }
    Ok(Cell::Raw(number.to_string().into_bytes(), Raw::Number))
}

/// The value of a number of half precision.
fn half(bytes: [u8; 2]) -> f32 {
    f16::from_le_bytes(bytes).to_f32()
}

fn short() -> Wrong {
    Wrong::damaged("a page has fewer values than it says")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_half_precision() {
        for (bits, number) in
            [(0x3C00, 1.0), (0xC000, -2.0), (0x0001, 5.960_464_5e-8), (0x7BFF, 65504.0), (0x3555, 0.333_251_95)]
        {
            assert_eq!(half(u16::to_le_bytes(bits)), number, "{bits:x}");
        }
        let half = |bits: u16| half(bits.to_le_bytes());
        assert!(half(0x7E00).is_nan() && half(0xFC00) == f32::NEG_INFINITY);
    }
}
