//! Checks that files form one data set: each column and field has one type, and each label one list of classes.

use super::read::{Footer, nulls};
use crate::{
    error::DataError,
    parquet::columns::{Column, Kind, Leaf, Shape, time},
    source::index::look,
    store::Objects,
};
use fnv::FnvHashMap;
use parquet::basic::Type as Stored;
use std::{
    collections::{BTreeMap, BTreeSet},
    mem, slice,
    sync::Arc,
};

/// Compares the columns of each file with those of the first file that has them. If any file has rows, files without rows have no types.
///
/// A column with only nulls in a file has no type there. Some writers mark such a column. Otherwise the statistics show it; these are read
/// only if types differ.
pub(crate) fn agree(objects: &Objects, files: &mut [Footer]) -> Result<(), DataError> {
    let mut looked_at = vec![false; files.len()];
    for round in 0.. {
        let differ = differences(files);
        if differ.is_empty() {
            break;
        }
        if let Some((object, path, first)) = differ.iter().find(|(at, _, first)| looked_at[*at] && looked_at[*first]) {
            let problem = format!("column `{path}` has another type than in {}", objects.name(*first));
            let there_is = mem::take(&mut files[*object].there_is);
            return Err(DataError::Schema { object: objects.name(*object).into(), problem, there_is });
        }
        // A column may have only nulls in the file that all others are compared with, in the files that differ from it, or in any file.
        // They are checked in this order.
        let to_look: BTreeSet<usize> = match round {
            0 => differ.iter().map(|(_, _, first)| *first).collect(),
            1 => differ.iter().flat_map(|(object, _, first)| [*object, *first]).collect(),
            _ => (0..files.len()).collect(),
        };
        let to_look: Vec<usize> = to_look.into_iter().filter(|object| !looked_at[*object]).collect();
        let nulls = look(objects, &to_look, |object| nulls(objects, *object))?;
        for (object, nulls) in to_look.into_iter().zip(nulls) {
            looked_at[object] = true;
            let are_null = files[object].columns.leaves.iter_mut().filter(|leaf| nulls.get(leaf.place) == Some(&true));
            are_null.for_each(|leaf| leaf.kind = Kind::Null);
        }
    }
    Ok(())
}

/// The type of a column or a field. Whether its values may be null does not matter.
#[derive(PartialEq)]
enum ColumnType {
    Value {
        of: (Kind, Stored, Option<String>),
        /// An element of a list. Errors name the list.
        is_element: bool,
    },
    List,
    Map,
    Struct,
}

/// The files with a column whose type differs from earlier files: each with the path of that column, and the first file that has it.
fn differences(files: &[Footer]) -> Vec<(usize, String, usize)> {
    let mut differ = Vec::new();
    let mut known: FnvHashMap<Vec<Arc<str>>, (ColumnType, usize)> = FnvHashMap::default();
    let none_has_rows = !files.iter().any(Footer::has_rows);
    for (object, file) in files.iter().enumerate().filter(|(_, file)| none_has_rows || file.has_rows()) {
        let mut types = Vec::new();
        for Column { name, shape } in &file.columns.list {
            list(vec![Arc::clone(name)], shape, &file.columns.leaves, &mut types);
        }
        for (mut path, of) in types {
            match known.get(&path) {
                None => drop(known.insert(path, (of, object))),
                Some((before, first)) if *before != of => {
                    path.truncate(path.len() - usize::from(matches!(of, ColumnType::Value { is_element: true, .. })));
                    differ.push((object, path.join("."), *first));
                }
                Some(_) => {}
            }
        }
    }
    differ
}

/// Lists the types of a column and of everything inside it.
fn list(path: Vec<Arc<str>>, shape: &Shape, leaves: &[Leaf], types: &mut Vec<(Vec<Arc<str>>, ColumnType)>) {
    let inner = |name: &Arc<str>| [&path[..], &[Arc::clone(name)]].concat();
    let (of, inside): (ColumnType, &[Column]) = match shape {
        Shape::Value(leaf) => return types.extend(value(&leaves[*leaf], false).map(|value| (path, value))),
        Shape::List(leaf) => {
            types.extend(value(&leaves[*leaf], true).map(|value| (inner(&"element".into()), value)));
            (ColumnType::List, &[])
        }
        Shape::Struct { fields, .. } => (ColumnType::Struct, fields),
        Shape::Repeated { element, is_map, .. } => {
            (if *is_map { ColumnType::Map } else { ColumnType::List }, slice::from_ref(element))
        }
    };
    for Column { name, shape } in inside {
        list(inner(name), shape, leaves, types);
    }
    types.push((path, of));
}

fn value(leaf: &Leaf, is_element: bool) -> Option<ColumnType> {
    let stored = match leaf.kind {
        Kind::Decimal(_) => Stored::BYTE_ARRAY, // the same number, however it is stored
        _ => leaf.is.physical_type(),
    };
    let of = (leaf.kind, stored, time(leaf.is.self_type()));
    (leaf.kind != Kind::Null).then_some(ColumnType::Value { of, is_element })
}

/// The classes of each column. A label is an index into them, so they must be the same in each file, but a file may have more classes at
/// the end.
pub(crate) fn classes(objects: &Objects, files: &mut [Footer]) -> Result<BTreeMap<String, Vec<String>>, DataError> {
    let mut all: BTreeMap<String, (Vec<String>, usize)> = BTreeMap::new();
    for (object, file) in files.iter_mut().enumerate() {
        for (column, names) in mem::take(&mut file.classes) {
            let Some((known, first)) = all.get_mut(&column) else {
                all.insert(column, (names, object));
                continue;
            };
            let is_wanted = file.columns.list.iter().any(|it| *it.name == *column);
            if names.starts_with(known) {
                *known = names;
            } else if is_wanted && !known.starts_with(&names) {
                let problem = format!("column `{column}` has other classes than in {}", objects.name(*first));
                let there_is = mem::take(&mut file.there_is);
                return Err(DataError::Schema { object: objects.name(object).into(), problem, there_is });
            }
        }
    }
    Ok(all.into_iter().map(|(column, (names, _))| (column, names)).collect())
}
