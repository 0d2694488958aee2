//! Several samples in one: ways to combine them, for [`WithOthers`](crate::augment::WithOthers).

mod copy_paste;
mod join;
mod mix_up;
mod mosaic;

pub use copy_paste::CopyPaste;
pub use mix_up::MixUpBoxes;
pub use mosaic::Mosaic;
