//! The open files of shards of all data sets of the process.
//!
//! A read takes only the lock of its own file. The pool evicts by the clock algorithm: a file that was used since the last round is skipped
//! once.

use crate::system::locks::Mutex;
use std::{
    collections::VecDeque,
    fs::File,
    io,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// The most files that stay open, however high the process's limit.
const MOST_OPEN: u64 = 4096;
/// The assumed limit of open files if the system reports none.
#[cfg(not(unix))]
const USUAL_LIMIT: u64 = 512;

/// The places whose files were opened. Their data sets, and so the files, may be gone.
static POOL: Mutex<VecDeque<Weak<PooledFile>>> = Mutex::new(VecDeque::new());

/// The place of a file that may be open.
#[derive(Debug, Default)]
pub(crate) struct PooledFile {
    file: Mutex<Option<Arc<File>>>,
    /// Whether it was used since the pool last checked it.
    is_used: AtomicBool,
}

impl PooledFile {
    /// Returns the file, which stays open while the caller holds it. If it is not open, `open` opens it.
    pub(crate) fn opened(self: &Arc<Self>, open: impl FnOnce() -> io::Result<File>) -> io::Result<Arc<File>> {
        self.opened_in(&POOL, half_of_limit, open)
    }

    fn opened_in(
        self: &Arc<Self>,
        pool: &Mutex<VecDeque<Weak<PooledFile>>>,
        most: impl FnOnce() -> usize,
        open: impl FnOnce() -> io::Result<File>,
    ) -> io::Result<Arc<File>> {
        let mut place = self.file.lock();
        if let Some(file) = &*place {
            self.is_used.store(true, Relaxed);
            return Ok(Arc::clone(file));
        }
        #[cfg(feature = "images")]
        burn_augment::for_loader::close_by(close_one);
        leave_room(pool, most());
        let file = Arc::new(open()?);
        *place = Some(Arc::clone(&file));
        pool.lock().push_back(Arc::downgrade(self));
        Ok(file)
    }
}

/// How many files the pool may have.
fn half_of_limit() -> usize {
    #[cfg(unix)]
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    #[cfg(not(unix))]
    let limit = USUAL_LIMIT;
    (limit / 2).clamp(1, MOST_OPEN) as usize
}

/// Closes a file of the pool that is not being read. False if there is none.
pub(super) fn close_one() -> bool {
    take_one(&POOL).is_some()
}

/// Closes files until another one may be opened. Files that are being read stay open.
fn leave_room(pool: &Mutex<VecDeque<Weak<PooledFile>>>, most: usize) {
    loop {
        let is_full = pool.lock().len() >= most;
        if !is_full || take_one(pool).is_none() {
            return;
        }
    }
}

/// Takes a file that is not being read out of the pool.
fn take_one(pool: &Mutex<VecDeque<Weak<PooledFile>>>) -> Option<Arc<File>> {
    let mut places = pool.lock();
    // In the first round every file may be skipped, because it was used.
    for _ in 0..2 * places.len() {
        let place = places.pop_front()?;
        let Some(kept) = place.upgrade() else { continue };
        // The file is cloned only under this lock.
        if let Some(mut file) = kept.file.try_lock()
            && file.as_ref().is_some_and(|file| Arc::strong_count(file) == 1)
            && !kept.is_used.swap(false, Relaxed)
        {
            return file.take();
        }
        places.push_back(place);
    }
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::{
        fs,
        os::{fd::AsRawFd, unix::fs::FileExt},
        path::PathBuf,
        thread,
    };

    /// Files that hold their numbers, and a pool of their own.
    struct Files {
        folder: tempfile::TempDir,
        kept: Vec<Arc<PooledFile>>,
        pool: Mutex<VecDeque<Weak<PooledFile>>>,
        most: usize,
    }

    impl Files {
        fn new(count: usize, most: usize) -> Self {
            let folder = tempfile::tempdir().unwrap();
            (0..count).for_each(|n| fs::write(folder.path().join(n.to_string()), n.to_string()).unwrap());
            Self { folder, kept: (0..count).map(|_| Arc::default()).collect(), pool: Mutex::default(), most }
        }

        fn file(&self, n: usize) -> Arc<File> {
            self.kept[n].opened_in(&self.pool, || self.most, || File::open(self.path(n))).unwrap()
        }

        fn path(&self, n: usize) -> PathBuf {
            self.folder.path().join(n.to_string())
        }

        fn open(&self) -> Vec<usize> {
            (0..self.kept.len()).filter(|n| self.kept[*n].file.lock().is_some()).collect()
        }
    }

    #[test]
    fn files_that_were_not_used_go_first() {
        let files = Files::new(8, 4);
        (0..4).for_each(|n| drop(files.file(n)));
        files.file(0);
        files.file(2);
        files.file(4);
        assert_eq!(files.open(), [0, 2, 3, 4]);
        files.file(5);
        assert_eq!(files.open(), [0, 2, 4, 5]);
        (6..8).for_each(|n| drop(files.file(n)));
        assert_eq!(files.open().len(), 4);
    }

    #[test]
    fn a_file_that_is_being_read_stays_open() {
        let files = Files::new(8, 2);
        let held: Vec<_> = (0..3).map(|n| files.file(n)).collect();
        assert_eq!(files.open(), [0, 1, 2], "more than there should be, as all are in use");
        files.file(3);
        let again = files.file(1);
        assert_eq!(again.as_raw_fd(), held[1].as_raw_fd());
        drop((held, again));
        files.file(4);
        assert_eq!(files.open().len(), 2);
        assert!(files.open().contains(&4));
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_not_kept() {
        let files = Files::new(1, 2);
        assert!(files.kept[0].opened_in(&files.pool, || 2, || Err(io::Error::other("no"))).is_err());
        assert!(files.open().is_empty() && files.pool.lock().is_empty());
    }

    #[test]
    fn files_of_a_data_set_that_is_gone_take_no_room() {
        let mut files = Files::new(8, 4);
        (0..4).for_each(|n| drop(files.file(n)));
        files.kept.drain(..4);
        assert!(take_one(&files.pool).is_none());
        assert!(files.pool.lock().is_empty());
    }

    #[test]
    fn many_threads_read_what_each_file_holds() {
        let files = Files::new(50, 5);
        thread::scope(|scope| {
            for thread in 0..8 {
                let files = &files;
                scope.spawn(move || {
                    for step in 0..2000 {
                        let n = (step * 7 + thread * 13) % 50;
                        let mut byte = [0; 2];
                        let bytes = files.file(n).read_at(&mut byte, 0).unwrap();
                        assert_eq!(byte[..bytes], *n.to_string().as_bytes());
                    }
                });
            }
        });
        assert!(files.open().len() <= 5 + 8);
        assert_eq!(files.open().len(), files.pool.lock().len());
    }
}
