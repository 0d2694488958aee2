//! Rows as a Burn dataset: how they are opened, which columns a row type asks for, and whether the files have them.

mod builder;
mod categories;
mod column;
mod dataset;
mod fit;
#[cfg(feature = "images")]
mod images;
mod names;
mod parts;
mod picks;
mod probe;
#[cfg(feature = "remote")]
mod read_ahead;
mod split;
mod stats;
mod stream;

pub use builder::RowsBuilder;
pub use categories::Categories;
pub use dataset::Rows;
#[cfg(feature = "images")]
pub use images::ImageLimits;
pub use parts::{PartedRows, SampleError};
pub use picks::Picks;
#[cfg(feature = "remote")]
pub use read_ahead::{FindParts, RowLayout};
pub use stats::{MeanStd, medians};
pub use stream::{RowStream, ShardStream};
