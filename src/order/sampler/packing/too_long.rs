//! What is done with a document that is too long.

/// What is done with a document that has more tokens than a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TooLong {
    /// The document is an error.
    #[default]
    Error,
    /// The first tokens of the document are a whole row, and the others are left out.
    Cut,
    /// The document comes in no batch. The log has a warning with the number of such documents, and the statistics count them
    /// (`left_out`).
    Drop,
}
