//! How much memory the system and its control groups leave for the process.

use crate::{fault::Error, observe::Counters};
use std::{fs, path::Path};

/// Refuses slots that exceed the limit of the process's control groups, because such slots would kill the process.
/// Slots that do not fit at the moment get a warning.
pub(crate) fn check_system(bytes: usize, counters: &Counters) -> Result<(), Error> {
    let Some(group) = Group::read(Path::new("/proc/self/cgroup"), Path::new("/sys/fs/cgroup")) else { return Ok(()) };
    let Group { max, free } = group;
    if bytes as u64 > max {
        let problem = format!("the slots need {bytes} bytes, but this control group has only {max} bytes of memory");
        let advice = "lower `batch_size`, `prefetch` or `pinned_limit`, or raise the group's limit";
        return Err(Error::config("pinned_limit", problem, advice));
    }
    if bytes as u64 > free {
        counters.warn(&format!(
            "the slots need {bytes} bytes, but {free} of the {max} bytes of this control group are free"
        ));
    }
    Ok(())
}

/// Returns how many bytes the system and the process's control groups leave for it now, if they report it.
pub(crate) fn free_memory() -> Option<usize> {
    let group = Group::read(Path::new("/proc/self/cgroup"), Path::new("/sys/fs/cgroup")).map(|group| group.free);
    let system = fs::read_to_string("/proc/meminfo").ok().and_then(|text| available(&text));
    group.into_iter().chain(system).min().map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// The bytes of memory that the system can give without swapping.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The memory that the control groups of the process leave for it, from its own group up to the root. `max` is the
/// lowest limit of these groups. `free` is the least memory that is free in one of them now. File cache that can be
/// dropped counts as free.
#[derive(Debug, PartialEq)]
struct Group {
    max: u64,
    free: u64,
}

/// For each version of control groups: the file with the limit, the file with the used memory, and the line of `memory.stat` with the used
/// memory that can be reclaimed.
const V1: [&str; 3] = ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"];
const V2: [&str; 3] = ["memory.max", "memory.current", "inactive_file"];

impl Group {
    /// Returns `None` if there is no limit.
    fn read(of_process: &Path, mount: &Path) -> Option<Self> {
        let groups = fs::read_to_string(of_process).ok()?;
        // Lines are `number:controllers:path`. The second version has one group for all controllers, and names no
        // controller.
        let of_line = |line: &str| {
            let mut parts = line.splitn(3, ':');
            let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            let (root, names) = match controllers {
                "" => (mount.to_path_buf(), V2),
                _ if controllers.split(',').any(|name| name == "memory") => (mount.join("memory"), V1),
                _ => return None,
            };
            let group = root.join(path.trim_start_matches('/'));
            let limits = group.ancestors().take_while(|group| group.starts_with(&root));
            limits.filter_map(|group| Self::of(group, names)).reduce(Self::least)
        };
        groups.lines().filter_map(of_line).reduce(Self::least)
    }

    /// Returns the memory of one group, or `None` if it has no limit. "max" or, in version 1, a very large number means
    /// no limit.
    fn of(group: &Path, [max, used, cache]: [&str; 3]) -> Option<Self> {
        let number = |file: &str| fs::read_to_string(group.join(file)).ok()?.trim().parse::<u64>().ok();
        let max = number(max).filter(|max| *max < 1 << 60)?;
        let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
        let cache = stat.lines().find_map(|line| line.strip_prefix(cache)?.trim().parse().ok()).unwrap_or(0);
        let used = number(used).unwrap_or(0).saturating_sub(cache);
        Some(Self { max, free: max.saturating_sub(used) })
    }

    fn least(self, other: Self) -> Self {
        Self { max: self.max.min(other.max), free: self.free.min(other.free) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_tells_what_is_available() {
        assert_eq!(available("MemTotal:       100 kB\nMemAvailable:   42 kB\n"), Some(42 * 1024));
        assert_eq!([available(""), available("MemAvailable: much")], [None, None]);
    }

    #[test]
    fn the_tightest_groups_count() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let read = || Group::read(&dir.path().join("self"), &dir.path().join("fs"));
        let group = |max, free| Some(Group { max, free });
        write("self", "0::/a/b\n");
        assert_eq!(read(), None);
        write("fs/a/b/memory.max", "max\n");
        write("fs/a/memory.max", "5000\n");
        write("fs/a/memory.current", "1000\n");
        assert_eq!(read(), group(5000, 4000));
        write("fs/a/memory.stat", "anon 300\ninactive_anon 50\ninactive_file 600\n");
        assert_eq!(read(), group(5000, 4600), "memory of the file cache counts as free");
        write("fs/a/b/memory.max", "4500\n");
        assert_eq!(read(), group(4500, 4500), "the lowest limit; the fewest free bytes");
        // The first version, alone and beside the second.
        write("self", "5:cpu,cpuacct:/x\n4:memory:/a/c\n");
        assert_eq!(read(), None);
        write("fs/memory/a/c/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(read(), None, "no limit");
        write("fs/memory/a/memory.limit_in_bytes", "3000\n");
        write("fs/memory/a/memory.usage_in_bytes", "2500\n");
        write("fs/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 400\n");
        assert_eq!(read(), group(3000, 900));
        write("self", "4:memory:/a\n0::/a/b\n");
        assert_eq!(read(), group(3000, 900));
    }
}
