//! Arrays of numbers, as fields of row types.

use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor},
};
use std::{fmt, marker::PhantomData};

/// Numbers with a shape, from NumPy files (`.npy`) in tars and in columns of bytes, and from arrays of MDS shards (`ndarray`).
///
/// `T` is `bool` or any type of number that can hold those of the file. Arrays in Fortran order or with big-endian numbers are converted.
/// Files of Python objects, texts or structs are an error of their row, and so are `.npz` archives. A list has no shape: use a `Vec` for
/// it, or a `Vec<Vec<f32>>` for a list of lists.
///
/// For an MDS array, a `Vec` in place of the `Array` gets the numbers without the shape.
///
/// ```
/// # use burn_shards::Array;
/// #[derive(serde::Deserialize)]
/// struct Row {
///     embedding: Array<f32>, // its shape may differ from row to row
///     tokens: Vec<i64>,
/// }
/// let row: Row = serde_json::from_str(r#"{"embedding": {"shape": [1, 2], "data": [0.5, 1]}, "tokens": [3]}"#)?;
/// assert_eq!((row.embedding.shape, row.embedding.data, row.tokens), (vec![1, 2], vec![0.5, 1.0], vec![3]));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
pub struct Array<T> {
    /// The length of each dimension.
    pub shape: Vec<usize>,
    /// The numbers in C order: the last dimension changes fastest.
    #[serde(deserialize_with = "at_once")]
    pub data: Vec<T>,
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
