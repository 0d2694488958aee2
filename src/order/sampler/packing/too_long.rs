//! What happens to a document that is too long.

/// What happens to a document with more tokens than a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TooLong {
    /// The document is an error.
    #[default]
    Error,
    /// The document is truncated to the length of a row.
    Cut,
    /// The document is left out. The loader logs a warning with the number of such documents, and the statistics count them (`left_out`).
    Drop,
}
