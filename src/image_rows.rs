//! Fields of images: what one has ([`field`]), and the row of an image that a device decodes ([`row`]).

mod field;
mod row;

pub use field::Decoder;
pub(crate) use field::{ImageField, level_table};
#[cfg(feature = "cuda")]
pub(crate) use row::HeadError;
pub(crate) use row::{ImageRow, LongFiles};
