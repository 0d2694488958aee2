//! From names of files to samples: WebDataset's rules.

use super::parts::{EXTENSIONS, TarPart};
use crate::source::index::MadePart;
use std::{collections::HashMap, str};

/// Groups the files of a shard, in their order.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// The number of each extension.
    extensions: HashMap<String, usize>,
    parts: Vec<[u64; 2]>,
    /// The number of the first part of each sample.
    firsts: Vec<u32>,
    key: Option<Vec<u8>>,
    /// The extensions of the current sample so far.
    had: Vec<usize>,
}

impl Samples {
    /// Adds a file, unless it belongs to no sample.
    pub(super) fn add(&mut self, name: &[u8], header: u64, start: u64, bytes: u64) -> Result<(), String> {
        let Some((key, extension)) = split(name) else { return Ok(()) };
        let extension = str::from_utf8(extension)
            .map_err(|_| format!("the name `{}` is not in UTF-8", String::from_utf8_lossy(name)))?
            .to_lowercase();
        if self.key.as_deref() != Some(key) {
            self.firsts.push(u32::try_from(self.parts.len()).map_err(|_| "it has too many files for an index")?);
            self.key = Some(key.to_vec());
            self.had.clear();
        }
        let next = self.extensions.len();
        let number = *self.extensions.entry(extension.clone()).or_insert(next);
        if number >= EXTENSIONS {
            return Err(too_many(name, key, &extension));
        }
        if self.had.contains(&number) {
            return Err(format!("the sample `{}` has two files with `.{extension}`", String::from_utf8_lossy(key)));
        }
        self.had.push(number);
        if u32::try_from(self.parts.len() + 1).is_err() {
            return Err("it has too many files for an index".into());
        }
        self.parts.push(TarPart { header, start, bytes, extension: number }.words()?);
        Ok(())
    }

    /// The index in the form that [`Parts`](super::parts::Parts) reads.
    pub(super) fn end(self) -> MadePart {
        let mut names: Vec<(String, usize)> = self.extensions.into_iter().collect();
        names.sort_unstable_by_key(|(_, number)| *number);
        let mut columns = Vec::new();
        for (name, _) in names {
            columns.extend((name.len() as u32).to_le_bytes());
            columns.extend(name.as_bytes());
        }
        let rows = self.firsts.len();
        let firsts = self.firsts.into_iter().chain([self.parts.len() as u32]);
        let mut all: Vec<u8> = firsts.flat_map(u32::to_le_bytes).collect();
        all.extend(self.parts.iter().flatten().flat_map(|word| word.to_le_bytes()));
        MadePart::new(rows, columns, &all)
    }
}

/// The error for too many extensions: dots in names are the cause. It says how to name the files.
fn too_many(name: &[u8], key: &[u8], extension: &str) -> String {
    let [name, key] = [name, key].map(String::from_utf8_lossy);
    let (stem, column) = extension.rsplit_once('.').unwrap_or((extension, "jpg"));
    format!(
        "its files have more than {EXTENSIONS} columns. A key ends at the first dot of a name, and what follows is the column, so \
         names with dots are the cause: `{name}` is the column `{extension}` of the key `{key}`. Name the files so that the first \
         dot ends the key, e.g. `{key}_{}.{column}`",
        stem.replace('.', "_")
    )
}

/// Splits a name at the first dot after its folders: key and extension. `None` if it belongs to no sample.
pub(super) fn split(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let file = name.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let dot = file + name[file..].iter().position(|byte| *byte == b'.')?;
    let first = name.split(|byte| *byte == b'/').next().unwrap_or_default();
    let is_note = first.len() >= 4 && first.starts_with(b"__") && first.ends_with(b"__");
    // By WebDataset's pattern, a folder without a dot is the key of the hidden files in it.
    let folder = name[..file].strip_suffix(b"/").and_then(|folders| folders.rsplit(|byte| *byte == b'/').next());
    let has_key = dot > file || folder.is_some_and(|folder| !folder.contains(&b'.'));
    (has_key && !is_note).then(|| (&name[..dot], &name[dot + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_at_their_first_dot() {
        let text = |name: &'static str| {
            split(name.as_bytes()).map(|(key, end)| (str::from_utf8(key).unwrap(), str::from_utf8(end).unwrap()))
        };
        assert_eq!(text("a/b.c/0001.seg.PNG"), Some(("a/b.c/0001", "seg.PNG")));
        assert_eq!(text("x.jpg"), Some(("x", "jpg")));
        assert_eq!(text("x."), Some(("x", "")));
        assert_eq!(text("a/.hidden.jpg"), Some(("a/", "hidden.jpg")));
        assert_eq!(text("./plain/.hid.jpg"), Some(("./plain/", "hid.jpg")));
        assert_eq!(text("a.b/c/.hid"), Some(("a.b/c/", "hid")));
        assert_eq!((text("/.hid"), text("a//.hid")), (Some(("/", "hid")), Some(("a//", "hid"))));
        for nothing in
            ["no-dot", "a.b/no-dot", ".hidden.jpg", "./.hidden.jpg", "a.b/.hidden", "__info__", "__info__/a.json", ""]
        {
            assert_eq!(text(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn a_repeated_extension_is_an_error() {
        let mut samples = Samples::default();
        samples.add(b"a.jpg", 0, 512, 1).unwrap();
        samples.add(b"b.jpg", 1024, 1536, 1).unwrap();
        samples.add(b"a.jpg", 2048, 2560, 1).unwrap(); // not a neighbour: another sample
        assert!(samples.add(b"a.JPG", 3072, 3584, 1).unwrap_err().contains("two files with `.jpg`"));
    }
}
