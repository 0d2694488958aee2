//! Rows of text as tokens: what a tokeniser is, rows that it runs over, the lengths of their tokens, and token files of them.

#[cfg(feature = "tokenizers")]
mod chat;
mod each;
mod error;
#[cfg(feature = "tokenizers")]
mod hf;
mod lengths;
mod row;
mod saved;
#[cfg(feature = "tokenizers")]
mod special;
mod texts;
mod tokenize;
mod tokenized;
mod write;

#[cfg(feature = "tokenizers")]
pub use chat::{ChatTemplate, ChatText};
pub use error::TextError;
#[cfg(feature = "tokenizers")]
pub use hf::HfTokenizer;
pub use lengths::TokenLengths;
pub use row::TokenRow;
pub use tokenize::{Tokenize, tokenizer};
pub use tokenized::Tokenized;
