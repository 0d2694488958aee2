//! The names that a row type asks for: which of them no file has, and which names of the files are similar.

use crate::{
    row::{nearest, structs},
    source::{Selection, cell::Record},
};
use std::{collections::BTreeMap, sync::Arc};

/// Notes which of the wanted names a record has. `names` has the wanted names, and whether a file has them. The name of a field is
/// `column.field`; it is checked once its struct exists. `path` is the prefix of this record's names.
pub(super) fn note(names: &mut BTreeMap<String, bool>, path: &str, wanted: &Selection, record: &Record) {
    let Selection::Some(wanted) = wanted else { return };
    for (name, fields) in wanted {
        let (path, cell) = (format!("{path}{name}"), record.iter().find(|(there, _)| there == name));
        structs(cell.map(|(_, cell)| cell), &mut |record| note(names, &format!("{path}."), fields, record));
        *names.entry(path).or_default() |= cell.is_some();
    }
}

/// The names that no file has, except optional ones.
pub(super) fn missing<'a>(names: &'a BTreeMap<String, bool>, optional: &[Arc<str>]) -> Vec<&'a str> {
    let missing = names.iter().filter(|(_, there)| !**there).map(|(name, _)| &**name);
    missing.filter(|name| !optional.iter().any(|it| **it == **name)).collect()
}

/// Says which names are missing, which names of the files are nearest, and what to write.
pub(super) fn told(missing: &[&str], there: &[String]) -> String {
    let names: Vec<String> = missing.iter().map(|name| format!("`{name}`{}", nearest(name, there))).collect();
    let quoted: Vec<String> = missing.iter().map(|name| format!("\"{name}\"")).collect();
    format!(
        "{}: correct the name, or write `.optional([{}])` if it may be missing or is an alias",
        names.join(", "),
        quoted.join(", ")
    )
}
