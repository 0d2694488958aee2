//! One value of a row, as a format has it. The row's type says what the value becomes.

use std::sync::Arc;

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
    Numbers(Numbers),
    /// Numbers with a shape, in C order.
    Array(Vec<usize>, Numbers),
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

/// A list of numbers, or of booleans, of one type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Numbers {
    Bool(Vec<bool>),
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
pub struct Array<T> {
    /// The length of each dimension.
    pub shape: Vec<usize>,
    /// The numbers in C order: the last dimension changes first.
    pub data: Vec<T>,
}
