//! What is wrong with a value of a row.

use serde::de::{self, Expected, Unexpected};
use std::fmt;

/// What is wrong with a value, and in which column it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RowError {
    pub(crate) column: Option<String>,
    pub(crate) problem: String,
    /// Whether names and types are right, and only this value is bad.
    pub(crate) only_value: bool,
}

impl RowError {
    /// A name or a type is wrong.
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self { column: None, problem: problem.into(), only_value: false }
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
        Self { only_value: true, ..Self::new(problem.to_string()) }
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("invalid type: {unexpected}, expected {expected}"))
    }

    fn invalid_length(len: usize, expected: &dyn Expected) -> Self {
        Self::new(format!("invalid length {len}, expected {expected}"))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("unknown field `{field}`, expected one of `{}`", expected.join("`, `")))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("missing field `{field}`"))
    }
}
