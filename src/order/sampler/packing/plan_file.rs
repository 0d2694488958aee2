//! Plans in a folder, so that another process need not make them again.

use super::plan::Plan;
use crate::order::draw::Fingerprint;
use std::{
    fs,
    hash::{BuildHasher, Hasher, RandomState},
    io,
    path::{Path, PathBuf},
    process,
    time::SystemTime,
};

/// How the names of plans begin.
const NAME: &str = "burn-pinned.plan-";
/// The first word of a file. On a machine of the other byte order it is another number.
const MAGIC: u64 = u64::from_ne_bytes(*b"burnplan");
/// So many plans stay in a folder, the newest.
const KEPT: usize = 4;

/// The place of a plan: in which folder, and a hash of all that it follows from.
pub(super) struct PlanFile {
    path: PathBuf,
    key: u64,
}

impl PlanFile {
    /// `of` says what the plan is of. The version of the crate is added, since another one may pack in another way.
    pub(super) fn new(folder: &Path, of: &str) -> Self {
        let of = format!("{of} {}", env!("CARGO_PKG_VERSION"));
        let key = Fingerprint::of(of.bytes().map(u64::from)).hash();
        Self { path: folder.join(format!("{NAME}{key:016x}")), key }
    }

    /// Returns the plan if it was saved.
    pub(super) fn read(&self, windows: usize) -> Option<Plan> {
        let bytes = fs::read(&self.path).ok()?;
        let plan = self.parse(&bytes, windows);
        if plan.is_none() {
            log::warn!("{} is damaged, or is no plan of these documents: it is made again", self.path.display());
        }
        plan
    }

    fn parse(&self, bytes: &[u8], windows: usize) -> Option<Plan> {
        let (words, rest) = bytes.as_chunks();
        let words: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        let (sum, words) = words.split_last()?;
        let is_own = rest.is_empty() && words.starts_with(&[MAGIC, self.key]) && *sum == checksum(words);
        if is_own { Plan::of_words(&words[2..], windows) } else { None }
    }

    /// Saves the plan, and removes old ones. A folder that takes no files costs time only, so the log says what is wrong.
    pub(super) fn save(&self, plan: &Plan) {
        if let Err(error) = self.write(plan).and_then(|()| self.remove_old()) {
            log::warn!("the plan of an epoch is not saved as {}: {error}", self.path.display());
        }
    }

    /// Writes the file under another name and renames it, so that nobody reads half of it.
    fn write(&self, plan: &Plan) -> io::Result<()> {
        let mut words = vec![MAGIC, self.key];
        words.extend(plan.words());
        words.push(checksum(&words));
        let unique = RandomState::new().build_hasher().finish();
        let temporary = self.path.with_extension(format!("plan-{}-{unique:016x}.tmp", process::id()));
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let done =
            fs::write(&temporary, bytemuck::cast_slice(&words)).and_then(|()| fs::rename(&temporary, &self.path));
        if done.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        done
    }

    /// Removes all plans but the newest ones, and what a process has left that was killed while it wrote.
    fn remove_old(&self) -> io::Result<()> {
        let mut all = Vec::new();
        for entry in self.path.parent().map(fs::read_dir).transpose()?.into_iter().flatten() {
            let entry = entry?;
            let Ok(meta) = entry.metadata() else { continue }; // another process has removed it
            if entry.file_name().to_string_lossy().starts_with(NAME) && meta.is_file() && entry.path() != self.path {
                all.push((meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), entry.path()));
            }
        }
        all.sort();
        for (_, path) in all.iter().rev().skip(KEPT - 1) {
            let _ = fs::remove_file(path); // another process may do the same
        }
        Ok(())
    }
}

fn checksum(words: &[u64]) -> u64 {
    Fingerprint::of(words.iter().copied()).hash()
}
