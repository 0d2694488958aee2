//! The pages of a set: which are there, who fetches one, what one holds.

use super::{
    bits::Bits,
    disk::SMALL,
    folder::{Account, Folder, Refusal},
    layout::{Layout, PAGE},
    ours,
    set::{DATA, Id, READER, Set, TABLE, take},
    table::{ENTRY, Entry, Table},
};
use crate::store::{Object, Store};
use crc32fast::hash;
use std::{
    fs::File,
    io::{self, Read},
    ops::Range,
    os::unix::fs::FileExt,
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

/// The most pages of one request. Who waits for the last of them waits for all.
pub(super) const RUN: u64 = 16;
/// Pages beyond have no place: some file systems end a file at 16 TiB.
const MOST: u64 = 15 << 20;
/// As long as a store goes on trying without a byte.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most entries of the table in memory at once.
const STEP: u64 = 1024;
/// How often the table is looked at meanwhile, and how often in a row before the other reader is looked at too.
const PAUSE: Duration = Duration::from_millis(2);
const LOOKS: u32 = 50;

/// The pages of an open set.
#[derive(Debug)]
pub(super) struct Pages {
    layout: Layout,
    pub(super) folder: Folder,
    set: Set,
    data: File,
    table: Table,
    /// The number of this reader, and its lock.
    me: u32,
    _lock: File,
    /// The pages that are good, as this process has seen.
    known: Bits,
    /// The pages that others were fetching when the patience ran out. They are not waited for again.
    late: Bits,
    /// Whether a page got no place. No place gets free while the set is open.
    is_full: AtomicBool,
    /// How long a page is waited for that another reader fetches. Then it is read from below.
    pub(super) patience: Duration,
}

/// Where the next bytes of a part are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// So many are in the data file. Whether they have just been fetched.
    Here { bytes: u64, is_fresh: bool },
    /// So many have no place, or are not waited for any longer.
    Below(u64),
}

/// What went wrong: the store below, or the disk.
#[derive(Debug)]
pub(super) enum Fault {
    Below(io::Error),
    Disk(io::Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

/// The answer to a claim. It is about the first pages.
enum Claim<'a> {
    Mine(Mine<'a>),
    /// They are there meanwhile.
    There,
    /// Another reader fetches them.
    Theirs,
    /// There is no room.
    Refused,
}

/// Pages that this thread fetches. Those that are left when it is dropped are free for others.
struct Mine<'a> {
    table: &'a Table,
    left: Range<u64>,
}

impl Drop for Mine<'_> {
    fn drop(&mut self) {
        if !self.left.is_empty() {
            let _ = self.table.write(&self.left, Entry::Reserved); // on a disk that fails, nobody asks any more
        }
    }
}

impl Pages {
    pub(super) fn open(path: &Path, limit: u64, objects: &[Object]) -> Result<Self, Refusal> {
        let folder = Folder::open(path, limit)?;
        Self::open_in(folder, Layout::new(objects), Id::of("pages", objects)).map_err(|error| Refusal::of(path, error))
    }

    fn open_in(folder: Folder, layout: Layout, id: Id) -> io::Result<Self> {
        let all = layout.pages().min(MOST);
        let size = all * ENTRY;
        let mut account = folder.lock()?;
        let (set, is_alone) = account.open(id)?;
        let file = |name| ours::open(&set.folder().join(name));
        let mut table = Table(file(TABLE)?);
        if table.0.metadata()?.len() != size || (is_alone && set.reserved()? > folder.limit()) {
            if !is_alone {
                return Err(io::Error::other("its table is damaged, and another process uses it"));
            }
            set.clear()?;
            table = Table(file(TABLE)?);
            table.0.set_len(size)?;
        }
        let data = file(DATA)?;
        let (me, lock) = reader(set.folder())?;
        let mut reserved = size + SMALL;
        for (page, entry) in (0..all).zip(table.read(&(0..all))?) {
            if entry == Entry::Claimed(me) {
                table.write(&(page..page + 1), Entry::Reserved)?; // by one that was killed
            }
            reserved += if entry == Entry::Empty { 0 } else { layout.on_disk(page) };
        }
        account.correct(&set, reserved)?;
        account.make_room(layout.all_on_disk().saturating_add(size + SMALL).saturating_sub(reserved))?;
        drop(account);
        Ok(Self {
            layout,
            folder,
            set,
            data,
            table,
            me,
            _lock: lock,
            known: Bits::new(all),
            late: Bits::new(all),
            is_full: AtomicBool::new(false),
            patience: PATIENCE,
        })
    }

    /// What the table says of all pages.
    #[cfg(test)]
    pub(super) fn entries(&self) -> Vec<Entry> {
        self.table.read(&(0..self.layout.pages())).unwrap()
    }

    /// Reserves pages for a reader.
    #[cfg(test)]
    pub(super) fn claim_as(&self, reader: u32, pages: Range<u64>) {
        let bytes = pages.clone().map(|page| self.layout.on_disk(page)).sum();
        self.folder.lock().unwrap().reserve(&self.set, bytes).unwrap();
        self.table.write(&pages, Entry::Claimed(reader)).unwrap();
    }

    /// Finds the next bytes of a part that is not empty, and fetches them if they get a place. If the cache is off, none are
    /// here, and nobody goes on waiting.
    pub(super) fn find(&self, object: usize, part: &Range<u64>, below: &dyn Store) -> Result<Next, Fault> {
        if part.end > self.layout.bytes(object) {
            return Ok(Next::Below(part.end - part.start)); // it fails there
        }
        let pages = self.layout.of(object, part);
        let pages = pages.start..pages.end.min(MOST);
        if pages.is_empty() {
            return Ok(Next::Below(part.end - part.start));
        }
        let bytes = |end: u64| self.layout.end(object, end - 1).min(part.end) - part.start;
        let since = Instant::now();
        loop {
            if self.folder.is_off() {
                return Ok(Next::Below(part.end - part.start));
            }
            let known = self.known_until(&pages);
            if known > pages.start {
                return Ok(Next::Here { bytes: bytes(known), is_fresh: false });
            }
            let entry = self.table.entry(pages.start)?;
            match entry {
                Entry::Good(checksum) => {
                    self.check(pages.start, checksum)?;
                    continue;
                }
                Entry::Empty if self.is_full.load(Relaxed) => {
                    return Ok(Next::Below(bytes(self.until(&pages, |_, entry| entry == Entry::Empty)?)));
                }
                _ => {}
            }
            match self.claim(pages.start..pages.end.min(pages.start + RUN))? {
                Claim::Mine(mine) => {
                    let end = self.fetch(mine, object, below)?;
                    return Ok(Next::Here { bytes: bytes(end), is_fresh: true });
                }
                Claim::There => {}
                Claim::Theirs if self.late.has(pages.start) => {
                    let is_late = |page, entry| self.late.has(page) && matches!(entry, Entry::Claimed(_));
                    return Ok(Next::Below(bytes(self.until(&pages, is_late)?)));
                }
                Claim::Theirs if since.elapsed() > self.patience => self.give_up()?,
                Claim::Theirs => self.wait(pages.start)?,
                Claim::Refused => self.is_full.store(true, Relaxed),
            }
        }
    }

    /// Fills `into` from pages that [`find`](Self::find) has found.
    pub(super) fn read(&self, object: usize, start: u64, into: &mut [u8]) -> io::Result<()> {
        self.data.read_exact_at(into, self.layout.place(object, start))
    }

    /// Whether all pages of a part are here, as this process has seen.
    pub(super) fn are_known(&self, object: usize, part: &Range<u64>) -> bool {
        let is_inside = part.end <= self.layout.bytes(object);
        is_inside && !self.folder.is_off() && self.layout.of(object, part).all(|page| self.known.has(page))
    }

    /// Where the pages end that are known from the first one on.
    fn known_until(&self, pages: &Range<u64>) -> u64 {
        pages.start + pages.clone().take(RUN as usize).take_while(|page| self.known.has(*page)).count() as u64
    }

    /// Where the pages end that are so, from the first one on, which was so.
    fn until(&self, pages: &Range<u64>, is_so: impl Fn(u64, Entry) -> bool) -> io::Result<u64> {
        let some = pages.start..pages.end.min(pages.start + STEP);
        let entries = some.clone().zip(self.table.read(&some)?);
        Ok(pages.start + (entries.take_while(|(page, entry)| is_so(*page, *entry)).count() as u64).max(1))
    }

    /// No page that is claimed now is waited for any more, so a reader that hangs costs one wait, however many it has.
    fn give_up(&self) -> io::Result<()> {
        let all = self.layout.pages().min(MOST);
        for start in (0..all).step_by(STEP as usize) {
            let some = start..all.min(start + STEP);
            let entries = some.clone().zip(self.table.read(&some)?);
            entries.filter(|(_, entry)| matches!(entry, Entry::Claimed(_))).for_each(|(page, _)| self.late.set(page));
        }
        Ok(())
    }

    /// Looks whether a page is what the table says. If not, it has to be fetched again.
    fn check(&self, page: u64, checksum: u32) -> io::Result<()> {
        let mut bytes = vec![0; self.layout.length(page) as usize];
        match self.data.read_exact_at(&mut bytes, page * PAGE) {
            Ok(()) if hash(&bytes) == checksum => {
                self.known.set(page);
                return Ok(());
            }
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
            _ => {}
        }
        let _account = self.folder.lock()?;
        if self.table.entry(page)? == Entry::Good(checksum) {
            self.table.write(&(page..page + 1), Entry::Reserved)?;
        }
        Ok(())
    }

    /// Claims as many of these pages as are missing and get a place, from the first one on.
    fn claim(&self, pages: Range<u64>) -> io::Result<Claim<'_>> {
        let mut account: Account = self.folder.lock()?;
        let (mut mine, mut more, mut end) = (pages.start..pages.start, 0, None);
        for (page, entry) in pages.clone().zip(self.table.read(&pages)?) {
            let bytes = self.layout.on_disk(page);
            match entry {
                Entry::Good(_) => end = Some(Claim::There),
                Entry::Claimed(reader) if self.is_alive(reader)? => end = Some(Claim::Theirs),
                Entry::Claimed(_) | Entry::Reserved => {}
                Entry::Empty if more + bytes <= account.room() => more += bytes,
                Entry::Empty => end = Some(Claim::Refused),
            }
            if end.is_some() {
                break;
            }
            mine.end = page + 1;
        }
        match end {
            Some(end) if mine.is_empty() => Ok(end),
            _ => {
                account.reserve(&self.set, more)?;
                self.table.write(&mine, Entry::Claimed(self.me))?;
                Ok(Claim::Mine(Mine { table: &self.table, left: mine }))
            }
        }
    }

    /// Whether a reader still goes on. Other threads of this process share its number.
    fn is_alive(&self, reader: u32) -> io::Result<bool> {
        if reader == self.me {
            return Ok(true);
        }
        match ours::existing(&self.set.folder().join(format!("{READER}{reader}"))) {
            Ok(file) => Ok(!take(&file)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Waits a little for a page that another reader fetches.
    fn wait(&self, page: u64) -> io::Result<()> {
        for _ in 0..LOOKS {
            if !matches!(self.table.entry(page)?, Entry::Claimed(_)) {
                break;
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Fetches pages of an object by one request, and returns where those end that are there.
    fn fetch(&self, mut mine: Mine<'_>, object: usize, below: &dyn Store) -> Result<u64, Fault> {
        let (first, part) = (mine.left.start, self.layout.part(object, &mine.left));
        let mut buffer = vec![0; (part.end - part.start).min(PAGE) as usize];
        let mut from = below.open(object, part).map_err(Fault::Below)?;
        for page in mine.left.clone() {
            let bytes = &mut buffer[..self.layout.length(page) as usize];
            match from.read_exact(bytes) {
                Err(_) if page > first => return Ok(page), // if it is not over, the next request tells it
                read => read.map_err(Fault::Below)?,
            }
            self.data.write_all_at(bytes, page * PAGE)?;
            self.table.write(&(page..page + 1), Entry::Good(hash(bytes)))?;
            mine.left.start = page + 1;
            self.known.set(page);
        }
        Ok(mine.left.end)
    }
}

/// Takes the lowest number that no living reader of the set has.
fn reader(folder: &Path) -> io::Result<(u32, File)> {
    let mut me = 0;
    loop {
        let file = ours::open(&folder.join(format!("{READER}{me}")))?;
        if take(&file)? {
            return Ok((me, file));
        }
        me += 1;
    }
}
