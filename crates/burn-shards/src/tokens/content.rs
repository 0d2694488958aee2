//! What is in one file of tokens.

use super::TokenType;
use std::ops::Range;

/// The tokens of a file. All of them lie within its bytes.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) kind: TokenType,
    /// The bytes of all tokens, in their order: runs of neighbours.
    pub(super) runs: Vec<Range<usize>>,
    /// Where documents start, counted in tokens from the first, ascending. `None` if the file does not say.
    pub(super) documents: Option<Vec<usize>>,
}
