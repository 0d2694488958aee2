//! A pattern with wildcards over the names of a store that can list.

use crate::{error::DataError, store::url::shown};
use glob::{MatchOptions, Pattern};

/// A pattern as written, and its parts for names in a bucket or a data set.
#[derive(Debug)]
pub(super) struct WildPattern<'a> {
    text: &'a str,
    pattern: Pattern,
    /// The folder with all matching names, possibly in subfolders.
    pub(super) folder: &'a str,
    /// Whether names in subfolders of `folder` may match.
    pub(super) is_deep: bool,
}

pub(super) fn is_wild(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

impl<'a> WildPattern<'a> {
    /// `text` is what the user wrote, and `name` the part of it that names objects.
    pub(super) fn new(text: &'a str, name: &'a str) -> Result<Self, DataError> {
        let wrong = |problem: glob::PatternError| DataError::Pattern {
            pattern: shown(text.as_ref()),
            problem: problem.to_string(),
        };
        let pattern = Pattern::new(name).map_err(wrong)?;
        let fixed = name.split(['*', '?', '[']).next().unwrap_or_default();
        let folder = fixed.rsplit_once('/').map_or("", |(folder, _)| folder);
        let rest = name[folder.len()..].trim_start_matches('/');
        let is_deep = rest.contains('/') || rest.contains("**");
        Ok(Self { text, pattern, folder, is_deep })
    }

    /// Whether a name matches. Folder markers that tools leave do not match.
    pub(super) fn is_match(&self, name: &str) -> bool {
        let options = MatchOptions { require_literal_separator: true, ..MatchOptions::new() };
        !name.ends_with('/') && !name.ends_with("_$folder$") && self.pattern.matches_with(name, options)
    }

    /// The names that match, sorted.
    pub(super) fn matches(&self, names: impl IntoIterator<Item = String>) -> Result<Vec<String>, DataError> {
        let mut matches: Vec<String> = names.into_iter().filter(|name| self.is_match(name)).collect();
        matches.sort_unstable();
        if matches.is_empty() { Err(DataError::NoFiles { pattern: shown(self.text.as_ref()) }) } else { Ok(matches) }
    }
}
