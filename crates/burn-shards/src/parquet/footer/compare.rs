//! Comparing the columns of files: whether they have the same types wherever they are.

use crate::parquet::columns::{Column, Columns, Kind, Leaf, Shape, time};
use fnv::FnvHashMap;
use parquet::basic::Type as Stored;
use std::{slice, sync::Arc};

/// The types of all columns and fields of the files so far, by their paths, each with the first object that has it. What
/// has only nulls in a file has no type there, and is left out.
#[derive(Debug, Default)]
pub(crate) struct Known(FnvHashMap<Vec<Arc<str>>, (Is, usize)>);

#[derive(Debug, PartialEq)]
enum Is {
    Value(Sort),
    /// A value of a list. Errors name the list.
    Element(Sort),
    List,
    Map,
    Struct,
}

/// The type of a value. Whether it may be null does not count.
type Sort = (Kind, Stored, Option<&'static str>);

/// A column that has another type than in a file before.
#[derive(Debug)]
pub(crate) struct Differs {
    /// The name of the column, or that of a field with the names of the structs that it is in.
    pub(crate) path: String,
    /// The first object that has the column.
    pub(crate) first: usize,
}

impl Known {
    /// Adds the columns of an object, and returns those that differ from the objects before.
    pub(crate) fn add(&mut self, object: usize, columns: &Columns) -> Vec<Differs> {
        let mut types = Vec::new();
        for Column { name, shape } in &columns.list {
            list(vec![Arc::clone(name)], shape, &columns.leaves, &mut types);
        }
        let mut differ = Vec::new();
        for (path, is) in types {
            match self.0.get(&path) {
                None => drop(self.0.insert(path, (is, object))),
                Some((known, first)) if *known != is => {
                    let named = path.len() - usize::from(matches!(is, Is::Element(_)));
                    differ.push(Differs { path: path[..named].join("."), first: *first });
                }
                Some(_) => {}
            }
        }
        differ
    }
}

/// Lists the types of a column and of what is in it.
fn list(path: Vec<Arc<str>>, shape: &Shape, leaves: &[Leaf], types: &mut Vec<(Vec<Arc<str>>, Is)>) {
    let inner = |name: &Arc<str>| [&path[..], &[Arc::clone(name)]].concat();
    let (is, inside): (Is, &[Column]) = match shape {
        Shape::Value(leaf) => return types.extend(sort(&leaves[*leaf]).map(|sort| (path, Is::Value(sort)))),
        Shape::List(leaf) => {
            types.extend(sort(&leaves[*leaf]).map(|sort| (inner(&"element".into()), Is::Element(sort))));
            (Is::List, &[])
        }
        Shape::Struct(of) => (Is::Struct, &of.fields),
        Shape::Repeated(of) => (if of.is_map { Is::Map } else { Is::List }, slice::from_ref(&of.element)),
    };
    for Column { name, shape } in inside {
        list(inner(name), shape, leaves, types);
    }
    types.push((path, is));
}

fn sort(leaf: &Leaf) -> Option<Sort> {
    let stored = match leaf.kind {
        Kind::Decimal(_) => Stored::BYTE_ARRAY, // it is the same number however it is stored
        _ => leaf.is.physical_type(),
    };
    (leaf.kind != Kind::Null).then(|| (leaf.kind, stored, time(leaf.is.self_type())))
}
