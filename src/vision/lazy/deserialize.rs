//! An image or a mask as a field of a row: serde's side of [`Image`] and [`Mask`].

use super::image::Image;
use crate::vision::{decode::Limits, error::VisionError, parts::Mask};
use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, Unexpected, Visitor},
};
use std::{cell::Cell, fmt};

thread_local! {
    /// The limits of images that this thread makes now.
    static LIMITS: Cell<Option<Limits>> = const { Cell::new(None) };
}

/// Puts the earlier limits back, also after a panic.
struct Before(Option<Limits>);

impl Drop for Before {
    fn drop(&mut self) {
        LIMITS.set(self.0);
    }
}

/// Makes rows whose images have these limits.
#[cfg_attr(not(feature = "data"), expect(dead_code, reason = "only rows of `data` have limits of their own"))]
pub(crate) fn with_limits<O>(limits: Limits, make: impl FnOnce() -> O) -> O {
    let _before = Before(LIMITS.replace(Some(limits)));
    make()
}

/// Makes something of a file's bytes.
type Make<T> = fn(Vec<u8>, &Limits) -> Result<T, VisionError>;

/// Takes the bytes of an image file, or a struct with a field `bytes`: the image of a Hugging Face data set. The header is
/// read, and nothing is decoded. Limits are those of the data set, or [`Limits::default`].
impl<'de> Deserialize<'de> for Image {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A struct with this one field: so only `bytes` is read of the hub's `{bytes, path}`.
        deserializer.deserialize_struct("Image", &["bytes"], File(Image::from_bytes as Make<Image>))
    }
}

/// Takes what an [`Image`] takes.
impl<'de> Deserialize<'de> for Mask {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct("Image", &["bytes"], File(Mask::from_bytes as Make<Mask>))
    }
}

struct File<T>(Make<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for File<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of an image file")
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<T, E> {
        (self.0)(bytes, &LIMITS.get().unwrap_or_default()).map_err(E::custom)
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
        image.ok_or_else(|| A::Error::invalid_type(Unexpected::Other("a path without bytes"), &self))
    }
}
