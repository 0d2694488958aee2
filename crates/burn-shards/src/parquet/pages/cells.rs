//! From decoded values to cells.

use super::piece::{DecodedPiece, Values};
use crate::{
    parquet::{
        columns::{Kind, Leaf},
        fault::PartError,
    },
    source::cell::{Cell, Raw, Type},
};
use burn::tensor::f16;
use std::ops::Range;

/// The value of a row of a piece, and its definition level.
pub(crate) fn cell(piece: &DecodedPiece, leaf: &Leaf, row: usize) -> Result<(u8, Cell), PartError> {
    if row >= piece.rows {
        return Err(PartError::damaged("a page has fewer rows than its file says"));
    }
    let def = piece.def(row, leaf.full);
    let cell = match leaf.list {
        Some(list) if def < list.there => Cell::Null,
        Some(_) => list(piece, leaf.kind, piece.elements(row), |element| piece.is_hole(element))?,
        None if def < leaf.full => Cell::Null,
        None => value(&piece.values, leaf.kind, row)?,
    };
    Ok((def, cell))
}

/// The cell of a byte string, by the kind of its leaf.
pub(crate) fn bytes(kind: Kind, bytes: Vec<u8>) -> Result<Cell, PartError> {
    Ok(match kind {
        // A text that is not UTF-8 is an error of its row, unless the row type wants bytes.
        Kind::Text => String::from_utf8(bytes).map_or_else(|error| Cell::Bytes(error.into_bytes()), Cell::Text),
        Kind::Decimal(scale) => scaled(decimal(&bytes)?, scale),
        Kind::Json => Cell::Raw(bytes, Raw::Json),
        Kind::F16 => match bytes[..] {
            [low, high] => Cell::F32(half([low, high])),
            _ => return Err(short()),
        },
        _ => Cell::Bytes(bytes),
    })
}

/// The value at an index, which is not null.
pub(crate) fn value(values: &Values, kind: Kind, at: usize) -> Result<Cell, PartError> {
    if kind == Kind::Null {
        return Err(PartError::damaged("a column of nulls has a value"));
    }
    let cell = match values {
        Values::Bool(values) => values.get(at).map(|value| Cell::Bool(*value)),
        Values::I32(values) => values.get(at).map(|value| match kind {
            Kind::Unsigned(_) => Cell::Unsigned((*value as u32).into()),
            Kind::Decimal(scale) => scaled(value.to_string(), scale),
            _ => Cell::Int((*value).into()),
        }),
        Values::I64(values) => values.get(at).map(|value| match kind {
            Kind::Unsigned(_) => Cell::Unsigned(*value as u64),
            Kind::Decimal(scale) => scaled(value.to_string(), scale),
            _ => Cell::Int(*value),
        }),
        Values::F32(values) => values.get(at).map(|value| Cell::F32(*value)),
        Values::F64(values) => values.get(at).map(|value| Cell::F64(*value)),
        Values::Bytes(blob) => return bytes(kind, blob.get(at).ok_or_else(short)?.to_vec()),
    };
    cell.ok_or_else(short)
}

/// The list of some values of a piece.
pub(crate) fn list(
    piece: &DecodedPiece,
    kind: Kind,
    elements: Range<usize>,
    is_null: impl Fn(usize) -> bool,
) -> Result<Cell, PartError> {
    let nulls = elements.clone().any(&is_null);
    if !nulls && let Some(numbers) = numbers(&piece.values, kind, elements.clone())? {
        return Ok(numbers);
    }
    let one = |element| match is_null(element) {
        true => Ok(Cell::Null),
        false => value(&piece.values, kind, element),
    };
    elements.map(one).collect::<Result<_, _>>().map(Cell::List)
}

/// A list of numbers. `None` if the values are not numbers.
fn numbers(values: &Values, kind: Kind, elements: Range<usize>) -> Result<Option<Cell>, PartError> {
    fn part<T>(values: &[T], elements: Range<usize>) -> Result<&[T], PartError> {
        values.get(elements).ok_or_else(short)
    }
    fn narrow<S: TryFrom<i32>>(values: &[i32]) -> Result<Vec<S>, PartError> {
        let outside = |_| PartError::damaged("a number does not fit its type");
        values.iter().map(|value| S::try_from(*value).map_err(outside)).collect()
    }
    Ok(Some(match (values, kind) {
        (_, Kind::Null | Kind::Decimal(_)) => return Ok(None),
        (Values::I32(values), _) => {
            let values = part(values, elements)?;
            match kind {
                Kind::Int(8) => Type::I8.list(&narrow::<i8>(values)?),
                Kind::Int(16) => Type::I16.list(&narrow::<i16>(values)?),
                Kind::Unsigned(8) => Type::U8.list(&narrow::<u8>(values)?),
                Kind::Unsigned(16) => Type::U16.list(&narrow::<u16>(values)?),
                Kind::Unsigned(_) => Type::U32.list(values), // they have the same bits
                _ => Type::I32.list(values),
            }
        }
        (Values::I64(values), Kind::Unsigned(_)) => Type::U64.list(part(values, elements)?),
        (Values::I64(values), _) => Type::I64.list(part(values, elements)?),
        (Values::F32(values), _) => Type::F32.list(part(values, elements)?),
        (Values::F64(values), _) => Type::F64.list(part(values, elements)?),
        (Values::Bytes(blob), Kind::F16) => {
            let one = |element| match blob.get(element) {
                Some([low, high]) => Ok(half([*low, *high])),
                _ => Err(short()),
            };
            Type::F32.list(&elements.map(one).collect::<Result<Vec<f32>, _>>()?)
        }
        _ => return Ok(None),
    }))
}

/// A decimal from its digits, with `scale` digits after the point. The row type may read it as a float or a text, and as an integer if
/// there is no point.
fn scaled(mut digits: String, scale: u8) -> Cell {
    if scale > 0 {
        let sign = usize::from(digits.starts_with('-'));
        let zeros = (usize::from(scale) + 1).saturating_sub(digits.len() - sign);
        digits.insert_str(sign, &"0".repeat(zeros));
        digits.insert(digits.len() - usize::from(scale), '.');
    }
    Cell::Raw(digits.into_bytes(), Raw::Number)
}

/// The digits of a big-endian integer.
fn decimal(bytes: &[u8]) -> Result<String, PartError> {
    let negative = bytes.first().is_some_and(|first| *first >= 0x80);
    let sign = if negative { 0xFF } else { 0 };
    let mut rest: Vec<u8> = bytes.iter().skip_while(|byte| **byte == sign).map(|byte| byte ^ sign).collect();
    if rest.len() > 32 {
        return Err(PartError::Value("a decimal has more than 256 bits".into()));
    }
    // Two's complement: the bits of -n are the inverted bits of n - 1.
    let (mut digits, mut more) = (Vec::new(), u32::from(negative));
    loop {
        let mut digit = 0;
        for byte in &mut rest {
            let all = digit * 256 + u32::from(*byte);
            (*byte, digit) = ((all / 10) as u8, all % 10);
        }
        digits.push(char::from(b'0' + ((digit + more) % 10) as u8));
        more = (digit + more) / 10;
        if more == 0 && rest.iter().all(|byte| *byte == 0) {
            break;
        }
    }
    digits.extend(negative.then_some('-'));
    Ok(digits.into_iter().rev().collect())
}

/// The value of a half-precision number.
fn half(bytes: [u8; 2]) -> f32 {
    f16::from_le_bytes(bytes).to_f32()
}

fn short() -> PartError {
    PartError::damaged("a page has fewer values than it says")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_have_256_bits_at_most() {
        let text = |bytes: &[u8]| decimal(bytes).unwrap_or_else(|wrong| wrong.to_string());
        for number in [0, 1, -1, 9, -10, 99, -100, 127, -128, 255, -256, i128::MAX, i128::MIN, i128::MIN + 1] {
            assert_eq!(text(&number.to_be_bytes()), number.to_string());
            let wide = [if number < 0 { 0xFF } else { 0 }; 40];
            assert_eq!(text(&[&wide[..], &number.to_be_bytes()].concat()), number.to_string());
        }
        assert_eq!((text(&[]), text(&[0x80]), text(&[0xFF, 0x7F])), ("0".into(), "-128".into(), "-129".into()));
        let power = "57896044618658097711785492504343953926634992332820282019728792003956564819968"; // 2^255
        assert_eq!(text(&[&[0x80][..], &[0; 31]].concat()), format!("-{power}"));
        assert_eq!(text(&[&[0, 0x80][..], &[0; 31]].concat()), power);
        assert!(text(&[1; 33]).contains("256 bits"));
    }

    #[test]
    fn the_point_of_a_decimal_has_digits_on_both_sides() {
        let text = |digits: &str, scale| match scaled(digits.into(), scale) {
            Cell::Raw(text, Raw::Number) => String::from_utf8(text).unwrap(),
            other => panic!("{other:?}"),
        };
        for (digits, scale, right) in
            [("-123", 0, "-123"), ("123", 2, "1.23"), ("-1", 2, "-0.01"), ("0", 3, "0.000"), ("-1200", 2, "-12.00")]
        {
            assert_eq!(text(digits, scale), right);
        }
    }

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
