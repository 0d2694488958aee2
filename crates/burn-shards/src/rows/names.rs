//! The names that a row type asks for: which of them no file has, and which names of the files are similar.

use crate::{
    row::{nearest, structs},
    source::{Selection, cell::Record},
};
use std::{collections::BTreeMap, sync::Arc};

/// The names that are asked for, and whether a file has them. The name of a field is `column.field`, and it counts once
/// its struct is there.
#[derive(Debug, Default)]
pub(super) struct ColumnNames(BTreeMap<String, bool>);

impl ColumnNames {
    /// Notes which of the wanted names a record has.
    pub(super) fn note(&mut self, wanted: &Selection, record: &Record) {
        self.inside("", wanted, record);
    }

    fn inside(&mut self, path: &str, wanted: &Selection, record: &Record) {
        let Selection::Some(wanted) = wanted else { return };
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
