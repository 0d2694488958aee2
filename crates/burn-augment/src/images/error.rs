//! What can be wrong with an image.

use super::geometry::CropBox;
use burn::data::dataset::DatasetError;
use image::{
    ImageError, ImageFormat,
    error::{DecodingError, ImageFormatHint},
};
use std::{
    error::Error as StdError,
    io,
    path::{Path, PathBuf},
};

/// What is wrong with a file or an image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VisionError {
    /// An error with its file: a path, or the `__key__` of the row that contains the file.
    #[error("cannot read image {}: {source}", path.display())]
    File {
        /// The file, or the key of its row.
        path: PathBuf,
        /// What went wrong.
        source: Box<VisionError>,
    },
    /// The file could not be read.
    #[error("{0}")]
    Io(#[source] io::Error),
    /// The path is a folder, a pipe or a device.
    #[error("it is not a regular file")]
    NotAFile,
    /// There are no bytes.
    #[error("it is empty")]
    Empty,
    /// The content is of no known format. The file's name does not count.
    #[error("its content is not PNG, JPEG, GIF or WebP")]
    UnknownFormat,
    /// The content is of a format that is not decoded.
    #[error("its content is {kind}, which is not decoded: {}convert it to PNG or JPEG", switch_on(*feature))]
    Unsupported {
        /// The format.
        kind: &'static str,
        /// The feature of the crate [`image`] that decodes it, if there is one.
        feature: Option<&'static str>,
    },
    /// The file is something else, such as a Git LFS pointer or a page of a web server.
    #[error("its content is {is}: {cure}")]
    Other {
        /// What it is.
        is: &'static str,
        /// What to do.
        cure: &'static str,
    },
    /// A JPEG without its end marker, or a WebP that is shorter than its header says.
    #[error("its data ends too early, the file is truncated")]
    Truncated,
    /// Parts of a file contradict each other.
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
    /// The decoder refused the file.
    #[error(transparent)]
    Decode(ImageError),
    /// The decoder panicked with this message: the file has triggered a bug in the decoder.
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
        /// The width of the crop.
        crop_width: u32,
        /// The height of the crop.
        crop_height: u32,
        /// The width of the image with its padding.
        width: i64,
        /// The height of the image with its padding.
        height: i64,
    },
    /// A part of an image has no pixels, or reaches beyond the image.
    #[error("{part:?} is no part of an image of {width} x {height} pixels")]
    PartOutside {
        /// The part.
        part: CropBox,
        /// The width of the image.
        width: u32,
        /// The height of the image.
        height: u32,
    },
    /// A resize or padding would make a side longer than the limit.
    #[error("resizing {width} x {height} pixels would make a side longer than {limit}")]
    ResultTooLarge {
        /// The width of the image.
        width: u32,
        /// The height of the image.
        height: u32,
        /// The longest side that is allowed.
        limit: u32,
    },
    /// The resizer refused the image.
    #[error("cannot resize: {0}")]
    Resize(String),
    /// The image was written to a field of another size.
    #[error(
        "an image of {width} x {height} pixels does not fit field `{field}` of {field_width} x {field_height}; crop or \
             resize it in an augmentation, or before it is written"
    )]
    FieldSize {
        /// The field.
        field: String,
        /// The width of the image.
        width: u32,
        /// The height of the image.
        height: u32,
        /// The width of the field's images.
        field_width: usize,
        /// The height of the field's images.
        field_height: usize,
    },
    /// The layout does not allow the image to be written to its field.
    #[error("{0}")]
    Field(#[source] Box<dyn StdError + Send + Sync>),
    /// A mask, boxes, points or an image are invalid.
    #[error("the {part} of a sample {problem}: {cure}")]
    Part {
        /// Which part of the sample, such as `mask`, `boxes` or `image`.
        part: &'static str,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        cure: &'static str,
    },
    /// The row is not as long as the image needs.
    #[error("an image of {width} x {height} pixels is {expected} bytes, the row is {given}")]
    RowLength {
        /// The width of the image.
        width: u32,
        /// The height of the image.
        height: u32,
        /// The bytes that the image takes.
        expected: usize,
        /// The bytes that the row has.
        given: usize,
    },
}

/// For `?` in the `get` of a data set.
impl From<VisionError> for DatasetError {
    fn from(error: VisionError) -> Self {
        Self::new(error)
    }
}

fn switch_on(feature: Option<&str>) -> String {
    feature.map_or(String::new(), |name| {
        format!("switch on the feature `{name}` of the crate `image` 0.25 in your Cargo.toml, or ")
    })
}

impl VisionError {
    /// The error of a decoder that refused a file.
    pub(super) fn of_decoder(format: ImageFormat, error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Decode(ImageError::Decoding(DecodingError::new(ImageFormatHint::Exact(format), error)))
    }

    /// What is wrong with a part of a sample, and what to do.
    pub(super) fn of_part(part: &'static str, problem: impl Into<String>, cure: &'static str) -> Self {
        Self::Part { part, problem: problem.into(), cure }
    }

    /// The error of a change that needs parts which the sample lacks.
    pub(super) fn missing(parts: &'static str, change: &str) -> Self {
        let cure = "use a pair of an image and these as the sample, or name them in `HasImage::parts_mut`";
        Self::of_part(parts, format!("are missing, and `{change}` needs them"), cure)
    }

    /// Adds the path of the file to the error, if there is one.
    pub(crate) fn of_file<'a>(self, path: impl Into<Option<&'a Path>>) -> Self {
        match path.into() {
            Some(path) => Self::File { path: path.into(), source: Box::new(self) },
            None => self,
        }
    }
}
