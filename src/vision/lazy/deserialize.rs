//! An image as a field of a row: serde's side of [`Image`].

use super::image::Image;
use crate::vision::decode::Limits;
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

/// Takes the bytes of an image file, or a struct with a field `bytes`: the image of a Hugging Face data set. The header is
/// read, and nothing is decoded. Limits are those of the data set, or [`Limits::default`].
impl<'de> Deserialize<'de> for Image {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A struct with this one field: so only `bytes` is read of the hub's `{bytes, path}`.
        deserializer.deserialize_struct("Image", &["bytes"], File)
    }
}

struct File;

impl<'de> Visitor<'de> for File {
    type Value = Image;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of an image file")
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Image, E> {
        Image::from_bytes(bytes, &LIMITS.get().unwrap_or_default()).map_err(E::custom)
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Image, E> {
        self.visit_byte_buf(bytes.to_vec())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Image, A::Error> {
        let mut image: Option<Image> = None;
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "bytes" => image = map.next_value()?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        image.ok_or_else(|| A::Error::invalid_type(Unexpected::Other("a path without bytes"), &self))
    }
}
