//! What can be wrong with rows of tokens.

use crate::error::BoxError;

/// Why rows of text give no tokens.
///
/// The rows of [`Rows`](crate::Rows) have errors of their own: a tokeniser that refuses one is a
/// [`DataError::Map`](crate::DataError::Map), which names file and row.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// The tokeniser refused a row of a data set that is not `Rows`.
    #[error("row {row}: {source}")]
    Row {
        /// The index of the row.
        row: usize,
        /// The tokeniser's error.
        source: BoxError,
    },
}
