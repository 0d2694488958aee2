//! An error of a part of a file. The caller adds which part it is.

use crate::error::DataError;
use parquet::errors::ParquetError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum PartError {
    #[error("{0}")]
    Damaged(String),
    #[error("{0}")]
    Unsupported(String),
    /// A bad value. Other values of its page may be good.
    #[error("{0}")]
    Value(String),
    /// Values that must be decoded together take at least this number of bytes, which is more than the limit.
    #[error("it takes {0} bytes in memory")]
    Large(u64),
    #[error(transparent)]
    Data(#[from] DataError),
}

impl From<ParquetError> for PartError {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(inner) => match inner.downcast() {
                Ok(wrong) => *wrong,
                Err(other) => Self::Damaged(other.to_string()),
            },
            ParquetError::NYI(what) => Self::Unsupported(what),
            ParquetError::General(problem) | ParquetError::EOF(problem) => Self::Damaged(problem),
            other => Self::Damaged(other.to_string()),
        }
    }
}

/// The decoder passes on the error of a page.
impl From<PartError> for ParquetError {
    fn from(wrong: PartError) -> Self {
        Self::External(Box::new(wrong))
    }
}

impl PartError {
    pub(crate) fn damaged(problem: impl Into<String>) -> Self {
        Self::Damaged(problem.into())
    }

    /// Makes an error that names the object, the column and the row.
    pub(crate) fn in_row(self, object: &str, column: &str, row: usize) -> DataError {
        match self {
            Self::Value(problem) => {
                DataError::Row { object: object.into(), row, key: None, column: Some(column.into()), problem }
            }
            other => other.at(object, column, &format!("row {row}")),
        }
    }

    /// Makes an error that names the object, the column and the place, such as `row group 3`.
    pub(crate) fn at(self, object: &str, column: &str, place: &str) -> DataError {
        match self {
            Self::Damaged(problem) | Self::Value(problem) => {
                DataError::damaged(object, format!("column `{column}`, {place}: {problem}"))
            }
            Self::Unsupported(what) => DataError::unsupported(object, Some(column), what),
            Self::Large(bytes) => {
                let mib = bytes.div_ceil(1 << 20);
                let problem = format!(
                    "column `{column}`, {place} of {object}: what is decoded at once takes {mib} MiB of memory or more"
                );
                let advice =
                    format!("write `.memory({mib} << 20)`, or write the file with smaller pages or row groups");
                DataError::Option { option: "memory", problem, advice }
            }
            Self::Data(error) => error,
        }
    }
}
