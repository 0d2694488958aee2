//! `index.json`: the shards, and the columns of their rows.

use crate::{
    error::DataError,
    source::magic::{JSON, LITDATA, is_litdata, tell},
    store::{Objects, options::Options, url::beside},
};
use serde::Deserialize;
use std::{
    collections::HashSet,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

/// The only existing version of `index.json` and of shards.
const VERSION: u64 = 2;

#[derive(Deserialize)]
struct IndexJson {
    version: u64,
    shards: Vec<ShardEntry>,
}

/// A shard. Formats other than MDS lack most fields, so these have defaults.
#[derive(Deserialize)]
struct ShardEntry {
    format: String,
    version: u64,
    samples: u64,
    raw_data: SizedFile,
    #[serde(default)]
    zip_data: Option<SizedFile>,
    #[serde(default)]
    compression: Option<String>,
    #[serde(default)]
    column_names: Vec<String>,
    #[serde(default)]
    column_encodings: Vec<String>,
    #[serde(default)]
    column_sizes: Vec<Option<u64>>,
}

/// The columns of a shard, in their order in a row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct ShardColumns {
    #[serde(rename = "column_names")]
    pub(super) names: Vec<String>,
    #[serde(rename = "column_encodings")]
    pub(super) encodings: Vec<String>,
    /// `None` means that each row has its own size.
    #[serde(rename = "column_sizes")]
    pub(super) sizes: Vec<Option<u64>>,
}

/// A shard, as described by `index.json`.
#[derive(Debug)]
pub(super) struct ListedShard {
    pub(super) rows: u64,
    /// Shared with earlier shards that have the same columns.
    pub(super) columns: Arc<ShardColumns>,
    /// The name of the `index.json`.
    pub(super) index: Arc<str>,
    pub(super) raw: SizedFile,
    /// The compressed file, and how it is compressed.
    pub(super) zip: Option<(SizedFile, String)>,
}

/// A file and its size.
#[derive(Debug, Deserialize)]
pub(super) struct SizedFile {
    /// In `index.json` only its name.
    #[serde(rename = "basename")]
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
}

/// Reads the files, and returns the shards of all of them, in order.
pub(super) fn read(files: &[PathBuf], options: &Options) -> Result<Vec<ListedShard>, DataError> {
    let mut shards: Vec<ListedShard> = Vec::new();
    let objects = Objects::at(files.to_vec(), &options.for_once())?;
    for (object, path) in files.iter().enumerate() {
        let name = objects.name(object);
        let text = objects.read(object, 0..objects.bytes(object))?;
        let index: IndexJson = serde_json::from_slice(&text).map_err(|error| match is_litdata(&text) {
            true => DataError::format(name, LITDATA.0, LITDATA.1),
            false => tell(&objects, object, Some(&JSON), DataError::damaged(name, error.to_string())),
        })?;
        supported(name, "its version", index.version == VERSION, &index.version)?;
        if index.shards.is_empty() {
            let cure = "write the samples again, or leave the folder out; if it has folders of shards, \
                        `streaming.base.util.merge_index` makes an index of them";
            return Err(DataError::format(name, "an index of no shards", cure));
        }
        for entry in index.shards {
            supported(name, "shards of the format", entry.format == "mds", &entry.format)?;
            supported(name, "shards of version", entry.version == VERSION, &entry.version)?;
            let mut listed = listed(name, path, entry)?;
            if let Some(before) = shards.last().filter(|before| before.columns == listed.columns) {
                listed.columns = Arc::clone(&before.columns);
            }
            shards.push(listed);
        }
    }
    Ok(shards)
}

fn supported(name: &str, what: &str, is: bool, value: &dyn std::fmt::Display) -> Result<(), DataError> {
    if is { Ok(()) } else { Err(DataError::unsupported(name, None, format!("{what} `{value}`"))) }
}

fn listed(name: &str, index: &Path, entry: ShardEntry) -> Result<ListedShard, DataError> {
    let (names, encodings, sizes) = (entry.column_names, entry.column_encodings, entry.column_sizes);
    let columns = ShardColumns { names, encodings, sizes }.normal();
    let (names, encodings, sizes) = (&columns.names, &columns.encodings, &columns.sizes);
    let mut seen = HashSet::new();
    if names.len() != encodings.len() || names.len() != sizes.len() || !names.iter().all(|name| seen.insert(name)) {
        return Err(DataError::damaged(name, "the names, encodings and sizes of the columns do not fit together"));
    }
    let place = |file: SizedFile| match file.path.to_str().filter(|name| stays(name)) {
        Some(name) => Ok(SizedFile { path: beside(index, name), ..file }),
        None => Err(DataError::damaged(name, format!("the shard `{}` is not in the folder", file.path.display()))),
    };
    let zip = match (entry.zip_data, entry.compression) {
        (Some(file), Some(compression)) => Some((place(file)?, compression)),
        (Some(_), None) => return Err(DataError::damaged(name, "it does not say how a shard is compressed")),
        (None, _) => None,
    };
    let (columns, raw) = (Arc::new(columns), place(entry.raw_data)?);
    Ok(ListedShard { rows: entry.samples, columns, index: name.into(), raw, zip })
}

/// Whether a name stays inside its folder.
fn stays(name: &str) -> bool {
    !name.is_empty() && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}

impl ShardColumns {
    /// The same, with one form of sizes that vary by row: the library that writes these files also accepts 0 for them.
    fn normal(mut self) -> Self {
        self.sizes.iter_mut().for_each(|size| *size = size.filter(|size| *size > 0));
        self
    }

    /// The columns in a shard's own header. `None` if it has none.
    pub(super) fn of_shard(head: &[u8]) -> Option<Self> {
        serde_json::from_slice(head).ok().map(Self::normal)
    }

    /// Names and encodings.
    pub(super) fn there_is(&self) -> Vec<(String, String)> {
        self.names.iter().cloned().zip(self.encodings.iter().cloned()).collect()
    }
}
