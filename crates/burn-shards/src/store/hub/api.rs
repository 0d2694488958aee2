//! Requests to the hub other than for bytes: commits and lists.

use super::{home::Home, path::HubPath};
use crate::{
    error::{DataError, StoreError},
    store::{
        client::{Client, RequestUrl},
        remote::{Refusal, no, unreadable},
        steady::{Patience, patiently},
        url::encode,
        waits::Waits,
    },
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use std::{collections::HashSet, io};
use ureq::http::{HeaderMap, header};

pub(super) const OFFLINE: &str = "`HF_HUB_OFFLINE` is set, and it was not downloaded";

/// Asks the hub.
#[derive(Debug)]
pub(crate) struct Api {
    pub(super) home: Home,
    pub(super) client: Client,
    patience: Patience,
}

/// A file or folder of a data set.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct TreeEntry {
    #[serde(rename = "type")]
    kind: String,
    pub(super) path: String,
    #[serde(default)]
    pub(super) size: u64,
    #[serde(default)]
    oid: String,
    /// The LFS entry of a file that is not in Git itself.
    #[serde(default)]
    lfs: Value,
}

impl TreeEntry {
    /// The hash of its bytes.
    pub(super) fn id(&self) -> &str {
        self.lfs["oid"].as_str().unwrap_or(&self.oid)
    }
}

impl Api {
    pub(super) fn new(home: Home, waits: Waits, patience: Patience) -> Result<Self, DataError> {
        Ok(Self { home, client: Client::new(waits, patience.stop.clone())?, patience })
    }

    /// The current commit of a revision.
    pub(super) fn commit(&self, path: &HubPath) -> Result<String, DataError> {
        if path.is_pinned() {
            return Ok(path.revision.clone());
        }
        if self.home.is_offline {
            return self.home.commit(path).ok_or_else(|| self.wrong(path, OFFLINE));
        }
        let revision = encode(&path.revision).replace('/', "%2F");
        let place = format!("/api/datasets/{}/revision/{revision}", path.dataset);
        let answer = self.json(&self.url(path, &place)?);
        let (_, about): (_, Value) = answer.map_err(|error| unreadable(&path.to_string(), error))?;
        let commit = HubPath { revision: about["sha"].as_str().unwrap_or_default().into(), ..path.clone() };
        match commit.is_pinned() {
            true => Ok(commit.revision),
            false => Err(self.wrong(path, "the hub does not say which commit the revision is")),
        }
    }

    /// The files of a folder, at the commit that the path has.
    pub(super) fn list_folder(&self, path: &HubPath, folder: &str, is_deep: bool) -> Result<Vec<TreeEntry>, DataError> {
        if self.home.is_offline {
            let entry = |path| TreeEntry { kind: "file".into(), path, size: 0, oid: String::new(), lfs: Value::Null };
            return Ok(self.home.files(path).into_iter().map(entry).collect());
        }
        let HubPath { dataset, revision, .. } = path;
        let folder = if folder.is_empty() { String::new() } else { format!("/{}", encode(folder)) };
        let place = format!("/api/datasets/{dataset}/tree/{revision}{folder}?recursive={is_deep}&expand=false");
        let mut page = self.url(path, &place)?;
        let (mut links, mut all) = (HashSet::new(), Vec::new());
        loop {
            let (headers, entries): (_, Vec<TreeEntry>) = match self.json(&page) {
                // There is no such folder.
                Err(StoreError { status: Some(404), .. }) if links.is_empty() => return Ok(all),
                answer => answer.map_err(|error| unreadable(&path.to_string(), error))?,
            };
            all.extend(entries.into_iter().filter(|entry| entry.kind == "file"));
            let Some(link) = next_page(&headers) else { return Ok(all) };
            // Pages that link to each other would be an endless loop.
            let next = page.follow(&link).filter(|next| !page.is_safer_than(next) && links.insert(link));
            page = next.ok_or_else(|| self.wrong(path, "the hub names a next page that makes no sense"))?;
        }
    }

    /// The URL for the bytes of a file.
    pub(super) fn target(&self, path: &HubPath) -> Result<RequestUrl, DataError> {
        let HubPath { dataset, revision, file } = path;
        self.url(path, &format!("/datasets/{dataset}/resolve/{revision}/{}", encode(file)))
    }

    fn url(&self, path: &HubPath, place: &str) -> Result<RequestUrl, DataError> {
        let target = RequestUrl::new(&format!("{}{place}", self.home.endpoint));
        let target = target.map(|target| target.with_token(self.home.token.as_deref()));
        target.ok_or_else(|| self.wrong(path, "`HF_ENDPOINT` is no URL of a server"))
    }

    fn json<T: DeserializeOwned>(&self, place: &RequestUrl) -> Result<(HeaderMap, T), StoreError> {
        let ask = || {
            let (headers, bytes) = self.client.read_all(place).map_err(|refused| self.explain(refused))?;
            let wrong = |error| no(None, format!("the hub's answer cannot be read: {error}"));
            Ok((headers, serde_json::from_slice(&bytes).map_err(wrong)?))
        };
        patiently(&self.patience, ask)
    }

    /// Adds what to do if access is denied.
    pub(super) fn explain(&self, refused: Refusal) -> Refusal {
        let problem = match (refused.status, &self.home.token) {
            (Some(401 | 403), None) => {
                "the data set is private or gated, or there is none: set `HF_TOKEN`, or log in with `hf auth login`, and leave `HF_HUB_DISABLE_IMPLICIT_TOKEN` out"
            }
            (Some(401), Some(_)) => "the hub does not take the token: is `HF_TOKEN` or the token's file right?",
            (Some(403), Some(_)) => "the token may not read it: a gated data set must be asked for on its page",
            (Some(404), _) => "there is no such data set, revision or file",
            _ => return refused,
        };
        Refusal { problem: problem.into(), ..refused }
    }

    pub(super) fn wrong(&self, path: &HubPath, problem: &'static str) -> DataError {
        DataError::Open { path: path.to_string().into(), source: io::Error::other(problem) }
    }
}

/// The page that `Link: <..>; rel="next"` names.
fn next_page(headers: &HeaderMap) -> Option<String> {
    let links = headers.get(header::LINK)?.to_str().ok()?;
    links.split(',').find_map(|link| {
        let (page, about) = link.split_once(';')?;
        let page = page.trim().strip_prefix('<')?.strip_suffix('>')?;
        about.contains("rel=\"next\"").then(|| page.into())
    })
}
