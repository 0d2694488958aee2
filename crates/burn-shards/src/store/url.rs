//! Paths that may be URLs: joining names, and showing them without secrets.

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

/// A path to show. A URL is shown without its user, and without its query, which may be a signature.
pub(crate) fn shown(path: &Path) -> String {
    path.to_str().map_or_else(|| path.display().to_string(), without_secrets)
}

fn without_secrets(text: &str) -> String {
    let Some((scheme, rest)) = url(Path::new(text)).and_then(|url| url.split_once("://")) else {
        return mistyped(text).map_or_else(|| text.into(), |scheme| format!("{scheme}:.."));
    };
    let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let end = if is_listed(scheme) { parameters(rest) } else { rest.find(['?', '#']) };
    let (place, query) = rest.split_at(end.unwrap_or(rest.len()));
    let (server, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    let host = server.rsplit_once('@').map_or(server, |(_, host)| host);
    // An unencoded character in a password has ended the host too early.
    if !is_scheme || !is_host(host) {
        return format!("{}://..", if is_scheme { scheme } else { ".." });
    }
    let within = path.find("://").map_or(path.len(), |at| path[..at].rfind('/').map_or(0, |slash| slash + 1));
    let (path, within) = path.split_at(within);
    format!("{scheme}://{host}{path}{}{}", without_secrets(within), if query.is_empty() { "" } else { "?.." })
}

/// A URL with its scheme in lower case, as stores expect it.
pub(crate) fn with_small_scheme(url: &str) -> String {
    let scheme = url.find("://").unwrap_or(0);
    format!("{}{}", url[..scheme].to_ascii_lowercase(), &url[scheme..])
}

/// The scheme of a URL whose slashes are wrong.
pub(crate) fn mistyped(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    let is_known = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) || is_listed(scheme);
    (is_known && !rest.starts_with("//")).then_some(scheme)
}

/// Whether a URL is of a store that can list. In such a URL `?` is a wildcard, and there is no query.
pub(crate) fn is_listed(scheme: &str) -> bool {
    ["hf", "s3", "gs", "az"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

/// The place of a `?` that begins a query and is not a wildcard: a name and `=` follow.
pub(crate) fn parameters(text: &str) -> Option<usize> {
    let is_name = |rest: &str| {
        let name = rest.split('=').next().filter(|name| !name.is_empty() && name.len() < rest.len());
        name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~%".contains(&byte)))
    };
    text.match_indices('?').map(|(at, _)| at).find(|at| is_name(&text[at + 1..]))
}

/// Whether a text may be a host, with a port or without. Names may have braces and wildcards.
fn is_host(text: &str) -> bool {
    let (name, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => (address, port.strip_prefix(':').unwrap_or(port)),
        None => text.split_once(':').unwrap_or((text, "")),
    };
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"-._~{},*[]$%".contains(&byte);
    let is_name = name.bytes().all(|byte| is_part(byte) || (text.starts_with('[') && byte == b':'));
    is_name && port.bytes().all(|byte| byte.is_ascii_digit() || b"{},.".contains(&byte))
}

/// Cuts off the query of a URL of a web server.
fn query(url: &str) -> (&str, &str) {
    url.split_at(url.find(['?', '#']).filter(|_| is_web(url)).unwrap_or(url.len()))
}

/// Whether a URL may have a password and a query, and names in it must be encoded.
pub(crate) fn is_web(url: &str) -> bool {
    url.split_once("://")
        .is_some_and(|(scheme, _)| ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web)))
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
    fn a_scheme_is_known_in_any_case() {
        assert_eq!(with_small_scheme("HTTP://Host/A?B"), "http://Host/A?B");
        assert_eq!(with_small_scheme("plain"), "plain");
    }

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
        for (url, text) in [
            ("https://me:pass@h:1/a@b/c?sig=secret", "https://h:1/a@b/c?.."),
            ("a@b?c", "a@b?c"),
            ("s3://key:secret@bucket/a@b?c", "s3://bucket/a@b?c"),
            // Any case, any scheme.
            ("HTTPS://me:pass@h/a?sig=secret", "HTTPS://h/a?.."),
            ("ftp://me:pass@h/a?secret", "ftp://h/a?.."),
            ("http://[::1]:80/a#secret", "http://[::1]:80/a?.."),
            ("s3://bucket/a?X-Amz-Signature=secret", "s3://bucket/a?.."),
            ("S3://bucket/a?versionId=secret", "S3://bucket/a?.."),
            ("hf://datasets/o/n/train-?.tar", "hf://datasets/o/n/train-?.tar"),
            ("hf://datasets/o/n/a?token=secret", "hf://datasets/o/n/a?.."),
            ("gs://bucket/year=202?/a", "gs://bucket/year=202?/a"),
            // A password that should have been encoded.
            ("https://me:se/cret@h/a", "https://.."),
            ("https://me:se?cret@h/a", "https://.."),
            ("https://me:se#cret@h/a", "https://.."),
            // A URL within a URL.
            ("https://h/get/https://me:pass@i/b", "https://h/get/https://i/b"),
            ("hf://datasets/https://me:pass@h/o/n", "hf://datasets/https://h/o/n"),
            // A slash is missing.
            ("https:/me:pass@h/a?sig=secret", "https:.."),
            ("https://h-{a,b}.org/{00..11}.tar?sig=secret", "https://h-{a,b}.org/{00..11}.tar?.."),
        ] {
            assert_eq!(shown(Path::new(url)), text, "{url}");
        }
    }
}
