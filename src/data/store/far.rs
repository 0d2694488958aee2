//! Chooses the store of a URL.

use super::{
    Far, Object, Objects, Store,
    remote::Remote,
    steady::{Patience, Steady},
};
use crate::data::{error::DataError, fetch::Ahead, source::Options, traffic::Traffic};
use std::sync::Arc;

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
    let ahead = (options.read_ahead > 0)
        .then(|| Arc::new(Ahead::new(Arc::clone(&store), options.read_ahead, options.requests)));
    Ok(Objects { far: Some(Far { ahead, traffic }), ..Objects::new(list, store, None) })
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
