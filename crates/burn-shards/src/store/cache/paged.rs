//! A store whose bytes are kept on disk, in pages.

use super::{
    disk::SMALL,
    folder::{Folder, Id},
    pages::{Layout, PAGE, Pages},
    room::Room,
};
use crate::{
    ends::{LOOK, thread_ends},
    files,
    store::{Object, Store},
    traffic::Traffic,
};
use parking_lot::{Mutex, MutexGuard, RwLock};
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
const RUN: usize = 16;
/// The most pages that are looked for at once, where they have no place.
const STEP: usize = 1024;
/// Threads that need different pages seldom wait for each other.
const FLIGHTS: usize = 4096;

/// A store, with a cache above it. Its threads fetch each page once. Others that have the same objects open find the page when
/// it has been written.
#[derive(derive_more::Debug)]
pub(crate) struct Cached {
    folder: Folder,
    pages: Pages,
    room: Mutex<Room>,
    /// A thread that fetches a page holds a lock, which is also that of each 4,096th page from there on.
    #[debug(skip)]
    flights: Box<[Mutex<()>]>,
    /// Whether the disk has failed.
    pub(super) is_off: AtomicBool,
    below: Arc<dyn Store>,
    traffic: Arc<Traffic>,
}

/// Where the next bytes of a part are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// In the cache: the first page.
    Kept,
    /// In the cache up to here. They have just been fetched.
    Fetched(u64),
    /// In the store up to here.
    Below(u64),
}

impl Cached {
    /// Opens the cache of these objects. All data sets in the folder have at most `limit` bytes together.
    ///
    /// # Errors
    /// Those of [`Folder::open`].
    pub(crate) fn open(
        path: &Path,
        limit: u64,
        objects: &[Object],
        below: Arc<dyn Store>,
        traffic: Arc<Traffic>,
    ) -> io::Result<Self> {
        let (folder, layout) = (Folder::open(path, limit)?, Layout::new(objects));
        let (set, _) = folder.set(Id::of("pages", objects), layout.all_on_disk().saturating_add(SMALL), false)?;
        Ok(Self {
            folder,
            pages: Pages { layout, set, known: RwLock::default() },
            room: Mutex::new(Room::new(limit)),
            flights: (0..FLIGHTS).map(|_| Mutex::new(())).collect(),
            is_off: AtomicBool::new(false),
            below,
            traffic,
        })
    }

    /// Finds the next bytes of a part that is not empty, and fetches them if they get a place.
    pub(super) fn find(&self, object: usize, part: &Range<u64>) -> io::Result<Next> {
        // What lies beyond the object fails below.
        if part.end > self.pages.layout.bytes(object) || self.is_off.load(Relaxed) {
            return Ok(Next::Below(part.end));
        }
        let first = self.pages.layout.of(object, part).start;
        if self.pages.is_known(first) {
            return Ok(Next::Kept);
        }
        let flight = loop {
            match self.flight(first).try_lock_for(LOOK) {
                Some(flight) => break flight,
                None if self.is_off.load(Relaxed) || thread_ends() => return Ok(Next::Below(part.end)),
                None => {}
            }
        };
        match self.on_disk(self.pages.check(object, first)) {
            Some(true) => Ok(Next::Kept),
            Some(false) => self.fetch(object, part, flight),
            None => Ok(Next::Below(part.end)),
        }
    }

    fn flight(&self, page: u64) -> &Mutex<()> {
        &self.flights[page as usize % FLIGHTS]
    }

    /// Fetches the first page of a part, and those behind it that are missing too, by one request, as far as there is room.
    fn fetch(&self, object: usize, part: &Range<u64>, first: MutexGuard<'_, ()>) -> io::Result<Next> {
        let (layout, pages) = (&self.pages.layout, self.pages.layout.of(object, part));
        let is_missing = |page: &u64| !self.pages.is_there(*page);
        let (mut first, mut wanted) = (Some(first), 0);
        let flights = pages.clone().take(RUN).map_while(|page| {
            let flight = first.take().or_else(|| self.flight(page).try_lock().filter(|_| is_missing(&page)))?;
            wanted += layout.on_disk(object, page);
            let has_place = self.on_disk(self.room.lock().has(wanted, || self.folder.held()))?;
            has_place.then_some((layout.part(object, page), page, flight))
        });
        let flights: Vec<_> = flights.collect();
        let Some((Range { end, .. }, ..)) = flights.last() else {
            let missing = pages.clone().take(STEP).take_while(is_missing).last().unwrap_or(pages.start);
            return Ok(Next::Below(layout.part(object, missing).end.min(part.end)));
        };
        let all = layout.part(object, pages.start).start..*end;
        let mut buffer = vec![0; (all.end - all.start).min(PAGE) as usize];
        let (mut from, mut next) = (self.below.open(object, all)?, Next::Below(part.end));
        for (Range { start, end }, page, _flight) in flights {
            let bytes = &mut buffer[..(end - start) as usize];
            match from.read_exact(bytes) {
                Err(_) if matches!(next, Next::Fetched(_)) => break, // if it is not over, the next request tells it
                read => read?,
            }
            if self.on_disk(self.write(object, page, bytes)) != Some(true) {
                break;
            }
            next = Next::Fetched(end);
        }
        Ok(next)
    }

    /// Writes a page, unless others have taken its place meanwhile.
    fn write(&self, object: usize, page: u64, bytes: &[u8]) -> io::Result<bool> {
        let (mut room, on_disk) = (self.room.lock(), self.pages.layout.on_disk(object, page));
        let has_place = room.has(on_disk, || self.folder.held())?;
        if has_place {
            self.pages.write(page, bytes)?;
            room.wrote(on_disk);
        }
        Ok(has_place)
    }

    /// A disk that fails turns the cache off. Too many open files are no fault of the disk.
    fn on_disk<T>(&self, done: io::Result<T>) -> Option<T> {
        let failed = |error: &io::Error| {
            if !files::are_too_many(error) && !self.is_off.swap(true, Relaxed) {
                let folder = self.folder.path().display();
                log::warn!("the cache in {folder} is off from now on, and all is read from the store: {error}");
            }
        };
        done.inspect_err(failed).ok()
    }
}

impl Store for Cached {
    fn beside(&self, object: usize, extension: &str) -> io::Result<Option<Vec<u8>>> {
        self.below.beside(object, extension)
    }

    fn is_near(&self, object: usize, part: &Range<u64>) -> bool {
        let layout = &self.pages.layout;
        let is_inside = part.end <= layout.bytes(object) && !self.is_off.load(Relaxed);
        is_inside && layout.of(object, part).all(|page| self.pages.is_known(page))
    }

    fn open(&self, object: usize, part: Range<u64>) -> io::Result<Box<dyn Read + Send + '_>> {
        Ok(Box::new(Part { cached: self, object, rest: part, fresh: 0, from: None }))
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
    /// Reads from the cache, or begins to read from the store below.
    fn next(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (cached, start) = (self.cached, self.rest.start);
        let end = match cached.find(self.object, &self.rest)? {
            Next::Below(end) => end,
            found => {
                if let Next::Fetched(end) = found {
                    self.fresh = end;
                }
                let most = (self.rest.end - start).min(into.len() as u64) as usize;
                if let Some(bytes) = cached.on_disk(cached.pages.read(self.object, start, &mut into[..most])) {
                    cached.traffic.cached(if start < self.fresh { 0 } else { bytes as u64 });
                    return Ok(bytes);
                }
                self.rest.end
            }
        };
        self.from.insert(cached.below.open(self.object, start..end)?.take(end - start)).read(into)
    }
}

impl Read for Part<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() || self.rest.is_empty() {
            return Ok(0);
        }
        let bytes = match &mut self.from {
            Some(from) if from.limit() > 0 => from.read(into)?,
            _ => self.next(into)?,
        };
        if bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.rest.start += bytes as u64;
        Ok(bytes)
    }
}
