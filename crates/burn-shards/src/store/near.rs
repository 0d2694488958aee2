//! Stands in for stores behind a network, in a build that has none: it refuses URLs.

use super::Objects;
use crate::{
    error::DataError,
    store::{options::Options, url::shown},
};
use std::path::PathBuf;

/// Refuses a URL.
pub(crate) fn expand(pattern: &str, _: &Options) -> Result<Vec<String>, DataError> {
    Err(DataError::option(
        "paths",
        format!("`{}` is a URL, and this build reads local files only", shown(pattern.as_ref())),
        "enable the feature `http` (https, hf), or `cloud` (s3, gs, az)",
    ))
}

/// Files have one version.
pub(crate) fn pin(files: Vec<PathBuf>, _: &Options) -> Result<Vec<PathBuf>, DataError> {
    Ok(files)
}

/// Refuses URLs.
pub(super) fn open(urls: Vec<String>, options: &Options) -> Result<Objects, DataError> {
    expand(urls.first().map_or("", String::as_str), options).map(|_| unreachable!("it always refuses"))
}
