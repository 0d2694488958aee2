//! Where the bytes of shards come from. A store knows no format.

#[cfg(feature = "http")]
mod client;
#[cfg(feature = "cloud")]
mod cloud;
#[cfg(feature = "remote")]
mod far;
#[cfg(not(feature = "remote"))]
#[path = "store/near.rs"]
mod far;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod hub;
mod local;
#[cfg(feature = "remote")]
mod remote;
#[cfg(any(feature = "http", feature = "cloud"))]
mod roots;
#[cfg(all(test, any(feature = "http", feature = "cloud")))]
#[allow(dead_code)] // the tests of the data formats use the rest
#[path = "../../tests/data/server.rs"]
mod server;
#[cfg(feature = "remote")]
mod steady;
#[cfg(any(feature = "http", feature = "cloud"))]
mod wild;

use super::{error::DataError, source::Options, url::url};
pub(crate) use far::{expand, pin};
#[cfg(all(feature = "http", feature = "parquet"))]
pub(crate) use hub::converted;
use std::{
    fmt,
    io::{self, Read},
    ops::Range,
    path::PathBuf,
    sync::Arc,
};

/// Reads parts of objects. An object has a number: its place in the list that the store was made of.
pub(crate) trait Store: Send + Sync + fmt::Debug {
    /// Opens a part of an object. Its bytes come from the reader, on the thread that reads. The reader fails if the object
    /// ends before, or cannot be read: it does not end early.
    fn open(&self, object: usize, part: Range<u64>) -> io::Result<Box<dyn Read + Send + '_>>;

    /// Fills `into` with the bytes of an object from `start` on, on the calling thread.
    ///
    /// # Errors
    /// If the object ends before, or cannot be read.
    fn read(&self, object: usize, start: u64, into: &mut [u8]) -> io::Result<()> {
        self.open(object, start..start + into.len() as u64)?.read_exact(into)
    }

    /// Reads a small file of the same name with another extension. `None` if there is none, or one that is older.
    fn beside(&self, _object: usize, _extension: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }
}

/// One file or object as it was when the data set was opened.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    /// Its path or URL, for people.
    pub(crate) name: Arc<str>,
    pub(crate) bytes: u64,
    /// Changes when the object does: the time of its last change.
    pub(crate) tag: u64,
}

/// The objects of a data set, in order, and the store that has them.
#[derive(Debug, Clone)]
pub(crate) struct Objects {
    list: Arc<[Object]>,
    store: Arc<dyn Store>,
    /// Where indices are saved: the folder of the first file, or for objects one of the user's.
    pub(crate) folder: Option<PathBuf>,
    /// Whether each read is a request.
    is_far: bool,
}

impl Objects {
    /// Looks at files or objects.
    pub(crate) fn at(paths: Vec<PathBuf>, options: &Options) -> Result<Self, DataError> {
        let urls: Vec<String> = paths.iter().filter_map(|path| url(path)).map(String::from).collect();
        match urls.len() {
            0 => Self::local(paths),
            all if all == paths.len() => far::open(urls, options),
            _ => Err(DataError::Option {
                option: "paths",
                problem: "some are URLs, and others are files".into(),
                advice: "open them apart, and chain the rows with Burn's `ComposedDataset`".into(),
            }),
        }
    }

    /// Looks at local files.
    pub(crate) fn local(paths: Vec<PathBuf>) -> Result<Self, DataError> {
        let folder = paths.first().and_then(|path| path.parent()).map(Into::into);
        let (list, store) = local::open(paths)?;
        Ok(Self { list: list.into(), store: Arc::new(store), folder, is_far: false })
    }

    /// The first object alone.
    #[cfg(feature = "parquet")]
    pub(crate) fn first(&self) -> Self {
        Self { list: self.list[..1].into(), ..self.clone() }
    }

    /// The same files under other names, with another folder for indices.
    #[cfg(feature = "http")]
    fn named(self, names: &[String], folder: Option<PathBuf>) -> Self {
        let named = |(object, name): (&Object, &String)| Object { name: name.as_str().into(), ..object.clone() };
        Self { list: self.list.iter().zip(names).map(named).collect(), folder, ..self }
    }

    /// Objects of a store that a test has made.
    #[cfg(all(test, feature = "parquet"))]
    pub(crate) fn of(list: Vec<Object>, store: Arc<dyn Store>) -> Self {
        Self { list: list.into(), store, folder: None, is_far: false }
    }

    /// Whether each read is a request, so that few and long ones are better.
    pub(crate) fn is_far(&self) -> bool {
        self.is_far
    }

    /// Opens an object from its first byte to its last.
    pub(crate) fn whole(&self, object: usize) -> Result<Box<dyn Read + Send + '_>, DataError> {
        let Object { name, bytes, .. } = &self.list[object];
        self.store.open(object, 0..*bytes).map_err(|source| DataError::Open { path: (**name).into(), source })
    }

    /// Reads a small file of the same name with another extension. `None` if there is none, or one that is older.
    pub(crate) fn beside(&self, object: usize, extension: &str) -> Result<Option<Vec<u8>>, DataError> {
        let failed = |source| DataError::Open { path: self.name(object).into(), source };
        self.store.beside(object, extension).map_err(failed)
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

    /// Reads a part of an object. A part that lies beyond the object's size is an error before memory is allocated for it.
    pub(crate) fn read(&self, object: usize, range: Range<u64>) -> Result<Vec<u8>, DataError> {
        let Object { name, bytes, .. } = &self.list[object];
        let failed = |source| DataError::Read { object: (**name).into(), range: range.clone(), source };
        let length = range.end.checked_sub(range.start).filter(|_| range.end <= *bytes);
        let Some(length) = length.and_then(|length| usize::try_from(length).ok()) else {
            return Err(failed(io::Error::new(io::ErrorKind::UnexpectedEof, format!("it has {bytes} bytes"))));
        };
        let mut part = vec![0; length];
        self.store.read(object, range.start, &mut part).map_err(failed)?;
        Ok(part)
    }
}
