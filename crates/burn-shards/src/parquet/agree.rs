//! Whether files are one data set: each column and field has one type, and a label one list of classes.

use super::{
    compare::{Differs, Known},
    footer::{self, File},
    kind::Kind,
};
use crate::{error::DataError, store::Objects};
use std::collections::BTreeMap;

/// Compares the columns of all files. A column of nothing but nulls in a file has no type there: some writers mark it, of others
/// the statistics tell it, and these are read only where types differ. A file without rows has no
/// types, if any file has rows.
pub(super) fn agree(objects: &Objects, files: &mut [File]) -> Result<(), DataError> {
    let mut looked_at = vec![false; files.len()];
    let none_has_rows = !files.iter().any(File::has_rows);
    loop {
        let mut known = Known::default();
        let mut numbered = files.iter().enumerate().filter(|(_, file)| none_has_rows || file.has_rows());
        let differs = numbered.find_map(|(object, file)| Some((object, known.add(object, &file.columns).err()?)));
        let Some((object, Differs { path, first })) = differs else { return Ok(()) };
        let mut found = false;
        for object in [object, first] {
            if !std::mem::replace(&mut looked_at[object], true) {
                found |= note_nulls(objects, object, &mut files[object])?;
            }
        }
        if !found {
            let problem = format!("column `{path}` has another type than in {}", objects.name(first));
            let there_is = std::mem::take(&mut files[object].there_is);
            return Err(DataError::Schema { object: objects.name(object).into(), problem, there_is });
        }
    }
}

/// The classes of each column. A label is an index into them, so they must be the same in each file, but for classes that come
/// behind those of another file.
pub(super) fn classes(objects: &Objects, files: &mut [File]) -> Result<BTreeMap<String, Vec<String>>, DataError> {
    let mut all: BTreeMap<String, (Vec<String>, usize)> = BTreeMap::new();
    for (object, file) in files.iter_mut().enumerate() {
        for (column, names) in std::mem::take(&mut file.classes) {
            let Some((known, first)) = all.get_mut(&column) else {
                all.insert(column, (names, object));
                continue;
            };
            let is_wanted = file.columns.list.iter().any(|it| *it.name == *column);
            if names.starts_with(known) {
                *known = names;
            } else if is_wanted && !known.starts_with(&names) {
                let problem = format!("column `{column}` has other classes than in {}", objects.name(*first));
                let there_is = std::mem::take(&mut file.there_is);
                return Err(DataError::Schema { object: objects.name(object).into(), problem, there_is });
            }
        }
    }
    Ok(all.into_iter().map(|(column, (names, _))| (column, names)).collect())
}

/// Notes the columns of a file that have nulls alone, and says whether there are any.
fn note_nulls(objects: &Objects, object: usize, file: &mut File) -> Result<bool, DataError> {
    let nulls = footer::nulls(objects, object)?;
    let mut found = false;
    for leaf in &mut file.columns.leaves {
        if leaf.kind != Kind::Null && nulls.get(leaf.place).is_some_and(|nulls| *nulls) {
            (leaf.kind, found) = (Kind::Null, true);
        }
    }
    Ok(found)
}
