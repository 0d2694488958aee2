//! Files in a row that a user's type decodes.

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, Visitor},
};
use std::{error, fmt, marker::PhantomData};

/// A type that is decoded from the bytes of a file. A field of type [`Decoded<Grey>`](Decoded) reads a member of a tar, or a column of
/// bytes.
///
/// ```
/// use burn::data::dataset::Dataset;
/// use burn_shards::{Decode, Decoded, Rows};
///
/// /// A grey image in the format PGM, as an example.
/// struct Grey {
///     width: usize,
///     pixels: Vec<u8>,
/// }
///
/// impl Decode for Grey {
///     type Error = Box<dyn std::error::Error + Send + Sync>;
///
///     fn decode(bytes: Vec<u8>) -> Result<Self, Self::Error> {
///         let end = bytes.windows(5).position(|some| some == b"\n255\n").ok_or("it is no PGM")? + 5;
///         let head = std::str::from_utf8(&bytes[..end])?;
///         let width = head.split_ascii_whitespace().nth(1).ok_or("it has no width")?.parse()?;
///         Ok(Grey { width, pixels: bytes[end..].to_vec() })
///     }
/// }
///
/// #[derive(serde::Deserialize)]
/// struct Row {
///     pgm: Decoded<Grey>, // the extension, or `#[serde(rename = "..")]`
/// }
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("a.tar");
/// # let mut tar = tar::Builder::new(std::fs::File::create(&path)?);
/// # let mut header = tar::Header::new_gnu();
/// # header.set_size(13);
/// # tar.append_data(&mut header, "1.pgm", &b"P5 2 1\n255\nxy"[..])?;
/// # tar.finish()?;
/// let rows = Rows::<Row>::tar(path).open()?;
/// let Decoded(grey) = rows.get(0)?.pgm;
/// assert_eq!((grey.width, grey.pixels), (2, b"xy".to_vec()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Sounds need no type of yours: see `Audio` (feature `audio`).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be decoded from the bytes of a file",
    label = "this type does not implement `Decode`",
    note = "implement `burn_shards::Decode` for it, or take `bytes::Bytes` and decode them later"
)]
pub trait Decode: Sized {
    /// Why the bytes cannot be decoded. The error of the row adds the file, row, key and column.
    type Error: Into<Box<dyn error::Error + Send + Sync>>;

    /// Decodes a file. It runs on the thread that reads the row.
    ///
    /// # Errors
    /// If the bytes are not such a file. It becomes the error of that row.
    fn decode(bytes: Vec<u8>) -> Result<Self, Self::Error>;
}

/// A field that decodes the bytes of a file; see [`Decode`]. The bytes may also be in a struct `{bytes, path}`, the hub's layout for audio
/// and images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Decoded<T>(pub T);

impl<'de, T: Decode> Deserialize<'de> for Decoded<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_byte_buf(FileVisitor(PhantomData)).map(Self)
    }
}

struct FileVisitor<T>(PhantomData<T>);

impl<'de, T: Decode> Visitor<'de> for FileVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a file")
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<T, E> {
        T::decode(bytes).map_err(|error| E::custom(error.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let (mut file, mut others) = (None, Vec::new());
        while let Some(name) = map.next_key::<String>()? {
            if name == "bytes" {
                file = map.next_value::<Option<Decoded<T>>>()?;
            } else {
                map.next_value::<IgnoredAny>()?;
                others.push(name);
            }
        }
        let problem = || {
            format!(
                "it has no `bytes`, but {others:?}: save the table with its files in it, or take a struct of these, and make the value in `map`"
            )
        };
        file.map(|Decoded(value)| value).ok_or_else(|| A::Error::custom(problem()))
    }
}
