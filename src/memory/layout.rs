//! The layout of a batch: where each of its fields lies in a slot.

use super::{
    cast::IntegerFit,
    column::Column,
    field::{Field, Role},
    row_size::Planes,
};
use crate::{
    fault::Error,
    image_rows::{Decoder, ImageRow, level_table},
};
use burn::tensor::DType;
use std::sync::Arc;

/// Each field starts at a multiple of this: a cache line, which exceeds the alignment of any dtype.
const ALIGN: usize = 64;

/// Where the rows of a field lie in a slot.
#[derive(Debug)]
struct FieldBytes {
    offset: usize,
    /// Bytes and values of a row.
    row_bytes: usize,
    /// The number of values of a row. 0 for an image field, which is not written as values.
    values: usize,
    /// The value for each byte of a pixel, for an image field.
    levels: Option<Arc<[u8]>>,
}

/// Where the fields of a batch of at most `rows` rows lie in a slot: one after another, each in row order.
#[derive(Debug)]
pub(crate) struct SlotLayout {
    /// The fields in the slot.
    pub(crate) fields: Vec<Field>,
    /// The fields beside the slot.
    pub(crate) columns: Vec<Field>,
    spans: Vec<FieldBytes>,
    rows: usize,
    bytes: usize,
    /// Whether rows of image fields are for a device that decodes them.
    pub(crate) decoding: bool,
    all_written: u64,
    /// The fields whose values are checked as they are written, because they may not fit the dtype given here.
    pub(crate) narrowed: Vec<(usize, DType)>,
    /// What is known about the values of a batch before its rows are written.
    pub(crate) fit: IntegerFit,
}

impl SlotLayout {
    /// Lays out `fields` for `rows` rows, and checks the layout.
    pub(crate) fn new(fields: Vec<Field>, rows: usize) -> Result<Self, Error> {
        Self::of(fields, rows, false)
    }

    /// Returns the layout for a device with this default integer dtype. With `decoding`, the device decodes the image fields.
    pub(crate) fn on(&self, integers: DType, decoding: bool) -> Result<Self, Error> {
        let layout = Self::of([&self.fields[..], &self.columns[..]].concat(), self.rows, decoding)?;
        let (fit, narrowed) = IntegerFit::of(&layout.fields, integers)?;
        Ok(Self { narrowed, fit, ..layout })
    }

    /// Where images are to be decoded, if there are any.
    pub(crate) fn decoder(&self) -> Option<Decoder> {
        let is_jagged = self.fields.iter().any(|field| field.role == Role::Jagged);
        let images = self.fields.iter().filter_map(|field| Some((field.image.as_ref()?.decoder, field.is_for_host())));
        // A row that the device refuses cannot be removed from rows that lie end to end.
        images
            .map(|(decoder, is_for_host)| if is_for_host || is_jagged { Decoder::Host } else { decoder })
            .max_by_key(|decoder| *decoder == Decoder::Host)
    }

    fn of(fields: Vec<Field>, rows: usize, decoding: bool) -> Result<Self, Error> {
        let wrong = |problem: String, advice: &str| Error::config("Collate::layout", problem, advice);
        let named = |at: usize| fields[..at].iter().any(|other| other.name == fields[at].name);
        if let Some(at) = (0..fields.len()).find(|at| named(*at)) {
            let name = &fields[at].name;
            let adds =
                |field: &Field| field.name == *name && matches!(field.role, Role::Mask | Role::Offsets | Role::Rows);
            let advice = if fields[..=at].iter().any(adds) {
                "the loader adds one of them to a padded or jagged field: give yours another name"
            } else {
                "give each its own name"
            };
            return Err(wrong(format!("two fields are named `{name}`"), advice));
        }
        let all_written = u64::MAX.checked_shr((MAX_FIELDS.saturating_sub(fields.len())) as u32).unwrap_or(0);
        if fields.len() > MAX_FIELDS {
            let problem = format!("it has {} fields", fields.len());
            return Err(wrong(problem, "use at most 64, or put several values into one"));
        }
        let (columns, mut fields): (Vec<_>, Vec<_>) = fields.into_iter().partition(|field| field.column.is_some());
        if fields.is_empty() {
            let problem = if columns.is_empty() { "it has no field" } else { "it has no field besides columns" };
            return Err(wrong(problem.into(), "name at least one `Field` of numbers"));
        }
        for field in fields.iter_mut().filter(|field| field.varies_in_2d && field.image.is_some()) {
            field.pad = Some(vec![0; field.dtype.size()]); // zero in any dtype
        }
        let (mut spans, mut end) = (Vec::with_capacity(fields.len()), 0usize);
        for (at, field) in fields.iter().enumerate() {
            let name = &field.name;
            if let Some((problem, advice)) = fault_of(field, rows) {
                return Err(wrong(problem, advice));
            }
            field.check_image()?;
            let decoder = |field: &Field| field.image.as_ref().map(|image| image.decoder);
            let differs = |other: &&Field| other.image.is_some() && decoder(other) != decoder(field);
            if let Some(other) = fields[..at].iter().find(differs).filter(|_| field.image.is_some()) {
                let problem = format!("the images `{}` and `{name}` have different decoders", other.name);
                return Err(wrong(problem, "give both the same"));
            }
            // The device gets bytes, and computes the values.
            let of_bytes = field.image.is_some() && decoding;
            let value = if of_bytes { 1 } else { field.dtype.size() };
            let row = field.shape.iter().try_fold(value, |bytes, dim| bytes.checked_mul(*dim));
            let row = match of_bytes {
                true => row.and_then(|row| row.checked_add(ImageRow::BYTES)?.checked_next_multiple_of(ALIGN)),
                false => row,
            };
            // There is one more offset than there are rows.
            let count = rows + usize::from(field.role == Role::Offsets);
            let span = row.and_then(|row| row.checked_mul(count)).and_then(|span| span.checked_next_multiple_of(ALIGN));
            let (Some(row), Some(next)) = (row, span.and_then(|span| end.checked_add(span))) else {
                return Err(wrong(format!("field `{name}` is larger than the address space"), "check its shape"));
            };
            if row == 0 || field.shape.contains(&0) {
                return Err(wrong(format!("rows of field `{name}` are empty"), "give every dimension at least 1"));
            }
            let values = if field.image.is_some() { 0 } else { row / field.dtype.size() };
            let levels = field.image.as_ref().map(|image| level_table(image, field.dtype));
            spans.push(FieldBytes { offset: end, row_bytes: row, values, levels });
            end = next;
        }
        let on_device = |field: &&Field| field.image.as_ref().is_some_and(|image| image.decoder == Decoder::Device);
        if fields.iter().any(|field| field.role == Role::Jagged)
            && let Some(field) = fields.iter().find(on_device)
        {
            let problem =
                format!("images of field `{}` are to be decoded on the device, beside a jagged field", field.name);
            return Err(wrong(problem, "leave `Decoder::Device` out, or pad the other field"));
        }
        let (narrowed, fit) = (Vec::new(), IntegerFit::default());
        Ok(Self { fields, columns, spans, rows, bytes: end, decoding, all_written, narrowed, fit })
    }

    /// The bytes of a full slot.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The most rows that a slot takes.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Where the rows of a field start.
    #[inline]
    pub(crate) fn offset(&self, field: usize) -> usize {
        self.spans[field].offset
    }

    /// The bytes of one row of a field, in the slot.
    #[inline]
    pub(crate) fn row_bytes(&self, field: usize) -> usize {
        self.spans[field].row_bytes
    }

    /// The number of values of one row of a field; of a padded field, of the longest row.
    #[inline]
    pub(crate) fn row_values(&self, field: usize) -> usize {
        self.spans[field].values
    }

    /// The longest file that the device gets for an image field.
    #[cfg(feature = "vision")]
    pub(crate) fn room(&self, field: usize) -> usize {
        self.fields[field].image.as_ref().map_or(0, |image| image.room)
    }

    /// The image options of an image field.
    #[cfg(feature = "vision")]
    pub(crate) fn image_field(&self, field: usize) -> Option<&crate::image_rows::ImageField> {
        self.fields[field].image.as_deref()
    }

    /// The value for each byte of an image field, one channel after another. `None` for other fields.
    pub(crate) fn image_values(&self, field: usize) -> Option<&Arc<[u8]>> {
        self.spans[field].levels.as_ref()
    }

    /// Returns the bit mask of a row with all fields written: first the fields in the slot, then the columns.
    #[inline]
    pub(crate) fn all_written(&self) -> u64 {
        self.all_written
    }

    /// The columns of some rows, which have no values yet.
    pub(crate) fn empty_columns(&self, rows: usize) -> Vec<Box<dyn Column>> {
        self.columns.iter().filter_map(|field| Some(field.column?(rows))).collect()
    }

    pub(crate) fn has_padded(&self) -> bool {
        self.fields.iter().any(|field| field.pad.is_some())
    }
}

/// The problem with a field in a layout of this many rows, and what to write instead.
fn fault_of(field: &Field, rows: usize) -> Option<(String, &'static str)> {
    let (name, rank, is_padded) = (&field.name, field.shape.len(), field.pad.is_some());
    let is_long = || {
        let Planes { lines, steps, .. } = field.planes();
        lines.max(steps) > u32::MAX as usize
    };
    let fault = if matches!(field.dtype, DType::QFloat(_)) {
        (format!("field `{name}` is quantised"), "send plain values and quantise in `finish`")
    } else if field.varies_in_2d && rank < 2 {
        let problem = format!("padded field `{name}` has no two dimensions to pad");
        (problem, "give the largest row's shape, [.., height, width]")
    } else if is_padded && rank == 0 {
        (format!("padded field `{name}` has no dimension to pad"), "give the longest row's shape")
    } else if is_padded && is_long() {
        let problem = format!("rows of field `{name}` have more steps than 32 bits can number");
        (problem, "lower the most that a row takes")
    } else if field.role == Role::Masked && !is_padded {
        let advice = "leave out `with_mask`, or make the field by `Field::padded`, and images `any_size`";
        (format!("field `{name}` has no padding to mask"), advice)
    } else if field.has_rows && field.role != Role::Jagged {
        let advice = "leave out `with_rows`, or make the field by `Field::jagged`";
        (format!("rows of field `{name}` do not lie end to end"), advice)
    } else if field.role == Role::Jagged && field.shape[0].saturating_mul(rows) > i32::MAX as usize {
        let problem = format!("{rows} rows of field `{name}` have more steps than 32 bits can number");
        (problem, "lower the most that a row takes, or the batch size")
    } else if rank > MAX_ROW_RANK {
        (format!("rows of field `{name}` have {rank} dimensions"), "use at most 7 and reshape in `finish`")
    } else {
        return None;
    };
    Some(fault)
}

/// [`RowMut`](crate::RowMut) notes the written fields as bits of one word.
const MAX_FIELDS: usize = 64;

/// Tensors have up to 8 dimensions, including the batch dimension.
const MAX_ROW_RANK: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_aligned_and_disjoint() {
        let fields =
            vec![Field::new("a", DType::U8, [3]), Field::new("b", DType::F32, [5]), Field::new("c", DType::I64, [])];
        let layout = SlotLayout::new(fields, 7).unwrap();
        let mut end = 0;
        for field in 0..3 {
            assert_eq!(layout.offset(field) % ALIGN, 0);
            assert!(layout.offset(field) >= end);
            end = layout.offset(field) + 7 * layout.row_bytes(field);
        }
        assert!(layout.bytes() >= end);
        assert_eq!((layout.row_bytes(0), layout.row_bytes(1), layout.row_bytes(2)), (3, 20, 8));
    }

    #[test]
    fn a_wrong_layout_is_refused_with_its_reason() {
        let cases: [(Vec<Field>, &str); 8] = [
            (vec![], "no field"),
            (vec![Field::new("a", DType::U8, []), Field::new("a", DType::F32, [])], "two fields are named `a`"),
            (vec![Field::new("a", DType::U8, [0])], "are empty"),
            (vec![Field::new("a", DType::U8, [usize::MAX, 2])], "larger than the address space"),
            (vec![Field::padded("a", [], 0u8)], "no dimension to pad"),
            (vec![Field::padded("a", [5_000_000_000], 0u8)], "more steps than 32 bits"),
            (vec![Field::padded_2d("a", [1, 5_000_000_000], 0u8)], "more steps than 32 bits"),
            (vec![Field::new("a", DType::U8, [1; 8])], "8 dimensions"),
        ];
        for (fields, reason) in cases {
            let message = SlotLayout::new(fields, 4).unwrap_err().to_string();
            assert!(message.contains(reason), "{message}");
        }
    }
}
