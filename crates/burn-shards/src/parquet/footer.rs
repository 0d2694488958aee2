//! The footer of a file: what columns and row groups it has, and where they are.

mod agree;
mod check;
mod mend;
mod read;

pub(super) use agree::{agree, classes};
#[cfg(test)]
pub(super) use check::check_schema;
pub(super) use read::{Footer, RowGroup, read};
