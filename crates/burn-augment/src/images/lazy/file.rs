//! A file that is decoded late, as an image or as a mask.

use super::{paint::Paint, view::View};
use crate::images::{
    decode::{EncodedFile, Limits, read},
    error::VisionError,
};
use bytes::Bytes;
use image::metadata::Orientation;
use std::{fmt, path::Path, sync::Arc};

/// A file that is not decoded, and the recorded changes.
#[derive(Clone)]
pub(crate) struct ImageFile {
    pub(crate) encoded: EncodedFile,
    /// The path of the file, for errors.
    pub(crate) path: Option<Arc<Path>>,
    pub(crate) view: View,
    pub(crate) paint: Paint,
}

impl ImageFile {
    /// Turns the picture that will be made: its view, and its erased part.
    pub(super) fn turn(&mut self, by: Orientation) {
        self.paint.turn(by, self.view.dimensions());
        self.view.turn(by);
    }
}

/// What an image or a mask has: a file, or the pixels that were made of it, with what is known of them.
#[derive(Clone)]
pub(crate) enum PictureContent<P, K> {
    File(Box<ImageFile>),
    Pixels(P, K),
}

impl<P, K> PictureContent<P, K> {
    /// Takes a file. Nothing is changed yet.
    pub(crate) fn of_file(encoded: EncodedFile, path: Option<Arc<Path>>) -> Self {
        let (view, paint) = (View::whole(encoded.seen), Paint::default());
        Self::File(Box::new(ImageFile { encoded, path, view, paint }))
    }

    /// The picture as the file stores it. `part` names it in the error.
    ///
    /// # Errors
    /// If it is decoded or changed.
    pub(crate) fn into_stored(self, part: &'static str) -> Result<Self, VisionError> {
        match self {
            Self::File(file) if file.view == View::whole(file.encoded.seen) && file.paint.is_none() => {
                Ok(Self::of_file(file.encoded.into_stored(), file.path))
            }
            _ => Err(VisionError::of_part(
                part,
                "is decoded or changed, and then nothing says how it was turned",
                "call `as_stored` first, on what was opened",
            )),
        }
    }

    /// The path of the file, if there is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(file) => file.path.as_deref(),
            Self::Pixels(..) => None,
        }
    }

    /// Ends the text of a `Debug` with the path.
    pub(crate) fn end_debug(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path() {
            Some(path) => write!(f, ", {})", path.display()),
            None => f.write_str(")"),
        }
    }
}

/// Reads a file, and makes an image or a mask of its bytes. Errors have the path.
pub(crate) fn open<T>(
    path: &Path,
    limits: &Limits,
    of_file: impl FnOnce(Bytes, &Limits, Option<Arc<Path>>) -> Result<T, VisionError>,
) -> Result<T, VisionError> {
    let opened = read(path, limits).and_then(|bytes| of_file(bytes.into(), limits, Some(path.into())));
    opened.map_err(|error| error.of_file(path))
}
