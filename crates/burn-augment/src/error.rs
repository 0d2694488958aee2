//! What can go wrong with a parameter.

use std::error::Error as StdError;

/// Any error of an augmentation.
pub type BoxError = Box<dyn StdError + Send + Sync + 'static>;

/// A parameter of an augmentation is wrong. `advice` says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{option}`: {problem}; {advice}")]
#[non_exhaustive]
pub struct Error {
    /// The method that was called with it.
    pub option: &'static str,
    /// What is wrong with its value.
    pub problem: String,
    /// What to write instead.
    pub advice: String,
}

impl Error {
    pub(crate) fn config(option: &'static str, problem: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { option, problem: problem.into(), advice: advice.into() }
    }
}
