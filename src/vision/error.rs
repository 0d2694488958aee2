//! What can be wrong with an image.

use std::{io, path::PathBuf};

/// What is wrong with a file or an image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VisionError {
    /// What went wrong with a file, from [`open`](super::open).
    #[error("cannot read image {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: Box<VisionError>,
    },
    /// The file could not be read.
    #[error(transparent)]
    Io(io::Error),
    /// A folder, a pipe or a device.
    #[error("it is not a regular file")]
    NotAFile,
    /// There are no bytes.
    #[error("it is empty")]
    Empty,
    /// The content is of no known format; the name does not count.
    #[error("its content is not PNG, JPEG, GIF or WebP")]
    UnknownFormat,
    /// A JPEG without its end marker, or a WebP that is shorter than it says.
    #[error("its data ends too early, the file is truncated")]
    Truncated,
    /// Parts of a WebP contradict each other.
    #[error("its parts do not fit together: {0}")]
    Malformed(&'static str),
    /// The file, or the image that it claims to hold, is larger than the [`Limits`](super::Limits).
    #[error("{what} over the limit of {limit}")]
    OverLimit {
        /// What is too large.
        what: String,
        /// The limit.
        limit: u64,
    },
    /// The decoder refused it.
    #[error(transparent)]
    Decode(image::ImageError),
    /// The decoder panicked, with this message: a bug of it that the file brings to light.
    #[error("the decoder panicked: {0}")]
    Panicked(String),
    /// A transform got an image of 0 pixels.
    #[error("an image without pixels")]
    NoPixels,
    /// A crop is larger than the image with its padding.
    #[error(
        "a crop of {crop_width} x {crop_height} pixels does not fit an image of {width} x {height} with its padding; \
             use `pad_if_needed(true)`, or resize first"
    )]
    CropTooLarge {
        /// Of the crop.
        crop_width: u32,
        /// Of the crop.
        crop_height: u32,
        /// Of the image, padded.
        width: i64,
        /// Of the image, padded.
        height: i64,
    },
    /// A resize would make an image with a side beyond any use.
    #[error("resizing {width} x {height} pixels would make a side longer than {limit}")]
    ResultTooLarge {
        /// Of the image.
        width: u32,
        /// Of the image.
        height: u32,
        /// The longest side.
        limit: u32,
    },
    /// The resizer refused the image.
    #[error("cannot resize: {0}")]
    Resize(String),
    /// The row is not as long as the image.
    #[error("an image of {width} x {height} pixels is {expected} bytes, the row is {given}")]
    RowLength {
        /// Of the image.
        width: u32,
        /// Of the image.
        height: u32,
        /// What the image takes.
        expected: usize,
        /// What the row has.
        given: usize,
    },
}
