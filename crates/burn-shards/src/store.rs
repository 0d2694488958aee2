//! Where the bytes of shards come from. A store knows no format.

#[cfg(feature = "remote")]
pub(crate) mod ahead;
#[cfg_attr(not(feature = "remote"), expect(dead_code, reason = "no server asks to wait"))]
pub(crate) mod busy;
#[cfg(any(feature = "mds", feature = "remote"))]
pub(crate) mod cache;
#[cfg(feature = "http")]
mod client;
#[cfg(feature = "cloud")]
mod cloud;
#[cfg(feature = "remote")]
mod far;
#[cfg(not(feature = "remote"))]
#[path = "store/near.rs"]
mod far;
#[cfg(feature = "remote")]
pub(crate) mod fetching;
mod grow;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod hub;
mod local;
#[cfg(any(feature = "http", feature = "cloud"))]
mod lookups;
pub(crate) mod options;
pub(crate) mod pipe;
#[cfg(any(feature = "http", feature = "cloud"))]
mod proxies;
pub(crate) mod reader;
#[cfg(feature = "remote")]
mod remote;
#[cfg(any(feature = "http", feature = "cloud"))]
mod retry_after;
#[cfg(feature = "remote")]
pub(crate) mod steady;
#[cfg(feature = "remote")]
mod stop;
#[cfg(any(feature = "http", feature = "cloud"))]
mod tls;
#[cfg(feature = "remote")]
pub(crate) mod traffic;
pub(crate) mod url;
#[cfg(any(feature = "http", feature = "cloud"))]
mod waits;
#[cfg(feature = "remote")]
mod wild;

use crate::error::DataError;
#[cfg(feature = "remote")]
use ahead::ReadAhead;
#[cfg(all(test, any(feature = "http", feature = "cloud")))]
use burn_pinned_made::server;
#[cfg(all(feature = "http", feature = "parquet"))]
pub(crate) use far::converted;
pub(crate) use far::{expand, pin};
pub(crate) use grow::BELIEVED_BYTES;
pub(crate) use local::read_at;
use options::{LARGEST_SAMPLE, Options};
use std::{
    fmt,
    io::{self, Read},
    ops::Range,
    path::PathBuf,
    sync::Arc,
};
#[cfg(feature = "remote")]
use traffic::Traffic;
use url::url;

/// Reads parts of objects. The number of an object is its index in the list that the store was made from.
pub(crate) trait Store: Send + Sync + fmt::Debug {
    /// Opens a part of an object. The reader reads its bytes on the reading thread. If the object is too short or cannot be read, the
    /// reader returns an error, and never ends early.
    fn open(&self, object: usize, part: Range<u64>) -> io::Result<Box<dyn Read + Send + '_>>;

    /// Fills `into` with the bytes of an object from `start` on, on the calling thread.
    ///
    /// # Errors
    /// If the object is too short, has changed, or cannot be read. For a changed local file the error is [`ObjectChange`]. A remote store
    /// says it in its `StoreError`.
    fn read(&self, object: usize, start: u64, into: &mut [u8]) -> io::Result<()> {
        self.open(object, start..start + into.len() as u64)?.read_exact(into)
    }

    /// Whether the bytes of a part are on this machine, so that fetching them ahead is not worthwhile.
    #[cfg(feature = "remote")]
    fn is_near(&self, _object: usize, _part: &Range<u64>) -> bool {
        false
    }

    /// A number that identifies this object with these bytes, however it may be replaced. For a file it is a hash of the inode number and
    /// of the `ctime`, which no program can set. 0 if there is no such number.
    fn identity(&self, _object: usize) -> u64 {
        0
    }

    /// Reads a small file of the same name with another extension. `None` if there is none, or one that is older.
    fn beside(&self, _object: usize, _extension: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }
}

/// The object has changed since the data set was opened. The inner error of an [`io::Error`].
#[derive(Debug, thiserror::Error)]
#[error("it has changed")]
pub(crate) struct ObjectChange;

fn is_changed(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<ObjectChange>())
}

/// One file or object as it was when the data set was opened.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    /// Its path or URL, for people.
    pub(crate) name: Arc<str>,
    pub(crate) bytes: u64,
    /// Changes when the object changes: the time of its last change.
    pub(crate) tag: u64,
}

/// The objects of a data set, in order, and the store that has them.
#[derive(Debug, Clone)]
pub(crate) struct Objects {
    list: Arc<[Object]>,
    store: Arc<dyn Store>,
    /// Where indices are saved: the folder of the first file, or for remote objects a folder of the user.
    pub(crate) folder: Option<PathBuf>,
    /// Whether `folder` is in the user's cache, where old indices are removed.
    pub(crate) is_own: bool,
    /// Whether a tag identifies the object's bytes, and not just the time of a change.
    pub(crate) is_exact: bool,
    /// The most bytes that a sample may have.
    largest: u64,
    /// Fetches ahead. `None` for local files, and if the option `read_ahead` is 0.
    #[cfg(feature = "remote")]
    pub(crate) ahead: Option<Arc<ReadAhead>>,
    /// Counts the bytes from a remote store. `None` for local files.
    #[cfg(feature = "remote")]
    pub(crate) traffic: Option<Arc<Traffic>>,
}

impl Objects {
    /// Gets the sizes and versions of files or objects.
    pub(crate) fn at(paths: Vec<PathBuf>, options: &Options) -> Result<Self, DataError> {
        let urls: Vec<String> = paths.iter().filter_map(|path| url(path)).map(String::from).collect();
        let objects = match urls.len() {
            0 => Self::local(paths)?,
            all if all == paths.len() => far::open(urls, options)?,
            _ => {
                return Err(DataError::option(
                    "paths",
                    "some are URLs, and others are files",
                    "open them apart, and chain the rows with Burn's `ComposedDataset`",
                ));
            }
        };
        Ok(Self { largest: options.largest_sample, ..objects })
    }

    /// Gets the sizes and times of local files.
    pub(crate) fn local(paths: Vec<PathBuf>) -> Result<Self, DataError> {
        let folder = paths.first().and_then(|path| path.parent()).map(Into::into);
        let (list, store) = local::open(paths)?;
        Ok(Self::new(list, Arc::new(store), folder))
    }

    /// The same files under other names, with another folder for indices.
    #[cfg(feature = "http")]
    fn named(self, names: &[String], folder: Option<PathBuf>) -> Self {
        let named = |(object, name): (&Object, &String)| Object { name: name.as_str().into(), ..object.clone() };
        Self { list: self.list.iter().zip(names).map(named).collect(), folder, is_own: true, ..self }
    }

    /// The same objects, without reading ahead.
    pub(crate) fn without_ahead(&self) -> Self {
        Self {
            #[cfg(feature = "remote")]
            ahead: None,
            ..self.clone()
        }
    }

    /// Objects of a test's store.
    #[cfg(all(test, any(feature = "parquet", feature = "remote")))]
    pub(crate) fn of(list: Vec<Object>, store: Arc<dyn Store>) -> Self {
        Self::new(list, store, None)
    }

    fn new(list: Vec<Object>, store: Arc<dyn Store>, folder: Option<PathBuf>) -> Self {
        Self {
            list: list.into(),
            store,
            folder,
            is_own: false,
            is_exact: false,
            largest: LARGEST_SAMPLE,
            #[cfg(feature = "remote")]
            ahead: None,
            #[cfg(feature = "remote")]
            traffic: None,
        }
    }

    /// Whether each read is a request, so that a small number of long reads is better.
    pub(crate) fn is_far(&self) -> bool {
        #[cfg(feature = "remote")]
        return self.traffic.is_some();
        #[cfg(not(feature = "remote"))]
        false
    }

    /// Opens an object from its first byte to its last.
    #[cfg(any(test, feature = "mds"))]
    pub(crate) fn whole(&self, object: usize) -> Result<Box<dyn Read + Send + '_>, DataError> {
        let Object { name, bytes, .. } = &self.list[object];
        self.store.open(object, 0..*bytes).map_err(|source| match is_changed(&source) {
            true => DataError::Changed { object: (**name).into() },
            false => DataError::Open { path: (**name).into(), source },
        })
    }

    /// Reads a small file of the same name with another extension. `None` if there is none, or one that is older.
    pub(crate) fn beside(&self, object: usize, extension: &str) -> Result<Option<Vec<u8>>, DataError> {
        let failed = |source| DataError::Open { path: self.name(object).into(), source };
        self.store.beside(object, extension).map_err(failed)
    }

    /// [`Store::identity`] of each object.
    pub(crate) fn identities(&self) -> Vec<u64> {
        let identity = |object: usize| match self.is_exact {
            true => self.list[object].tag.max(1),
            false => self.store.identity(object),
        };
        (0..self.len()).map(identity).collect()
    }

    pub(crate) fn list(&self) -> &[Object] {
        &self.list
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn name(&self, object: usize) -> &str {
        &self.list[object].name
    }

    pub(crate) fn bytes(&self, object: usize) -> u64 {
        self.list[object].bytes
    }

    /// Whether a sample may have this number of bytes of an object.
    ///
    /// # Errors
    /// If they are more than the option `largest_sample` allows.
    pub(crate) fn allow(&self, object: usize, bytes: u64) -> Result<(), DataError> {
        self.within(object, bytes, self.largest)
    }

    /// Whether one read may have this number of bytes of an object. A read may span many samples.
    #[cfg(feature = "remote")]
    pub(crate) fn allow_read(&self, object: usize, bytes: u64) -> Result<(), DataError> {
        self.within(object, bytes, self.largest.max(LARGEST_SAMPLE))
    }

    fn within(&self, object: usize, bytes: u64, limit: u64) -> Result<(), DataError> {
        if bytes <= limit {
            return Ok(());
        }
        Err(DataError::TooLarge { object: self.name(object).into(), key: None, bytes, limit })
    }

    /// Reads a part that has this number of samples.
    pub(crate) fn samples(&self, object: usize, range: Range<u64>, samples: u64) -> Result<Vec<u8>, DataError> {
        self.read_part(object, range, self.largest.saturating_mul(samples.max(1)))
    }

    /// Reads a part of an object that is not a sample, such as an index or a header.
    pub(crate) fn read(&self, object: usize, range: Range<u64>) -> Result<Vec<u8>, DataError> {
        self.read_part(object, range, self.largest.max(LARGEST_SAMPLE))
    }

    /// If a part ends beyond the object, or is larger than the limit, it is an error before memory is allocated for it.
    fn read_part(&self, object: usize, range: Range<u64>, limit: u64) -> Result<Vec<u8>, DataError> {
        let Object { name, bytes, .. } = &self.list[object];
        let failed = |source: io::Error| match is_changed(&source) {
            true => DataError::Changed { object: (**name).into() },
            false => DataError::Read { object: (**name).into(), key: None, range: range.clone(), source },
        };
        if range.start > range.end || range.end > *bytes {
            return Err(failed(io::Error::new(io::ErrorKind::UnexpectedEof, format!("it has {bytes} bytes"))));
        }
        self.within(object, range.end - range.start, limit)?;
        #[cfg(feature = "remote")]
        if let Some(traffic) = &self.traffic {
            traffic.count(|sums| sums.used += range.end - range.start);
        }
        #[cfg(feature = "remote")]
        if let Some(ahead) = &self.ahead {
            return ahead.read(object, range.clone()).map_err(failed);
        }
        grow::whole(&*self.store, object, range.clone()).map_err(failed)
    }

    /// Notes that a row was read.
    pub(crate) fn done(&self, row: usize) {
        #[cfg(feature = "remote")]
        if let Some(ahead) = &self.ahead {
            ahead.row_read(row);
        }
        #[cfg(not(feature = "remote"))]
        let _ = row;
    }
}
