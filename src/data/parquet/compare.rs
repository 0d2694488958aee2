//! Comparing the columns of two files: which both have, and whether they have the same type in both.

use super::{
    schema::{Column, Columns, Shape},
    words::time,
};

/// The columns or fields that both have.
pub(super) fn pairs<'a>(one: &'a [Column], two: &'a [Column]) -> impl Iterator<Item = (&'a Column, &'a Column)> {
    one.iter().filter_map(move |one| Some((one, two.iter().find(|two| two.name == one.name)?)))
}

/// Whether both have the same columns and fields. Types are not compared here: files whose types differ are refused
/// when they are opened.
pub(super) fn alike(one: &[Column], two: &[Column]) -> bool {
    let fields = |(one, two): (&Column, &Column)| match (&one.shape, &two.shape) {
        (Shape::Struct(one), Shape::Struct(two)) => alike(&one.fields, &two.fields),
        _ => true,
    };
    one.len() == two.len() && pairs(one, two).map(fields).eq(one.iter().map(|_| true))
}

/// Whether two columns have the same type. One may have nulls where the other has none.
pub(super) fn same(columns: &Columns, column: &Column, others: &Columns, other: &Column) -> bool {
    match (&column.shape, &other.shape) {
        (Shape::Value(one), Shape::Value(two)) | (Shape::List(one), Shape::List(two)) => {
            let (one, two) = (&columns.leaves[*one], &others.leaves[*two]);
            one.kind == two.kind
                && one.is.physical_type() == two.is.physical_type()
                && time(one.is.self_type()) == time(two.is.self_type())
        }
        (Shape::Struct(one), Shape::Struct(two)) => {
            pairs(&one.fields, &two.fields).all(|(one, two)| same(columns, one, others, two))
        }
        _ => false,
    }
}
