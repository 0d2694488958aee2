//! Paths that may be URLs: names are put into them, and they are shown without secrets.

use std::path::{Path, PathBuf};

/// The text of a path that is a URL.
pub(crate) fn url(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| text.split_once("://").is_some_and(|(scheme, _)| !scheme.contains(['/', '\\'])))
}

/// A file or object in a folder.
pub(crate) fn inside(folder: &Path, name: &str) -> PathBuf {
    let Some(url) = url(folder) else { return folder.join(name) };
    let (path, query) = query(url);
    format!("{}/{}{query}", path.trim_end_matches('/'), if is_web(url) { encode(name) } else { name.into() }).into()
}

/// A file or object in the folder of another one.
pub(crate) fn beside(file: &Path, name: &str) -> PathBuf {
    let Some(url) = url(file) else { return inside(file.parent().unwrap_or(Path::new("")), name) };
    let (path, query) = query(url);
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    inside(Path::new(&format!("{folder}{query}")), name)
}

/// A path for people. A URL has no password, and no query, since that may be a signature.
pub(crate) fn shown(path: &Path) -> String {
    let Some(url) = url(path) else { return path.display().to_string() };
    let (place, query) = query(url);
    let (scheme, place) = place.split_once("://").unwrap_or(("", place));
    let (server, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    let host = server.rsplit_once('@').map_or(server, |(_, host)| host);
    format!("{scheme}://{host}{path}{}", if query.is_empty() { "" } else { "?.." })
}

/// Cuts off the query of a URL of a web server.
fn query(url: &str) -> (&str, &str) {
    url.split_at(url.find(['?', '#']).filter(|_| is_web(url)).unwrap_or(url.len()))
}

/// Whether a URL may have a password and a query, and names in it must be encoded.
fn is_web(url: &str) -> bool {
    url.starts_with("http://") || url.starts_with("https://")
}

/// A name as it is in a URL.
pub(crate) fn encode(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    name.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_the_folder_of_a_url_and_keep_its_query() {
        let beside = |url: &str, name: &str| beside(Path::new(url), name).display().to_string();
        assert_eq!(beside("https://h/a/index.json?sig=x", "b c.mds"), "https://h/a/b%20c.mds?sig=x");
        assert_eq!(beside("https://h/a/index.json", "..\\b%2F?c"), "https://h/a/..%5Cb%252F%3Fc");
        assert_eq!(beside("hf://datasets/o/n/index.json", "b c"), "hf://datasets/o/n/b c");
        assert_eq!(inside(Path::new("https://h/a/?s"), "i").display().to_string(), "https://h/a/i?s");
        #[cfg(unix)]
        assert_eq!((beside("a/index.json", "b"), beside("index.json", "b")), ("a/b".into(), "b".into()));
    }

    #[test]
    fn what_is_shown_of_a_url_has_no_secret() {
        let url = "https://me:pass@h:1/a@b/c?sig=secret";
        assert_eq!(shown(Path::new(url)), "https://h:1/a@b/c?..");
        assert_eq!(shown(Path::new("a@b?c")), "a@b?c");
        assert_eq!(shown(Path::new("s3://key:secret@bucket/a@b?c")), "s3://bucket/a@b?c");
    }
}
