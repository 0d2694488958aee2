//! Errors of data sets of shards.

use std::{io, ops::Range, path::PathBuf};

/// An error of a user's function.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// An error of a data set of shards, or of one of its rows.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// No file matches.
    #[error("no file matches `{pattern}`")]
    NoFiles {
        /// The path, glob or list in braces.
        pattern: String,
    },
    /// A glob or a list in braces is invalid.
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
    /// A part of a file could not be read. It may have been truncated since the data set was opened.
    #[error("cannot read bytes {} to {} of {object}{}: {source}", range.start, range.end, of("key", key.as_deref()))]
    Read {
        /// The file.
        object: String,
        /// The key of the row that needs the part, if the file is a local tar.
        key: Option<Box<str>>,
        /// The part, in bytes.
        range: Range<u64>,
        /// The system's error.
        source: io::Error,
    },
    /// A sample claims more bytes than the option `largest_sample` allows. The claim of a file or a server may be false.
    #[error(
        "{object}{}: {bytes} bytes are asked for at once, and the limit is {limit}; if they are right, write `.largest_sample({bytes})`",
        of("key", key.as_deref())
    )]
    TooLarge {
        /// The file.
        object: String,
        /// The key of the sample, if the file is a local tar.
        key: Option<Box<str>>,
        /// The bytes that the sample claims.
        bytes: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A file has changed since the data set was opened: its size, its time or its inode number differs.
    #[error("{object} has changed since the data set was opened; open it again")]
    Changed {
        /// The file.
        object: String,
    },
    /// The saved index does not fit a file: it is damaged, or another file of the same size and time is in the place of this one.
    #[error("{index} does not fit {object}: delete {index}, and open the data set again")]
    Index {
        /// The file that the index does not fit.
        object: String,
        /// The file of the index.
        index: String,
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
    /// A file does not have the format that it was opened as.
    #[error("{object} is {is}: {cure}")]
    Format {
        /// The file.
        object: String,
        /// What it is.
        is: String,
        /// What to do with it.
        cure: String,
    },
    /// A file is corrupt: it does not follow its format.
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
        /// The column, if the problem is in one column.
        column: Option<String>,
        /// What is not supported.
        what: String,
    },
    /// The row type does not match the files, or the files do not match each other.
    #[error("{object}: {problem}; there is: {}", list(there_is))]
    Schema {
        /// The file.
        object: String,
        /// What is wrong.
        problem: String,
        /// The names and types that the file has.
        there_is: Vec<(String, String)>,
    },
    /// A row does not fit the row type.
    #[error("row {row} of {object}{}{}: {problem}", of("key", key.as_deref()), of("column", column.as_deref()))]
    Row {
        /// The file.
        object: String,
        /// The row in that file, from 0.
        row: usize,
        /// The row's key, if the file is a tar.
        key: Option<Box<str>>,
        /// The column.
        column: Option<String>,
        /// What is wrong.
        problem: String,
    },
    /// A function given to `map` or `filter` returned an error for a row.
    #[error("row {row} of {object}{}: {source}", of("key", key.as_deref()))]
    Map {
        /// The file.
        object: String,
        /// The row in that file, from 0.
        row: usize,
        /// The row's key, if the file is a tar.
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

/// Why a store did not return a part of an object after all attempts. It is the inner error of the [`io::Error`] in [`DataError::Read`],
/// which names the object and the part.
#[cfg(feature = "remote")]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} ({}attempt {attempts})", status.map_or_else(String::new, |status| format!("status {status}, ")))]
#[non_exhaustive]
pub struct StoreError {
    /// What went wrong at the last attempt.
    pub problem: String,
    /// The HTTP status, if the store answered.
    pub status: Option<u16>,
    /// The number of attempts, at least 1.
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
