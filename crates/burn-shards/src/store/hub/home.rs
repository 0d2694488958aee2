//! What Hugging Face's tools keep on this machine: a token, a cache, settings.

use super::path::HubPath;
use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// Settings and folders of the hub's tools. They are `HF_*`, as these tools read them.
#[derive(Clone, derive_more::Debug)]
#[debug("Home {{ cache: {cache:?}, .. }}")]
pub(super) struct Home {
    pub(super) endpoint: String,
    pub(super) token: Option<String>,
    /// The cache, which has a folder for each data set.
    pub(super) cache: PathBuf,
    /// Whether the hub must not be contacted.
    pub(super) is_offline: bool,
}

impl Home {
    pub(super) fn from_env() -> Self {
        Self::from_variables(|name| env::var(name).ok())
    }

    /// Reads settings. An empty setting counts as none.
    pub(super) fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let variable = |name: &str| variable(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let user = env::home_dir().unwrap_or_default();
        let path = |name: &str| {
            variable(name).map(|text| match text.strip_prefix("~/") {
                Some(rest) => user.join(rest),
                None => text.into(),
            })
        };
        let home = path("HF_HOME")
            .unwrap_or_else(|| path("XDG_CACHE_HOME").unwrap_or_else(|| user.join(".cache")).join("huggingface"));
        let is_true = |text: String| ["1", "on", "yes", "true"].contains(&text.to_lowercase().as_str());
        let is_silent = variable("HF_HUB_DISABLE_IMPLICIT_TOKEN").is_some_and(is_true);
        let token = || {
            let text = fs::read_to_string(path("HF_TOKEN_PATH").unwrap_or_else(|| home.join("token"))).ok()?;
            Some(text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let endpoint = variable("HF_ENDPOINT").unwrap_or_else(|| "https://huggingface.co".into());
        Self {
            endpoint: endpoint.trim_end_matches('/').into(),
            token: variable("HF_TOKEN").or_else(token).filter(|_| !is_silent),
            cache: path("HF_HUB_CACHE").unwrap_or_else(|| home.join("hub")),
            is_offline: variable("HF_HUB_OFFLINE").is_some_and(is_true),
        }
    }

    fn folder(&self, path: &HubPath) -> PathBuf {
        self.cache.join(format!("datasets--{}", path.dataset.replace('/', "--")))
    }

    /// The commit of a revision at its last download.
    pub(super) fn commit(&self, path: &HubPath) -> Option<String> {
        if path.is_pinned() {
            return Some(path.revision.clone());
        }
        let text = fs::read_to_string(self.folder(path).join("refs").join(&path.revision)).ok()?;
        let commit = HubPath { revision: text.trim().into(), ..path.clone() };
        commit.is_pinned().then_some(commit.revision)
    }

    fn snapshot(&self, path: &HubPath, commit: &str) -> PathBuf {
        self.folder(path).join("snapshots").join(commit)
    }

    /// A file of a commit, if it was downloaded.
    pub(super) fn downloaded(&self, path: &HubPath, commit: &str) -> Option<PathBuf> {
        Some(self.snapshot(path, commit).join(&path.file)).filter(|file| file.is_file())
    }

    /// All files of a commit that were downloaded.
    pub(super) fn files(&self, path: &HubPath) -> Vec<String> {
        let (top, mut files) = (self.snapshot(path, &path.revision), Vec::new());
        let mut folders = vec![top.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let there = entry.path();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(there),
                    // A file is a link to its bytes. If the bytes are gone, opening the file fails. The hub's tools make no links to
                    // folders.
                    _ if !there.is_dir() => files.extend(name(&there, &top)),
                    _ => {}
                }
            }
        }
        files
    }
}

fn name(file: &Path, top: &Path) -> Option<String> {
    let parts = file.strip_prefix(top).ok()?.iter().map(|part| part.to_str());
    parts.collect::<Option<Vec<_>>>().map(|parts| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_those_of_the_hubs_tools() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().to_str().unwrap().to_owned();
        let home = |set: &[(&str, &str)]| {
            let set: Vec<_> = set.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
            Home::from_variables(move |name| set.iter().find(|(there, _)| there == name).map(|(_, text)| text.clone()))
        };
        let plain = home(&[("XDG_CACHE_HOME", &place), ("HF_TOKEN", " ")]);
        assert_eq!((&*plain.endpoint, plain.token.as_deref()), ("https://huggingface.co", None));
        assert_eq!(plain.cache, folder.path().join("huggingface/hub"));
        fs::write(folder.path().join("token"), "hf_file\n").unwrap();
        let set = home(&[("HF_HOME", &place), ("HF_ENDPOINT", "http://mirror/"), ("HF_HUB_OFFLINE", "1")]);
        assert_eq!((&*set.endpoint, set.token.as_deref(), set.is_offline), ("http://mirror", Some("hf_file"), true));
        let named = home(&[("HF_HOME", &place), ("HF_TOKEN", "hf_env"), ("HF_HUB_CACHE", "/c")]);
        assert_eq!((named.token.as_deref(), named.cache), (Some("hf_env"), "/c".into()));
        assert!(!format!("{:?}", home(&[("HF_TOKEN", "hf_env")])).contains("hf_env"));
        let silent =
            |is: &str| home(&[("HF_HOME", &place), ("HF_TOKEN", "hf_env"), ("HF_HUB_DISABLE_IMPLICIT_TOKEN", is)]);
        assert_eq!(["1", "TRUE", "0"].map(|is| silent(is).token.is_some()), [false, false, true]);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_whose_bytes_are_gone_is_listed_and_is_not_there() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().to_str().unwrap().to_owned();
        let home = Home::from_variables(move |name| (name == "HF_HUB_CACHE").then(|| place.clone()));
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let path = HubPath { dataset: "o/n".into(), revision: commit.into(), file: "b.parquet".into() };
        let snapshot = home.snapshot(&path, commit);
        fs::create_dir_all(snapshot.join("data")).unwrap();
        fs::write(snapshot.join("a.parquet"), "a").unwrap();
        symlink(folder.path().join("gone"), snapshot.join("b.parquet")).unwrap();
        symlink(&snapshot, snapshot.join("folder")).unwrap();
        let mut files = home.files(&path);
        files.sort();
        assert_eq!((files, home.downloaded(&path, commit)), (vec!["a.parquet".into(), "b.parquet".into()], None));
    }
}
