//! Tells the formats of token files apart, and finds the tokens in them.

use super::{TokenFileError, TokenType, TokensError, content::Content, error::HEADER, megatron};
use crate::{
    source::magic::{LFS, LITDATA, Magic, NPY, is_litdata, known, no_text, text},
    system::{files, mapped::MappedFile},
};
use std::{ops::Range, path::Path};

/// The magic numbers of llm.c's token files, each with its version and the type of the tokens.
const LLM_C: [(i32, i32, TokenType); 2] = [(20_240_520, 1, TokenType::U16), (20_240_801, 7, TokenType::U32)];

/// The magic numbers of other files of llm.c, and what these are.
const NO_TOKENS: [(i32, &str); 6] = [
    (20_240_522, "an evaluation file of llm.c"),
    (20_240_326, "a model of llm.c"),
    (20_240_803, "a model of llm.c"),
    (20_240_327, "the state of a test of llm.c"),
    (20_240_527, "the state of a training of llm.c"),
    (20_240_328, "a tokenizer of llm.c"),
];

/// Finds the tokens of a file. If `raw` names their type, the whole file is tokens. Otherwise its content and name decide.
pub(super) fn content(path: &Path, file: &MappedFile, raw: Option<TokenType>) -> Result<Content, TokensError> {
    let wrong = |path: &Path, source| TokensError::File { path: path.into(), source };
    let bytes = file.bytes();
    if bytes.is_empty() {
        return Err(wrong(path, TokenFileError::Empty));
    }
    if let Some(kind) = raw {
        // Any bytes may be tokens of one byte, but a NumPy array has a header, and an LFS pointer stands for another file.
        let other = known(bytes).filter(|magic| kind.size() > 1 || [NPY.is, LFS.is].contains(&magic.is)).map(of_magic);
        return other.map_or_else(|| bare(bytes, kind), Err).map_err(|source| wrong(path, source));
    }
    let is_bin = path.extension().is_some_and(|ending| ending == "bin");
    let index = path.with_extension("idx");
    if is_bin && index.symlink_metadata().is_ok() {
        let mapped = MappedFile::open(&index).map_err(|source| wrong(&index, TokenFileError::Io(source)))?;
        return megatron::content(mapped.bytes(), bytes.len()).map_err(|source| match source {
            TokenFileError::NoIndex => wrong(&index, no_text(mapped.bytes()).map_or(source, of_magic)),
            // The index is Megatron's, so the token file may be something else.
            _ => known(bytes).map_or_else(|| wrong(&index, source), |magic| wrong(path, of_magic(magic))),
        });
    }
    if let Some(other) = other(path, bytes) {
        return Err(wrong(path, other));
    }
    let content = match llm_c(bytes) {
        Some(content) => content,
        None if is_bin => bare(bytes, TokenType::U16),
        None => Err(TokenFileError::UnknownFormat),
    };
    content.map_err(|source| wrong(path, source))
}

fn of_magic(magic: &Magic) -> TokenFileError {
    TokenFileError::Other { is: magic.is, cure: magic.cure }
}

/// The error for a file with more than tokens. It says what the file is.
fn other(path: &Path, bytes: &[u8]) -> Option<TokenFileError> {
    if let Some(magic) = known(bytes) {
        return Some(of_magic(magic));
    }
    let first = bytes.first_chunk().map(|bytes| i32::from_le_bytes(*bytes));
    if let Some((_, is)) = NO_TOKENS.iter().find(|(magic, _)| first == Some(*magic)) {
        return Some(TokenFileError::Other { is, cure: "leave it out, and open the files that have tokens" });
    }
    let is_chunk = path.file_name()?.to_str()?.starts_with("chunk-");
    let index = is_chunk.then(|| files::read(&path.with_file_name("index.json")).ok()).flatten()?;
    is_litdata(&index).then_some(TokenFileError::Other { is: "a chunk of LitData (Lightning)", cure: LITDATA.1 })
}

/// A file with tokens from the first byte to the last.
fn bare(bytes: &[u8], kind: TokenType) -> Result<Content, TokenFileError> {
    if !bytes.len().is_multiple_of(kind.size()) {
        let odd = TokenFileError::Odd { bytes: bytes.len(), size: kind.size() };
        return Err(text(bytes).map_or(odd, of_magic));
    }
    Ok(Content { kind, runs: vec![Range { start: 0, end: bytes.len() }], documents: None })
}

/// The tokens behind the header of llm.c: 256 numbers, of which the first is a magic number. `None` if it is not.
fn llm_c(bytes: &[u8]) -> Option<Result<Content, TokenFileError>> {
    let number = |at: usize| Some(i32::from_le_bytes(*bytes.get(4 * at..)?.first_chunk()?));
    let magic = number(0)?;
    let (_, known, kind) = *LLM_C.iter().find(|(first, ..)| *first == magic)?;
    let (Some(version), Some(claimed), Some(tokens)) = (number(1), number(2), bytes.get(HEADER..)) else {
        return Some(Err(TokenFileError::Header { bytes: bytes.len() }));
    };
    if version != known {
        return Some(Err(TokenFileError::Version { version, known }));
    }
    let count = tokens.len() / kind.size();
    if !tokens.len().is_multiple_of(kind.size()) || usize::try_from(claimed) != Ok(count) {
        return Some(Err(TokenFileError::Count { claimed, bytes: tokens.len(), kind }));
    }
    Some(Ok(Content { kind, runs: vec![Range { start: HEADER, end: bytes.len() }], documents: None }))
}
