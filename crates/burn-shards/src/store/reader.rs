//! An object from front to back.

use super::Objects;
#[cfg(feature = "remote")]
use super::ahead::{FetchAhead, PlannedRow};
use std::io::{self, Cursor, Read};

/// The bytes of a part. Each part is a request to a remote store.
const PART: u64 = 4 << 20;

/// The bytes of the first object. Those of a remote store are read ahead.
#[derive(Debug)]
pub(crate) struct ObjectReader {
    #[cfg(feature = "remote")]
    #[expect(dead_code, reason = "its drop ends the fetching")]
    fetching: Option<FetchAhead>,
    objects: Objects,
    at: u64,
    part: Cursor<Vec<u8>>,
}

impl ObjectReader {
    pub(crate) fn new(objects: Objects) -> Self {
        Self {
            #[cfg(feature = "remote")]
            fetching: objects.ahead.as_ref().map(|ahead| {
                let end = objects.bytes(0);
                let part = move |(row, start): (usize, u64)| {
                    Some(PlannedRow { row, parts: vec![(0, start..end.min(start + PART))] })
                };
                ahead.begin(Box::new((0..end).step_by(PART as usize).enumerate().map(part)), true)
            }),
            objects,
            at: 0,
            part: Cursor::default(),
        }
    }
}

/// An error has the [`DataError`](crate::DataError) of the object.
impl Read for ObjectReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (start, end) = (self.at, self.objects.bytes(0).min(self.at.saturating_add(PART)));
        if self.part.position() == self.part.get_ref().len() as u64 && start < end {
            self.part = Cursor::new(self.objects.read(0, start..end).map_err(io::Error::other)?);
            self.objects.done((start / PART) as usize);
            self.at = end;
        }
        self.part.read(into)
    }
}
