//! The names of columns and fields, and those nearest to a missing name.

use crate::source::cell::{Cell, Record};
use std::{mem, sync::Arc};

/// Calls `act` with a struct, or with all structs of a list.
pub(crate) fn structs(cell: Option<&Cell>, act: &mut dyn FnMut(&Record)) {
    match cell {
        Some(Cell::Struct(record)) => act(record),
        Some(Cell::List(cells)) => cells.iter().for_each(|cell| structs(Some(cell), act)),
        _ => {}
    }
}

/// The names of columns and of their fields.
pub(crate) fn names(record: &Record) -> Vec<String> {
    let with_fields = |(name, cell): &(Arc<str>, Cell)| {
        let mut inside = Vec::new();
        structs(Some(cell), &mut |record| inside.extend(names(record)));
        let fields = inside.iter().map(|field| format!("{name}.{field}")).collect::<Vec<_>>();
        [name.to_string()].into_iter().chain(fields)
    };
    record.iter().flat_map(with_fields).collect()
}

/// Adds similar names to a missing name, in brackets: at most three, the nearest first.
pub(crate) fn nearest(name: &str, there: &[String]) -> String {
    if there.iter().any(|it| it == name) {
        return String::new();
    }
    let mut near: Vec<(usize, &str)> = there.iter().map(|it| (distance(name, it), &**it)).collect();
    near.retain(|(distance, _)| *distance <= name.chars().count().div_ceil(2));
    near.sort_unstable();
    near.dedup();
    let near: Vec<&str> = near.into_iter().take(3).map(|(_, name)| name).collect();
    if near.is_empty() { String::new() } else { format!(" (nearest: `{}`)", near.join("`, `")) }
}

/// The edit distance: how many letters must be inserted, removed or changed to get from one word to the other, ignoring case.
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
        assert_eq!(nearest("lable", &there), " (nearest: `lable2`, `lab`, `label`)");
        assert_eq!([nearest("x", &there), nearest("label", &there)], [""; 2]);
    }
}
