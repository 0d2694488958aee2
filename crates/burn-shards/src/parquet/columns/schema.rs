//! From a file's schema to the wanted columns and their leaves.

use super::{
    kind::Kind,
    nodes::{element, is, is_list, is_map, is_old_list, leaves},
    words::word,
};
use crate::{parquet::fault::PartError, source::Selection};
use parquet::{
    basic::{Repetition, Type as Stored},
    schema::types::{ColumnDescPtr, SchemaDescriptor, Type},
};
use std::{ops::Range, sync::Arc};

/// The columns of a file that are wanted, and their leaves.
#[derive(Debug)]
pub(crate) struct Columns {
    pub(crate) list: Vec<Column>,
    pub(crate) leaves: Vec<Leaf>,
}

/// A column, or a field of a struct.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: Arc<str>,
    pub(crate) shape: Shape,
}

/// How a column consists of leaves. A leaf is an index into [`Columns::leaves`].
#[derive(Debug)]
pub(crate) enum Shape {
    Value(usize),
    /// A list of plain values that is not inside another list.
    List(usize),
    Struct {
        fields: Vec<Column>,
        /// The struct is null if its fields have a lower definition level than this.
        there: u8,
        /// A field to get the definition level from, if no field is wanted.
        level: Option<Box<Shape>>,
        /// The leaves of the fields, and of `level`.
        leaves: Range<usize>,
    },
    /// A list in a list, a list of structs, or a map.
    Repeated {
        levels: Levels,
        /// The repetition level of all elements but the first.
        rep: u8,
        /// For a map, a struct of the key and the value.
        element: Box<Column>,
        is_map: bool,
        /// The leaves of the element.
        leaves: Range<usize>,
    },
}

/// A column of values, as Parquet stores them.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    /// Its index among all leaves of the file.
    pub(crate) place: usize,
    /// Its name, after the names of the structs around it, separated by dots.
    pub(crate) path: Arc<str>,
    pub(crate) is: ColumnDescPtr,
    pub(crate) kind: Kind,
    /// The definition level of a value that is not null.
    pub(crate) full: u8,
    /// How many nested lists contain the leaf.
    pub(crate) reps: u8,
    /// The meaning of the levels, if the leaf is a [`Shape::List`].
    pub(crate) list: Option<Levels>,
}

impl Leaf {
    /// How many bytes of a piece a value takes, with its level, without the bytes of a string.
    pub(crate) fn kept(&self) -> u64 {
        let value = match self.is.physical_type() {
            Stored::BOOLEAN => 1,
            Stored::INT32 | Stored::FLOAT => 4,
            _ => 8,
        };
        value + u64::from(self.full > 0) + u64::from(self.is_nested())
    }

    /// Whether a piece has all levels of the leaf: rows are made by [`assemble`](crate::parquet::rows::assemble).
    pub(crate) fn is_nested(&self) -> bool {
        self.reps > 0 && self.list.is_none()
    }
}

/// The meaning of the definition levels of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Levels {
    /// From this level on the list exists. It may be empty.
    pub(crate) there: u8,
    /// From this level on the list has an element, which may be null.
    pub(crate) element: u8,
}

impl Columns {
    /// Finds the wanted columns. Columns that the file lacks are left out. The error names its column.
    pub(crate) fn find(schema: &SchemaDescriptor, wanted: &Selection) -> Result<Self, (String, PartError)> {
        let mut walk = SchemaWalk { schema, next: 0, leaves: Vec::new() };
        let mut found = Vec::new();
        for node in schema.root_schema().get_fields() {
            let (name, first) = (node.name(), walk.next);
            if let Some(wanted) = wanted.of(name) {
                if found.iter().any(|column: &Column| *column.name == *name) {
                    return Err((name.to_string(), PartError::Unsupported("two columns of one name".into())));
                }
                let shape = walk.shape(node, wanted, 0, 0).map_err(|wrong| (name.to_string(), wrong))?;
                found.push(Column { name: name.into(), shape });
            }
            walk.next = first + leaves(node);
        }
        if let Selection::Some(order) = wanted {
            found.sort_by_key(|column| order.iter().position(|(name, _)| *name == column.name));
        }
        Ok(Self { list: found, leaves: walk.leaves })
    }
}

struct SchemaWalk<'a> {
    schema: &'a SchemaDescriptor,
    /// The index of the next leaf.
    next: usize,
    leaves: Vec<Leaf>,
}

impl SchemaWalk<'_> {
    /// `above` and `rep` are the definition and the repetition level of the node around `node`.
    fn shape(&mut self, node: &Type, wanted: &Selection, above: u8, rep: u8) -> Result<Shape, PartError> {
        let level = above + u8::from(!is(node, Repetition::REQUIRED));
        if is(node, Repetition::REPEATED) {
            let levels = Levels { there: above, element: level };
            return self.repeated(levels, rep, false, |walk| walk.once(node, wanted, level, rep + 1));
        }
        self.once(node, wanted, level, rep)
    }

    /// As [`shape`](Self::shape), for one element if the node is repeated. The levels are those of the node.
    fn once(&mut self, node: &Type, wanted: &Selection, level: u8, rep: u8) -> Result<Shape, PartError> {
        if node.is_primitive() {
            return self.leaf(rep);
        }
        if is_map(node) {
            return self.map(node, level, rep);
        }
        if is_list(node) {
            return self.of_list(node, wanted, level, rep);
        }
        self.of_struct(node, wanted, level, rep)
    }

    fn of_struct(&mut self, node: &Type, wanted: &Selection, level: u8, rep: u8) -> Result<Shape, PartError> {
        let (mut fields, start, first_leaf) = (Vec::new(), self.next, self.leaves.len());
        for field in node.get_fields() {
            let first = self.next;
            if let Some(wanted) = wanted.of(field.name()) {
                match self.shape(field, wanted, level, rep) {
                    Ok(shape) => fields.push(Column { name: field.name().into(), shape }),
                    Err(PartError::Unsupported(what)) => {
                        return Err(PartError::Unsupported(format!("{what} in its field `{}`", field.name())));
                    }
                    Err(other) => return Err(other),
                }
            }
            self.next = first + leaves(field);
        }
        let mut told = None;
        if fields.is_empty() && level > 0 {
            self.next = start;
            told = self.any(node, level, rep);
            if told.is_none() {
                return Err(refused(node));
            }
        }
        let leaves = first_leaf..self.leaves.len();
        Ok(Shape::Struct { fields, there: level, level: told.map(Box::new), leaves })
    }

    /// The first field that is supported.
    fn any(&mut self, node: &Type, level: u8, rep: u8) -> Option<Shape> {
        node.get_fields().iter().find_map(|field| {
            let (first, before) = (self.next, self.leaves.len());
            let shape = self.shape(field, &Selection::Some(Vec::new()), level, rep).ok();
            self.next = first + leaves(field);
            if self.leaves.len() == before || shape.is_none() {
                self.leaves.truncate(before);
                return None;
            }
            shape
        })
    }

    /// `there` is the definition level of the list. The selection of a list applies to each element.
    fn of_list(&mut self, node: &Type, wanted: &Selection, there: u8, rep: u8) -> Result<Shape, PartError> {
        let element = element(node).ok_or_else(|| refused(node))?;
        let levels = Levels { there, element: there + 1 };
        self.repeated(levels, rep, false, |walk| match is_old_list(node) {
            true => walk.once(element, wanted, there + 1, rep + 1),
            false => walk.shape(element, wanted, there + 1, rep + 1),
        })
    }

    fn map(&mut self, node: &Type, there: u8, rep: u8) -> Result<Shape, PartError> {
        let pairs = match node.get_fields() {
            [pairs] if is(pairs, Repetition::REPEATED) && pairs.is_group() && pairs.get_fields().len() == 2 => pairs,
            _ => return Err(refused(node)),
        };
        let levels = Levels { there, element: there + 1 };
        self.repeated(levels, rep, true, |walk| walk.of_struct(pairs, &Selection::All, there + 1, rep + 1))
    }

    /// `rep` is the repetition level of the list, and `element` finds the shape of its elements.
    fn repeated(
        &mut self,
        levels: Levels,
        rep: u8,
        is_map: bool,
        element: impl FnOnce(&mut Self) -> Result<Shape, PartError>,
    ) -> Result<Shape, PartError> {
        let first = self.leaves.len();
        let shape = element(self)?;
        match (&shape, self.leaves.get_mut(first)) {
            (Shape::Value(at), Some(leaf)) if rep == 0 => {
                leaf.list = Some(levels);
                Ok(Shape::List(*at))
            }
            (_, None) => Err(PartError::Unsupported("a list of empty structs".into())),
            _ => {
                let element = Box::new(Column { name: "element".into(), shape });
                let leaves = first..self.leaves.len();
                Ok(Shape::Repeated { levels, rep: rep + 1, element, is_map, leaves })
            }
        }
    }

    /// Adds the next leaf, which has this repetition level.
    fn leaf(&mut self, rep: u8) -> Result<Shape, PartError> {
        let place = self.next;
        if place >= self.schema.num_columns() {
            return Err(PartError::damaged("the schema lacks a column"));
        }
        let is = self.schema.column(place);
        let kind = Kind::of(is.self_type())?.ok_or_else(|| refused(is.self_type()))?;
        let full = u8::try_from(is.max_def_level()).map_err(|_| PartError::damaged("the schema is nested too deep"))?;
        if is.max_rep_level() != i16::from(rep) {
            return Err(PartError::damaged("the schema has other levels than its columns"));
        }
        self.next += 1;
        let (path, at) = (is.path().string().into(), self.leaves.len());
        self.leaves.push(Leaf { place, path, is, kind, full, reps: rep, list: None });
        Ok(Shape::Value(at))
    }
}

fn refused(node: &Type) -> PartError {
    PartError::Unsupported(format!("the type {}", word(node)))
}
