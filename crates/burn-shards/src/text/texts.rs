//! Finds rows that distinguish the texts of a row. A tokeniser uses some text of a row, and nothing says which. So saved lengths come with
//! rows in which the texts differ: if the tokeniser now uses another text, its tokens differ there.

use crate::{
    jsonl,
    source::cell::{Cell, Raw, Record},
};
use fnv::FnvHasher;
use std::{
    collections::{BTreeMap, HashMap},
    hash::Hasher,
};

/// The most places of a row that are distinguished.
const MOST_PLACES: usize = 100;
/// Elements of a list have a place each. Those from here on share one.
const ELEMENTS: usize = 3;
/// The value of a missing place. An empty text has the same value.
const EMPTY: u64 = 0;

/// The texts of a row: for each place a hash of what is there.
#[derive(Debug, Default)]
pub(super) struct Texts(BTreeMap<u64, u64>);

impl Texts {
    pub(super) fn of(record: &Record) -> Self {
        let mut texts = Self::default();
        record.iter().for_each(|(name, cell)| texts.add(joined(0, name.as_bytes()), cell));
        texts
    }

    fn add(&mut self, place: u64, cell: &Cell) {
        match cell {
            Cell::Raw(bytes, Raw::Json) => match jsonl::value(bytes) {
                Ok(value) => self.add(place, &value),
                Err(_) => self.note(place, bytes),
            },
            Cell::Text(text) => self.note(place, text.as_bytes()),
            Cell::Bytes(bytes) | Cell::Raw(bytes, _) => self.note(place, bytes),
            Cell::List(list) => {
                let element = |at: usize| joined(place, &at.min(ELEMENTS).to_le_bytes());
                list.iter().enumerate().for_each(|(at, cell)| self.add(element(at), cell));
            }
            Cell::Struct(fields) => {
                fields.iter().for_each(|(name, cell)| self.add(joined(place, name.as_bytes()), cell));
            }
            Cell::Map(pairs) => {
                for (key, cell) in pairs {
                    let Cell::Text(name) = key else { continue };
                    self.add(joined(place, name.as_bytes()), cell);
                }
            }
            Cell::Null
            | Cell::Bool(_)
            | Cell::Int(_)
            | Cell::Unsigned(_)
            | Cell::F32(_)
            | Cell::F64(_)
            | Cell::Numbers(..)
            | Cell::Array(..) => {}
        }
    }

    fn note(&mut self, place: u64, text: &[u8]) {
        if !text.is_empty() {
            let noted = self.0.entry(place).or_insert(EMPTY);
            *noted = joined(*noted, text);
        }
    }
}

/// A hash of a number followed by bytes. It is not [`EMPTY`].
fn joined(before: u64, bytes: &[u8]) -> u64 {
    let mut hasher = FnvHasher::default();
    hasher.write_u64(before);
    hasher.write(bytes);
    hasher.finish().max(EMPTY + 1)
}

/// Notes a row. Returns whether it distinguishes two texts, or a text from none, that no earlier row distinguished.
///
/// `classes` are those of the places: places with the same text in each row so far are in one class, and the places of class 0 were always
/// empty.
pub(super) fn tells(classes: &mut BTreeMap<u64, usize>, texts: &Texts) -> bool {
    for place in texts.0.keys() {
        if classes.len() < MOST_PLACES {
            classes.entry(*place).or_insert(0);
        }
    }
    let count = classes.values().max().map_or(1, |last| last + 1);
    if count > classes.len() {
        return false; // all are distinguished
    }
    let mut parts = HashMap::from([((0, EMPTY), 0)]);
    let mut parted = classes.clone();
    for (place, class) in &mut parted {
        let next = parts.len();
        let text = texts.0.get(place).copied().unwrap_or(EMPTY);
        *class = *parts.entry((*class, text)).or_insert(next);
    }
    let tells = parts.len() > count;
    if tells {
        *classes = parted;
    }
    tells
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(fields: &[(&str, &str)]) -> Texts {
        let fields = fields.iter().map(|(name, text)| ((*name).into(), Cell::Text((*text).into())));
        Texts::of(&fields.collect())
    }

    #[test]
    fn a_row_counts_if_it_tells_two_texts_apart_that_no_row_before_did() {
        let mut classes = BTreeMap::new();
        let rows = [
            (&[("a", ""), ("b", "")][..], false),
            (&[("a", "x"), ("b", "x")], true), // from none
            (&[("a", "y"), ("b", "y")], false),
            (&[("a", "x"), ("b", "y"), ("c", "")], true),
            (&[("a", "z"), ("b", "x"), ("c", "")], false),
            (&[("a", "z"), ("b", "x"), ("c", "z")], true), // c from none; it differs from a where that was alone
            (&[("a", "p"), ("b", "q"), ("c", "r")], false),
        ];
        for (number, (row, tells)) in rows.into_iter().enumerate() {
            assert_eq!(super::tells(&mut classes, &texts(row)), tells, "row {number}");
        }
    }

    #[test]
    fn texts_in_lists_structs_maps_and_json_have_places_of_their_own() {
        let text = |text: &str| Cell::Text(text.into());
        let of = |cell: Cell| Texts::of(&vec![("x".into(), cell)]);
        let message =
            |role, content| Cell::Struct(vec![("role".into(), text(role)), ("content".into(), text(content))]);
        let chat = of(Cell::List(vec![message("u", "a"), message("v", "b")]));
        assert_eq!(chat.0.len(), 4);
        let json = br#"[{"role": "u", "content": "a"}, {"role": "v", "content": "b"}]"#;
        assert_eq!(of(Cell::Raw(json.to_vec(), Raw::Json)).0, chat.0);
        let map = |key: &str| of(Cell::Map(vec![(text(key), text("a"))]));
        assert_ne!(map("en").0, map("de").0);
        let list = |texts: &[&str]| of(Cell::List(texts.iter().map(|word| text(word)).collect()));
        assert_ne!(list(&["a", "b"]).0, list(&["b", "a"]).0);
        assert_ne!(list(&["", "", "", "a", "b"]).0, list(&["", "", "", "b", "a"]).0);
        assert!(of(Cell::Int(5)).0.is_empty() && of(text("")).0.is_empty());
    }

    #[test]
    fn rows_with_any_number_of_places_are_few() {
        let mut classes = BTreeMap::new();
        let name = |row: usize, at: usize| format!("{row}.{at}");
        let count = (0..2000).filter(|row| {
            let fields: Vec<(String, String)> = (0..5).map(|at| (name(*row, at), name(*row, at))).collect();
            let fields: Vec<(&str, &str)> = fields.iter().map(|(name, text)| (&**name, &**text)).collect();
            super::tells(&mut classes, &texts(&fields))
        });
        assert!(count.count() <= MOST_PLACES);
    }
}
