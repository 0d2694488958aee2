//! Which rows each object has. Rows are numbered across all objects.

use crate::error::DataError;

/// The first row of each object, or of each part of an object, followed by the number of all rows.
#[derive(Debug, Clone)]
pub(crate) struct Starts(Vec<usize>);

impl Starts {
    pub(crate) fn new() -> Self {
        Self(vec![0])
    }

    /// Adds the rows of the next object, unless they are more than can be counted.
    pub(crate) fn add(&mut self, rows: usize, object: &str) -> Result<(), DataError> {
        let end = self.rows().checked_add(rows);
        self.0.push(end.ok_or_else(|| DataError::damaged(object, "it claims too many rows"))?);
        Ok(())
    }

    /// The number of all rows.
    pub(crate) fn rows(&self) -> usize {
        self.0.last().copied().unwrap_or_default()
    }

    /// The object of a row, and the row's number in it. `row < rows()`.
    pub(crate) fn find(&self, row: usize) -> (usize, usize) {
        let object = self.0.partition_point(|start| *start <= row) - 1; // the first starts at 0
        (object, row - self.0[object])
    }

    /// The first row of each object that has rows.
    pub(crate) fn firsts(&self) -> Vec<usize> {
        self.0.windows(2).filter(|rows| rows[0] < rows[1]).map(|rows| rows[0]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_without_rows_are_passed_over() {
        let mut starts = Starts::new();
        [0, 3, 0, 2, 0].into_iter().for_each(|rows| starts.add(rows, "a").unwrap());
        assert_eq!((starts.rows(), starts.firsts()), (5, vec![0, 3]));
        let found: Vec<_> = (0..5).map(|row| starts.find(row)).collect();
        assert_eq!(found, [(1, 0), (1, 1), (1, 2), (3, 0), (3, 1)]);
        assert!(starts.add(usize::MAX, "a").is_err() && starts.rows() == 5);
    }
}
