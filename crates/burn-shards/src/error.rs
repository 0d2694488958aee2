//! What can be wrong with shards.

use std::{io, ops::Range, path::PathBuf};

/// The error of a function of the user's.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What is wrong with a data set of shards, or with one of its rows.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// No file has such a name.
    #[error("no file matches `{pattern}`")]
    NoFiles {
        /// The path, glob or list of braces.
        pattern: String,
    },
    /// A glob or a list of braces cannot be read.
    #[error("`{pattern}` is no pattern of file names: {problem}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A file could not be opened or listed.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A part of a file could not be read. It may have been cut off since the data set was opened.
    #[error("cannot read bytes {} to {} of {object}{}: {source}", range.start, range.end, of("key", key.as_deref()))]
    Read {
        /// The file.
        object: String,
        /// The key of the row that the part is of, in a tar on a disk.
        key: Option<Box<str>>,
        /// The part, in bytes.
        range: Range<u64>,
        /// The system's error.
        source: io::Error,
    },
    /// A sample has more bytes than the option `largest_sample` allows. A file or a server may only claim so.
    #[error(
        "{object}{}: {bytes} bytes are asked for at once, and the limit is {limit}; if they are right, write `.largest_sample({bytes})`",
        of("key", key.as_deref())
    )]
    TooLarge {
        /// The file.
        object: String,
        /// The key of the sample, in a tar on a disk.
        key: Option<Box<str>>,
        /// The bytes of the sample.
        bytes: u64,
        /// The most that there may be.
        limit: u64,
    },
    /// A file is another one than when the data set was opened: its size or its time has changed.
    #[error("{object} has changed since the data set was opened; open it again")]
    Changed {
        /// The file.
        object: String,
    },
    /// An index could not be saved.
    #[error("cannot save the index as {}: {source}; name another folder with `index_dir`", path.display())]
    Save {
        /// The file of the index.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file has no bytes. It may be left over from a copy that was interrupted.
    #[error("{object} has 0 bytes: write it again, or leave it out")]
    Empty {
        /// The file.
        object: String,
    },
    /// A file is of another format than the one that it was opened as.
    #[error("{object} is {is}: {cure}")]
    Format {
        /// The file.
        object: String,
        /// What it is.
        is: String,
        /// What to do with it.
        cure: String,
    },
    /// A file is not what its format asks for.
    #[error("{object} is damaged: {problem}")]
    Damaged {
        /// The file.
        object: String,
        /// What is wrong, and where.
        problem: String,
    },
    /// A file has something that is not supported.
    #[error("{object} has {what}, which is not supported{}", column.as_ref().map_or_else(String::new, |column| format!(": column `{column}`")))]
    Unsupported {
        /// The file.
        object: String,
        /// The column, if it is one column.
        column: Option<String>,
        /// What is not supported.
        what: String,
    },
    /// The row type asks for what the data do not have, or the files do not fit together.
    #[error("{object}: {problem}; there is: {}", list(there_is))]
    Schema {
        /// The file.
        object: String,
        /// What is wrong.
        problem: String,
        /// Names and types of what the file has.
        there_is: Vec<(String, String)>,
    },
    /// A row does not fit its type.
    #[error("row {row} of {object}{}{}: {problem}", of("key", key.as_deref()), of("column", column.as_deref()))]
    Row {
        /// The file.
        object: String,
        /// The row in that file, from 0.
        row: usize,
        /// The row's key, in a tar.
        key: Option<Box<str>>,
        /// The column.
        column: Option<String>,
        /// What is wrong.
        problem: String,
    },
    /// A function that was given to `map` or `filter` refused a row.
    #[error("row {row} of {object}{}: {source}", of("key", key.as_deref()))]
    Map {
        /// The file.
        object: String,
        /// The row in that file, from 0.
        row: usize,
        /// The row's key, in a tar.
        key: Option<Box<str>>,
        /// The error of the function.
        source: BoxError,
    },
    /// An option of the builder is wrong.
    #[error("`{option}`: {problem}; {advice}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// What is wrong with it.
        problem: String,
        /// What to write instead.
        advice: String,
    },
}

/// Why a store did not give a part of an object, after all attempts. It is the inner error of the [`io::Error`] in
/// [`DataError::Read`], which names the object and the part.
#[cfg(feature = "remote")]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} ({}attempt {attempts})", status.map_or_else(String::new, |status| format!("status {status}, ")))]
#[non_exhaustive]
pub struct StoreError {
    /// What went wrong at the last attempt.
    pub problem: String,
    /// The status of HTTP, if the store has answered.
    pub status: Option<u16>,
    /// How often it was tried, from 1.
    pub attempts: u32,
}

impl DataError {
    pub(crate) fn damaged(object: &str, problem: impl Into<String>) -> Self {
        Self::Damaged { object: object.into(), problem: problem.into() }
    }

    pub(crate) fn format(object: &str, is: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::Format { object: object.into(), is: is.into(), cure: cure.into() }
    }

    pub(crate) fn option(option: &'static str, problem: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::Option { option, problem: problem.into(), advice: advice.into() }
    }

    pub(crate) fn unsupported(object: &str, column: Option<&str>, what: impl Into<String>) -> Self {
        Self::Unsupported { object: object.into(), column: column.map(Into::into), what: what.into() }
    }
}

fn of(what: &str, name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!(", {what} `{name}`"))
}

fn list(there_is: &[(String, String)]) -> String {
    let names: Vec<String> = there_is.iter().map(|(name, kind)| format!("`{name}` ({kind})")).collect();
    if names.is_empty() { "nothing".into() } else { names.join(", ") }
}
