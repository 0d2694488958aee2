//! Chooses the store of a URL.

#[cfg(feature = "cloud")]
use super::cloud;
use super::{
    Object, Objects, Store,
    ahead::ReadAhead,
    cache::{PageCache, is_foreign, unusable},
    remote::Remote,
    steady::{Patience, SteadyStore},
};
#[cfg(feature = "http")]
use super::{http, hub, waits::Waits};
use crate::{
    error::DataError,
    store::{
        options::Options,
        traffic::Traffic,
        url::{is_listed, parameters, shown},
        wild::is_wild,
    },
};
use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Lists the objects that match a pattern with `*`, `?` or `[`, sorted by name. Other URLs are unchanged.
pub(crate) fn expand(pattern: &str, options: &Options) -> Result<Vec<String>, DataError> {
    match scheme(plain(pattern)?) {
        listed if is_listed(listed) && !is_wild(pattern) => Ok(vec![pattern.into()]),
        #[cfg(feature = "http")]
        "http" | "https" => http::expand(pattern),
        #[cfg(feature = "http")]
        "hf" => hub::expand(&hub::api(patience(options))?, pattern),
        #[cfg(feature = "cloud")]
        "s3" | "gs" | "az" => cloud::expand(pattern, &patience(options)),
        _ => Err(unknown(pattern)),
    }
}

/// If a store has several versions of an object, pins one, so that all reads are of one version.
pub(crate) fn pin(files: Vec<PathBuf>, options: &Options) -> Result<Vec<PathBuf>, DataError> {
    #[cfg(feature = "http")]
    if files.iter().any(|file| hub::is_of_hub(file)) {
        return hub::pin(&hub::api(patience(options))?, files);
    }
    let _ = options;
    Ok(files)
}

/// Lists the Parquet files that the hub made of a split: `org/name` and `split` or `config/split`.
#[cfg(all(feature = "http", feature = "parquet"))]
pub(crate) fn converted(dataset: &str, split: &str, options: &Options) -> Result<Vec<String>, DataError> {
    hub::converted(&hub::api(patience(options))?, dataset, split)
}

fn patience(options: &Options) -> Patience {
    Patience::new(options.busy.clone())
}

/// Gets the sizes and versions of objects of one store.
pub(super) fn open(urls: Vec<String>, options: &Options) -> Result<Objects, DataError> {
    let first = urls.first().map_or("", |url| url.as_str());
    urls.iter().try_for_each(|url| plain(url).map(drop))?;
    if let Some(other) = urls.iter().find(|url| scheme(url) != scheme(first)) {
        return Err(DataError::option(
            "paths",
            format!("{} and {} are in different stores", shown(first.as_ref()), shown(other.as_ref())),
            "open them apart, and chain the rows with Burn's `ComposedDataset`",
        ));
    }
    let patience = patience(options);
    match scheme(first) {
        #[cfg(feature = "http")]
        "http" | "https" => objects(http::open(&urls, Waits::default(), &patience)?, patience, options),
        #[cfg(feature = "http")]
        "hf" => {
            let api = hub::api(patience.clone())?;
            let paths = hub::paths(&api, &urls)?;
            match hub::downloaded(&api, &paths) {
                Some(files) => Objects::local(files).map(|objects| objects.named(&urls, own_folder())),
                None => objects(hub::open(api, &urls, &paths)?, patience, options),
            }
        }
        #[cfg(feature = "cloud")]
        "s3" | "gs" | "az" => objects(cloud::open(&urls, &patience)?, patience, options),
        _ => Err(unknown(first)),
    }
}

/// Stacks the layers that all remote stores share on top of a protocol.
fn objects<R: Remote + 'static>(
    (list, remote): (Vec<Object>, R),
    patience: Patience,
    options: &Options,
) -> Result<Objects, DataError> {
    let (traffic, stop) = (Arc::new(Traffic::new(patience.busy.clone())), patience.stop.clone());
    let is_exact = remote.is_exact();
    let store: Arc<dyn Store> = Arc::new(SteadyStore::new(remote, patience, Arc::clone(&traffic)));
    let store = match &options.cache {
        Some((folder, limit)) => cached(folder, *limit, &list, store, &traffic)?,
        None => store,
    };
    let ahead = (options.read_ahead > 0)
        .then(|| Arc::new(ReadAhead::new(Arc::clone(&store), stop, options.read_ahead, options.requests)));
    Ok(Objects { ahead, traffic: Some(traffic), is_own: true, is_exact, ..Objects::new(list, store, own_folder()) })
}

/// A folder of the user for indices. Indices belong beside their files, but nothing can be written beside remote objects.
fn own_folder() -> Option<PathBuf> {
    let given = env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    Some(given.or_else(|| Some(env::home_dir()?.join(".cache")))?.join("burn-pinned"))
}

fn cached(
    folder: &Path,
    limit: u64,
    list: &[Object],
    below: Arc<dyn Store>,
    traffic: &Arc<Traffic>,
) -> Result<Arc<dyn Store>, DataError> {
    match PageCache::open(folder, limit, list, Arc::clone(&below), Arc::clone(traffic)) {
        Ok(cached) => Ok(Arc::new(cached)),
        Err(error) if is_foreign(&error) => {
            log::warn!("the cache in {} is not used, and all is read from the store: {error}", folder.display());
            Ok(below)
        }
        Err(error) => Err(unusable(folder, &error)),
    }
}

/// Refuses a query in the URL of a store without queries. It may be a signature, and would become part of a name.
fn plain(url: &str) -> Result<&str, DataError> {
    if !is_listed(scheme(url)) || parameters(url).is_none() {
        return Ok(url);
    }
    Err(DataError::option(
        "paths",
        format!("`{}` has a query, and a URL with `{}` has none", shown(url.as_ref()), scheme(url)),
        "write a signed URL with `https://`; without a query, credentials come from the environment",
    ))
}

fn scheme(url: &str) -> &str {
    url.split_once("://").map_or("", |(scheme, _)| scheme)
}

fn unknown(url: &str) -> DataError {
    DataError::option(
        "paths",
        format!("no store is known for `{}`", shown(url.as_ref())),
        "write a path, or a URL with https, http, hf (feature `http`), s3, gs or az (feature `cloud`)",
    )
}
