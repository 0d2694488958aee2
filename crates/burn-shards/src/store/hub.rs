//! Data sets of the Hugging Face hub: `hf://datasets/org/name@revision/path`.

mod api;
mod home;
mod path;
#[cfg(test)]
mod tests;

use super::{
    Object,
    client::RequestUrl,
    remote::{Refusal, Remote, RemoteObjects, Retry, no},
    steady::Patience,
    waits::Waits,
    wild::{WildPattern, is_wild},
};
use crate::{
    error::DataError,
    store::url::{shown, url},
    system::{files, locks::Mutex},
};
use api::{Api, TreeEntry};
use fnv::FnvHasher;
use home::Home;
use path::HubPath;
use std::{
    collections::{BTreeMap, HashMap, btree_map},
    hash::Hasher,
    io::{self, Read, Seek, SeekFrom},
    ops::Range,
    path::{Path, PathBuf},
};

/// Objects of the hub. Each is of one commit, and never changes.
#[derive(Debug)]
pub(super) struct Hub {
    api: Box<Api>,
    objects: Vec<HubObject>,
}

/// Where an object is.
#[derive(Debug)]
enum HubObject {
    /// In the local cache of the hub.
    Here(PathBuf),
    /// On the hub, which redirects to another place that has the bytes. That place is good for a while.
    There(Box<HubTarget>),
}

/// A file on the hub.
#[derive(Debug)]
struct HubTarget {
    at: RequestUrl,
    bytes: u64,
    /// The other place, if the hub has named one that is still good.
    moved: Mutex<Option<RequestUrl>>,
}

fn api(patience: Patience) -> Result<Api, DataError> {
    Api::new(Home::from_env(), Waits::default(), patience)
}

/// Lists what a pattern matches, sorted by name, at the commit of now.
pub(super) fn expand(pattern: &str, patience: Patience) -> Result<Vec<String>, DataError> {
    if is_wild(pattern) { expand_with(&api(patience)?, pattern) } else { Ok(vec![pattern.into()]) }
}

fn expand_with(api: &Api, text: &str) -> Result<Vec<String>, DataError> {
    let path = HubPath::parse(text)?;
    let wild = WildPattern::new(text, &path.file)?;
    let path = HubPath { revision: api.commit(&path)?, ..path.clone() };
    let list = api.list_folder(&path, wild.folder, wild.is_deep)?;
    let files = wild.matches(list.into_iter().map(|entry| entry.path))?;
    Ok(files.into_iter().map(|file| HubPath { file, ..path.clone() }.to_string()).collect())
}

/// Writes the commit of each revision into the URLs.
pub(super) fn pin(files: Vec<PathBuf>, patience: Patience) -> Result<Vec<PathBuf>, DataError> {
    let is_open = |file: &PathBuf| url(file).is_some_and(|url| url.starts_with("hf://"));
    if files.iter().any(is_open) { pin_with(&api(patience)?, files) } else { Ok(files) }
}

fn pin_with(api: &Api, files: Vec<PathBuf>) -> Result<Vec<PathBuf>, DataError> {
    let parse = |file: &PathBuf| url(file).filter(|url| url.starts_with("hf://")).map(HubPath::parse).transpose();
    let paths = files.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    let mut commits: HashMap<(String, String), String> = HashMap::new();
    let mut pinned = Vec::with_capacity(files.len());
    for (file, path) in files.into_iter().zip(&paths) {
        let Some(path) = path else {
            pinned.push(file);
            continue;
        };
        let key = (path.dataset.clone(), path.revision.clone());
        let revision = match commits.get(&key) {
            Some(commit) => commit.clone(),
            None => {
                // The hub is not asked if all of these files are in the local cache.
                let mut all = paths.iter().flatten();
                let there = api.home.commit(path).filter(|commit| {
                    all.all(|other| !other.is_beside(path) || api.home.downloaded(other, commit).is_some())
                });
                let commit = there.map_or_else(|| api.commit(path), Ok)?;
                commits.insert(key, commit.clone());
                commit
            }
        };
        pinned.push(HubPath { revision, ..path.clone() }.to_string().into());
    }
    Ok(pinned)
}

/// Where the objects of a list are.
#[derive(Debug)]
pub(super) enum HubObjects {
    /// All of them are files of the local cache.
    Here(Vec<PathBuf>),
    There(RemoteObjects<Hub>),
}

/// Looks at objects. Files of the local cache are taken from there.
pub(super) fn open(urls: &[String], patience: Patience) -> Result<HubObjects, DataError> {
    open_with(api(patience)?, urls)
}

fn open_with(api: Api, urls: &[String]) -> Result<HubObjects, DataError> {
    let mut paths = urls.iter().map(|url| HubPath::parse(url)).collect::<Result<Vec<_>, _>>()?;
    for path in &mut paths {
        if !path.is_pinned() {
            path.revision = api.commit(path)?;
        }
    }
    let here: Vec<Option<PathBuf>> = paths.iter().map(|path| api.home.downloaded(path, &path.revision)).collect();
    if let Some(files) = here.iter().cloned().collect::<Option<Vec<_>>>() {
        return Ok(HubObjects::Here(files));
    }
    if api.home.is_offline {
        let missing = paths.iter().zip(&here).find(|(_, here)| here.is_none());
        return Err(api.wrong(missing.map_or(&paths[0], |(path, _)| path), api::OFFLINE));
    }
    let mut lists: BTreeMap<(&str, &str, &str), HashMap<String, TreeEntry>> = BTreeMap::new();
    let (mut objects, mut places) = (Vec::with_capacity(paths.len()), Vec::with_capacity(paths.len()));
    for ((path, here), url) in paths.iter().zip(here).zip(urls) {
        let folder = path.file.rsplit_once('/').map_or("", |(folder, _)| folder);
        let key = (path.dataset.as_str(), path.revision.as_str(), folder);
        let list = match lists.entry(key) {
            btree_map::Entry::Occupied(list) => list.into_mut(),
            btree_map::Entry::Vacant(place) => {
                let list = api.list_folder(path, folder, false)?;
                place.insert(list.into_iter().map(|entry| (entry.path.clone(), entry)).collect())
            }
        };
        let entry = list.get(&path.file).ok_or_else(|| DataError::NoFiles { pattern: shown(url.as_ref()) })?;
        let mut tag = FnvHasher::default();
        tag.write(entry.id().as_bytes());
        objects.push(Object { name: url.as_str().into(), bytes: entry.size, tag: tag.finish() });
        places.push(match here {
            Some(file) => HubObject::Here(file),
            None => HubObject::There(Box::new(HubTarget {
                at: api.target(path)?,
                bytes: entry.size,
                moved: Mutex::default(),
            })),
        });
    }
    Ok(HubObjects::There((objects, Hub { api: Box::new(api), objects: places })))
}

/// Lists the Parquet files that the hub has made of a split: `org/name` and `split` or `config/split`.
#[cfg(feature = "parquet")]
pub(super) fn converted(dataset: &str, split: &str, patience: Patience) -> Result<Vec<String>, DataError> {
    converted_with(&api(patience)?, dataset, split)
}

#[cfg(feature = "parquet")]
fn converted_with(api: &Api, dataset: &str, split: &str) -> Result<Vec<String>, DataError> {
    let path = HubPath::parse(&format!("hf://datasets/{dataset}@~parquet/{split}"))?;
    let path = HubPath { revision: api.commit(&path)?, ..path };
    let mut there: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for TreeEntry { path: file, .. } in api.list_folder(&path, "", true)? {
        if let Some((folder, _)) = file.rsplit_once('/').filter(|_| file.ends_with(".parquet")) {
            let url = HubPath { file: file.clone(), ..path.clone() }.to_string();
            there.entry(folder.into()).or_default().push(url);
        }
    }
    let default = format!("default/{split}");
    let of_split = |folder: &&String| folder.split_once('/').is_some_and(|(_, name)| name == split);
    let found: Vec<&String> = match there.contains_key(split) || there.contains_key(&default) {
        true => there.keys().filter(|folder| **folder == split || **folder == default).collect(),
        false => there.keys().filter(of_split).collect(),
    };
    let [folder] = found[..] else {
        let problem = if found.is_empty() { "has no split" } else { "has several configurations with the split" };
        let names: Vec<&str> = there.keys().map(String::as_str).collect();
        return Err(DataError::Option {
            option: "split",
            problem: format!("the Parquet branch of {dataset} {problem} `{split}`"),
            advice: format!("write one of: {}", names.join(", ")),
        });
    };
    let mut files = there.remove(&folder.clone()).unwrap_or_default();
    files.sort_unstable();
    Ok(files)
}

impl Remote for Hub {
    fn get(&self, object: usize, part: Range<u64>) -> Result<Box<dyn Read + Send + '_>, Refusal> {
        let HubTarget { at, bytes, moved } = match &self.objects[object] {
            HubObject::Here(path) => return here(path, &part),
            HubObject::There(there) => &**there,
        };
        let known = moved.lock().clone();
        if let Some(place) = known {
            match self.api.client.ask(&place, Some(&part), None) {
                Ok(answer) => return answer.into_part(&part, *bytes).map(|body| body as _),
                Err(refused) => {
                    if matches!(refused.again, Retry::After(_)) {
                        return Err(refused); // the place is busy, and is still good
                    }
                    *moved.lock() = None;
                    // A place is signed for some time only, so the hub is asked for a new one: by the next attempt if there is one, else
                    // now.
                    if refused.again == Retry::Yes {
                        return Err(refused);
                    }
                }
            }
        }
        let answer = self.api.client.ask(at, Some(&part), None).map_err(|refused| self.api.explain(refused))?;
        if answer.from != *at {
            *moved.lock() = Some(answer.from.clone());
        }
        answer.into_part(&part, *bytes).map(|body| body as _)
    }

    fn beside(&self, object: usize, extension: &str) -> Result<Option<Vec<u8>>, Refusal> {
        match &self.objects[object] {
            HubObject::Here(path) => Ok(files::read(&path.with_extension(extension)).ok()),
            HubObject::There(there) => match there.at.with_extension(extension) {
                Some(at) => self.api.client.small(&at),
                None => Ok(None),
            },
        }
    }
}

/// A part of a file of the local cache.
fn here(path: &Path, part: &Range<u64>) -> Result<Box<dyn Read + Send>, Refusal> {
    let open = || {
        let mut file = files::open(path)?;
        file.seek(SeekFrom::Start(part.start))?;
        Ok(Box::new(file.take(part.end - part.start)) as _)
    };
    open().map_err(|error: io::Error| no(None, format!("{}: {error}", path.display())))
}
