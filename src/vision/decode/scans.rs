//! Decodes the JPEGs that zune-jpeg, the decoder of the crate `image`, gets wrong: without progressive mode and in several
//! scans, or so narrow that their colours have one or two columns. The pixels are those of libjpeg-turbo. It is slower than
//! zune-jpeg, and for rare files.

mod blocks;
mod colour;
mod entropy;
mod idct;
mod picture;
mod plane;

pub(super) use colour::Colours;
pub(super) use picture::decode;
