//! Comparing the columns of files: whether they have the same types wherever they are.

use super::{
    kind::Kind,
    schema::{Column, Columns, Leaf, Shape},
    words::time,
};
use fnv::FnvHashMap;
use parquet::basic::Type as Stored;
use std::sync::Arc;

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
                    let fields = known.add_all(object, &inner.fields, leaves).into_iter();
                    differ.extend(
                        fields.map(|Differs { path, first }| Differs { path: format!("{name}.{path}"), first }),
                    );
                }
                _ => differ.push(Differs { path: (**name).into(), first: *first }),
            }
        }
        differ
    }
}

fn sort(leaf: &Leaf) -> Option<Sort> {
    (leaf.kind != Kind::Null).then(|| (leaf.kind, leaf.is.physical_type(), time(leaf.is.self_type())))
}
