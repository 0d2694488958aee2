//! JSON lines: one object per line.
//!
//! The starts of the lines are found once and saved (`lines`), so one row is one read. A line is parsed to its end, but only the wanted
//! keys are kept (`parse`).

mod lines;
mod parse;
mod source;
mod stream;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use parse::{value, value_for};
pub(crate) use source::open;
pub(crate) use stream::stream;
