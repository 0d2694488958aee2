//! Finds the files that a path, a glob or a list in braces stands for.

use crate::{
    error::DataError,
    store::{
        self, Objects,
        options::Options,
        url::{inside, mistyped, shown, url, with_small_scheme},
    },
    system::files,
};
use glob::MatchOptions;
use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    str::FromStr,
};

/// Paths of files: one path, a glob, a list in braces, or several of these.
///
/// ```
/// use burn_shards::Paths;
///
/// let one = Paths::from("train.parquet");
/// let glob = Paths::from("data/train-*.parquet"); // sorted by name
/// let braces = Paths::from("train-{000000..000146}.tar"); // in the order of the numbers
/// let several = Paths::from(["old/*.tar", "new/{a,b}.tar"]);
/// let url = Paths::from("hf://datasets/org/name/*.parquet"); // with the feature `http`
/// let bucket = Paths::from("s3://bucket/train-*.tar"); // with the feature `cloud`
/// ```
///
/// Each glob must match at least one file. A path with `[`, `*`, `?` or braces is a pattern only if no file has exactly that name.
#[derive(Clone, PartialEq, Eq)]
pub struct Paths(Vec<PathBuf>);

impl fmt::Debug for Paths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|path| shown(path))).finish()
    }
}

macro_rules! one_path {
    ($($path:ty)*) => {$(
        impl From<$path> for Paths {
            fn from(path: $path) -> Self {
                Self(vec![path.into()])
            }
        }
    )*};
}

one_path! { &str String &String &Path PathBuf &PathBuf }

impl<P: Into<PathBuf>> From<Vec<P>> for Paths {
    fn from(paths: Vec<P>) -> Self {
        paths.into_iter().collect()
    }
}

impl<P: Into<PathBuf>, const N: usize> From<[P; N]> for Paths {
    fn from(paths: [P; N]) -> Self {
        paths.into_iter().collect()
    }
}

impl<P: Into<PathBuf> + Clone> From<&[P]> for Paths {
    fn from(paths: &[P]) -> Self {
        paths.iter().cloned().collect()
    }
}

impl<P: Into<PathBuf> + Clone> From<&Vec<P>> for Paths {
    fn from(paths: &Vec<P>) -> Self {
        paths.as_slice().into()
    }
}

impl<P: Into<PathBuf>> FromIterator<P> for Paths {
    fn from_iter<I: IntoIterator<Item = P>>(paths: I) -> Self {
        Self(paths.into_iter().map(Into::into).collect())
    }
}

impl Paths {
    /// The paths, for people.
    pub(crate) fn shown(&self) -> String {
        self.0.iter().map(|path| shown(path)).collect::<Vec<_>>().join(", ")
    }

    /// Returns the files, in the order of the paths. Those of a glob are sorted by name.
    pub(crate) fn files(&self, options: &Options) -> Result<Vec<PathBuf>, DataError> {
        let mut files = Vec::new();
        for path in &self.0 {
            match path.to_str() {
                Some(text) if url(path).is_some() => {
                    for pattern in braces(&with_small_scheme(text))? {
                        files.extend(store::expand(&pattern, options)?.into_iter().map(PathBuf::from));
                    }
                }
                Some(text) if mistyped(text).is_some() && !path.exists() => {
                    return Err(DataError::Option {
                        option: "paths",
                        problem: format!("`{}` is no URL", shown(path)),
                        advice: "write two slashes behind the colon, as in `https://host/folder/name`".into(),
                    });
                }
                Some(text) if !path.exists() => {
                    for pattern in braces(text)? {
                        matches(&pattern, &mut files)?;
                    }
                }
                _ => files.push(path.clone()),
            }
        }
        if files.is_empty() {
            Err(DataError::NoFiles { pattern: "an empty list".into() })
        } else {
            store::pin(files, options)
        }
    }

    /// Finds the files or objects. If there are several, none may be empty. Whether a single one may be empty depends on the format.
    pub(crate) fn objects(&self, options: &Options) -> Result<Objects, DataError> {
        let objects = Objects::at(self.files(options)?, options)?;
        match objects.list().iter().find(|object| object.bytes == 0) {
            Some(empty) if objects.len() > 1 => Err(DataError::Empty { object: (*empty.name).into() }),
            _ => Ok(objects),
        }
    }

    /// Returns the file with a name in each folder that the paths stand for, for formats whose data set is a folder.
    pub(crate) fn in_folders(&self, name: &str, options: &Options) -> Result<Vec<PathBuf>, DataError> {
        self.0.iter().map(|folder| inside(folder, name)).collect::<Self>().files(options)
    }
}

fn matches(pattern: &str, all: &mut Vec<PathBuf>) -> Result<(), DataError> {
    if !pattern.contains(['*', '?', '[']) {
        all.push(pattern.into()); // If it does not exist, opening it fails.
        return Ok(());
    }
    let wrong =
        |problem: glob::PatternError| DataError::Pattern { pattern: pattern.into(), problem: problem.to_string() };
    // As in a shell, `*` matches no hidden file, such as a saved index.
    let options = MatchOptions { require_literal_leading_dot: true, ..MatchOptions::new() };
    let unreadable = |error: glob::GlobError| DataError::Open { path: error.path().into(), source: error.into() };
    let find = || -> Result<Vec<PathBuf>, DataError> {
        let mut found = Vec::new();
        for path in glob::glob_with(pattern, options).map_err(wrong)? {
            let path = path.map_err(unreadable)?;
            match path.metadata() {
                Ok(meta) if meta.is_file() => found.push(path),
                Ok(_) => {}
                Err(source) => return Err(DataError::Open { source: of_link(&path, source), path }),
            }
        }
        Ok(found)
    };
    let are_too_many =
        |error: &DataError| matches!(error, DataError::Open { source, .. } if files::are_too_many(source));
    let found = files::while_full(find, are_too_many)?;
    if found.is_empty() {
        return Err(DataError::NoFiles { pattern: pattern.into() });
    }
    all.extend(found);
    Ok(())
}

/// Adds to an error that the path is a link to a missing file.
fn of_link(path: &Path, error: io::Error) -> io::Error {
    match fs::read_link(path) {
        Ok(to) if error.kind() == io::ErrorKind::NotFound => {
            io::Error::new(error.kind(), format!("it is a link to {}, which is not there", to.display()))
        }
        _ => error,
    }
}

/// The most files that a list in braces may stand for.
const MOST_FILES: usize = 1_000_000;

/// Expands a pattern with `{a,b}` and `{000..123}`.
fn braces(pattern: &str) -> Result<Vec<String>, DataError> {
    let wrong = |problem: String| DataError::Pattern { pattern: shown(pattern.as_ref()), problem };
    let mut done = vec![String::new()];
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('{') {
        let (list, after) = after.split_once('}').ok_or_else(|| wrong("`{` has no `}`".into()))?;
        let choices = match list.split_once("..") {
            Some((first, last)) => numbers(first, last).map_err(wrong)?,
            None => list.split(',').map(String::from).collect(),
        };
        if done.len().saturating_mul(choices.len()) > MOST_FILES {
            return Err(wrong(format!("it means more than {MOST_FILES} files")));
        }
        done = done
            .iter()
            .flat_map(|start| choices.iter().map(move |choice| format!("{start}{before}{choice}")))
            .collect();
        rest = after;
    }
    Ok(done.into_iter().map(|start| start + rest).collect())
}

/// The numbers from `first` to `last`, zero-padded to the width of `first`.
fn numbers(first: &str, last: &str) -> Result<Vec<String>, String> {
    let number = |text: &str| usize::from_str(text).map_err(|_| format!("`{text}` is no number"));
    let (from, to, width) = (number(first)?, number(last)?, first.len());
    match to.checked_sub(from) {
        Some(more) if more < MOST_FILES => Ok((from..=to).map(|number| format!("{number:0width$}")).collect()),
        Some(_) => Err(format!("it means more than {MOST_FILES} files")),
        None => Err(format!("{last} is less than {first}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_texts_may_be_borrowed() {
        let (owned, list) = (String::from("a.tar"), vec!["a.tar", "b.tar"]);
        assert_eq!(Paths::from(&owned), Paths::from("a.tar"));
        assert_eq!(Paths::from(&list), Paths::from(["a.tar", "b.tar"]));
    }

    #[test]
    fn braces_are_lists_and_numbers() {
        assert_eq!(braces("a-{08..11}.tar").unwrap(), ["a-08.tar", "a-09.tar", "a-10.tar", "a-11.tar"]);
        assert_eq!(braces("{x,y}/{1..2}").unwrap(), ["x/1", "x/2", "y/1", "y/2"]);
        assert_eq!(braces("plain").unwrap(), ["plain"]);
        for (pattern, problem) in
            [("a{1..", "no `}`"), ("{1..x}", "`x` is no number"), ("{2..1}", "less"), ("{0..9999999}", "more than")]
        {
            assert!(braces(pattern).unwrap_err().to_string().contains(problem), "{pattern}");
        }
    }

    #[test]
    fn paths_are_shown_without_secrets() {
        let url = "https://me:pass@h/a?sig=secret";
        assert_eq!(format!("{:?}", Paths::from(url)), "[\"https://h/a?..\"]");
        assert!(!braces(&format!("{url}{{1..")).unwrap_err().to_string().contains("pass"));
    }

    #[test]
    fn no_error_has_a_secret_of_a_url() {
        let options = Options::default();
        for url in [
            "HTTPS://me:top-secret@h h/a.tar?sig=top-secret",
            "Http://h/*.tar?sig=top-secret",
            "https:/me:top-secret@h/a-*.tar?sig=top-secret",
            "ftp://me:top-secret@h/a.tar?top-secret",
            "s3://bucket/a.tar?X-Amz-Signature=top-secret",
            "s3://bucket/a-*.tar?X-Amz-Signature=top-secret",
            "S3://me:top-secret@bucket/a.tar?X-Amz-Signature=top-secret",
            "gs://bucket/?X-Goog-Signature=top-secret",
            "az://container/a?sig=top-secret",
            "hf://datasets/o/n/a.tar?token=top-secret",
            "hf://datasets/o/n@main/a-*.tar?token=top-secret",
            "HF://me:top-secret@datasets/o/n/a.tar",
        ] {
            let error = Paths::from(url).objects(&options).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("top-secret"), "{url}: {error} {error:?}");
            #[cfg(all(feature = "http", feature = "parquet"))]
            {
                let hub = crate::Rows::<(i64,)>::hub(url, "train").columns(["a"]);
                let mut text = format!("{hub:?}");
                text += &format!(" {:?}", hub.open().err());
                assert!(!text.contains("top-secret"), "{text}");
            }
            let both = Paths::from(["http://127.0.0.1:1/a.tar", url]).objects(&options).unwrap_err();
            assert!(!format!("{both} {both:?}").contains("top-secret"), "{url}: {both} {both:?}");
        }
    }

    #[test]
    fn globs_are_sorted_and_must_match() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b-2.tar", "b-1.tar", "a.tar", "odd[1].tar", "c.txt", ".hidden.index"] {
            fs::write(folder.path().join(name), []).unwrap();
        }
        let files = |pattern: &str| -> Result<Vec<String>, DataError> {
            let paths = Paths::from(folder.path().join(pattern)).files(&Options::default())?;
            Ok(paths.iter().map(|path| path.file_name().unwrap().to_string_lossy().into()).collect())
        };
        assert_eq!(files("b-*.tar").unwrap(), ["b-1.tar", "b-2.tar"]);
        assert_eq!(files("*").unwrap(), ["a.tar", "b-1.tar", "b-2.tar", "c.txt", "odd[1].tar"]);
        assert_eq!(files("{b-2,a}.tar").unwrap(), ["b-2.tar", "a.tar"]);
        assert_eq!(files("odd[1].tar").unwrap(), ["odd[1].tar"]); // a file of that very name
        assert!(matches!(files("*.parquet"), Err(DataError::NoFiles { .. })));
        assert!(matches!(files("a***"), Err(DataError::Pattern { .. })));
        let both = Paths::from([folder.path().join("a.tar"), folder.path().join("b-*.tar")])
            .files(&Options::default())
            .unwrap();
        assert_eq!(both.len(), 3);
    }
}
