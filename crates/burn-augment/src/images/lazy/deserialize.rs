//! An image or a mask as a field of a row: serde's side of [`Image`] and [`Mask`].

use super::image::Image;
use crate::images::{decode::Limits, error::VisionError, parts::Mask};
use bytes::Bytes;
use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, Visitor},
};
use std::{
    cell::{Cell, RefCell},
    fmt,
    path::Path,
    sync::Arc,
};

thread_local! {
    /// The limits of images that this thread makes now.
    static LIMITS: Cell<Option<Limits>> = const { Cell::new(None) };
    /// The key of the row that this thread makes now.
    static KEY: RefCell<Option<Arc<Path>>> = const { RefCell::new(None) };
}

/// A row that this thread makes: its images have these limits, and their errors name this key. The drop puts back what was before.
#[derive(Debug)]
pub struct RowScope {
    limits: Option<Limits>,
    key: Option<Arc<Path>>,
}

impl RowScope {
    /// Begins a row with these limits, and the key that was before.
    pub fn with_limits(limits: Limits) -> Self {
        Self { limits: LIMITS.replace(Some(limits)), key: KEY.with_borrow(Clone::clone) }
    }

    /// Begins a row with this key, and the limits that were before.
    pub fn with_key(key: &str) -> Self {
        Self { limits: LIMITS.get(), key: KEY.replace(Some(Path::new(key).into())) }
    }
}

impl Drop for RowScope {
    fn drop(&mut self) {
        LIMITS.set(self.limits);
        KEY.set(self.key.take());
    }
}

fn limits() -> Limits {
    LIMITS.get().unwrap_or_default()
}

/// The `__key__` of a row of a tar, if the row type asks for it.
fn key() -> Option<Arc<Path>> {
    KEY.with_borrow(Clone::clone)
}

/// Accepts the bytes of an image file, or a struct with a field `bytes`, as in data sets of Hugging Face. It reads the
/// header and decodes nothing. The limits are those of the data set, or [`Limits::default`]. If the row has a
/// `__key__`, errors of decoding name it.
impl<'de> Deserialize<'de> for Image {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A struct with this one field: so only `bytes` is read of the hub's `{bytes, path}`.
        deserializer.deserialize_struct(
            "Image",
            &["bytes"],
            ImageVisitor(|bytes| Self::from_file(bytes, &limits(), key())),
        )
    }
}

/// Accepts what an [`Image`] accepts.
impl<'de> Deserialize<'de> for Mask {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct(
            "Image",
            &["bytes"],
            ImageVisitor(|bytes| Self::from_file(bytes, &limits(), key())),
        )
    }
}

/// Makes an image or a mask by this function of a file's bytes.
struct ImageVisitor<T>(fn(Bytes) -> Result<T, VisionError>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ImageVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of an image file")
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<T, E> {
        (self.0)(bytes.into()).map_err(E::custom)
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<T, E> {
        self.visit_byte_buf(bytes.to_vec())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut image: Option<T> = None;
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "bytes" => image = map.next_value()?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let problem = "it has no `bytes`: save the table with its files in it, or take a struct with the path, and open it in `map`";
        image.ok_or_else(|| A::Error::custom(problem))
    }
}
