//! Checks whether values survive a cast of their tensor to another dtype. Burn's casts silently change values that do not fit.

use super::field::{Field, Role};
use crate::fault::Error;
use burn::tensor::{DType, bf16, f16};
use bytemuck::{AnyBitPattern, pod_read_unaligned};
use std::{fmt::Display, ops::RangeInclusive};

impl Field {
    /// For the derives: the tensor of this field is cast to this dtype, or to the device's own integer dtype. A value that does not fit is
    /// an error of its row.
    #[doc(hidden)]
    pub fn cast_to(self, dtype: Option<DType>) -> Self {
        Self { cast: Some(dtype), ..self }
    }
}

/// What is known about the values of a batch: the device's integer dtype, and a bit for each field that may have values outside its range.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct IntegerFit {
    /// `None` until the layout is for a particular device.
    integers: Option<DType>,
    beyond: u64,
}

impl IntegerFit {
    /// What is known before the rows of a batch are written, on a device with this integer dtype. Also returns the fields to check row by
    /// row, each with the dtype that some of its values may not fit.
    ///
    /// # Errors
    /// If the padding of a field does not fit its tensor's dtype.
    pub(super) fn of(fields: &[Field], integers: DType) -> Result<(Self, Vec<(usize, DType)>), Error> {
        let (mut fit, mut narrowed) = (Self { integers: Some(integers), beyond: 0 }, Vec::new());
        for (at, field) in fields.iter().enumerate() {
            let into = match field.cast {
                Some(Some(dtype)) => dtype,
                None if field.dtype.is_float() => continue, // `take_int` is not for float fields
                Some(None) | None => integers,
            };
            // A field that is checked against another dtype is not checked against the device's integer dtype.
            let mut is_unseen = into != integers && !always_fits(field.dtype, integers);
            if !always_fits(field.dtype, into) {
                let is_error = field.cast.is_some();
                let pad = field.pad.as_ref().and_then(|pad| first_beyond(pad, field.dtype, into));
                match pad {
                    Some((_, value)) if is_error => {
                        let problem =
                            format!("the padding {value} of field `{}` does not fit into {}", field.name, into.name());
                        let advice = format!("write `dtype = {}`", field.dtype.name());
                        return Err(Error::config("Collate::layout", problem, advice));
                    }
                    pad => is_unseen |= pad.is_some(),
                }
                // Images, offsets and the rows of steps are written elsewhere, without a check.
                if field.is_image() || matches!(field.role, Role::Offsets | Role::Rows) {
                    is_unseen = true;
                } else {
                    narrowed.push((at, into));
                }
            }
            fit.beyond |= u64::from(is_unseen) << at;
        }
        Ok((fit, narrowed))
    }

    /// Adds values that were found not to fit: each bit of `beyond` is a field with such a value.
    pub(crate) fn with(self, beyond: u64) -> Self {
        Self { beyond: self.beyond | beyond, ..self }
    }

    /// Combines what is known about this batch and about the batches before it.
    pub(crate) fn after(self, before: Self) -> Self {
        self.with(before.beyond)
    }

    /// The integer dtype that all values of a field fit, if that is known.
    pub(crate) fn fit_of(self, field: usize) -> Option<DType> {
        self.integers.filter(|_| self.beyond >> field & 1 == 0)
    }
}

/// The range of whole numbers that a dtype can hold, if it is limited: of integers, and of f16, where larger numbers
/// become infinite.
fn numbers(dtype: DType) -> Option<RangeInclusive<i128>> {
    Some(match dtype {
        DType::U8 => u8::MIN.into()..=u8::MAX.into(),
        DType::U16 => u16::MIN.into()..=u16::MAX.into(),
        DType::U32 => u32::MIN.into()..=u32::MAX.into(),
        DType::U64 => u64::MIN.into()..=u64::MAX.into(),
        DType::I8 => i8::MIN.into()..=i8::MAX.into(),
        DType::I16 => i16::MIN.into()..=i16::MAX.into(),
        DType::I32 => i32::MIN.into()..=i32::MAX.into(),
        DType::I64 => i64::MIN.into()..=i64::MAX.into(),
        DType::F16 => -65504..=65504,
        _ => return None,
    })
}

/// The largest finite number of the float `into`, if `from` has larger ones.
fn largest(from: DType, into: DType) -> Option<f64> {
    let of = |dtype| match dtype {
        DType::F16 => 65504.0,
        DType::F64 => f64::MAX,
        _ => f64::from(f32::MAX), // bf16 has the same range, apart from its lower precision
    };
    (of(from) > of(into)).then(|| of(into))
}

/// Whether every value of one dtype fits into another. Rounding from float to float is allowed, as usual.
pub(crate) fn always_fits(from: DType, into: DType) -> bool {
    if from.is_float() && into.is_float() {
        return largest(from, into).is_none();
    }
    let Some(room) = numbers(into) else { return true };
    if from.is_bool() || from.is_float() {
        return from.is_bool();
    }
    numbers(from).is_none_or(|all| room.contains(all.start()) && room.contains(all.end()))
}

/// The first value that does not fit into another dtype, and its position.
pub(crate) fn first_beyond(values: &[u8], from: DType, into: DType) -> Option<(usize, String)> {
    if from.is_float() && into.is_float() {
        let most = largest(from, into)?;
        let beyond = |value: f64| value.is_finite() && value.abs() > most;
        return match from {
            DType::F64 => first::<f64>(values, beyond),
            DType::BF16 => first::<bf16>(values, |value| beyond(value.into())),
            _ => first::<f32>(values, |value| beyond(value.into())),
        };
    }
    let room = numbers(into)?;
    // The fraction of a float is cut off.
    let beyond = |value: f64| {
        let whole = value.trunc();
        !(whole >= *room.start() as f64 && whole < (*room.end() + 1) as f64)
    };
    macro_rules! of_integers {
        ($int:ty) => {{
            let low = <$int>::try_from(*room.start()).unwrap_or(<$int>::MIN);
            let high = <$int>::try_from(*room.end()).unwrap_or(<$int>::MAX);
            first::<$int>(values, |value| (value < low) | (value > high))
        }};
    }
    match from {
        DType::U8 => of_integers!(u8),
        DType::U16 => of_integers!(u16),
        DType::U32 => of_integers!(u32),
        DType::U64 => of_integers!(u64),
        DType::I8 => of_integers!(i8),
        DType::I16 => of_integers!(i16),
        DType::I32 => of_integers!(i32),
        DType::I64 => of_integers!(i64),
        DType::F64 => first::<f64>(values, beyond),
        DType::F32 | DType::Flex32 => first::<f32>(values, |value| beyond(value.into())),
        DType::F16 => first::<f16>(values, |value| beyond(value.into())),
        DType::BF16 => first::<bf16>(values, |value| beyond(value.into())),
        DType::Bool(_) | DType::QFloat(_) => None,
    }
}

fn first<E: AnyBitPattern + Display>(values: &[u8], beyond: impl Fn(E) -> bool) -> Option<(usize, String)> {
    let values = || values.chunks_exact(size_of::<E>()).map(pod_read_unaligned::<E>);
    // All values nearly always fit. Checking all of them takes less time than stopping at the first misfit.
    if !values().fold(false, |any, value| any | beyond(value)) {
        return None;
    }
    let found = values().enumerate().find(|(_, value)| beyond(*value));
    found.map(|(at, value)| (at, value.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_fits_if_it_stays_what_it_is() {
        fn found<E: bytemuck::NoUninit>(values: &[E], from: DType, into: DType) -> Option<(usize, String)> {
            first_beyond(bytemuck::cast_slice(values), from, into)
        }
        let none = |found: Option<(usize, String)>| assert_eq!(found, None);
        let at = |place: usize, value: &str| Some((place, value.to_string()));
        let (least, most) = (i64::from(i32::MIN), i64::from(i32::MAX));
        none(found(&[least, most, 0], DType::I64, DType::I32));
        assert_eq!(found(&[0, most + 1, least - 1], DType::I64, DType::I32), at(1, "2147483648"));
        assert_eq!(found(&[0, least - 1], DType::I64, DType::I32), at(1, "-2147483649"));
        assert_eq!(found(&[4_000_000_000u32], DType::U32, DType::I32), at(0, "4000000000"));
        assert_eq!(found(&[1 << 63, u64::MAX], DType::U64, DType::I64), at(0, "9223372036854775808"));
        assert_eq!(found(&[5i8, -1], DType::I8, DType::U64), at(1, "-1"));
        assert_eq!(found(&[256u16], DType::U16, DType::U8), at(0, "256"));
        assert_eq!(found(&[65504u32, 65505], DType::U32, DType::F16), at(1, "65505"));

        none(found(&[2147483647.9f64, -2147483648.9], DType::F64, DType::I32));
        assert_eq!(found(&[2147483648f64], DType::F64, DType::I32), at(0, "2147483648"));
        none(found(&[i64::MIN as f32], DType::F32, DType::I64));
        assert_eq!(found(&[0.0, i64::MAX as f32], DType::F32, DType::I64), at(1, "9223372000000000000"));
        assert_eq!(found(&[0.5, f32::NAN, 1.0], DType::F32, DType::I64), at(1, "NaN"));
        assert_eq!(found(&[f16::INFINITY], DType::F16, DType::I64), at(0, "inf"));
        assert_eq!(found(&[-0.9f32, -1.0], DType::F32, DType::U8), at(1, "-1"));
        none(found(&[0.1f32, f32::NAN, f32::INFINITY, -65504.0], DType::F32, DType::F16)); // a float may be rounded
        assert_eq!(found(&[0.0f32, -65505.0], DType::F32, DType::F16), at(1, "-65505"));
        assert_eq!(found(&[1e39f64], DType::F64, DType::F32), at(0, "1000000000000000000000000000000000000000"));
        none(found(&[f32::MAX], DType::F32, DType::BF16));
    }

    #[test]
    fn nothing_is_looked_at_where_all_values_fit() {
        let dtypes =
            [DType::U8, DType::U16, DType::U32, DType::U64, DType::I8, DType::I16, DType::I32, DType::I64, DType::F32];
        let fit = |into| dtypes.map(|from| always_fits(from, into));
        assert_eq!(fit(DType::I32), [true, true, false, false, true, true, true, false, false]);
        assert_eq!(fit(DType::I64), [true, true, true, false, true, true, true, true, false]);
        assert_eq!(fit(DType::U16), [true, true, false, false, false, false, false, false, false]);
        assert_eq!(fit(DType::F16), [true, false, false, false, true, true, false, false, false]);
        assert_eq!(fit(DType::F32), [true; 9]);

        let fields =
            [Field::new("a", DType::I32, []), Field::new("b", DType::F32, []), Field::new("c", DType::I64, [])];
        assert!(IntegerFit::of(&fields, DType::I64).unwrap().1.is_empty());
        let (fit, narrowed) = IntegerFit::of(&fields, DType::I32).unwrap();
        assert_eq!(narrowed, [(2, DType::I32)]);
        let fit = fit.with(0b100);
        assert_eq!([0, 1, 2].map(|field| fit.fit_of(field)), [Some(DType::I32), Some(DType::I32), None]);
        assert_eq!(IntegerFit::default().fit_of(0), None);
    }

    #[test]
    fn what_the_rows_do_not_show_is_not_known_to_fit() {
        let wide = Field::padded("wide", [3], 5_000_000_000i64);
        assert_eq!(IntegerFit::of(std::slice::from_ref(&wide), DType::I32).unwrap().0.fit_of(0), None);
        let refused = IntegerFit::of(&[wide.cast_to(None)], DType::I32).unwrap_err().to_string();
        assert!(refused.contains("the padding 5000000000 of field `wide` does not fit into i32"), "{refused}");
        // It was compared with bytes, not with the device's integers.
        let bytes = Field::new("bytes", DType::I64, []).cast_to(Some(DType::U16));
        assert_eq!(IntegerFit::of(&[bytes], DType::I32).unwrap().0.fit_of(0), None);
    }
}
