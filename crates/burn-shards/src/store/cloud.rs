//! Objects of S3, Google Cloud Storage, Azure and compatible stores: `s3://`, `gs://`, `az://`.

mod service;
#[cfg(test)]
mod tests;
mod thread;
mod url;

use super::{
    Object,
    remote::{CHANGED, LOOKS_AT_ONCE, Refusal, Remote, Retry, no, unreadable},
    steady::{Patience, patiently},
    stop::Stop,
    waits::{PacedReader, Waits},
    wild::WildPattern,
};
use crate::{
    error::{DataError, StoreError},
    system::parallel::in_parallel_by,
};
use bytes::{Buf, Bytes};
use fnv::FnvHasher;
use futures_util::{StreamExt, stream::BoxStream};
use object_store::{
    Attribute, GetOptions, GetRange, ObjectMeta, ObjectStoreExt, list::PaginatedListOptions, path::Path,
};
use service::{Connector, told};
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    error::Error,
    future::Future,
    hash::{Hash, Hasher},
    io::{self, Read},
    ops::Range,
    sync::Arc,
};
use thread::CloudThread;
use url::{Bucket, CloudUrl};

/// Objects of one cloud, as they were when they were opened. Stores have credentials, so they are not shown.
#[derive(derive_more::Debug)]
#[debug("Cloud")]
pub(super) struct Cloud {
    objects: Vec<CloudObject>,
    waits: Waits,
    // The last field, so that it is dropped last.
    thread: CloudThread,
}

/// An object as it was when it was opened.
struct CloudObject {
    store: Arc<dyn Bucket>,
    meta: ObjectMeta,
}

/// Lists what a pattern matches, sorted by name.
pub(super) fn expand(pattern: &str, patience: &Patience) -> Result<Vec<String>, DataError> {
    let connector = Connector::new(Waits::default())?;
    expand_with(pattern, |place| place.store(&connector), patience)
}

/// `connect` makes the client of a bucket.
fn expand_with(
    text: &str,
    connect: impl Fn(&CloudUrl) -> Result<Arc<dyn Bucket>, DataError>,
    patience: &Patience,
) -> Result<Vec<String>, DataError> {
    let place = CloudUrl::parse(text)?;
    let wild = WildPattern::new(text, place.key.as_ref())?;
    let (thread, store) = (start(&place, patience.stop.clone())?, connect(&place)?);
    let prefix = (!wild.folder.is_empty()).then(|| format!("{}/", wild.folder));
    let (mut found, mut tokens, mut page_token) = (Vec::new(), HashSet::new(), None);
    loop {
        // In a long list, only a failed page is requested again.
        let page = || {
            let delimiter = (!wild.is_deep).then_some(Cow::Borrowed("/"));
            let options = PaginatedListOptions { delimiter, page_token: page_token.clone(), ..Default::default() };
            ask(&thread, store.list_paginated(prefix.as_deref(), options))
        };
        let page = patiently(patience, page).map_err(|error| unreadable(text, error))?;
        found.extend(page.result.objects.into_iter().filter(|meta| wild.is_match(meta.location.as_ref())));
        let Some(next) = page.page_token else { break };
        if !tokens.insert(next.clone()) {
            let problem = "the store names a next page that was there before".into();
            return Err(unreadable(text, StoreError { problem, status: None, attempts: 1 }));
        }
        page_token = Some(next);
    }
    let kept = in_parallel_by(LOOKS_AT_ONCE, &found, |meta| {
        let is_folder = || marks_folder(&thread, &*store, meta);
        let is_folder = meta.size == 0 && patiently(patience, is_folder).map_err(|error| unreadable(text, error))?;
        Ok((!is_folder).then(|| meta.location.to_string()))
    })?;
    let mut keys = wild.matches(kept.into_iter().flatten())?;
    keys.dedup(); // an object, and the folder marker with its name
    Ok(keys.into_iter().map(|key| place.url(&key)).collect())
}

/// Whether an empty object only marks a folder. Then its name had a final slash, which was removed, and the store has no object with the
/// shorter name. Or Azure says that it marks a folder.
fn marks_folder(thread: &CloudThread, store: &dyn Bucket, meta: &ObjectMeta) -> Result<bool, Refusal> {
    let head = GetOptions { head: true, ..GetOptions::default() };
    match ask(thread, store.get_opts(&meta.location, head)) {
        Ok(got) => {
            let says = got.attributes.get(&Attribute::Metadata("hdi_isfolder".into()));
            Ok(says.is_some_and(|says| says.eq_ignore_ascii_case("true")))
        }
        Err(Refusal { status: Some(404), .. }) => Ok(true),
        Err(refused) => Err(refused),
    }
}

/// Waits for the answer of a store.
fn ask<T>(thread: &CloudThread, answer: impl Future<Output = object_store::Result<T>>) -> Result<T, Refusal> {
    thread.wait(answer)?.map_err(|error| refused(&error))
}

/// Gets the sizes and versions of objects.
pub(super) fn open(urls: &[String], patience: &Patience) -> Result<(Vec<Object>, Cloud), DataError> {
    let waits = Waits::default();
    let connector = Connector::new(waits)?;
    open_with(urls, |place| place.store(&connector), waits, patience)
}

fn open_with(
    urls: &[String],
    connect: impl Fn(&CloudUrl) -> Result<Arc<dyn Bucket>, DataError>,
    waits: Waits,
    patience: &Patience,
) -> Result<(Vec<Object>, Cloud), DataError> {
    let places = urls.iter().map(|url| CloudUrl::parse(url)).collect::<Result<Vec<_>, _>>()?;
    let mut buckets: HashMap<&str, Arc<dyn Bucket>> = HashMap::new();
    for place in &places {
        if !buckets.contains_key(&*place.bucket) {
            buckets.insert(&place.bucket, connect(place)?);
        }
    }
    let thread = start(&places[0], patience.stop.clone())?;
    let look = |place: &CloudUrl| {
        let store = Arc::clone(&buckets[&*place.bucket]);
        let look = || ask(&thread, store.head(&place.key));
        let meta = patiently(patience, look).map_err(|error| unreadable(&place.to_string(), error))?;
        Ok(CloudObject { store, meta })
    };
    // The first object is requested alone, because one wait is enough to find that there are no credentials.
    let mut objects = vec![look(&places[0])?];
    objects.extend(in_parallel_by(LOOKS_AT_ONCE, &places[1..], look)?);
    let list = places.iter().zip(&objects).map(|(place, CloudObject { meta, .. })| Object {
        name: place.to_string().into(),
        bytes: meta.size,
        tag: tag(meta),
    });
    Ok((list.collect(), Cloud { objects, waits, thread }))
}

fn start(place: &CloudUrl, stop: Stop) -> Result<CloudThread, DataError> {
    CloudThread::start(stop).map_err(|source| DataError::Open { path: place.to_string().into(), source })
}

fn tag(meta: &ObjectMeta) -> u64 {
    let mut hash = FnvHasher::default();
    match &meta.e_tag {
        Some(mark) => hash.write(mark.as_bytes()),
        None => meta.last_modified.hash(&mut hash),
    }
    hash.finish()
}

/// Whether both are the same version of an object, as far as the store says.
fn fit(one: &ObjectMeta, other: &ObjectMeta) -> bool {
    let is_marked = one.e_tag.is_some() && other.e_tag.is_some();
    one.size == other.size
        && if is_marked { one.e_tag == other.e_tag } else { one.last_modified == other.last_modified }
}

impl Remote for Cloud {
    fn get(&self, object: usize, part: Range<u64>) -> Result<Box<dyn Read + Send + '_>, Refusal> {
        let CloudObject { store, meta } = &self.objects[object];
        // `If-Match` with a weak ETag never matches, by the rules of HTTP.
        let if_match = meta.e_tag.clone().filter(|mark| !mark.starts_with("W/"));
        let options = GetOptions { range: Some(GetRange::Bounded(part)), if_match, ..GetOptions::default() };
        let got = ask(&self.thread, store.get_opts(&meta.location, options))?;
        if !fit(meta, &got.meta) {
            return Err(no(None, CHANGED));
        }
        let body = CloudPart { thread: &self.thread, stream: got.into_stream(), came: Bytes::new() };
        Ok(Box::new(PacedReader::new(body, self.waits)))
    }

    /// A bucket gives other bytes another ETag.
    fn is_exact(&self) -> bool {
        let is_strong = |mark: &String| !mark.starts_with("W/");
        self.objects.iter().all(|object| object.meta.e_tag.as_ref().is_some_and(is_strong))
    }

    fn beside(&self, object: usize, extension: &str) -> Result<Option<Vec<u8>>, Refusal> {
        let CloudObject { store, meta } = &self.objects[object];
        let key = meta.location.as_ref();
        let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
        let stem = name.rsplit_once('.').map_or(key, |(stem, _)| &key[..key.len() - name.len() + stem.len()]);
        let Ok(beside) = Path::parse(format!("{stem}.{extension}")) else { return Ok(None) };
        if beside == meta.location {
            return Ok(None);
        }
        match ask(&self.thread, async { store.get(&beside).await?.bytes().await }) {
            Ok(bytes) => Ok(Some(bytes.into())),
            // A store that does not allow listing answers with 403 if an object does not exist.
            Err(Refusal { status: Some(403 | 404), .. }) => Ok(None),
            Err(refused) => Err(refused),
        }
    }
}

/// The bytes of an answer. The reading thread waits for them.
struct CloudPart<'a> {
    thread: &'a CloudThread,
    stream: BoxStream<'static, object_store::Result<Bytes>>,
    came: Bytes,
}

impl Read for CloudPart<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.came.is_empty() {
            match self.thread.wait(self.stream.next()).map_err(io::Error::other)? {
                Some(came) => self.came = came.map_err(|error| io::Error::other(refused(&error)))?,
                None => return Ok(0),
            }
        }
        let bytes = self.came.len().min(into.len());
        self.came.copy_to_slice(&mut into[..bytes]);
        Ok(bytes)
    }
}

/// What an error means. Errors of object_store may contain URLs with signatures, names of keys, or texts that it could not parse.
fn refused(error: &object_store::Error) -> Refusal {
    let mut inner: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = inner {
        if let Some(refused) = error.downcast_ref::<Refusal>() {
            return refused.clone();
        }
        // A body that broke off.
        if error.is::<reqwest::Error>() {
            return Refusal { status: None, problem: told(error), again: Retry::Yes };
        }
        inner = error.source();
    }
    match error {
        object_store::Error::Generic { source, .. } if source.source().is_none() => no(None, source.to_string()),
        object_store::Error::InvalidPath { source } => {
            no(None, format!("a name in this folder cannot be read: {source}"))
        }
        _ => no(None, "the answer makes no sense here, or the credentials cannot be read"),
    }
}
