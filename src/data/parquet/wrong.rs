//! What is wrong with a part of a file. The caller adds which part it is.

use crate::data::error::DataError;
use parquet::errors::ParquetError;

#[derive(Debug, thiserror::Error)]
pub(super) enum Wrong {
    #[error("{0}")]
    Damaged(String),
    #[error("{0}")]
    Unsupported(String),
    #[error(transparent)]
    Data(#[from] DataError),
}

impl From<ParquetError> for Wrong {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::NYI(what) => Self::Unsupported(what),
            ParquetError::General(problem) | ParquetError::EOF(problem) => Self::Damaged(problem),
            other => Self::Damaged(other.to_string()),
        }
    }
}

impl Wrong {
    pub(super) fn damaged(problem: impl Into<String>) -> Self {
        Self::Damaged(problem.into())
    }

    /// Says where: `place` is a row or a group of rows of that object.
    pub(super) fn at(self, object: &str, column: &str, place: impl FnOnce() -> String) -> DataError {
        match self {
            Self::Damaged(problem) => DataError::damaged(object, format!("column `{column}`, {}: {problem}", place())),
            Self::Unsupported(what) => DataError::unsupported(object, Some(column), what),
            Self::Data(error) => error,
        }
    }
}
