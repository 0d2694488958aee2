//! A store whose bytes are kept on disk, in pages.

use super::{
    folder::Refusal,
    pages::{Fault, Next, Pages},
};
use crate::{
    files,
    store::{Object, Store},
    traffic::Traffic,
};
use std::{
    io::{self, Read},
    ops::Range,
    path::Path,
    sync::Arc,
};

/// A store, with a cache above it. All threads and processes that have the same objects open share it: each page is
/// fetched once, by the thread that wants it first. The others wait for it.
#[derive(Debug)]
pub(crate) struct Cached {
    pub(super) pages: Pages,
    below: Arc<dyn Store>,
    traffic: Arc<Traffic>,
}

impl Cached {
    /// Opens the cache of these objects. All data sets in the folder have at most `limit` bytes together.
    ///
    /// # Errors
    /// If the folder may be somebody else's, if it cannot be written, if another version has made it, or if the disk has less room than the limit.
    pub(crate) fn open(
        folder: &Path,
        limit: u64,
        objects: &[Object],
        below: Arc<dyn Store>,
        traffic: Arc<Traffic>,
    ) -> Result<Self, Refusal> {
        let pages = Pages::open(folder, limit, objects)?;
        Ok(Self { pages, below, traffic })
    }

    /// Finds the next bytes of a part that is not empty.
    fn next(&self, object: usize, part: &Range<u64>) -> io::Result<Next> {
        match self.pages.find(object, part, &*self.below) {
            Ok(next) => Ok(next),
            Err(Fault::Below(error)) => Err(error),
            Err(Fault::Disk(error)) => {
                if !files::are_too_many(&error) {
                    self.turn_off(&error);
                }
                Ok(Next::Below(part.end - part.start))
            }
        }
    }

    /// Reads bytes that are said to be here. False if the disk fails.
    fn here(&self, object: usize, start: u64, into: &mut [u8]) -> bool {
        self.pages.read(object, start, into).inspect_err(|error| self.turn_off(error)).is_ok()
    }

    fn turn_off(&self, error: &io::Error) {
        let folder = &self.pages.folder;
        if folder.turn_off() {
            let path = folder.path().display();
            log::warn!("the cache in {path} is off from now on, and all is read from the store: {error}");
        }
    }
}

impl Store for Cached {
    fn beside(&self, object: usize, extension: &str) -> io::Result<Option<Vec<u8>>> {
        self.below.beside(object, extension)
    }

    fn is_near(&self, object: usize, part: &Range<u64>) -> bool {
        self.pages.are_known(object, part)
    }

    fn open(&self, object: usize, part: Range<u64>) -> io::Result<Box<dyn Read + Send + '_>> {
        Ok(Box::new(Part { cached: self, object, fresh: part.start, rest: part, from: None }))
    }

    fn read(&self, object: usize, mut start: u64, mut into: &mut [u8]) -> io::Result<()> {
        while !into.is_empty() {
            let next = self.next(object, &(start..start + into.len() as u64))?;
            let (Next::Here { bytes, .. } | Next::Below(bytes)) = next;
            let (now, rest) = into.split_at_mut(bytes as usize);
            match next {
                Next::Here { is_fresh, .. } if self.here(object, start, now) => {
                    self.traffic.cached(if is_fresh { 0 } else { bytes });
                }
                _ => self.below.read(object, start, now)?,
            }
            (start, into) = (start + bytes, rest);
        }
        Ok(())
    }
}

/// A part of an object.
struct Part<'a> {
    cached: &'a Cached,
    object: usize,
    rest: Range<u64>,
    /// What has been fetched for this part ends here.
    fresh: u64,
    /// What comes from the store below, and how much.
    from: Option<io::Take<Box<dyn Read + Send + 'a>>>,
}

impl Part<'_> {
    fn ask(&mut self, bytes: u64) -> io::Result<()> {
        let part = self.rest.start..self.rest.start + bytes;
        self.from = Some(self.cached.below.open(self.object, part)?.take(bytes));
        Ok(())
    }
}

impl Read for Part<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() || self.rest.is_empty() {
            return Ok(0);
        }
        if self.from.as_ref().is_none_or(|from| from.limit() == 0) {
            self.from = None;
            match self.cached.next(self.object, &self.rest)? {
                Next::Here { bytes, is_fresh } => {
                    let start = self.rest.start;
                    if is_fresh {
                        self.fresh = start + bytes;
                    }
                    let now = bytes.min(into.len() as u64);
                    if self.cached.here(self.object, start, &mut into[..now as usize]) {
                        self.cached.traffic.cached((start + now).saturating_sub(self.fresh.max(start)));
                        self.rest.start += now;
                        return Ok(now as usize);
                    }
                    self.ask(self.rest.end - start)?;
                }
                Next::Below(bytes) => self.ask(bytes)?,
            }
        }
        let bytes = self.from.as_mut().map_or(Ok(0), |from| from.read(into))?;
        if bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.rest.start += bytes as u64;
        Ok(bytes)
    }
}
