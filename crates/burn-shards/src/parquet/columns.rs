//! The columns of a file: their leaves, and the kinds of values of these.

mod kind;
mod nodes;
mod schema;
mod words;

pub(super) use kind::Kind;
pub(super) use schema::{Column, Columns, Leaf, Levels, Shape};
pub(super) use words::{time, word};
