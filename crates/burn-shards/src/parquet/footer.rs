//! The footer of a file: its columns and row groups, and where they are.

mod agree;
mod check;
mod mend;
mod read;

pub(super) use agree::{agree, classes};
#[cfg(test)]
pub(super) use check::check_schema;
pub(super) use read::{Footer, RowGroup, read};
