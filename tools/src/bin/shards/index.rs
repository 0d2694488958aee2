//! Makes indices before the first training.

use burn::data::dataset::Dataset;
use burn_pinned::BoxError;
use burn_pinned_tools::{
    open::Open,
    row::{self, Row},
    size::{count, several, show_bytes, time},
};
use std::{
    fs::{self, DirEntry},
    path::{Path, PathBuf},
    time::{Instant, SystemTime},
};

/// Makes the index of a data set, so that the first training need not
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    open: Open,
    /// Columns to index. Without it, all
    #[arg(long, value_delimiter = ',')]
    columns: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<(), BoxError> {
    row::choose(&args.columns);
    let folder = folder(&args.open);
    let (before, started) = (indices(&folder), Instant::now());
    let rows = args.open.rows::<Row>(&[], &[])?;
    rows.index()?;
    println!("{} of {} in {}", several(rows.len(), "row"), args.open.format()?.name(), time(started.elapsed()));
    let made: Vec<_> = indices(&folder).into_iter().filter(|index| !before.contains(index)).collect();
    for Index { path, bytes, .. } in &made {
        let a_row = *bytes as f64 / rows.len().max(1) as f64;
        println!(
            "index of {} ({} bytes), {a_row:.1} bytes a row: {}",
            show_bytes(*bytes),
            count(*bytes),
            path.display()
        );
    }
    if made.is_empty() {
        println!("no index was written: it was there already, or the format needs none");
    }
    Ok(())
}

/// Where the index is saved: in a folder of its own, or beside the first file.
fn folder(open: &Open) -> PathBuf {
    let beside = || {
        let first = open.paths.first().map_or(Path::new("."), PathBuf::as_path);
        if first.is_dir() { Some(first) } else { first.parent().filter(|parent| !parent.as_os_str().is_empty()) }
    };
    open.index_dir.clone().or_else(|| beside().map(PathBuf::from)).unwrap_or_else(|| ".".into())
}

/// A saved index.
#[derive(PartialEq)]
pub(crate) struct Index {
    path: PathBuf,
    pub(crate) bytes: u64,
    changed: Option<SystemTime>,
}

/// The indices in a folder. If it cannot be listed, there are none to tell of.
pub(crate) fn indices(folder: &Path) -> Vec<Index> {
    let index = |entry: DirEntry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let about = entry.metadata().ok()?;
        let is_index = name.starts_with(".burn-pinned-") && name.ends_with(".index");
        is_index.then_some(Index { path: entry.path(), bytes: about.len(), changed: about.modified().ok() })
    };
    fs::read_dir(folder).map_or_else(|_| Vec::new(), |entries| entries.flatten().filter_map(index).collect())
}
