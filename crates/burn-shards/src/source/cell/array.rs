//! Arrays of numbers: fields of row types, and series in memory.

use crate::error::DataError;
use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor},
};
use std::{fmt, marker::PhantomData, ops::Range, sync::Arc};

/// Numbers with a shape, from NumPy files (`.npy`): [opened](Self::open) by themselves, or in tars and in columns of bytes. Arrays of MDS
/// shards (`ndarray`) are read too.
///
/// A clone shares the numbers, and so does a view of some [rows](Self::rows).
///
/// ```
/// # use burn_shards::Array;
/// #[derive(serde::Deserialize)]
/// struct Row {
///     embedding: Array<f32>, // its shape may differ from row to row
///     tokens: Vec<i64>,
/// }
/// let row: Row = serde_json::from_str(r#"{"embedding": {"shape": [1, 2], "data": [0.5, 1]}, "tokens": [3]}"#)?;
/// assert_eq!((row.embedding.shape(), row.embedding.data(), row.tokens), (&[1, 2][..], &[0.5, 1.0][..], vec![3]));
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// In a row, `T` is `bool` or any type of number that can hold those of the file. Arrays in Fortran order or with big-endian numbers are
/// converted. Files of Python objects, texts or structs are an error of their row, and so are `.npz` archives. A list has no shape: use a
/// `Vec` for it, or a `Vec<Vec<f32>>` for a list of lists.
///
/// For an MDS array, a `Vec` in place of the `Array` gets the numbers without the shape.
#[derive(Clone, derive_more::Debug, Deserialize)]
#[serde(try_from = "ShapeAndData<T>", bound = "T: Deserialize<'de> + Send + Sync + 'static")]
pub struct Array<T> {
    shape: Vec<usize>,
    /// Numbers that several arrays may share.
    #[debug(skip)]
    numbers: Arc<dyn AsRef<[T]> + Send + Sync>,
    /// The place of this array's numbers there.
    #[debug(skip)]
    place: Range<usize>,
}

/// An array as formats write it.
#[derive(Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
struct ShapeAndData<T> {
    shape: Vec<usize>,
    #[serde(deserialize_with = "at_once")]
    data: Vec<T>,
}

impl<T: Send + Sync + 'static> Array<T> {
    /// An array of numbers in C order: the last dimension changes fastest.
    ///
    /// # Errors
    /// [`DataError::Option`] if there are more or fewer numbers than the shape has.
    pub fn new(shape: impl Into<Vec<usize>>, data: Vec<T>) -> Result<Self, DataError> {
        Self::shared(shape.into(), Arc::new(data))
    }

    pub(crate) fn shared(shape: Vec<usize>, numbers: Arc<dyn AsRef<[T]> + Send + Sync>) -> Result<Self, DataError> {
        let place = 0..(*numbers).as_ref().len();
        if number_count(&shape) != Some(place.end) {
            let problem = format!("{shape:?} is not that of {} numbers", place.end);
            return Err(DataError::option("shape", problem, "give as many numbers as it has"));
        }
        Ok(Self { shape, numbers, place })
    }
}

impl<T> Array<T> {
    /// The length of each dimension.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The numbers in C order: the last dimension changes fastest.
    pub fn data(&self) -> &[T] {
        &(*self.numbers).as_ref()[self.place.clone()]
    }

    /// A view of some rows, which are places of the first dimension. It shares the numbers, and copies none.
    ///
    /// ```
    /// use burn_shards::Array;
    ///
    /// let days = Array::new([3, 2], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    /// let later = days.rows(1..3);
    /// assert_eq!((later.shape(), later.data()), (&[2, 2][..], &[3.0, 4.0, 5.0, 6.0][..]));
    /// # Ok::<(), burn_shards::DataError>(())
    /// ```
    ///
    /// # Panics
    /// As a slice does, if the range ends beyond the last row or before it starts. An array without dimensions has no rows.
    pub fn rows(&self, rows: Range<usize>) -> Self {
        let count = self.shape.first().copied().unwrap_or_default();
        assert!(rows.start <= rows.end && rows.end <= count, "rows {rows:?} of an array with {count} rows");
        let row = self.place.len().checked_div(count).unwrap_or_default();
        let place = self.place.start + rows.start * row..self.place.start + rows.end * row;
        let shape = self.shape.iter().enumerate().map(|(at, side)| if at == 0 { rows.len() } else { *side });
        Self { shape: shape.collect(), numbers: Arc::clone(&self.numbers), place }
    }
}

impl<T: PartialEq> PartialEq for Array<T> {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape && self.data() == other.data()
    }
}

impl<T: Send + Sync + 'static> TryFrom<ShapeAndData<T>> for Array<T> {
    type Error = DataError;

    fn try_from(ShapeAndData { shape, data }: ShapeAndData<T>) -> Result<Self, DataError> {
        Self::new(shape, data)
    }
}

/// How many numbers an array of this shape has, if they can be counted.
pub(crate) fn number_count(shape: &[usize]) -> Option<usize> {
    let none = shape.contains(&0).then_some(0);
    none.or_else(|| shape.iter().try_fold(1usize, |count, side| count.checked_mul(*side)))
}

/// The memory for the numbers is allocated at once. Serde would let a `Vec` grow beyond 1 MiB, which copies each number once more.
fn at_once<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    /// The most memory that is allocated because of a claimed length.
    const BELIEVED_BYTES: usize = 64 << 20;
    struct AtOnce<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for AtOnce<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of numbers")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let most = BELIEVED_BYTES / size_of::<T>().max(1);
            let mut numbers = Vec::with_capacity(list.size_hint().unwrap_or(0).min(most));
            while let Some(number) = list.next_element()? {
                numbers.push(number);
            }
            Ok(numbers)
        }
    }
    from.deserialize_seq(AtOnce(PhantomData))
}
