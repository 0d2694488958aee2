//! A store whose bytes are kept on disk, in pages.

use super::{
    disk::SMALL,
    folder::Folder,
    layout::{Layout, PAGE, on_disk},
    pages::Pages,
    room::Room,
    set::Id,
};
use crate::{
    files,
    store::{
        Object, Store,
        stop::{LOOK, Stop},
    },
    traffic::Traffic,
};
use parking_lot::{Condvar, Mutex, RwLock};
use std::{
    collections::BTreeSet,
    io::{self, Read},
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// The most pages of one request. Who waits for the last of them waits for all.
const RUN: usize = 16;
/// The most pages that are looked for at once, where they have no place.
const STEP: usize = 1024;

/// A store, with a cache above it. Its threads fetch each page once. Others that have the same objects open find the page when
/// it has been written.
#[derive(Debug)]
pub(crate) struct Cached {
    path: PathBuf,
    folder: Folder,
    pages: Pages,
    room: Mutex<Room>,
    /// The pages that threads of this reader are fetching.
    coming: Mutex<BTreeSet<u64>>,
    came: Condvar,
    /// Whether the disk has failed.
    pub(super) is_off: AtomicBool,
    below: Arc<dyn Store>,
    traffic: Arc<Traffic>,
}

/// Where the next bytes of a part are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// This many are in the cache. Whether they have just been fetched.
    Here { bytes: u64, is_fresh: bool },
    /// This many have no place.
    Below(u64),
}

/// Pages that this thread fetches. Those that are left when it is dropped can be fetched by others.
struct Flight<'a> {
    cached: &'a Cached,
    left: Range<u64>,
    /// The bytes that have a place.
    bytes: u64,
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.cached.room.lock().done(self.bytes);
        self.cached.landed(self.left.clone());
    }
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
            path: path.into(),
            folder,
            pages: Pages { layout, set, known: RwLock::default() },
            room: Mutex::new(Room::new(limit)),
            coming: Mutex::default(),
            came: Condvar::new(),
            is_off: AtomicBool::new(false),
            below,
            traffic,
        })
    }

    /// Finds the next bytes of a part that is not empty, and fetches them if they get a place.
    pub(super) fn find(&self, object: usize, part: &Range<u64>) -> io::Result<Next> {
        let layout = &self.pages.layout;
        let pages = layout.of(object, part);
        let bytes = |last: u64| layout.part(object, last).end.min(part.end) - part.start;
        // What lies beyond the object fails below.
        while part.end <= layout.bytes(object) && !self.is_off.load(Relaxed) {
            match self.on_disk(self.pages.check(object, pages.start)) {
                Some(true) => return Ok(Next::Here { bytes: bytes(pages.start), is_fresh: false }),
                Some(false) if !Stop::default().is_set() => {}
                _ => break, // a thread that has to stop does not wait here
            }
            let Some(flight) = self.begin(&pages) else { continue };
            match self.fetch(object, flight)? {
                Some(last) => return Ok(Next::Here { bytes: bytes(last), is_fresh: true }),
                None if self.is_off.load(Relaxed) => break,
                None => {
                    let missing = pages.clone().take(STEP).take_while(|page| !self.pages.is_there(*page)).last();
                    return Ok(Next::Below(bytes(missing.unwrap_or(pages.start))));
                }
            }
        }
        Ok(Next::Below(part.end - part.start))
    }

    /// Notes that this thread fetches the first of these pages, and those behind it that are missing too. If another thread
    /// fetches it, this one waits a little, and gets none.
    fn begin(&self, pages: &Range<u64>) -> Option<Flight<'_>> {
        let mut coming = self.coming.lock();
        if coming.contains(&pages.start) {
            self.came.wait_for(&mut coming, LOOK);
            return None;
        }
        let is_missing = |page: &u64| !coming.contains(page) && !self.pages.is_there(*page);
        let end = pages.clone().take(RUN).take_while(is_missing).last()? + 1;
        coming.extend(pages.start..end);
        Some(Flight { cached: self, left: pages.start..end, bytes: 0 })
    }

    fn landed(&self, pages: Range<u64>) {
        let mut coming = self.coming.lock();
        pages.for_each(|page| _ = coming.remove(&page));
        self.came.notify_all();
    }

    /// Fetches as many pages by one request as get a place, from the first one on. Returns the last one that has come.
    fn fetch(&self, object: usize, mut flight: Flight<'_>) -> io::Result<Option<u64>> {
        let part = |page| self.pages.layout.part(object, page);
        let (first, mut end) = (flight.left.start, flight.left.start);
        while end < flight.left.end {
            let bytes = on_disk(part(end).end - part(end).start);
            let taken = self.room.lock().take(bytes, || self.folder.held());
            if self.on_disk(taken) != Some(true) {
                break;
            }
            (end, flight.bytes) = (end + 1, flight.bytes + bytes);
        }
        if end == first {
            return Ok(None);
        }
        let all = part(first).start..part(end - 1).end;
        let mut buffer = vec![0; (all.end - all.start).min(PAGE) as usize];
        let mut from = self.below.open(object, all)?;
        for page in first..end {
            let bytes = &mut buffer[..(part(page).end - part(page).start) as usize];
            match from.read_exact(bytes) {
                Err(_) if page > first => break, // if it is not over, the next request tells it
                read => read?,
            }
            if self.on_disk(self.pages.write(page, bytes)).is_none() {
                break;
            }
            flight.left.start = page + 1;
            self.landed(page..page + 1);
        }
        Ok((flight.left.start > first).then(|| flight.left.start - 1))
    }

    /// A disk that fails turns the cache off. Too many open files are no fault of the disk.
    fn on_disk<T>(&self, done: io::Result<T>) -> Option<T> {
        let failed = |error: &io::Error| {
            if !files::are_too_many(error) && !self.is_off.swap(true, Relaxed) {
                let folder = self.path.display();
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
        Ok(Box::new(Part { cached: self, object, fresh: part.start, rest: part, from: None }))
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
    /// Reads what is in the cache. `None` if what comes next is asked for below.
    fn here(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let start = self.rest.start;
        let below = match self.cached.find(self.object, &self.rest)? {
            Next::Here { bytes, is_fresh } => {
                if is_fresh {
                    self.fresh = start + bytes;
                }
                let now = bytes.min(into.len() as u64) as usize;
                let read = self.cached.pages.read(self.object, start, &mut into[..now]);
                if let Some(bytes) = self.cached.on_disk(read) {
                    self.cached.traffic.cached((start + bytes as u64).saturating_sub(self.fresh.max(start)));
                    return Ok(Some(bytes));
                }
                self.rest.end - start
            }
            Next::Below(bytes) => bytes,
        };
        self.from = Some(self.cached.below.open(self.object, start..start + below)?.take(below));
        Ok(None)
    }
}

impl Read for Part<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() || self.rest.is_empty() {
            return Ok(0);
        }
        let bytes = match &mut self.from {
            Some(from) if from.limit() > 0 => from.read(into)?,
            _ => match self.here(into)? {
                Some(bytes) => bytes,
                None => self.from.as_mut().map_or(Ok(0), |from| from.read(into))?,
            },
        };
        if bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.rest.start += bytes as u64;
        Ok(bytes)
    }
}
