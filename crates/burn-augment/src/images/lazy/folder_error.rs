//! What can be wrong with a folder of images.

use std::{io, path::PathBuf};

/// What is wrong with a folder of images.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// The folder could not be listed.
    #[error("cannot open the image folder {}: {source}", path.display())]
    NoFolder {
        /// The folder.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// The folder has no folders in it.
    #[error("{} has no sub-folders: one sub-folder per class is expected, e.g. DIR/cat/1.jpg", path.display())]
    NoClasses {
        /// The folder.
        path: PathBuf,
    },
    /// No folder of a class has images.
    #[error("no image files (.png, .jpg, .jpeg, .gif, .webp) directly in the sub-folders of {}", path.display())]
    NoImages {
        /// The folder.
        path: PathBuf,
    },
    /// Only one class has images.
    #[error("only the sub-folder {class:?} of {} holds images: at least two classes are needed", path.display())]
    OneClass {
        /// The folder.
        path: PathBuf,
        /// Its only class.
        class: String,
    },
    /// A folder is none of the given classes.
    #[error("the folder {} is none of the classes {classes:?}: add it to the list, or move it away", path.display())]
    UnknownClass {
        /// The folder.
        path: PathBuf,
        /// The classes.
        classes: Vec<String>,
    },
    /// A list of classes has one of them twice.
    #[error("the class {class:?} is twice in the list of classes: name each once")]
    TwiceAClass {
        /// The class.
        class: String,
    },
    /// Two folders have different classes, or the same classes in another order: a label would mean two classes.
    #[error(
        "labels of {} and {} do not mean the same: only the first has the classes {only_first:?}, only the second \
             {only_second:?}; open the second by `ImageFolder::open_with_classes`, with the classes of the first",
        paths[0].display(), paths[1].display()
    )]
    OtherClasses {
        /// The folders.
        paths: [PathBuf; 2],
        /// The classes that only the first one has.
        only_first: Vec<String>,
        /// The classes that only the second one has.
        only_second: Vec<String>,
    },
    /// The folder of a class could not be listed, or contains a dangling link.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The folder, or the link.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
}
