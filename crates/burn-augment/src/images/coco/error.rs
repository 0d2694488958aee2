//! Errors of a file of annotations.

use std::{io, path::PathBuf};

/// An error of [`Coco::open`](super::Coco::open).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CocoError {
    /// The file cannot be read, or is not as COCO describes it. The message has the line and the column.
    #[error("cannot read the annotations {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// Two images, or two categories, have the same id.
    #[error("{} has two entries of `{list}` with the id {id}", path.display())]
    TwiceAnId {
        /// The file.
        path: PathBuf,
        /// `images` or `categories`.
        list: &'static str,
        /// The id.
        id: i64,
    },
    /// An annotation is of an image or a category that the file does not list.
    #[error("annotation {annotation} of {} is of the id {id}, which `{list}` does not have", path.display())]
    UnknownId {
        /// The file.
        path: PathBuf,
        /// The annotation.
        annotation: i64,
        /// `images` or `categories`.
        list: &'static str,
        /// The id that is missing there.
        id: i64,
    },
}
