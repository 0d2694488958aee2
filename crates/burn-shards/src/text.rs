//! Rows of text as tokens: what a tokeniser is, rows that it runs over, the lengths of their tokens, and token files of them.

mod error;
mod row;
mod tokenize;
mod tokenized;

pub use error::TextError;
pub use row::TokenRow;
pub use tokenize::{Tokenize, tokenizer};
pub use tokenized::Tokenized;
