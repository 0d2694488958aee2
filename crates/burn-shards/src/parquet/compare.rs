//! Comparing the columns of files: whether they have the same types wherever they are.

use super::{
    kind::Kind,
    schema::{Column, Columns, Leaf, Shape},
    words::time,
};
use fnv::FnvHashMap;
use parquet::basic::Type as Stored;
use std::{slice, sync::Arc};

/// The columns, or the fields of a struct, of the files so far. A column that has only nulls in a file has no type
/// there, and is left out.
#[derive(Debug, Default)]
pub(super) struct Known(FnvHashMap<Arc<str>, (Is, usize)>);

/// The type of a column, in the first object that has it.
#[derive(Debug)]
enum Is {
    Value(Sort),
    /// `None` if all of its elements are nulls, or if it has none.
    List(Option<Sort>),
    Struct(Known),
    /// The element, and whether the column is a map.
    Repeated(Known, bool),
}

/// The type of a value. Whether it may be null does not count.
type Sort = (Kind, Stored, Option<&'static str>);

/// A column that has another type than in a file before.
#[derive(Debug)]
pub(super) struct Differs {
    /// The name of the column, or that of a field with the names of the structs that it is in.
    pub(super) path: String,
    /// The first object that has the column.
    pub(super) first: usize,
}

impl Known {
    /// Adds the columns of an object, and returns those that differ from the objects before.
    pub(super) fn add(&mut self, object: usize, columns: &Columns) -> Vec<Differs> {
        self.add_all(object, &columns.list, &columns.leaves)
    }

    fn add_all(&mut self, object: usize, columns: &[Column], leaves: &[Leaf]) -> Vec<Differs> {
        let sort = |leaf: &usize| leaves.get(*leaf).and_then(sort);
        let mut differ = Vec::new();
        for Column { name, shape } in columns {
            let Some((is, first)) = self.0.get_mut(name) else {
                let is = match shape {
                    Shape::Value(leaf) => match sort(leaf) {
                        Some(sort) => Is::Value(sort),
                        None => continue,
                    },
                    Shape::List(leaf) => Is::List(sort(leaf)),
                    Shape::Struct(inner) => {
                        let mut known = Self::default();
                        differ.extend(known.add_all(object, &inner.fields, leaves));
                        Is::Struct(known)
                    }
                    Shape::Repeated(inner) => {
                        let mut known = Self::default();
                        differ.extend(known.add_all(object, slice::from_ref(&*inner.element), leaves));
                        Is::Repeated(known, inner.is_map)
                    }
                };
                self.0.insert(Arc::clone(name), (is, object));
                continue;
            };
            match (is, shape) {
                (Is::Value(one), Shape::Value(two)) if sort(two) == Some(*one) => {}
                (_, Shape::Value(leaf)) if sort(leaf).is_none() => {}
                (Is::List(one), Shape::List(two)) => match (&one, sort(two)) {
                    (_, None) => {}
                    (None, two) => (*one, *first) = (two, object),
                    (Some(one), Some(two)) if *one == two => {}
                    _ => differ.push(Differs { path: (**name).into(), first: *first }),
                },
                (Is::Struct(known), Shape::Struct(inner)) => {
                    differ.extend(known.add_inside(name, object, &inner.fields, leaves));
                }
                (Is::Repeated(known, is_map), Shape::Repeated(inner)) if *is_map == inner.is_map => {
                    differ.extend(known.add_inside(name, object, slice::from_ref(&*inner.element), leaves));
                }
                (Is::Repeated(..), Shape::List(leaf)) if sort(leaf).is_none() => {}
                (is @ Is::List(None), Shape::Repeated(inner)) if !inner.is_map => {
                    let mut known = Self::default();
                    differ.extend(known.add_all(object, slice::from_ref(&*inner.element), leaves));
                    (*is, *first) = (Is::Repeated(known, false), object);
                }
                _ => differ.push(Differs { path: (**name).into(), first: *first }),
            }
        }
        differ
    }

    /// Adds the columns inside a column, whose name the error has too.
    fn add_inside(&mut self, name: &str, object: usize, columns: &[Column], leaves: &[Leaf]) -> Vec<Differs> {
        let inside = self.add_all(object, columns, leaves).into_iter();
        inside.map(|Differs { path, first }| Differs { path: format!("{name}.{path}"), first }).collect()
    }
}

fn sort(leaf: &Leaf) -> Option<Sort> {
    let stored = match leaf.kind {
        Kind::Decimal(_) => Stored::BYTE_ARRAY, // it is the same number however it is stored
        _ => leaf.is.physical_type(),
    };
    (leaf.kind != Kind::Null).then(|| (leaf.kind, stored, time(leaf.is.self_type())))
}
