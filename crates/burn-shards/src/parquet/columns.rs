//! The columns of a file: the leaves that they are made of, and what these hold.

mod kind;
mod nodes;
mod schema;
mod words;

pub(super) use kind::Kind;
pub(super) use schema::{Column, Columns, Leaf, Levels, Shape};
pub(super) use words::{time, word};
