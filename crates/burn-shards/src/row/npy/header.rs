//! The header of a `.npy` file: a Python dictionary.

use serde::Deserialize;

/// The most dimensions, as in NumPy.
const DIMENSIONS: usize = 64;

/// What Python writes differently from JSON, without white space. Python 2 wrote an `L` after numbers.
const WORDS: [(&str, &str); 8] =
    [("'", "\""), ("(", "["), (")", "]"), ("L", ""), (",]", "]"), (",}", "}"), ("True", "true"), ("False", "false")];

/// The contents of the header.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NpyHeader {
    pub(super) descr: String,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<usize>,
}

impl NpyHeader {
    /// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`. `None` if it is anything else.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text: String = text.split_whitespace().collect();
        let text = WORDS.iter().fold(text, |text, (python, json)| text.replace(python, json));
        serde_json::from_str(&text).ok().filter(|header: &Self| header.shape.len() <= DIMENSIONS)
    }
}
