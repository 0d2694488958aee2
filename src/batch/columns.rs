//! What a sample has besides numbers, on its way from a row to the batch.

use super::{raw::RawBatch, row::RowMut};
use crate::{fault::FieldError, memory::Column};
use std::any::type_name;

impl RowMut<'_> {
    /// Writes the row's value of a [column](crate::Field::column), by moving it there.
    ///
    /// # Errors
    /// If the layout has no such column, or its values have another type.
    pub fn put_column<T: Clone + Send + Sync + 'static>(&mut self, name: &str, value: T) -> Result<(), FieldError> {
        let layout = self.chunk.layout();
        let Some(at) = layout.columns.iter().position(|column| column.name == name) else {
            return Err(self.no_column(name));
        };
        let (bit, row) = (layout.fields.len() + at, self.row - self.chunk.rows().start);
        if !self.beside.columns.get_mut(at).is_some_and(|column| column.set(row, value)) {
            return Err(another_type::<T>(self.beside.columns.get(at), name));
        }
        self.note_written(bit);
        Ok(())
    }

    #[cold]
    fn no_column(&self, name: &str) -> FieldError {
        // A field of this name is told apart from no field.
        match self.find(name) {
            Ok(_) => {
                let problem = "is no column: write it by another method, or make it by `Field::column`";
                FieldError::Kind { name: name.into(), problem }
            }
            Err(unknown) => unknown,
        }
    }
}

impl RawBatch {
    /// Takes the values of a column ([`Field::column`](crate::Field::column)), one for each sample, in the order of the rows.
    ///
    /// # Errors
    /// If there is no such column, its values have another type, or it was taken before.
    pub fn column<T: Clone + Send + Sync + 'static>(&mut self, name: &str) -> Result<Vec<T>, FieldError> {
        let Some(column) = self.columns.iter_mut().find(|column| column.name == name) else {
            self.find(name)?;
            return Err(FieldError::Kind { name: name.into(), problem: "is a tensor: take it by `RawBatch::take`" });
        };
        let Some(values) = &mut column.values else {
            let (name, wanted) = (name.into(), format!("a column of {}", type_name::<T>()));
            return Err(FieldError::Tensor { name, wanted, there: "it was taken before".into() });
        };
        let taken = values.take();
        let taken = taken.ok_or_else(|| another_type::<T>(Some(&*values), name))?;
        column.values = None;
        Ok(taken)
    }
}

#[cold]
fn another_type<T>(column: Option<&Column>, name: &str) -> FieldError {
    let expected = column.map_or("nothing", Column::of);
    FieldError::DType { name: name.into(), expected, given: type_name::<T>() }
}
