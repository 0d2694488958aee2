//! JSON lines: an object a line.
//!
//! Where lines begin is found once and saved (`lines`). Then one row is one read. A line is parsed to its end, but only the
//! wanted keys are kept (`parse`).

mod lines;
mod parse;
mod source;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use parse::{value, value_for};
pub(crate) use source::open;
