//! What tells that a file or a folder has not changed.

use std::{
    fs::Metadata,
    time::{Duration, SystemTime},
};

/// A file that changes within this time after another change may have the same time of change: by the ticks of the system, or
/// where the disk notes whole seconds.
pub(super) const TICK: Duration = Duration::from_millis(20);
const SECONDS: Duration = Duration::from_secs(2);

/// What changes when a file does: its number on the disk and the time of its last change, which nobody can set. `None` if that
/// was just now, since another change might have the same time.
pub(super) fn stamp(meta: &Metadata) -> Option<[u64; 2]> {
    let (number, changed) = change(meta)?;
    let tick = if changed.subsec_nanos() == 0 { SECONDS } else { TICK };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    (changed.saturating_add(tick) <= now).then_some([number, changed.as_nanos() as u64])
}

#[cfg(unix)]
fn change(meta: &Metadata) -> Option<(u64, Duration)> {
    use std::os::unix::fs::MetadataExt;
    let (seconds, more) = (u64::try_from(meta.ctime()).ok()?, u32::try_from(meta.ctime_nsec()).ok()?);
    Some((meta.ino(), Duration::new(seconds, more)))
}

/// There nothing is known to be the same.
#[cfg(not(unix))]
fn change(_: &Metadata) -> Option<(u64, Duration)> {
    None
}
