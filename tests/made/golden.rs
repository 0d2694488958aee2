//! Where files of other programs lie.

use std::path::{Path, PathBuf};

/// A file or folder of those that other programs have written.
pub fn golden(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/burn-shards/tests/data/golden").join(path)
}
