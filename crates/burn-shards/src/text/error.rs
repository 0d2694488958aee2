//! Errors of rows of tokens.

use crate::{
    error::{BoxError, DataError},
    tokens::TokenType,
};
use burn::data::dataset::DatasetError;
use std::{io, path::PathBuf};

/// Why rows of text give no tokens, no lengths or no token file.
///
/// If a tokeniser refuses a row of [`Rows`](crate::Rows), the error is a [`DataError::Map`], which names file and row.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// A row cannot be read, the tokeniser refused it, or it does not fit into a token file.
    #[error(transparent)]
    Rows(#[from] DataError),
    /// A row of a data set that is not `Rows` cannot be read.
    #[error(transparent)]
    Data(#[from] DatasetError),
    /// The tokeniser refused a row of a data set that is not `Rows`, or the row does not fit into a token file.
    #[error("row {row}: {source}")]
    Row {
        /// The index of the row.
        row: usize,
        /// The cause.
        source: BoxError,
    },
    /// Megatron has no token files of this type.
    #[error("Megatron has no token files of {0}: take i32 or i64, or u16 for a vocabulary of up to 65,536 tokens")]
    Type(TokenType),
    /// The name of a token file does not end with `.bin`.
    #[error("{} is no name of a token file: it must end with .bin", _0.display())]
    Name(PathBuf),
    /// The file of a tokeniser or of a template cannot be read or is invalid.
    #[error("{}: {source}", path.display())]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: BoxError,
    },
    /// The vocabulary lacks a token.
    #[error("the vocabulary has no token `{0}`")]
    NoSuchToken(String),
    /// A chat template is invalid, or refuses a chat.
    #[error("the chat template: {0}")]
    Template(#[source] BoxError),
    /// A chat cannot be written as text, or it is unclear what the assistant says in it.
    #[error("the chat: {0}")]
    Chat(String),
    /// A token file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}
