//! What a collate can do wrong with its fields.

/// A row or a batch was used against its layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// No field has this name.
    #[error("no field `{name}` in the layout; it has {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The layout's names.
        known: String,
    },
    /// The values have another dtype than the field, or another type than the column.
    #[error("field `{name}` holds {expected}, not {given}: convert the values, or give the field their type")]
    DType {
        /// The field.
        name: String,
        /// The dtype or the type that it has.
        expected: &'static str,
        /// The dtype or the type of the values.
        given: &'static str,
    },
    /// The number of values is not that of the field.
    #[error("field `{name}` takes {expected} values a row, not {given}")]
    Length {
        /// The field.
        name: String,
        /// The number of values that a row takes.
        expected: usize,
        /// The number of values that were given.
        given: usize,
    },
    /// A padded or jagged field got more values than its longest row takes, or a part of a step.
    #[error("{kind} field `{name}` takes {}", limit(kind, *max, *step, *given))]
    Padded {
        /// The field.
        name: String,
        /// `padded` or `jagged`.
        kind: &'static str,
        /// The most values that a row takes.
        max: usize,
        /// The number of values in a step.
        step: usize,
        /// The number of values that were given.
        given: usize,
    },
    /// A row of a field that varies in two dimensions is larger than the field allows, or has not all values of its size.
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
    /// A field was written or read in a way that is not for its kind: an image as values, a tensor as a column.
    #[error("field `{name}` {problem}")]
    Kind {
        /// The field.
        name: String,
        /// What the field is, and what to write.
        problem: &'static str,
    },
    /// A value does not fit the dtype that its tensor is cast to. Burn would change it without a word.
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
        /// The dtype that the tensor is to have.
        into: &'static str,
        /// The dtype of the field.
        dtype: &'static str,
    },
    /// The collate returned without having written the field.
    #[error("field `{name}` was not written")]
    Unwritten {
        /// The field.
        name: String,
    },
    /// A tensor was taken with a rank or kind that is not the field's, or it was taken twice.
    #[error("field `{name}` cannot be taken as {wanted}: {there}")]
    Tensor {
        /// The field.
        name: String,
        /// The tensor type asked for.
        wanted: String,
        /// What is there.
        there: String,
    },
}

impl FieldError {
    /// Whether each sample would get this error, since the program and its layout do not fit together.
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

/// What a field takes whose rows vary in length, and what to do about a row that it does not take.
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
