//! The text that the example brings: the prose of this repository, its pages and its comments, as a file of tokens.

use super::words::{END, Words};
use burn_pinned::BoxError;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Words of the vocabulary, besides single bytes.
const WORDS: usize = 1800;

/// Writes the prose of each file as a document, bare `u16` as nanoGPT has them. Returns the vocabulary.
pub(crate) fn write(to: &Path) -> Result<Words, BoxError> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![root.join("README.md")];
    files_in(&root.join("docs"), &mut files)?;
    files_in(&root.join("src"), &mut files)?;
    let documents = files.iter().map(|file| prose(file)).collect::<Result<Vec<_>, _>>()?;
    let words = Words::of(&documents, WORDS);
    let mut bytes = Vec::new();
    for document in documents.iter().filter(|document| !document.is_empty()) {
        let tokens = words.encode(document).into_iter().chain([END]);
        bytes.extend(tokens.flat_map(u16::to_le_bytes));
    }
    fs::write(to, bytes)?;
    Ok(words)
}

/// All files below a folder, by name.
fn files_in(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), BoxError> {
    let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, BoxError>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            files_in(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "rs" || ending == "md") {
            files.push(path);
        }
    }
    Ok(())
}

/// The lines of a page, or of the comments of a source file, without code and tables.
fn prose(file: &Path) -> Result<String, BoxError> {
    let is_page = file.extension().is_some_and(|ending| ending == "md");
    let (mut text, mut in_code) = (String::new(), false);
    for line in fs::read_to_string(file)?.lines() {
        let line = line.trim();
        let comment = line.strip_prefix("//").map(|line| line.trim_start_matches(['/', '!']).trim());
        let Some(line) = (if is_page { Some(line) } else { comment }) else { continue };
        if line.starts_with("```") {
            in_code = !in_code;
        } else if !in_code && !line.starts_with(['|', '#', '<']) {
            // A paragraph is one line of text.
            match line {
                "" if text.ends_with('\n') || text.is_empty() => {}
                "" => text.push('\n'),
                line => {
                    if !text.is_empty() && !text.ends_with('\n') {
                        text.push(' ');
                    }
                    text += line;
                }
            }
        }
    }
    Ok(text)
}
