//! Rows as a Burn dataset: how they are opened, which columns a row type asks for, and whether the files have them.

mod builder;
mod column;
mod fit;
mod names;
mod probe;
#[cfg(feature = "remote")]
mod read_ahead;
#[allow(clippy::module_inception)]
mod rows;
mod split;
mod stats;

pub use builder::RowsBuilder;
pub use rows::Rows;
pub use stats::MeanStd;
