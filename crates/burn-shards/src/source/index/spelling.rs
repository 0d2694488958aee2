//! One name for each file or object, however it is spelled. Saved indices use this name. Users see the name that they wrote.

#[cfg(feature = "http")]
use crate::store::url::is_web;
use crate::store::url::url;
#[cfg(feature = "http")]
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};
use std::{
    borrow::Cow,
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

/// Characters that stay encoded in a part of a path: an encoded slash does not end the part.
#[cfg(feature = "http")]
const ENCODED: &AsciiSet = &CONTROLS.add(b'/').add(b'%');

/// Gives names their one spelling.
#[derive(Debug, Default)]
pub(crate) struct Spelling {
    /// Files below this folder have names relative to it, so that both can be moved together.
    home: Option<PathBuf>,
    /// Folders with links and dots resolved.
    folders: HashMap<PathBuf, Option<PathBuf>>,
}

impl Spelling {
    pub(crate) fn new(home: Option<&Path>) -> Self {
        let mut spelling = Self::default();
        let home = home.and_then(|home| spelling.folder(home));
        Self { home, ..spelling }
    }

    /// The one spelling of a path, or of a URL. Objects with one spelling may still differ: in a query, or in a double slash, which a
    /// server may distinguish from a single one.
    pub(crate) fn of<'a>(&mut self, name: &'a str) -> Cow<'a, str> {
        match url(Path::new(name)) {
            #[cfg(feature = "http")]
            Some(url) if is_web(url) => web(url).into(),
            Some(_) => name.into(), // its store accepts only this spelling
            None => self.of_file(name),
        }
    }

    fn of_file<'a>(&mut self, name: &'a str) -> Cow<'a, str> {
        let path = Path::new(name);
        let Some(whole) = self.in_folder(path).or_else(|| fs::canonicalize(path).ok()) else { return name.into() };
        let below = self.home.as_ref().and_then(|home| whole.strip_prefix(home).ok());
        below.unwrap_or(&whole).to_string_lossy().into_owned().into()
    }

    /// The one spelling of a file that is not a link. It is enough to resolve its folder, once for all files in it. Except on Linux, names
    /// may differ in case.
    fn in_folder(&mut self, path: &Path) -> Option<PathBuf> {
        if !cfg!(target_os = "linux") || fs::read_link(path).is_ok() {
            return None;
        }
        Some(self.folder(path.parent()?)?.join(path.file_name()?))
    }

    fn folder(&mut self, folder: &Path) -> Option<PathBuf> {
        if let Some(known) = self.folders.get(folder) {
            return known.clone();
        }
        let here = folder.as_os_str().is_empty();
        let found = fs::canonicalize(if here { Path::new(".") } else { folder }).ok();
        self.folders.insert(folder.into(), found.clone());
        found
    }
}

/// The one spelling of a URL of a web server, without a user, a query and a fragment.
#[cfg(feature = "http")]
fn web(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let scheme = scheme.to_ascii_lowercase();
    let place = rest.split(['?', '#']).next().unwrap_or_default();
    let (server, path) = place.split_once('/').unwrap_or((place, ""));
    let host = server.rsplit_once('@').map_or(server, |(_, host)| host).to_ascii_lowercase();
    let port = if scheme == "https" { ":443" } else { ":80" };
    let host = host.strip_suffix(port).unwrap_or(&host);
    let mut parts: Vec<String> = Vec::new();
    for part in path.split('/') {
        let plain: Vec<u8> = percent_decode_str(part).collect();
        let part = percent_encode(&plain, ENCODED).to_string();
        match part.as_str() {
            "" | "." => {}
            ".." => _ = parts.pop(),
            _ => parts.push(part),
        }
    }
    format!("{scheme}://{host}/{}", parts.join("/"))
}

#[cfg(all(test, feature = "http"))]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_one_spelling() {
        let one = |url: &str| Spelling::default().of(url).into_owned();
        let plain = one("https://h/a/b~c d.tar");
        for url in [
            "HTTPS://H/a/b~c d.tar",
            "https://h:443/a/b~c%20d.tar",
            "https://me:pass@h/a/b%7Ec%20d.tar",
            "https://h//a/./b%7ec d.tar",
            "https://h/x/../a//b~c d.tar#end",
            "https://h/a/b~c d.tar?..",
            "https://h/%61/b~c d.tar?X-Amz-Signature=x",
        ] {
            assert_eq!(one(url), plain, "{url}");
        }
        assert_eq!(one("http://h:80/ü"), one("HTTP://h/%C3%BC"));
        assert_eq!(one("http://[::1]:80/a"), one("http://[::1]/a"));
        for other in [
            "http://h/a/b~c d.tar",
            "https://h:80/a/b~c d.tar",
            "https://h/a%2Fb~c d.tar",
            "https://h/a/b%257Ec d.tar",
            "https://h/A/b~c d.tar",
            "https://i/a/b~c d.tar",
        ] {
            assert_ne!(one(other), plain, "{other}");
        }
        // A key of a bucket is taken as it is.
        for url in ["s3://bucket/a/%7E", "hf://datasets/o/n@main/a"] {
            assert_eq!(one(url), url);
        }
    }
}
