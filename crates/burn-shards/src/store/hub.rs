//! Data sets of the Hugging Face hub: `hf://datasets/org/name@revision/path`.

mod api;
mod home;
mod path;
#[cfg(test)]
mod tests;

use super::{
    Object,
    client::RequestUrl,
    remote::{Refusal, Remote, Retry, no},
    steady::Patience,
    waits::Waits,
    wild::WildPattern,
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
#[cfg(feature = "parquet")]
use std::collections::BTreeMap;
use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hasher,
    io::{self, Read, Seek, SeekFrom},
    ops::Range,
    path::{Path, PathBuf},
};

/// Objects of the hub. Each belongs to one commit, and never changes.
#[derive(Debug)]
pub(super) struct Hub {
    api: Api,
    objects: Vec<HubObject>,
}

/// A file on the hub.
#[derive(Debug)]
struct HubObject {
    at: RequestUrl,
    bytes: u64,
    /// The file in the hub's local cache, if it is there. Then its bytes are not requested from the hub.
    here: Option<PathBuf>,
    /// The URL with the bytes that the hub redirected to, while it is valid.
    moved: Mutex<Option<RequestUrl>>,
}

/// The hub that the environment names.
pub(super) fn api(patience: Patience) -> Result<Api, DataError> {
    Api::new(Home::from_env(), Waits::default(), patience)
}

/// Lists what a pattern matches, sorted by name, at the current commit.
pub(super) fn expand(api: &Api, text: &str) -> Result<Vec<String>, DataError> {
    let path = HubPath::parse(text)?;
    let wild = WildPattern::new(text, &path.file)?;
    let path = HubPath { revision: api.commit(&path)?, ..path.clone() };
    let list = api.list_folder(&path, wild.folder, wild.is_deep)?;
    let files = wild.matches(list.into_iter().map(|entry| entry.path))?;
    Ok(files.into_iter().map(|file| HubPath { file, ..path.clone() }.to_string()).collect())
}

/// Whether a file is on the hub.
pub(super) fn is_of_hub(file: &Path) -> bool {
    url(file).is_some_and(|url| url.starts_with("hf://"))
}

/// Writes the commit of each revision into the URLs.
pub(super) fn pin(api: &Api, files: Vec<PathBuf>) -> Result<Vec<PathBuf>, DataError> {
    let parse = |file: &PathBuf| url(file).filter(|_| is_of_hub(file)).map(HubPath::parse).transpose();
    let paths = files.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    let mut commits: HashMap<(&String, &String), String> = HashMap::new();
    let mut pinned = Vec::with_capacity(files.len());
    for (file, path) in files.into_iter().zip(&paths) {
        let Some(path) = path else {
            pinned.push(file);
            continue;
        };
        let commit = match commits.entry((&path.dataset, &path.revision)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                // The hub is not asked if all of these files are in the local cache.
                let mut all = paths.iter().flatten();
                let there = api.home.commit(path).filter(|commit| {
                    all.all(|other| !other.is_beside(path) || api.home.downloaded(other, commit).is_some())
                });
                unknown.insert(there.map_or_else(|| api.commit(path), Ok)?)
            }
        };
        pinned.push(HubPath { revision: commit.clone(), ..path.clone() }.to_string().into());
    }
    Ok(pinned)
}

/// The files of some URLs, each at one commit.
pub(super) fn paths(api: &Api, urls: &[String]) -> Result<Vec<HubPath>, DataError> {
    let pinned = |url: &String| {
        let path = HubPath::parse(url)?;
        Ok(HubPath { revision: api.commit(&path)?, ..path })
    };
    urls.iter().map(pinned).collect()
}

/// The files in the local cache, if all are there.
pub(super) fn downloaded(api: &Api, paths: &[HubPath]) -> Option<Vec<PathBuf>> {
    paths.iter().map(|path| api.home.downloaded(path, &path.revision)).collect()
}

/// Gets the sizes of objects. Files in the local cache are taken from there.
pub(super) fn open(api: Api, urls: &[String], paths: &[HubPath]) -> Result<(Vec<Object>, Hub), DataError> {
    let here: Vec<Option<PathBuf>> = paths.iter().map(|path| api.home.downloaded(path, &path.revision)).collect();
    if let Some((missing, _)) = paths.iter().zip(&here).find(|(_, here)| api.home.is_offline && here.is_none()) {
        return Err(api.wrong(missing, api::OFFLINE));
    }
    let mut lists: HashMap<(&str, &str, &str), HashMap<String, TreeEntry>> = HashMap::new();
    let (mut objects, mut places) = (Vec::with_capacity(paths.len()), Vec::with_capacity(paths.len()));
    for ((path, here), url) in paths.iter().zip(here).zip(urls) {
        let folder = path.file.rsplit_once('/').map_or("", |(folder, _)| folder);
        let list = match lists.entry((path.dataset.as_str(), path.revision.as_str(), folder)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let list = api.list_folder(path, folder, false)?;
                unknown.insert(list.into_iter().map(|entry| (entry.path.clone(), entry)).collect())
            }
        };
        let entry = list.get(&path.file).ok_or_else(|| DataError::NoFiles { pattern: shown(url.as_ref()) })?;
        let mut tag = FnvHasher::default();
        tag.write(entry.id().as_bytes());
        objects.push(Object { name: url.as_str().into(), bytes: entry.size, tag: tag.finish() });
        places.push(HubObject { at: api.target(path)?, bytes: entry.size, here, moved: Mutex::default() });
    }
    Ok((objects, Hub { api, objects: places }))
}

/// Lists the Parquet files that the hub made of a split: `org/name` and `split` or `config/split`.
#[cfg(feature = "parquet")]
pub(super) fn converted(api: &Api, dataset: &str, split: &str) -> Result<Vec<String>, DataError> {
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
        return Err(DataError::option(
            "split",
            format!("the Parquet branch of {dataset} {problem} `{split}`"),
            format!("write one of: {}", names.join(", ")),
        ));
    };
    let mut files = there.remove(&folder.clone()).unwrap_or_default();
    files.sort_unstable();
    Ok(files)
}

impl Remote for Hub {
    fn get(&self, object: usize, part: Range<u64>) -> Result<Box<dyn Read + Send + '_>, Refusal> {
        let HubObject { at, bytes, here, moved } = &self.objects[object];
        if let Some(path) = here {
            return part_of_file(path, &part);
        }
        let known = moved.lock().clone();
        if let Some(place) = known {
            match self.api.client.ask(&place, Some(&part), None) {
                Ok(answer) => return answer.into_part(&part, *bytes).map(|body| body as _),
                Err(refused) => {
                    if matches!(refused.again, Retry::After(_)) {
                        return Err(refused); // the server is busy, and the URL is still valid
                    }
                    *moved.lock() = None;
                    // The signature of the URL expires, so the hub is asked for a new one: by the next attempt if there is one, otherwise
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

    /// A tag is of the hash of the bytes.
    fn is_exact(&self) -> bool {
        true
    }

    fn beside(&self, object: usize, extension: &str) -> Result<Option<Vec<u8>>, Refusal> {
        let HubObject { at, here, .. } = &self.objects[object];
        match here {
            Some(path) => Ok(files::read(&path.with_extension(extension)).ok()),
            None => self.api.client.read_beside(at, extension),
        }
    }
}

/// A part of a file in the local cache.
fn part_of_file(path: &Path, part: &Range<u64>) -> Result<Box<dyn Read + Send>, Refusal> {
    let open = || {
        let mut file = files::open(path)?;
        file.seek(SeekFrom::Start(part.start))?;
        Ok(Box::new(file.take(part.end - part.start)) as _)
    };
    open().map_err(|error: io::Error| no(None, format!("{}: {error}", path.display())))
}
