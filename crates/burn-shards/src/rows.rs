//! Rows as a Burn dataset: how they are opened, which columns a row type asks for, and whether the files have them.

mod builder;
mod column;
mod dataset;
mod fit;
#[cfg(feature = "images")]
mod images;
mod names;
mod picks;
mod probe;
#[cfg(feature = "remote")]
mod read_ahead;
mod split;
mod stats;
mod stream;

pub use builder::RowsBuilder;
pub use dataset::Rows;
#[cfg(feature = "images")]
pub use images::ImageLimits;
#[cfg(feature = "remote")]
pub use read_ahead::{FindParts, RowLayout};
pub use stats::MeanStd;
pub use stream::{RowStream, ShardStream};
