//! Names of files on the hub.

use crate::{error::DataError, store::url::shown};
use percent_encoding::percent_decode_str;
use std::fmt;

/// A file of a data set at a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HubPath {
    /// `org/name`.
    pub(super) dataset: String,
    /// A branch, a tag or a commit.
    pub(super) revision: String,
    pub(super) file: String,
}

/// Where the hub puts the Parquet files that it makes.
const PARQUET: &str = "refs/convert/parquet";

impl HubPath {
    pub(super) fn parse(url: &str) -> Result<Self, DataError> {
        let wrong = |problem: &str| refused(&shown(url.as_ref()), problem);
        let path = url.strip_prefix("hf://datasets/").ok_or_else(|| match url.contains("@datasets/") {
            true => wrong("has a name or a token before `datasets`: put the token into `HF_TOKEN`"),
            false => wrong("names no data set"),
        })?;
        let (org, rest) = path.split_once('/').ok_or_else(|| wrong("names no file"))?;
        let (name, revision, file) = match rest.find(['@', '/']) {
            Some(at) if rest[at..].starts_with('@') => {
                let (name, rest) = (&rest[..at], &rest[at + 1..]);
                let (revision, file) = split_revision(rest).ok_or_else(|| wrong("names no file"))?;
                (name, revision, file)
            }
            Some(at) => (&rest[..at], "main".into(), &rest[at + 1..]),
            None => return Err(wrong("names no file")),
        };
        let is_name = |name: &str| {
            let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            name.bytes().all(known) && !["", ".", ".."].contains(&name)
        };
        if !is_name(org) || !is_name(name) {
            // The error does not show an invalid name, because the text may be a password.
            return Err(refused("hf://datasets/..", "names no data set"));
        }
        if revision.is_empty() || revision.split('/').any(|part| part == "..") {
            return Err(wrong("has no revision that can be"));
        }
        if file.split('/').any(|part| ["", ".", ".."].contains(&part)) {
            return Err(wrong("names no file"));
        }
        Ok(Self { dataset: format!("{org}/{name}"), revision, file: file.into() })
    }

    /// Whether the revision is a commit.
    pub(super) fn is_pinned(&self) -> bool {
        self.revision.len() == 40 && self.revision.bytes().all(|byte| byte.is_ascii_hexdigit())
    }

    /// Whether both files are of one revision of one data set.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        self.dataset == other.dataset && self.revision == other.revision
    }
}

fn refused(url: &str, problem: &str) -> DataError {
    DataError::option(
        "paths",
        format!("`{url}` {problem}"),
        "write `hf://datasets/org/name/file` or `hf://datasets/org/name@revision/file`",
    )
}

/// The revision at the start, and the file. A slash in a revision is written `%2F`, except in the hub's own names.
fn split_revision(text: &str) -> Option<(String, &str)> {
    if let Some(file) = text.strip_prefix("~parquet/") {
        return Some((PARQUET.into(), file));
    }
    if let Some(rest) = text.strip_prefix("refs/") {
        let (kind, rest) = rest.split_once('/')?;
        let (name, file) = rest.split_once('/')?;
        return Some((format!("refs/{kind}/{name}"), file));
    }
    let (revision, file) = text.split_once('/')?;
    Some((percent_decode_str(revision).decode_utf8().ok()?.into_owned(), file))
}

/// The URL, as [`HubPath::parse`] takes it.
impl fmt::Display for HubPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dataset, revision, file } = self;
        write!(f, "hf://datasets/{dataset}@{}/{file}", revision.replace('%', "%25").replace('/', "%2F"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_are_told_in_several_ways() {
        for (url, revision, file) in [
            ("hf://datasets/o/n/a/b.tar", "main", "a/b.tar"),
            ("hf://datasets/o/n/a@b.tar", "main", "a@b.tar"),
            ("hf://datasets/o/n@v1.0/a", "v1.0", "a"),
            ("hf://datasets/o/n@pr%2F1/a", "pr/1", "a"),
            ("hf://datasets/o/n@~parquet/default/train/0.parquet", PARQUET, "default/train/0.parquet"),
            ("hf://datasets/o/n@refs/convert/parquet/x/0", PARQUET, "x/0"),
            ("hf://datasets/o/n@refs%2Fconvert%2Fparquet/x/0", PARQUET, "x/0"),
        ] {
            let path = HubPath::parse(url).unwrap();
            assert_eq!((&*path.dataset, &*path.revision, &*path.file), ("o/n", revision, file), "{url}");
            assert_eq!(HubPath::parse(&path.to_string()).unwrap(), path);
        }
        for wrong in [
            "hf://o/n/a",
            "hf://datasets/n",
            "hf://datasets/o/n",
            "hf://datasets/o/n/",
            "hf://datasets/o/n@/a",
            "hf://datasets/o/../a/b",
            "hf://datasets/o/n/../b",
            "hf://datasets/o/n@..%2F..%2Fx/b",
        ] {
            assert!(HubPath::parse(wrong).is_err(), "{wrong}");
        }
        let secret = HubPath::parse("hf://user:hf_secret@datasets/o/n/a").unwrap_err().to_string();
        assert!(secret.contains("`HF_TOKEN`") && !secret.contains("hf_secret"), "{secret}");
    }
}
