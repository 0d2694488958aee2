//! Rows as a Burn dataset: how they are opened, which columns a row type asks for, and whether the files have them.

mod builder;
mod column;
mod dataset;
mod fit;
mod names;
mod probe;
#[cfg(feature = "remote")]
mod read_ahead;
mod split;
mod stats;

pub use builder::RowsBuilder;
pub use dataset::Rows;
pub use stats::MeanStd;
