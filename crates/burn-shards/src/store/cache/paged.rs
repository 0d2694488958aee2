//! A store whose bytes are kept on disk, in pages.

use super::{
    disk::SMALL_FILES,
    folder::{CacheSet, id},
    pages::{CachePage, CachePages, all_on_disk, on_disk},
    room::Room,
};
use crate::{
    store::{Object, Store, traffic::Traffic},
    system::{
        ends::thread_ends,
        files,
        locks::Mutex,
        turn::{Turn, TurnGuard},
    },
};
use std::{
    io::{self, Read},
    ops::Range,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// The most pages of one request.
pub const RUN: usize = 16;
/// The number of turns. Pages share them, but there are so many that threads with different pages seldom wait for each other.
const FLIGHTS: usize = 4096;

/// A store, with a cache above it. The threads that read from it fetch each page once. Other readers of the same objects find a page once
/// it is written.
#[derive(derive_more::Debug)]
pub(crate) struct PageCache {
    pages: CachePages,
    room: Mutex<Room>,
    /// A thread holds the turn of a page while it fetches the page. Every 4,096th page has the same turn.
    #[debug(skip)]
    flights: Box<[Turn]>,
    /// Whether the disk has failed.
    pub(super) is_off: AtomicBool,
    below: Arc<dyn Store>,
    traffic: Arc<Traffic>,
}

/// Where the next bytes of a part are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextBytes {
    /// In a page on disk. The bytes of the object before this one were fetched just now, and count as fetched.
    Kept(u64),
    /// In the store below, up to this byte of the object.
    Below(u64),
}

impl PageCache {
    /// Opens the cache of these objects. All data sets in the folder have at most `limit` bytes together.
    ///
    /// # Errors
    /// Those of [`CacheSet::open`].
    pub(crate) fn open(
        path: &Path,
        limit: u64,
        objects: &[Object],
        below: Arc<dyn Store>,
        traffic: Arc<Traffic>,
    ) -> io::Result<Self> {
        let bytes = all_on_disk(objects).saturating_add(SMALL_FILES);
        let set = CacheSet::open(path, limit, &id("pages", objects), bytes, false)?;
        Ok(Self {
            pages: CachePages::new(set, objects),
            room: Mutex::new(Room::new(limit)),
            flights: (0..FLIGHTS).map(|_| Turn::default()).collect(),
            is_off: AtomicBool::default(),
            below,
            traffic,
        })
    }

    /// Finds the next bytes of a part that is not empty, and fetches them if the disk has space for them.
    pub(super) fn next_bytes(&self, object: usize, part: &Range<u64>) -> io::Result<NextBytes> {
        // A part beyond the object fails in the store below.
        if part.end > self.pages.object_bytes(object) || self.is_off.load(Relaxed) {
            return Ok(NextBytes::Below(part.end));
        }
        let page = self.pages.page(object, part.start);
        if self.pages.is_known(page.number) {
            return Ok(NextBytes::Kept(0));
        }
        let ends = || self.is_off.load(Relaxed) || thread_ends();
        let Some(flight) = self.flight(&page).take(ends) else { return Ok(NextBytes::Below(part.end)) };
        match self.on_disk(self.pages.check(&page)) {
            Some(true) => Ok(NextBytes::Kept(0)),
            Some(false) => self.fetch(object, part, flight),
            None => Ok(NextBytes::Below(part.end)),
        }
    }

    fn flight(&self, page: &CachePage) -> &Turn {
        &self.flights[page.number as usize % FLIGHTS]
    }

    /// Fetches the first page of a part, and the missing pages after it, by one request, as far as the disk has space.
    fn fetch(&self, object: usize, part: &Range<u64>, first: TurnGuard<'_>) -> io::Result<NextBytes> {
        let is_missing = |page: &CachePage| !self.pages.is_there(page.number);
        let (mut first, mut wanted) = (Some(first), 0);
        let in_run = |page: CachePage| {
            let flight = first.take().or_else(|| self.flight(&page).try_take().filter(|_| is_missing(&page)))?;
            wanted += on_disk(page.bytes());
            self.on_disk(self.room.lock().has(wanted, || self.pages.set.held()))?.then_some((page, flight))
        };
        let run: Vec<_> = self.pages.pages(object, part).take(RUN).map_while(in_run).collect();
        let Some((last, _)) = run.last() else {
            let missing = self.pages.pages(object, part).take_while(is_missing).last();
            return Ok(NextBytes::Below(missing.map_or(part.end, |page| page.part.end.min(part.end))));
        };
        let mut from = self.below.open(object, run[0].0.part.start..last.part.end)?;
        let (mut found, mut bytes) = (NextBytes::Below(part.end), Vec::new());
        for (page, _flight) in run {
            bytes.resize(page.bytes() as usize, 0);
            match from.read_exact(&mut bytes) {
                Err(_) if matches!(found, NextBytes::Kept(_)) => break, // if the fault persists, the next request fails too
                read => read?,
            }
            if self.on_disk(self.write(&page, &bytes)) != Some(true) {
                break;
            }
            found = NextBytes::Kept(page.part.end);
        }
        Ok(found)
    }

    /// Writes a page, unless others have filled the folder meanwhile. Other threads wait until it is written, so that none of them counts
    /// the folder without it.
    fn write(&self, page: &CachePage, bytes: &[u8]) -> io::Result<bool> {
        let (mut room, on_disk) = (self.room.lock(), on_disk(page.bytes()));
        let has_room = room.has(on_disk, || self.pages.set.held())?;
        if has_room {
            self.pages.write(page.number, bytes)?;
            room.wrote(on_disk);
        }
        Ok(has_room)
    }

    /// A disk fault turns the cache off. Too many open files are not a disk fault.
    fn on_disk<T>(&self, done: io::Result<T>) -> Option<T> {
        let failed = |error: &io::Error| {
            if !files::are_too_many(error) && !self.is_off.swap(true, Relaxed) {
                let folder = self.pages.set.folder.display();
                log::warn!("the cache in {folder} is off from now on, and all is read from the store: {error}");
            }
        };
        done.inspect_err(failed).ok()
    }
}

impl Store for PageCache {
    fn beside(&self, object: usize, extension: &str) -> io::Result<Option<Vec<u8>>> {
        self.below.beside(object, extension)
    }

    fn is_near(&self, object: usize, part: &Range<u64>) -> bool {
        let is_inside = part.end <= self.pages.object_bytes(object) && !self.is_off.load(Relaxed);
        is_inside && self.pages.pages(object, part).all(|page| self.pages.is_known(page.number))
    }

    fn open(&self, object: usize, part: Range<u64>) -> io::Result<Box<dyn Read + Send + '_>> {
        Ok(Box::new(CachedPart { cached: self, object, rest: part, fresh: 0, from: None }))
    }
}

/// Reads a part of an object from the cache, and missing bytes from the store below.
struct CachedPart<'a> {
    cached: &'a PageCache,
    object: usize,
    rest: Range<u64>,
    /// The bytes before this one were fetched for this part, and do not count as read from the cache.
    fresh: u64,
    /// The reader of the store below, limited to the bytes that are still missing.
    from: Option<io::Take<Box<dyn Read + Send + 'a>>>,
}

impl CachedPart<'_> {
    /// Reads from the cache, or begins to read from the store below.
    fn read_next(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (cached, start) = (self.cached, self.rest.start);
        let below = match cached.next_bytes(self.object, &self.rest)? {
            NextBytes::Below(end) => end,
            NextBytes::Kept(fresh) => {
                self.fresh = self.fresh.max(fresh);
                let (page, most) = (cached.pages.page(self.object, start), into.len() as u64);
                let into = &mut into[..most.min(self.rest.end - start) as usize];
                if let Some(bytes) = cached.on_disk(cached.pages.read(&page, start, into)) {
                    cached.traffic.count(|sums| sums.cached += if start < self.fresh { 0 } else { bytes as u64 });
                    return Ok(bytes);
                }
                self.rest.end
            }
        };
        self.from.insert(cached.below.open(self.object, start..below)?.take(below - start)).read(into)
    }
}

impl Read for CachedPart<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() || self.rest.is_empty() {
            return Ok(0);
        }
        let bytes = match &mut self.from {
            Some(from) if from.limit() > 0 => from.read(into)?,
            _ => self.read_next(into)?,
        };
        if bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.rest.start += bytes as u64;
        Ok(bytes)
    }
}
