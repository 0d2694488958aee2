//! The images to train on: a folder, or shards.

use super::collate::Sample;
use burn::data::dataset::Dataset;
use burn_pinned::{BoxError, vision::ImageFolder};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// The share of the images that is for validation, unless files of its own are named.
pub(crate) const VALID: f64 = 0.2;

/// Images for training and for validation.
pub(crate) struct Data {
    pub(crate) train: Arc<dyn Dataset<Sample>>,
    pub(crate) valid: Arc<dyn Dataset<Sample>>,
    /// A label is an index into these names.
    pub(crate) classes: Vec<String>,
}

/// What the paths are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A sub-folder for each class.
    Folder,
    Tar,
    /// A folder of MosaicML's `streaming`.
    Mds,
    Parquet,
}

impl Kind {
    /// The first path tells.
    pub(crate) fn of(paths: &[PathBuf]) -> Self {
        let path = paths.first().map_or(Path::new(""), PathBuf::as_path);
        match path.extension().unwrap_or_default().to_string_lossy().to_lowercase().as_str() {
            "tar" => Self::Tar,
            "parquet" => Self::Parquet,
            _ if path.join("index.json").is_file() => Self::Mds,
            _ => Self::Folder,
        }
    }
}

impl Data {
    /// Opens what is named. Without files for validation, a part of the others is for it.
    pub(crate) fn open(train: &[PathBuf], valid: &[PathBuf], seed: u64) -> Result<Self, BoxError> {
        match Kind::of(train) {
            Kind::Folder => folder(train, valid, seed),
            Kind::Tar | Kind::Mds | Kind::Parquet => super::shards::open(train, valid, seed),
        }
    }
}

fn folder(train: &[PathBuf], valid: &[PathBuf], seed: u64) -> Result<Data, BoxError> {
    let open = |paths: &[PathBuf]| match paths {
        [path] => Ok::<_, BoxError>(ImageFolder::open(path)?),
        _ => Err("name one folder of images".into()),
    };
    let train = open(train)?;
    let (train, valid) = if valid.is_empty() { train.split(VALID, seed)? } else { (train, open(valid)?) };
    if train.classes() != valid.classes() {
        return Err(format!("classes differ: {:?} and, of --valid, {:?}", train.classes(), valid.classes()).into());
    }
    Ok(Data { classes: train.classes().to_vec(), train: Arc::new(train), valid: Arc::new(valid) })
}
