//! Errors of the values of a row.

use super::nearest;
use serde::de::{self, Expected, Unexpected};
use std::fmt;

/// What is wrong with a value, and its column.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RowError {
    pub(crate) column: Option<String>,
    pub(crate) problem: String,
    pub(crate) fault: Fault,
}

/// What would have to change in a row to fix the error.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Another value of the same type.
    Value,
    /// A value of another type, namely the expected one.
    Type(String),
    /// The column.
    Missing,
}

const OPTION: &str = "take an `Option` where it may be missing";

impl RowError {
    /// An error of a bad value.
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self { column: None, problem: problem.into(), fault: Fault::Value }
    }

    /// A column is missing.
    pub(super) fn missing(column: &str) -> Self {
        let problem = format!("missing field `{column}`; {OPTION}");
        Self { column: Some(column.into()), problem, fault: Fault::Missing }
    }

    /// Adds the names nearest to the column, if the column does not exist.
    pub(crate) fn near(self, there: impl FnOnce() -> Vec<String>) -> Self {
        let Some(column) = &self.column else { return self };
        match nearest(column, &there()) {
            near if near.is_empty() => self,
            near => Self { problem: format!("missing field `{column}`{near}: correct the name, or {OPTION}"), ..self },
        }
    }

    /// Adds the column, or the field around it.
    pub(super) fn within(self, name: &str) -> Self {
        let column = self.column.map_or_else(|| name.into(), |inner| format!("{name}.{inner}"));
        let fault = match self.fault {
            Fault::Missing => Fault::Type(format!("a struct with the field `{column}`")),
            other => other,
        };
        Self { column: Some(column), fault, ..self }
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

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let (is, cure) = match unexpected {
            Unexpected::Unit => ("null".into(), "; take an `Option` where it may be null"),
            Unexpected::Map => (
                "a struct".into(),
                "; take a struct of its fields that derives `Deserialize`, or `burn_pinned::vision::Image` for the file of an image",
            ),
            other => (other.to_string(), ""),
        };
        let expected = format!("{expected}{cure}");
        Self { column: None, problem: format!("invalid type: {is}, expected {expected}"), fault: Fault::Type(expected) }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let expected = format!("one of `{}`", expected.join("`, `"));
        Self {
            column: None,
            problem: format!("unknown field `{field}`, expected {expected}"),
            fault: Fault::Type(expected),
        }
    }

    fn missing_field(field: &'static str) -> Self {
        Self::missing(field)
    }
}
