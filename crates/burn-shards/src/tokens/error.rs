//! Errors of token files.

use super::TokenType;
use crate::error::DataError;
use std::{io, path::PathBuf};

/// Why token files cannot be used, or why a window cannot be copied.
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
    /// A file or its index is invalid.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: TokenFileError,
    },
    /// The paths match no file, or are invalid.
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
    /// Documents cannot be packed, because it is not known where they begin.
    #[error(
        "nothing says where documents begin: name the token at their end with `documents_end_with`, or the one at their \
         start with `documents_begin_with`"
    )]
    NoDocuments,
    /// No token of the files can have this value.
    #[error("no token of {kind} can be {token}")]
    NoSuchToken {
        /// The requested value.
        token: i64,
        /// The type of the tokens.
        kind: TokenType,
    },
    /// A window does not fit the place that it was to be copied to.
    #[error("a window of {len} tokens of {kind} does not fit a place for {places} of {place}")]
    Place {
        /// The number of tokens in the window.
        len: usize,
        /// The type of the tokens.
        kind: TokenType,
        /// The number of tokens that the place holds.
        places: usize,
        /// The name of the place's dtype.
        place: &'static str,
    },
    /// The files are little-endian, and this machine is not.
    #[error("token files are little-endian, but this machine is big-endian")]
    BigEndian,
}

/// Why one token file, or its index, is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// It cannot be read.
    #[error("cannot read it: {0}")]
    Io(#[source] io::Error),
    /// Neither its content nor its name shows its format.
    #[error(
        "it has no header, no index, and not the name of a .bin file: if it is bare tokens, open it with `Tokens::open_raw`"
    )]
    UnknownFormat,
    /// It has no bytes. It may be left over from a copy that was interrupted.
    #[error("it has 0 bytes: write it again, or leave it out")]
    Empty,
    /// It is a file of another kind.
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
    /// It begins like a file of llm.c, but is shorter than the header.
    #[error("it begins like a file of llm.c, but has only {bytes} of the {HEADER} bytes of the header")]
    Header {
        /// Bytes in the file.
        bytes: usize,
    },
    /// It has another version of llm.c's format.
    #[error("its header is of version {version}, but llm.c writes version {known} after this magic number")]
    Version {
        /// The value in the header.
        version: i32,
        /// The supported version.
        known: i32,
    },
    /// The header's number of tokens does not match the size of the file.
    #[error("its header says {claimed} tokens, but {bytes} bytes of tokens of {kind} follow")]
    Count {
        /// The value in the header.
        claimed: i32,
        /// Bytes after the header.
        bytes: usize,
        /// The type of the tokens.
        kind: TokenType,
    },
    /// The `.idx` beside the file is not Megatron's.
    #[error(
        "it does not begin like an index of Megatron: if the .bin beside it is bare tokens, open that with `Tokens::open_raw`"
    )]
    NoIndex,
    /// The index has another version.
    #[error("it is an index of version {0}, not 1")]
    IndexVersion(u64),
    /// The index is for floats, which are not tokens.
    #[error("its numbers are {0}, and tokens are integers")]
    Floats(&'static str),
    /// The index has a type that Megatron does not have.
    #[error("it has the type number {0}, which Megatron does not know")]
    TypeNumber(u8),
    /// The index is longer or shorter than its counts say.
    #[error("it says {sequences} sequences and {borders} borders of documents, which does not fit its {bytes} bytes")]
    IndexSize {
        /// The number of sequences that it claims.
        sequences: u64,
        /// The number of document borders that it claims.
        borders: u64,
        /// Its size in bytes.
        bytes: usize,
    },
    /// A sequence of the index is not inside the token file.
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
        /// The size of the token file.
        bytes: usize,
    },
    /// The borders of documents do not ascend from 0 to the number of sequences.
    #[error("border {border} of its documents is sequence {sequence} of {sequences}, but borders ascend from 0")]
    Border {
        /// Its number, from 0.
        border: usize,
        /// The sequence where it is.
        sequence: i64,
        /// The number of sequences.
        sequences: usize,
    },
    /// The sequences of the index have more tokens than can be counted.
    #[error("its sequences have more tokens than this machine can count")]
    TooMany,
}

/// Bytes of the header of llm.c.
pub(super) const HEADER: usize = 1024;
