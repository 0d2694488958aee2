//! A folder of images, one sub-folder per class (`DIR/cat/1.jpg`), as a Burn dataset.
//!
//! Every `get` reads, decodes, crops and resizes one file: this is the work that the loader's workers share.

use std::ffi::OsString;
use std::fs::{self, DirEntry, FileType};
use std::io;
use std::path::{Path, PathBuf};

use burn::data::dataset::{Dataset, DatasetError};
use burn_pinned::vision::{self, CenterCrop, HasImage, Limits, Resize, VisionError};
use image::RgbImage;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

/// The longest side that images may have, and be resized to.
const MAX_SIDE: usize = 16_384;

/// One decoded image, of the folder's fixed side.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) image: RgbImage,
    pub(crate) label: usize,
}

impl HasImage for Sample {
    fn image_mut(&mut self) -> &mut RgbImage {
        &mut self.image
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    #[error("cannot open the image folder {}: {source}", path.display())]
    NoFolder { path: PathBuf, source: io::Error },
    #[error("{} has no sub-folders: one sub-folder per class is expected, e.g. DIR/cat/1.jpg", path.display())]
    NoClasses { path: PathBuf },
    #[error("no image files (.png, .jpg, .gif, .webp) directly in the sub-folders of {}", path.display())]
    NoImages { path: PathBuf },
    #[error("only the sub-folder {class:?} of {} holds images: at least two classes are needed", path.display())]
    OneClass { path: PathBuf, class: String },
    #[error("the side of the images must be between 1 and {MAX_SIDE} pixels, not {side}")]
    Side { side: usize },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Image(#[from] VisionError),
    #[error(transparent)]
    Square(#[from] burn_pinned::Error),
}

/// The files of a folder with their classes, or one part of them after [`split`](ImageFolder::split).
#[derive(Clone, Debug)]
pub(crate) struct ImageFolder {
    root: PathBuf,
    classes: Vec<String>,
    /// Paths relative to `root`, ordered by class and then by name, and the index of the class.
    files: Vec<(PathBuf, usize)>,
    side: usize,
}

impl ImageFolder {
    /// Lists the folder; no image is opened yet. Hidden entries and folders within a class are ignored, links followed.
    pub(crate) fn open(root: &Path, side: usize) -> Result<Self, FolderError> {
        if side == 0 || side > MAX_SIDE {
            return Err(FolderError::Side { side });
        }
        let top = entries(root).map_err(|source| FolderError::NoFolder { path: root.into(), source })?;
        // A dangling link beside the class folders is nobody's image.
        let is_folder = |entry: &&DirEntry| kind(entry).is_ok_and(|kind| kind.is_dir());
        let mut folders: Vec<OsString> = top.iter().filter(is_folder).map(DirEntry::file_name).collect();
        if folders.is_empty() {
            return Err(FolderError::NoClasses { path: root.into() });
        }
        // The order of a directory listing is the file system's; labels must not depend on it.
        folders.sort();

        let mut classes = Vec::new();
        let mut files = Vec::new();
        for folder in folders {
            let names = image_names(&root.join(&folder))?;
            if names.is_empty() {
                log::warn!("no image files in {}: it is not counted as a class", root.join(&folder).display());
                continue;
            }
            let label = classes.len();
            files.extend(names.into_iter().map(|name| (Path::new(&folder).join(name), label)));
            classes.push(folder.to_string_lossy().into_owned());
        }
        match classes.as_slice() {
            [] => Err(FolderError::NoImages { path: root.into() }),
            [class] => Err(FolderError::OneClass { path: root.into(), class: class.clone() }),
            _ => Ok(Self { root: root.into(), classes, files, side }),
        }
    }

    /// Splits into a training and a validation part, class by class, the same way for the same seed.
    ///
    /// Whatever the share, a class of two or more files has at least one in each part; a lone file is for training.
    pub(crate) fn split(self, valid_share: f64, seed: u64) -> (ImageFolder, ImageFolder) {
        let (mut train, mut valid) = (Vec::new(), Vec::new());
        for class in self.files.chunk_by(|a, b| a.1 == b.1) {
            let mut order: Vec<usize> = (0..class.len()).collect();
            // A stream per class: new files in one class leave the split of the others as it was.
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(class[0].1 as u64);
            order.shuffle(&mut rng);

            let wanted = (class.len() as f64 * valid_share).round() as usize;
            let last = class.len() - 1;
            let (for_valid, for_train) = order.split_at_mut(wanted.clamp(last.min(1), last));
            for_valid.sort_unstable();
            for_train.sort_unstable();
            valid.extend(for_valid.iter().map(|&i| class[i].clone()));
            train.extend(for_train.iter().map(|&i| class[i].clone()));
        }
        let valid = ImageFolder { files: valid, root: self.root.clone(), classes: self.classes.clone(), ..self };
        (ImageFolder { files: train, ..self }, valid)
    }

    /// The names of the classes; a sample's label is an index into them.
    pub(crate) fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The number of files.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// Reads and decodes one file. Panics if `index >= len()`, as the `Dataset` trait asks.
    pub(crate) fn read(&self, index: usize) -> Result<Sample, FolderError> {
        let (file, label) = &self.files[index];
        let image = vision::open(self.root.join(file), &Limits { side: MAX_SIDE as u32, ..Limits::default() })?;
        Ok(Sample { image: square(&image, self.side as u32)?, label: *label })
    }
}

impl Dataset<Sample> for ImageFolder {
    fn get(&self, index: usize) -> Result<Sample, DatasetError> {
        self.read(index).map_err(DatasetError::new)
    }

    fn len(&self) -> usize {
        ImageFolder::len(self)
    }
}

fn entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    let hidden = |entry: &DirEntry| entry.file_name().as_encoded_bytes().starts_with(b".");
    fs::read_dir(folder)?.filter(|entry| !entry.as_ref().is_ok_and(hidden)).collect()
}

/// What the entry is, after following a link. Only links cost a system call: a class may hold a million files.
fn kind(entry: &DirEntry) -> io::Result<FileType> {
    let kind = entry.file_type()?;
    if kind.is_symlink() { Ok(fs::metadata(entry.path())?.file_type()) } else { Ok(kind) }
}

/// The sorted names of the image files of a class.
fn image_names(folder: &Path) -> Result<Vec<OsString>, FolderError> {
    let mut names = Vec::new();
    for entry in entries(folder).map_err(|source| FolderError::Read { path: folder.into(), source })? {
        let path = entry.path();
        let is_image = path
            .extension()
            .is_some_and(|found| ["png", "jpg", "jpeg", "gif", "webp"].iter().any(|e| found.eq_ignore_ascii_case(e)));
        // A dangling link that is named as an image is told of now, not in the middle of an epoch.
        if is_image && kind(&entry).map_err(|source| FolderError::Read { path, source })?.is_file() {
            names.push(entry.file_name());
        }
    }
    names.sort();
    Ok(names)
}

/// The centre square of the image, resized to `side`.
fn square(image: &RgbImage, side: u32) -> Result<RgbImage, FolderError> {
    // Cropped before the resize: the other order makes a gigabyte out of an image of 1 x 16384 pixels.
    let square = CenterCrop::new(image.width().min(image.height()))?.crop(image)?;
    Ok(Resize::exact(side)?.resize(&square)?)
}
