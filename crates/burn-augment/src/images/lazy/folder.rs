//! A folder of images as a Burn data set.

use super::{folder_error::FolderError, image::Image};
use crate::{error::Error, files::with_room, images::decode::Limits, warn::warn};
use ::image::ImageFormat;
use burn::data::dataset::{Dataset, DatasetError};
use rand::{SeedableRng, rngs::ChaCha8Rng, seq::SliceRandom};
use std::{
    ffi::OsString,
    fs::{self, DirEntry, FileType},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The extensions of image files.
const KINDS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];
/// The extensions of images that the crate image does not know at all.
const UNKNOWN_KINDS: [&str; 5] = ["heic", "heif", "jxl", "jp2", "j2k"];

/// A folder with a sub-folder for each class (`DIR/cat/1.jpg`), or a part of its files: a Burn data set of images and
/// labels.
///
/// ```no_run
/// use burn::data::dataset::Dataset;
/// use burn_augment::images::ImageFolder;
///
/// let (train, valid) = ImageFolder::open("images")?.split(0.1, 42)?;
/// println!("{} images of {:?}", train.len(), train.classes());
/// let (image, label) = train.get(0)?; // reads the file; decodes nothing
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Names of folders and of files are sorted, and a label is the position of its class among the
/// [`classes`](Self::classes). This is torchvision's `ImageFolder`, without images in deeper folders. Two folders have
/// the same labels only if they have the same classes: see [`open_with_classes`](Self::open_with_classes) and
/// [`check_classes`](Self::check_classes). Image files are recognised by their extension (png, jpg, jpeg, gif, webp).
/// Hidden entries are skipped, and links are followed. Other image files and deeper folders are skipped too, with a
/// warning.
///
/// `get` reads one file on the calling thread, and decodes nothing. An error names the file.
#[derive(Clone, Debug)]
pub struct ImageFolder {
    root: Arc<Path>,
    classes: Arc<[String]>,
    /// Paths relative to `root`, ordered by class and then by name, and the index of the class.
    files: Arc<[(PathBuf, usize)]>,
    limits: Limits,
}

impl ImageFolder {
    /// Lists the folder. No image is opened. A folder without images is a class too, with a warning.
    ///
    /// # Errors
    /// If a folder cannot be read, or fewer than two classes have images.
    pub fn open(root: impl AsRef<Path>) -> Result<Self, FolderError> {
        let root = root.as_ref();
        let folders: Vec<_> = class_folders(root)?.into_iter().zip(0..).collect();
        let classes = folders.iter().map(|(folder, _)| folder.to_string_lossy().into_owned()).collect();
        let opened = Self::list(root, folders, classes)?;
        match (opened.files.first(), opened.files.last()) {
            (Some((_, first)), Some((_, last))) if first == last => {
                Err(FolderError::OneClass { path: root.into(), class: opened.classes[*first].clone() })
            }
            _ => Ok(opened),
        }
    }

    /// Lists a folder with given classes: a label is the position of its class in this list. So a folder for validation
    /// gets the labels of the folder for training, even if it lacks classes.
    ///
    /// ```no_run
    /// use burn_augment::images::ImageFolder;
    ///
    /// let train = ImageFolder::open("images/train")?;
    /// let valid = ImageFolder::open_with_classes("images/valid", train.classes())?;
    /// # Ok::<(), burn_augment::images::FolderError>(())
    /// ```
    ///
    /// A class may have no folder: the log then has a warning.
    ///
    /// # Errors
    /// If a folder cannot be read or is none of the classes, there are no images, or a class is twice in the list.
    pub fn open_with_classes(
        root: impl AsRef<Path>,
        classes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, FolderError> {
        let root = root.as_ref();
        let classes: Vec<String> = classes.into_iter().map(Into::into).collect();
        if let Some(class) = (1..classes.len()).find(|at| classes[..*at].contains(&classes[*at])) {
            return Err(FolderError::TwiceAClass { class: classes[class].clone() });
        }
        let mut folders = Vec::new();
        for folder in class_folders(root)? {
            let name = folder.to_string_lossy();
            let Some(label) = classes.iter().position(|class| *class == name) else {
                return Err(FolderError::UnknownClass { path: root.join(&folder), classes });
            };
            folders.push((folder, label));
        }
        let missing = |(at, _): &(usize, &String)| folders.iter().all(|(_, label)| label != at);
        for (label, class) in classes.iter().enumerate().filter(missing) {
            warn(
                "burn_augment",
                &format!(
                    "no folder of the class {class:?} in {}: the label {label} has no images there",
                    root.display()
                ),
            );
        }
        folders.sort_by_key(|(_, label)| *label);
        Self::list(root, folders, classes)
    }

    /// Lists the folders of classes, in the order of their labels.
    fn list(root: &Path, folders: Vec<(OsString, usize)>, classes: Vec<String>) -> Result<Self, FolderError> {
        let mut files = Vec::new();
        for (folder, label) in folders {
            let names = image_names(&root.join(&folder))?;
            if names.is_empty() {
                warn(
                    "burn_augment",
                    &format!("no image files in {}: the label {label} has no images", root.join(&folder).display()),
                );
            }
            files.extend(names.into_iter().map(|name| (Path::new(&folder).join(name), label)));
        }
        if files.is_empty() {
            return Err(FolderError::NoImages { path: root.into() });
        }
        Ok(Self { root: root.into(), classes: classes.into(), files: files.into(), limits: Limits::default() })
    }

    /// Checks that another folder has the same classes in the same order, so that its labels mean the same.
    ///
    /// # Errors
    /// [`FolderError::OtherClasses`], with the classes that only one of them has.
    pub fn check_classes(&self, other: &Self) -> Result<(), FolderError> {
        if self.classes == other.classes {
            return Ok(());
        }
        let only =
            |of: &Self, than: &Self| of.classes.iter().filter(|class| !than.classes.contains(class)).cloned().collect();
        Err(FolderError::OtherClasses {
            paths: [&self.root, &other.root].map(|root| root.to_path_buf()),
            only_first: only(self, other),
            only_second: only(other, self),
        })
    }

    /// Sets the limits of each file.
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Splits each class into a part for training and a part for validation. The same seed gives the same split.
    ///
    /// A class with two or more files has at least one in each part. A single file goes to training.
    ///
    /// # Errors
    /// If the share is not between 0 and 1.
    pub fn split(self, valid_share: f64, seed: u64) -> Result<(Self, Self), Error> {
        if !(valid_share > 0.0 && valid_share < 1.0) {
            let problem = format!("{valid_share} is no share of the images");
            return Err(Error::config("ImageFolder::split", problem, "give one between 0 and 1, such as 0.1"));
        }
        let (mut train, mut valid) = (Vec::new(), Vec::new());
        for class in self.files.chunk_by(|a, b| a.1 == b.1) {
            let mut order: Vec<usize> = (0..class.len()).collect();
            // Each class has a stream of its own: new files in one class leave the split of the others as it was.
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
        Ok((Self { files: train.into(), ..self.clone() }, Self { files: valid.into(), ..self }))
    }

    /// The names of the classes. A label is an index into them.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The label of each image, for samplers that weigh or balance classes.
    pub fn labels(&self) -> Vec<usize> {
        self.files.iter().map(|(_, label)| *label).collect()
    }

    /// The path of an image file.
    ///
    /// # Panics
    /// If `index` is out of range.
    pub fn path(&self, index: usize) -> PathBuf {
        self.root.join(&self.files[index].0)
    }
}

impl Dataset<(Image, usize)> for ImageFolder {
    /// Reads one file and its header.
    ///
    /// # Panics
    /// If `index >= len()`.
    fn get(&self, index: usize) -> Result<(Image, usize), DatasetError> {
        Ok((Image::open(self.path(index), &self.limits)?, self.files[index].1))
    }

    fn len(&self) -> usize {
        self.files.len()
    }
}

/// Returns the sorted names of the folders in a folder.
fn class_folders(root: &Path) -> Result<Vec<OsString>, FolderError> {
    let top = entries(root).map_err(|source| FolderError::NoFolder { path: root.into(), source })?;
    let mut folders = Vec::new();
    for entry in &top {
        match kind(entry) {
            Ok(kind) if kind.is_dir() && !leads_up(entry, root) => folders.push(entry.file_name()),
            Ok(_) => {}
            Err(error) if leads_nowhere(&error) => {
                warn("burn_augment", &format!("{} is a link to nothing, so it is no class", entry.path().display()));
            }
            Err(source) => return Err(FolderError::Read { path: entry.path(), source }),
        }
    }
    if folders.is_empty() {
        return Err(FolderError::NoClasses { path: root.into() });
    }
    // The order of a listing is that of the file system. Labels must not depend on it.
    folders.sort();
    Ok(folders)
}

fn entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    let hidden = |entry: &DirEntry| entry.file_name().as_encoded_bytes().starts_with(b".");
    with_room(|| fs::read_dir(folder))?.filter(|entry| !entry.as_ref().is_ok_and(hidden)).collect()
}

/// Returns what the entry is, after following a link. Only links cost a system call: a class may hold a million files.
fn kind(entry: &DirEntry) -> io::Result<FileType> {
    let kind = entry.file_type()?;
    if kind.is_symlink() { Ok(fs::metadata(entry.path())?.file_type()) } else { Ok(kind) }
}

/// Whether a link is dangling, or leads to itself.
fn leads_nowhere(error: &io::Error) -> bool {
    const LOOP: i32 = if cfg!(target_os = "linux") { 40 } else { 62 };
    error.kind() == io::ErrorKind::NotFound || (cfg!(unix) && error.raw_os_error() == Some(LOOP))
}

/// Whether the entry is a link to its own folder, or to one above it. Such a link is no class.
fn leads_up(entry: &DirEntry, root: &Path) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_symlink())
        && fs::canonicalize(root)
            .and_then(|root| Ok(root.starts_with(fs::canonicalize(entry.path())?)))
            .unwrap_or(false)
}

/// Returns the sorted names of the image files of a class.
fn image_names(folder: &Path) -> Result<Vec<OsString>, FolderError> {
    let (mut names, mut others) = (Vec::new(), Vec::new());
    for entry in entries(folder).map_err(|source| FolderError::Read { path: folder.into(), source })? {
        let path = entry.path();
        let ends_in = |kinds: &[&str]| {
            path.extension().is_some_and(|found| kinds.iter().any(|kind| found.eq_ignore_ascii_case(kind)))
        };
        let (is_image, is_unknown) = (ends_in(&KINDS), ends_in(&UNKNOWN_KINDS));
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder || is_unknown || (!is_image && ImageFormat::from_path(&path).is_ok()) {
            others.push(entry.file_name());
        // A dangling link that is named as an image is told of now, not in the middle of an epoch.
        } else if is_image && kind(&entry).map_err(|source| FolderError::Read { path, source })?.is_file() {
            names.push(entry.file_name());
        }
    }
    if let Some(first) = others.iter().min() {
        warn(
            "burn_augment",
            &format!(
                "{} has {} folders or pictures that are left out, such as {first:?}: only .png, .jpg, .jpeg, .gif and .webp \
             directly in the folder of a class are taken",
                folder.display(),
                others.len()
            ),
        );
    }
    names.sort();
    Ok(names)
}
