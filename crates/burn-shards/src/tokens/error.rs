//! What can be wrong with token files.

use super::TokenType;
use crate::error::DataError;
use std::{io, path::PathBuf};

/// Why token files cannot be used, or a window cannot be copied.
///
/// ```
/// use burn_shards::{TokenFileError, Tokens, TokensError};
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("train.bin");
/// std::fs::write(&path, [1, 0, 2])?; // a token and a half
/// match Tokens::open(&path) {
///     Err(TokensError::File { source: TokenFileError::Odd { bytes: 3, size: 2 }, .. }) => {}
///     other => panic!("{other:?}"),
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokensError {
    /// A file, or its index, is not as it should be.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: TokenFileError,
    },
    /// The paths name no file.
    #[error(transparent)]
    Paths(#[from] DataError),
    /// Files of one data set have tokens of different types.
    #[error(
        "{} has tokens of {there}, but {} has tokens of {first}: open them apart",
        path.display(),
        first_path.display()
    )]
    Types {
        /// The file that differs.
        path: PathBuf,
        /// Its type.
        there: TokenType,
        /// The first file.
        first_path: PathBuf,
        /// The type of the first file.
        first: TokenType,
    },
    /// Together, the files have more tokens than can be counted.
    #[error("the files have more tokens than this machine can count")]
    TooMany,
    /// Documents are to be packed, but nothing says where they begin.
    #[error(
        "nothing says where documents begin: name the token at their end with `documents_end_with`, or the one at their \
         start with `documents_begin_with`"
    )]
    NoDocuments,
    /// No token of the files can have this value.
    #[error("no token of {kind} can be {token}")]
    NoSuchToken {
        /// What was asked for.
        token: i64,
        /// The type of the tokens.
        kind: TokenType,
    },
    /// A window was to be copied to a place that it does not fit.
    #[error("a window of {len} tokens of {kind} does not fit a place for {places} of {place}")]
    Place {
        /// Tokens in the window.
        len: usize,
        /// Their type.
        kind: TokenType,
        /// Tokens in the place.
        places: usize,
        /// The name of their dtype.
        place: &'static str,
    },
    /// The files are little-endian, and this machine is not.
    #[error("token files are little-endian, but this machine is big-endian")]
    BigEndian,
}

/// What is wrong with one token file, or with its index.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// It cannot be read.
    #[error("cannot read it: {0}")]
    Io(#[source] io::Error),
    /// Neither its content nor its name say what it is.
    #[error(
        "it has no header, no index, and not the name of a .bin file: if it is bare tokens, open it with `Tokens::open_raw`"
    )]
    UnknownFormat,
    /// It has no bytes. It may be left over from a copy that was interrupted.
    #[error("it has 0 bytes: write it again, or leave it out")]
    Empty,
    /// It is a file of another kind, and not of tokens alone.
    #[error("it is {is}: {cure}")]
    Other {
        /// What it is.
        is: &'static str,
        /// What to do with it.
        cure: &'static str,
    },
    /// It ends within a token.
    #[error("its {bytes} bytes are no whole number of tokens of {size} bytes")]
    Odd {
        /// Bytes of tokens.
        bytes: usize,
        /// Bytes of one token.
        size: usize,
    },
    /// It begins as llm.c's files do, but is shorter than their header.
    #[error("it begins like a file of llm.c, but has only {bytes} of the {HEADER} bytes of the header")]
    Header {
        /// Bytes in the file.
        bytes: usize,
    },
    /// It is of another version of llm.c's files.
    #[error("its header is of version {version}, but llm.c writes version {known} after this magic number")]
    Version {
        /// What the header says.
        version: i32,
        /// What it should say.
        known: i32,
    },
    /// The header names another number of tokens than there are.
    #[error("its header says {claimed} tokens, but {bytes} bytes of tokens of {kind} follow")]
    Count {
        /// What the header says.
        claimed: i32,
        /// Bytes after the header.
        bytes: usize,
        /// The type of the tokens.
        kind: TokenType,
    },
    /// An `.idx` beside the file that is not Megatron's.
    #[error(
        "it does not begin like an index of Megatron: if the .bin beside it is bare tokens, open that with `Tokens::open_raw`"
    )]
    NoIndex,
    /// An index of another version.
    #[error("it is an index of version {0}, not 1")]
    IndexVersion(u64),
    /// An index of numbers that are no tokens.
    #[error("its numbers are {0}, and tokens are integers")]
    Floats(&'static str),
    /// An index of a type that Megatron does not have.
    #[error("it has the type number {0}, which Megatron does not know")]
    TypeNumber(u8),
    /// The index is longer or shorter than its counts say.
    #[error("it says {sequences} sequences and {borders} borders of documents, which does not fit its {bytes} bytes")]
    IndexSize {
        /// How many sequences it says.
        sequences: u64,
        /// How many borders of documents it says.
        borders: u64,
        /// Its size.
        bytes: usize,
    },
    /// A sequence of the index is not in the file of tokens.
    #[error(
        "sequence {sequence}, {length} tokens of {kind} at byte {pointer}, is not in the {bytes} bytes of the .bin file"
    )]
    Sequence {
        /// Its number, from 0.
        sequence: usize,
        /// Its length in tokens.
        length: i32,
        /// The type of the tokens.
        kind: TokenType,
        /// Where it starts, in bytes.
        pointer: i64,
        /// The size of the file of tokens.
        bytes: usize,
    },
    /// Borders of documents that do not ascend from 0 to the number of sequences.
    #[error("border {border} of its documents is sequence {sequence} of {sequences}, but borders ascend from 0")]
    Border {
        /// Its number, from 0.
        border: usize,
        /// The sequence at which it is.
        sequence: i64,
        /// How many sequences there are.
        sequences: usize,
    },
    /// The sequences of the index have more tokens than can be counted.
    #[error("its sequences have more tokens than this machine can count")]
    TooMany,
}

/// Bytes of the header of llm.c.
pub(super) const HEADER: usize = 1024;
