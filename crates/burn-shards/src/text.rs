//! Rows of text as tokens: the trait of tokenisers, tokenised rows, their lengths, and writing them as token files.

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
