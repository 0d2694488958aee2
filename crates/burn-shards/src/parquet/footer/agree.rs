//! Whether files are one data set: each column and field has one type, and a label one list of classes.

use super::{
    compare::{Differs, Known},
    read::{File, nulls},
};
use crate::{error::DataError, parquet::columns::Kind, source::index::look, store::Objects};
use std::collections::{BTreeMap, BTreeSet};

/// Compares the columns of all files. A column that has only nulls in a file has no type there. Some writers mark such
/// a column. For others the statistics tell it: these are read only where types differ, once for each file. A file
/// without rows has no types, if any file has rows.
pub(crate) fn agree(objects: &Objects, files: &mut [File]) -> Result<(), DataError> {
    let none_has_rows = !files.iter().any(File::has_rows);
    let mut looked_at = vec![false; files.len()];
    // A column may have only nulls in the file that all others are compared with, in the files that differ from it, or
    // in any file. They are looked at in this order.
    for round in 0.. {
        let (mut known, mut to_look, mut refused) = (Known::default(), BTreeSet::new(), None);
        for (object, file) in files.iter().enumerate().filter(|(_, file)| none_has_rows || file.has_rows()) {
            for differs in known.add(object, &file.columns) {
                to_look.insert(differs.first);
                if round > 0 {
                    to_look.insert(object);
                }
                if looked_at[object] && looked_at[differs.first] {
                    refused.get_or_insert((object, differs));
                }
            }
        }
        if let Some((object, Differs { path, first })) = refused {
            let problem = format!("column `{path}` has another type than in {}", objects.name(first));
            let there_is = std::mem::take(&mut files[object].there_is);
            return Err(DataError::Schema { object: objects.name(object).into(), problem, there_is });
        }
        if to_look.is_empty() {
            break;
        }
        if round > 1 {
            to_look.extend(0..files.len());
        }
        let to_look: Vec<usize> = to_look.into_iter().filter(|object| !looked_at[*object]).collect();
        let nulls = look(objects, &to_look, |object| nulls(objects, *object))?;
        for (object, nulls) in to_look.into_iter().zip(nulls) {
            looked_at[object] = true;
            for leaf in &mut files[object].columns.leaves {
                if nulls.get(leaf.place).is_some_and(|nulls| *nulls) {
                    leaf.kind = Kind::Null;
                }
            }
        }
    }
    Ok(())
}

/// The classes of each column. A label is an index into them, so they must be the same in each file, but for classes that come
/// behind those of another file.
pub(crate) fn classes(objects: &Objects, files: &mut [File]) -> Result<BTreeMap<String, Vec<String>>, DataError> {
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
