//! The names that a row type asks for: which of them no file has, and which names of the files are similar.

use crate::{
    cell::{Cell, Record},
    source::Wanted,
};
use std::{collections::BTreeMap, mem, sync::Arc};

/// The names that are asked for, and whether a file has them. The name of a field is `column.field`, and it counts once
/// its struct is there.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<String, bool>);

impl Names {
    /// Notes which of the wanted names a record has.
    pub(super) fn note(&mut self, wanted: &Wanted, record: &Record) {
        self.inside("", wanted, record);
    }

    fn inside(&mut self, path: &str, wanted: &Wanted, record: &Record) {
        let Wanted::Some(wanted) = wanted else { return };
        for (name, fields) in wanted {
            let (path, cell) = (format!("{path}{name}"), record.iter().find(|(there, _)| there == name));
            structs(cell.map(|(_, cell)| cell), &mut |record| self.inside(&format!("{path}."), fields, record));
            *self.0.entry(path).or_default() |= cell.is_some();
        }
    }

    /// The names that no file has, without the optional ones.
    pub(super) fn missing(&self, optional: &[Arc<str>]) -> Vec<&str> {
        let missing = self.0.iter().filter(|(_, there)| !**there).map(|(name, _)| &**name);
        missing.filter(|name| !optional.iter().any(|it| **it == **name)).collect()
    }
}

/// Calls `act` with a value that is a struct, or with all structs of a list.
fn structs(cell: Option<&Cell>, act: &mut dyn FnMut(&Record)) {
    match cell {
        Some(Cell::Struct(record)) => act(record),
        Some(Cell::List(cells)) => cells.iter().for_each(|cell| structs(Some(cell), act)),
        _ => {}
    }
}

/// The names of columns and of their fields.
pub(super) fn all(record: &Record) -> Vec<String> {
    let with_fields = |(name, cell): &(Arc<str>, Cell)| {
        let mut inside = Vec::new();
        structs(Some(cell), &mut |record| inside.extend(all(record)));
        let fields = inside.iter().map(|field| format!("{name}.{field}")).collect::<Vec<_>>();
        [name.to_string()].into_iter().chain(fields)
    };
    record.iter().flat_map(with_fields).collect()
}

/// Says which names are missing, which names of the files are nearest, and what to write.
pub(super) fn told(missing: &[&str], there: &[String]) -> String {
    let one = |name: &&str| match nearest(name, there) {
        near if near.is_empty() => format!("`{name}`"),
        near => format!("`{name}` (nearest: {})", quoted(&near, '`')),
    };
    let names: Vec<String> = missing.iter().map(one).collect();
    format!(
        "{}: correct the name, or write `.optional([{}])` if it may be missing or is an alias",
        names.join(", "),
        quoted(missing, '"')
    )
}

fn quoted(names: &[&str], quote: char) -> String {
    names.iter().map(|name| format!("{quote}{name}{quote}")).collect::<Vec<_>>().join(", ")
}

/// At most three names that are like this one, the nearest first.
fn nearest<'a>(name: &str, there: &'a [String]) -> Vec<&'a str> {
    let mut near: Vec<(usize, &str)> = there.iter().map(|it| (distance(name, it), &**it)).collect();
    near.retain(|(distance, _)| *distance <= name.chars().count().div_ceil(2));
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

/// How many letters must be put in, left out or changed to make one word of the other. Capitals are no change.
fn distance(one: &str, two: &str) -> usize {
    let letters = |word: &str| word.to_lowercase().chars().collect::<Vec<_>>();
    let (one, two) = (letters(one), letters(two));
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (above, a) in one.iter().enumerate() {
        let mut diagonal = mem::replace(&mut row[0], above + 1);
        for (at, b) in two.iter().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_are_told() {
        for (one, two, letters) in
            [("", "abc", 3), ("capton", "caption", 1), ("kitten", "sitting", 3), ("JPG", "jpg", 0)]
        {
            assert_eq!((distance(one, two), distance(two, one)), (letters, letters), "{one} {two}");
        }
        let there = ["label", "lable2", "labels", "image", "lab"].map(String::from);
        assert_eq!(nearest("lable", &there), ["lable2", "lab", "label"]);
        assert_eq!(nearest("x", &there), [""; 0]);
    }
}
