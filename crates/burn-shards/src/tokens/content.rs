//! What is in one file of tokens.

use super::TokenType;

/// The tokens of a file. All of them lie within its bytes.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) kind: TokenType,
    /// All tokens, in their order.
    pub(super) runs: Vec<TokenRun>,
    /// Where documents start, counted in tokens from the first, ascending. `None` if the file does not tell.
    pub(super) documents: Option<Vec<usize>>,
}

/// A run of neighbouring tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TokenRun {
    /// The first byte in the file.
    pub(super) at: usize,
    pub(super) tokens: usize,
}
