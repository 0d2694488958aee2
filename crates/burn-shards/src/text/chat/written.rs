//! A chat that a template has written.

use std::ops::Range;

/// A chat as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatText {
    /// The text.
    pub text: String,
    /// The parts that the loss counts, in bytes and in order.
    pub learned: Vec<Range<usize>>,
}
