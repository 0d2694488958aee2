//! Chooses the store of a URL.

use super::{
    Object, Objects, Store,
    remote::Remote,
    steady::{Patience, Steady},
};
#[cfg(unix)]
use crate::data::cache::Cached;
use crate::data::{error::DataError, source::Options, traffic::Traffic};
use std::{path::Path, sync::Arc};

/// The objects that a protocol has found, in the order of the URLs, and what asks for them.
pub(super) type Found<R> = (Vec<Object>, R);

/// Lists the objects that a pattern with `*`, `?` or `[` means, sorted by name. Another URL is taken as it is.
pub(crate) fn expand(pattern: &str) -> Result<Vec<String>, DataError> {
    match scheme(pattern) {
        _ => Err(unknown(pattern)),
    }
}

/// Looks at objects of one store.
pub(super) fn open(urls: Vec<String>, options: &Options) -> Result<Objects, DataError> {
    let first = urls.first().map_or("", |url| url.as_str());
    if let Some(other) = urls.iter().find(|url| scheme(url) != scheme(first)) {
        return Err(DataError::Option {
            option: "paths",
            problem: format!("{first} and {other} are in different stores"),
            advice: "open them apart, and chain the rows with Burn's `ComposedDataset`".into(),
        });
    }
    match scheme(first) {
        _ => Err(unknown(first)),
    }
}

/// Puts what all remote stores share above a protocol.
fn objects<R: Remote + 'static>((list, remote): Found<R>, options: &Options) -> Result<Objects, DataError> {
    let traffic = Arc::<Traffic>::default();
    let store: Arc<dyn Store> = Arc::new(Steady::new(remote, Patience::default(), Arc::clone(&traffic)));
    let store = match &options.cache {
        Some((folder, limit)) => cached(folder, *limit, &list, store, &traffic)?,
        None => store,
    }; // Reading ahead comes here.
    Ok(Objects { list: list.into(), store, folder: None })
}

#[cfg(unix)]
fn cached(
    folder: &Path,
    limit: u64,
    list: &[Object],
    below: Arc<dyn Store>,
    traffic: &Arc<Traffic>,
) -> Result<Arc<dyn Store>, DataError> {
    Ok(Arc::new(Cached::open(folder, limit, list, below, Arc::clone(traffic))?))
}

#[cfg(not(unix))]
fn cached(_: &Path, _: u64, _: &[Object], _: Arc<dyn Store>, _: &Arc<Traffic>) -> Result<Arc<dyn Store>, DataError> {
    Err(DataError::Option {
        option: "cache",
        problem: "pages of objects are kept in sparse files, as Unix has them".into(),
        advice: "leave it out, or copy the objects to a disk".into(),
    })
}

fn scheme(url: &str) -> &str {
    url.split_once("://").map_or("", |(scheme, _)| scheme)
}

fn unknown(url: &str) -> DataError {
    DataError::Option {
        option: "paths",
        problem: format!("no store is known for `{url}`"),
        advice: "write a path, or a URL with https, http, hf (feature `http`), s3, gs or az (feature `cloud`)".into(),
    }
}
