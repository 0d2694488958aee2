//! A dataset made from a list and a closure.

use super::any_dataset::boxed;
use crate::fault::BoxError;
use burn::data::dataset::{Dataset, DatasetError};
use std::sync::Arc;

/// Makes a dataset from a list and a closure that turns an item, such as a file path, into a sample. The closure may fail. It runs on the
/// workers.
///
/// ```
/// use burn::prelude::*;
/// use burn_pinned::{Field, PinnedDataLoaderBuilder, collate, dataset};
/// use std::fs;
///
/// # let folder = tempfile::tempdir()?;
/// # let paths: Vec<_> = (0..3).map(|n| folder.path().join(format!("{n}.txt"))).collect();
/// # paths.iter().zip(["7", "8", "nine"]).for_each(|(path, text)| fs::write(path, text).unwrap());
/// let numbers = dataset(paths, |path| Ok(fs::read_to_string(path)?.parse::<i32>()?)); // of "1.txt", "2.txt", ..
/// # assert!(numbers.get(2).unwrap_err().to_string().contains("invalid digit"));
/// # use burn::{data::dataset::Dataset, tensor::DType};
/// let collate = collate(
///     [Field::new("number", DType::I32, [])],
///     |number: &i32, row| Ok(row.put("number", *number)?),
///     |mut batch| Ok(batch.take_int::<1>("number")?),
/// );
/// let loader = PinnedDataLoaderBuilder::new(collate).batch_size(2).build(numbers)?;
/// assert_eq!(loader.iter().filter_map(Result::ok).count(), 1); // the other batch is an error, because of sample 2
/// # Ok::<(), burn_pinned::BoxError>(())
/// ```
///
/// The closure's error is a source of the dataset's error. Clones share the list and the closure. [`DatasetExt`](crate::DatasetExt) maps
/// the samples of any other dataset.
///
/// # Panics
/// `get` panics if the index is beyond the list, as for every dataset.
pub fn dataset<I: Send + Sync + 'static, S: 'static>(
    items: Vec<I>,
    make: impl Fn(&I) -> Result<S, BoxError> + Send + Sync + 'static,
) -> impl Dataset<S> + Clone + 'static {
    Arc::new(ListDataset { items, make })
}

/// A list, and the closure that turns an item into a sample.
struct ListDataset<I, F> {
    items: Vec<I>,
    make: F,
}

impl<I: Send + Sync, S, F: Fn(&I) -> Result<S, BoxError> + Send + Sync> Dataset<S> for ListDataset<I, F> {
    fn get(&self, index: usize) -> Result<S, DatasetError> {
        (self.make)(&self.items[index]).map_err(boxed)
    }

    fn len(&self) -> usize {
        self.items.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{error::Error, num::ParseIntError};

    #[test]
    fn the_error_of_the_closure_is_a_source() {
        let numbers = dataset(vec!["7", "seven"], |text| Ok(text.parse::<i32>()?));
        assert_eq!((numbers.len(), numbers.clone().get(0).unwrap()), (2, 7));
        let error = numbers.get(1).unwrap_err();
        let inner = error.source().and_then(Error::source).unwrap();
        assert_eq!(inner.downcast_ref::<ParseIntError>().unwrap().to_string(), error.to_string());
    }
}
