//! The tokens of all files end to end, and where their bytes are.

use super::{TokenType, TokensError, content::Content};
use crate::system::mapped::MappedFile;
use std::{iter, ops::Range, path::PathBuf, sync::Arc};

/// All tokens. Their places are counted from 0.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    kind: TokenType,
    files: Vec<TokenFile>,
    /// Runs in the order of their places, without gaps. Each has tokens.
    runs: Vec<StreamRun>,
    tokens: usize,
    /// The places where documents start, ascending, without duplicates. `None` if they are not known.
    documents: Option<Vec<usize>>,
}

#[derive(Debug, Clone)]
pub(super) struct TokenFile {
    pub(super) path: PathBuf,
    map: Arc<MappedFile>,
    /// Where its tokens are.
    pub(super) places: Range<usize>,
}

/// Neighbouring tokens of one file. It ends where the next run begins.
#[derive(Debug, Clone, Copy)]
struct StreamRun {
    place: usize,
    file: usize,
    /// The first byte in the file.
    at: usize,
}

impl Stream {
    /// A stream without files. Its first file sets the type of the tokens.
    pub(super) fn new() -> Self {
        Self { kind: TokenType::U16, files: Vec::new(), runs: Vec::new(), tokens: 0, documents: Some(Vec::new()) }
    }

    /// Adds a file at the end.
    pub(super) fn push(&mut self, path: PathBuf, map: MappedFile, content: Content) -> Result<(), TokensError> {
        if let Some(first) = self.files.first().filter(|_| self.kind != content.kind) {
            let (first_path, first) = (first.path.clone(), self.kind);
            return Err(TokensError::Types { path, there: content.kind, first_path, first });
        }
        self.kind = content.kind;
        let (start, file) = (self.tokens, self.files.len());
        for run in content.runs.iter().filter(|run| !run.is_empty()) {
            self.runs.push(StreamRun { place: self.tokens, file, at: run.start });
            self.tokens = self.tokens.checked_add(run.len() / self.kind.size()).ok_or(TokensError::TooMany)?;
        }
        self.documents = self.documents.take().zip(content.documents).map(|(mut all, here)| {
            add_borders(&mut all, iter::once(0).chain(here).map(|place| start + place), self.tokens);
            all
        });
        self.files.push(TokenFile { path, map: Arc::new(map), places: start..self.tokens });
        Ok(())
    }

    /// Reads all tokens, and makes a document start at each `token`, or after it.
    pub(super) fn find_documents(&mut self, token: i64, behind: bool) -> Result<(), TokensError> {
        let no_such = TokensError::NoSuchToken { token, kind: self.kind };
        let wanted = self.kind.bytes_of(token).ok_or(no_such)?;
        let mut documents = Vec::new();
        for file in &self.files {
            let mut place = file.places.start;
            add_borders(&mut documents, iter::once(place), file.places.end);
            for bytes in self.pieces(file.places.clone()) {
                let found = positions(bytes, &wanted[..self.kind.size()]);
                let places = found.map(|at| place + at + usize::from(behind));
                add_borders(&mut documents, places, file.places.end);
                place += bytes.len() / self.kind.size();
            }
        }
        self.documents = Some(documents);
        Ok(())
    }

    /// The bytes of the tokens at some places, piece by piece.
    pub(super) fn pieces(&self, places: Range<usize>) -> impl Iterator<Item = &[u8]> {
        let mut place = places.start;
        let mut number = self.runs.partition_point(|run| run.place <= place).saturating_sub(1);
        iter::from_fn(move || {
            let run = self.runs.get(number).filter(|_| place < places.end)?;
            let run_end = self.runs.get(number + 1).map_or(self.tokens, |next| next.place);
            let (size, end) = (self.kind.size(), run_end.min(places.end));
            let first = run.at + (place - run.place) * size;
            let bytes = &self.files[run.file].map.bytes()[first..first + (end - place) * size];
            (place, number) = (end, number + 1);
            Some(bytes)
        })
    }

    /// The values of the tokens at some places.
    pub(super) fn values(&self, places: Range<usize>) -> impl Iterator<Item = i64> {
        self.pieces(places).flat_map(|bytes| bytes.chunks_exact(self.kind.size()).map(|token| self.kind.read(token)))
    }

    pub(super) fn kind(&self) -> TokenType {
        self.kind
    }

    pub(super) fn tokens(&self) -> usize {
        self.tokens
    }

    pub(super) fn files(&self) -> &[TokenFile] {
        &self.files
    }

    pub(super) fn documents(&self) -> Option<&[usize]> {
        self.documents.as_deref()
    }
}

/// Adds the places that are after the existing ones and before `end`.
fn add_borders(borders: &mut Vec<usize>, places: impl Iterator<Item = usize>, end: usize) {
    for place in places {
        if place < end && borders.last().is_none_or(|last| *last < place) {
            borders.push(place);
        }
    }
}

/// Where a token occurs in some bytes, counted in tokens.
fn positions<'a>(bytes: &'a [u8], wanted: &'a [u8]) -> Box<dyn Iterator<Item = usize> + 'a> {
    // A loop for each size, because a loop that compares slices of any length is many times slower.
    fn of<'a, const N: usize>(bytes: &'a [u8], wanted: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
        let wanted = *wanted.first_chunk::<N>().unwrap_or(&[0; N]);
        let tokens = bytes.as_chunks::<N>().0.iter().enumerate();
        tokens.filter_map(move |(at, token)| (*token == wanted).then_some(at))
    }
    match wanted.len() {
        1 => Box::new(of::<1>(bytes, wanted)),
        2 => Box::new(of::<2>(bytes, wanted)),
        4 => Box::new(of::<4>(bytes, wanted)),
        _ => Box::new(of::<8>(bytes, wanted)),
    }
}
