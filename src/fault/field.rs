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
    /// The values have another dtype than the field.
    #[error("field `{name}` holds {expected}, not {given}")]
    DType {
        /// The field.
        name: String,
        /// Its dtype.
        expected: &'static str,
        /// The dtype of the values.
        given: &'static str,
    },
    /// The number of values is not the field's.
    #[error("field `{name}` takes {expected} values a row, not {given}")]
    Length {
        /// The field.
        name: String,
        /// What a row takes.
        expected: usize,
        /// What was given.
        given: usize,
    },
    /// A padded field got more than its longest row, or a part of a step.
    #[error("padded field `{name}` takes up to {max} values a row in steps of {step}, not {given}")]
    Padded {
        /// The field.
        name: String,
        /// The most that a row takes.
        max: usize,
        /// Values a step.
        step: usize,
        /// What was given.
        given: usize,
    },
    /// The collate returned without having written the field.
    #[error("field `{name}` was not written")]
    Unwritten {
        /// The field.
        name: String,
    },
    /// A tensor was taken with another rank or kind than the field's, or twice.
    #[error("field `{name}` is not there as {wanted}: {there}")]
    Tensor {
        /// The field.
        name: String,
        /// The tensor type asked for.
        wanted: String,
        /// What is there.
        there: String,
    },
}
