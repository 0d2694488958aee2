//! An object from front to back.

use super::{BELIEVED_BYTES, Objects};
use std::io::{self, Cursor, Read};

/// The bytes of the first object, in parts. Each part of a remote object is a request.
#[derive(Debug)]
pub(crate) struct ObjectReader {
    objects: Objects,
    at: u64,
    part: Cursor<Vec<u8>>,
}

impl ObjectReader {
    pub(crate) fn new(objects: Objects) -> Self {
        Self { objects, at: 0, part: Cursor::default() }
    }
}

/// An error is the [`DataError`](crate::DataError) of the object.
impl Read for ObjectReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let end = self.objects.bytes(0).min(self.at.saturating_add(BELIEVED_BYTES));
        if self.part.position() == self.part.get_ref().len() as u64 && self.at < end {
            self.part = Cursor::new(self.objects.read(0, self.at..end).map_err(io::Error::other)?);
            self.at = end;
        }
        self.part.read(into)
    }
}
