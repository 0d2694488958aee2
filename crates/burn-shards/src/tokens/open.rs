//! From the paths of a user to a list of token files.

use super::TokensError;
use crate::{
    error::DataError,
    source::location::Paths,
    store::{
        options::Options,
        url::{shown, url},
    },
};
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

/// Returns the files of tokens. If a path or a glob matches an index, it stands for the token file beside it, which is listed once. Without
/// `indices`, each file stands for itself.
pub(super) fn files(paths: &Paths, indices: bool) -> Result<Vec<PathBuf>, TokensError> {
    let files = paths.files(&Options::default())?;
    if let Some(far) = files.iter().find(|path| url(path).is_some()) {
        return Err(TokensError::Paths(DataError::Option {
            option: "paths",
            problem: format!("{} is a URL, and token files are mapped into memory", shown(far)),
            advice: "copy them to a disk, and write their paths".into(),
        }));
    }
    let is_index = |path: &Path| indices && path.extension().is_some_and(|ending| ending == "idx");
    let named: HashSet<PathBuf> = files.iter().filter(|path| !is_index(path)).cloned().collect();
    let tokens = files.into_iter().filter_map(|path| {
        if !is_index(&path) {
            return Some(path);
        }
        let tokens = path.with_extension("bin");
        (!named.contains(&tokens)).then_some(tokens)
    });
    Ok(tokens.collect())
}
