//! The formats, and how to tell them by the names of the files.

use burn_pinned::{BoxError, data::Paths};
use clap::ValueEnum;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Parquet,
    /// WebDataset's tar shards
    Tar,
    /// A folder of MosaicML's `streaming`
    Mds,
    /// JSON lines
    Jsonl,
    /// Token files of nanoGPT, llm.c or Megatron
    Tokens,
    /// A folder of images, one sub-folder for each class
    Folder,
}

impl Format {
    /// Tells the format by the first path.
    pub fn guess(paths: &[PathBuf]) -> Result<Self, BoxError> {
        let first = paths.first().map_or(Path::new(""), PathBuf::as_path);
        if first.is_dir() {
            return Ok(if first.join("index.json").is_file() { Self::Mds } else { Self::Folder });
        }
        let name = first.to_string_lossy();
        let name = if name.contains("://") { name.split('?').next().unwrap_or_default() } else { &name };
        match Path::new(name).extension().unwrap_or_default().to_string_lossy().to_lowercase().as_str() {
            "parquet" | "pq" => Ok(Self::Parquet),
            "tar" => Ok(Self::Tar),
            "jsonl" | "ndjson" | "json" => Ok(Self::Jsonl),
            "bin" | "idx" => Ok(Self::Tokens),
            // A list of paths shows no secrets of URLs.
            _ => Err(format!("{:?} does not tell its format: add e.g. `--format tar`", Paths::from(first)).into()),
        }
    }

    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().into())
    }
}
