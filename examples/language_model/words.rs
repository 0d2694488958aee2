//! A vocabulary of words: what turns text into tokens, and back.

use std::{
    collections::HashMap,
    hash::{Hash, Hasher},
};

/// Ends each document.
pub(crate) const END: u16 = 0;
/// The tokens that are a byte come next. All text can be spelt with them.
const FIRST_BYTE: u16 = 1;
const FIRST_WORD: u16 = FIRST_BYTE + 256;

/// The most frequent words of a text, each with the blank before it.
pub(crate) struct Words {
    words: Vec<String>,
    tokens: HashMap<String, u16>,
}

impl Words {
    /// The words of some documents, at most `most`.
    pub(crate) fn of(documents: &[String], most: usize) -> Self {
        let mut counts = HashMap::<&str, usize>::new();
        for word in documents.iter().flat_map(|document| split(document)) {
            *counts.entry(word).or_default() += 1;
        }
        let mut counts: Vec<_> = counts.into_iter().filter(|(_, count)| *count > 1).collect();
        counts.sort_by(|(a, n), (b, m)| m.cmp(n).then(a.cmp(b)));
        let words: Vec<String> = counts.into_iter().take(most).map(|(word, _)| word.to_owned()).collect();
        let tokens = words.iter().cloned().zip(FIRST_WORD..).collect();
        Self { words, tokens }
    }

    /// Tells one vocabulary from another.
    pub(crate) fn hash(&self, hasher: &mut impl Hasher) {
        self.words.hash(hasher);
    }

    /// The number of different tokens.
    pub(crate) fn len(&self) -> usize {
        usize::from(FIRST_WORD) + self.words.len()
    }

    /// The tokens of a text. Words that are not in the vocabulary are spelt.
    pub(crate) fn encode(&self, text: &str) -> Vec<u16> {
        let mut tokens = Vec::new();
        for word in split(text) {
            match self.tokens.get(word) {
                Some(token) => tokens.push(*token),
                None => tokens.extend(word.bytes().map(|byte| FIRST_BYTE + u16::from(byte))),
            }
        }
        tokens
    }

    /// The text of tokens.
    pub(crate) fn decode(&self, tokens: &[u16]) -> String {
        let mut bytes = Vec::new();
        for token in tokens {
            match token.checked_sub(FIRST_WORD) {
                Some(word) => bytes.extend(self.words.get(usize::from(word)).map_or("?".as_bytes(), String::as_bytes)),
                None if *token == END => bytes.extend(b"\n\n"),
                None => bytes.push((token - FIRST_BYTE) as u8),
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Cuts a text where the kind of its characters changes. One blank belongs to the word behind it.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let inner = rest.strip_prefix(' ').unwrap_or(rest);
        let first = inner.chars().next();
        let word = |char: char| char.is_alphanumeric() || char == '_' || char == '\'';
        let behind = match first {
            Some(first) if word(first) => inner.find(|char| !word(char)).unwrap_or(inner.len()),
            Some(other) => other.len_utf8(),
            None => 0,
        };
        let (here, behind) = rest.split_at(rest.len() - inner.len() + behind);
        rest = behind;
        (!here.is_empty()).then_some(here)
    })
}
