//! What is wrong with a value of a row.

use serde::de;
use std::fmt;

/// What is wrong with a value, and in which column it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RowError {
    pub(crate) column: Option<String>,
    pub(crate) problem: String,
}

impl RowError {
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self { column: None, problem: problem.into() }
    }

    /// Adds the column, or the field inside which the column is.
    pub(super) fn within(self, name: &str) -> Self {
        let column = self.column.map_or_else(|| name.into(), |inner| format!("{name}.{inner}"));
        Self { column: Some(column), ..self }
    }
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for RowError {}

impl de::Error for RowError {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        Self::new(problem.to_string())
    }
}
