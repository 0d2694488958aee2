//! Opens rows of any format.

use crate::{format::Format, remote::Remote, size};
use burn_pinned::{BoxError, data::Rows};
use clap::Args;
use serde::de::DeserializeOwned;
use std::path::PathBuf;

/// Which files, and how they are opened.
#[derive(Args)]
pub struct Open {
    /// Files, globs, lists of braces (`train-{000..146}.tar`) or URLs (feature `http`); for MDS and images a folder
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// The format. Without it, the names tell
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// The folder for the index. Without it, the index lies beside the first file, and that of URLs in the user's cache
    #[arg(long, value_name = "FOLDER")]
    pub index_dir: Option<PathBuf>,
    /// The folder that compressed MDS shards are decompressed to, and where parts of URLs are kept
    #[arg(long, value_name = "FOLDER")]
    cache: Option<PathBuf>,
    /// The most bytes of that folder
    #[arg(long, value_parser = size::bytes, default_value = "100GB")]
    cache_bytes: u64,
    /// The most bytes of decoded Parquet pages in memory
    #[arg(long, value_parser = size::bytes, default_value = "512MB")]
    memory: u64,
    #[command(flatten)]
    pub remote: Remote,
}

impl Open {
    /// Files of one format, with all else as it is by default.
    pub fn of(paths: Vec<PathBuf>, format: Format) -> Self {
        let (index_dir, cache, remote) = (None, None, Remote::default());
        Self { paths, format: Some(format), index_dir, cache, cache_bytes: 0, memory: 512_000_000, remote }
    }

    pub fn format(&self) -> Result<Format, BoxError> {
        self.format.map_or_else(|| Format::guess(&self.paths), Ok)
    }

    /// The folder of a format whose data set is one folder.
    pub fn folder(&self) -> Result<&PathBuf, BoxError> {
        match self.paths.as_slice() {
            [folder] => Ok(folder),
            _ => Err("this format is one folder: name one path".into()),
        }
    }

    /// Opens the files. `columns` are the names of a tuple's values; other row types have names of their own, and `optional`
    /// are those of them that may be missing.
    pub fn rows<T: DeserializeOwned>(
        &self,
        columns: &[String],
        optional: &[&'static str],
    ) -> Result<Rows<T>, BoxError> {
        let paths = self.paths.clone();
        let mut builder = match self.format()? {
            #[cfg(feature = "parquet")]
            Format::Parquet => Rows::parquet(paths),
            #[cfg(not(feature = "parquet"))]
            Format::Parquet => return Err("Parquet needs a build with the feature `parquet`".into()),
            Format::Tar => Rows::tar(paths),
            Format::Mds => Rows::mds(self.folder()?),
            Format::Jsonl => Rows::jsonl(paths),
            Format::Tokens | Format::Folder => return Err("token files and folders of images have no rows".into()),
        };
        builder = self.remote.set(builder.memory(self.memory).optional(optional.iter().copied()));
        if !columns.is_empty() {
            builder = builder.columns(columns.iter().map(String::as_str));
        }
        if let Some(folder) = &self.index_dir {
            builder = builder.index_dir(folder);
        }
        if let Some(folder) = &self.cache {
            builder = builder.cache(folder, self.cache_bytes);
        }
        Ok(builder.open()?)
    }
}
