//! Errors that a collate can make with its fields.

/// A row or a batch was used in a way that does not match its layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// No field has this name.
    #[error("no field `{name}` in the layout; it has {known}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The layout's names.
        known: String,
    },
    /// The values have a different dtype from the field, or a different type from the column.
    #[error("field `{name}` holds {expected}, not {given}: convert the values, or give the field their type")]
    DType {
        /// The field.
        name: String,
        /// Its dtype or type.
        expected: &'static str,
        /// The dtype or the type of the values.
        given: &'static str,
    },
    /// The number of values does not match the field.
    #[error("field `{name}` takes {expected} values a row, not {given}")]
    Length {
        /// The field.
        name: String,
        /// The number of values of a row.
        expected: usize,
        /// The number of values that were given.
        given: usize,
    },
    /// A padded or jagged field got more values than its longest row holds, or an incomplete step.
    #[error("{kind} field `{name}` takes {}", limit(kind, *max, *step, *given))]
    Padded {
        /// The field.
        name: String,
        /// `padded` or `jagged`.
        kind: &'static str,
        /// The most values that a row holds.
        max: usize,
        /// The number of values in a step.
        step: usize,
        /// The number of values that were given.
        given: usize,
    },
    /// A row of a field that varies in two dimensions is larger than the field allows, or its number of values does not match its size.
    #[error(
        "field `{name}` takes rows of {} plane(s) of up to {} x {} (height, width); {} x {} with {given} values is none",
        largest[0], largest[1], largest[2], size[0], size[1]
    )]
    Size {
        /// The field.
        name: String,
        /// The planes of a row, and the greatest height and width.
        largest: [usize; 3],
        /// The height and width that were given.
        size: [usize; 2],
        /// The number of values that were given.
        given: usize,
    },
    /// A field was written or read in the wrong way for its kind, for example an image as values or a tensor as a
    /// column.
    #[error("field `{name}` {problem}")]
    Kind {
        /// The field.
        name: String,
        /// What the field is, and what to write instead.
        problem: &'static str,
    },
    /// A value does not fit the dtype that its tensor is cast to. Burn would silently change it.
    #[error(
        "value {value} of row {row} does not fit into {into}: write `dtype = {dtype}` at the field `{name}`, or without the \
         derive take it by `RawBatch::take`"
    )]
    Range {
        /// The field.
        name: String,
        /// The value.
        value: String,
        /// The row of the batch, from 0.
        row: usize,
        /// The dtype that the tensor is cast to.
        into: &'static str,
        /// The dtype of the field.
        dtype: &'static str,
    },
    /// The collate returned without writing the field.
    #[error("field `{name}` was not written")]
    Unwritten {
        /// The field.
        name: String,
    },
    /// A tensor was taken with a rank or kind that does not match the field, or it was taken twice.
    #[error("field `{name}` cannot be taken as {wanted}: {there}")]
    Tensor {
        /// The field.
        name: String,
        /// The requested tensor type.
        wanted: String,
        /// The actual type, or that it was taken before.
        there: String,
    },
}

impl FieldError {
    /// Whether every sample would get this error, because the program does not match its layout.
    pub(super) fn is_of_the_program(&self) -> bool {
        matches!(self, Self::Unknown { .. } | Self::DType { .. } | Self::Kind { .. })
    }

    /// Whether a text contains the message of such an error.
    pub(super) fn says_the_program(text: &str) -> bool {
        let texts = [
            "` in the layout; it has ",
            ", or give the field their type",
            "` takes images: write it by `RowMut::image`",
            "` takes no images: make it by `Field::image`",
            "` varies in two dimensions: write it by `RowMut::write_2d`",
            "` does not vary in two dimensions: write it by another method",
            "` is padded or jagged: write it by `RowMut::write`",
            "` is a column: write it by `RowMut::put_column`",
            "` is no column: write it by another method",
            "` is made by the loader: write the field before it",
        ];
        texts.iter().any(|part| text.contains(part))
    }
}

/// Describes what a field of varying length accepts, and what to do about a row that it does not accept.
fn limit(kind: &str, max: usize, step: usize, given: usize) -> String {
    let rows = match step {
        1 => format!("up to {max} values a row, not {given}"),
        _ if !given.is_multiple_of(step) => {
            return format!("steps of {step} values, and {given} values are no whole steps");
        }
        _ => format!("up to {} steps of {step} values a row, not {}", max / step, given / step),
    };
    format!(
        "{rows}: cut the row, or raise the limit, which is that of `Field::{kind}` or of `{kind} = [..]` in `#[sample(..)]`"
    )
}
