//! One value of a row, as a format has it. The row's type says what the value becomes.

mod number;

use bytes::Bytes;
pub(crate) use number::Type;
use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor},
};
use std::{fmt, marker::PhantomData, sync::Arc};

/// The wanted columns of a row, with their names. A column that the row does not have is left out.
pub(crate) type Record = Vec<(Arc<str>, Cell)>;

/// Returns a name that is there twice, among those that are asked for. `None` asks for all.
pub(crate) fn twice<'a>(fields: &'a [(Arc<str>, Cell)], asked: Option<&[&str]>) -> Option<&'a str> {
    // Up to this number of names are compared in pairs, which needs no memory.
    const FEW_NAMES: usize = 16;
    let names = || fields.iter().map(|(name, _)| &**name).filter(|name| asked.is_none_or(|asked| asked.contains(name)));
    if fields.len() <= FEW_NAMES {
        return names()
            .enumerate()
            .find(|(at, name)| names().take(*at).any(|other| other == *name))
            .map(|(_, name)| name);
    }
    let mut names: Vec<&str> = names().collect();
    names.sort_unstable();
    names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    /// Only used by columns of unsigned values.
    Unsigned(u64),
    F32(f32),
    F64(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// The bytes of a file or of a text field. A number, a text, bytes or JSON is read from it, as the row's type asks.
    Raw(Vec<u8>, Raw),
    List(Vec<Cell>),
    #[cfg_attr(not(any(feature = "parquet", test)), expect(dead_code, reason = "the other formats have arrays"))]
    Numbers(Numbers),
    /// Numbers with a shape, in C order, as their file has them.
    Array(Vec<usize>, Type, Bytes),
    Struct(Vec<(Arc<str>, Cell)>),
    /// The pairs of a map, in their order. Keys may be of any type.
    #[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "the other formats have objects"))]
    Map(Vec<(Cell, Cell)>),
}

/// What the bytes of a [`Cell::Raw`] are, for row types that do not ask for anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Raw {
    Bytes,
    Number,
    Text,
    Json,
}

/// A list of numbers of one type.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "the other formats have arrays"))]
pub(crate) enum Numbers {
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

/// Numbers with a shape: NumPy's files (`.npy`) in tars and in columns of bytes, and the arrays of MDS shards (`ndarray`).
///
/// `T` is any type of number that takes the file's, or `bool`. Arrays in Fortran order and of big-endian numbers become what is said
/// below. Files of Python objects, texts or structs are an error of their row.
///
/// Of MDS, a row type with a `Vec` in its place gets the numbers alone.
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
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
pub struct Array<T> {
    /// The length of each dimension.
    pub shape: Vec<usize>,
    /// The numbers in C order: the last dimension changes first.
    #[serde(deserialize_with = "at_once")]
    pub data: Vec<T>,
}

/// Numbers get their memory at once. A `Vec` of serde grows from a MiB on, which copies each number once more.
fn at_once<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    /// The most memory that a claim of a length gets.
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
