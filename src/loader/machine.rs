//! The resources of the machine, and the part that one process may use.

use std::{collections::BTreeMap, fs, path::Path, sync::LazyLock, thread::available_parallelism};

/// The most workers, transfer threads, devices or batches ahead that an option takes.
pub(super) const MOST: usize = 1024;

/// The part of the machine for this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Machine {
    /// CPU threads.
    pub(super) threads: usize,
    /// Bytes of the third-level caches, if Linux reports them.
    pub(super) cache: Option<usize>,
}

/// What Linux reports about the CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cpus {
    /// The CPUs of the machine that are online.
    online: usize,
    /// The CPUs of the process's control group, or all.
    of_group: usize,
    /// The CPUs that the process may run on.
    allowed: usize,
    /// Bytes of all third-level caches.
    cache: usize,
}

impl Machine {
    /// Returns the part of the machine for one of `processes` processes on this host.
    pub(super) fn of(processes: usize) -> Self {
        static CPUS: LazyLock<Option<Cpus>> = LazyLock::new(|| Cpus::read(Path::new("/")));
        Self::part(available_parallelism().map_or(1, usize::from), *CPUS, processes)
    }

    /// `usable` is the number of threads that the system lets the process use at a time. All processes share them,
    /// unless their launcher has given each process its own CPUs.
    fn part(usable: usize, cpus: Option<Cpus>, processes: usize) -> Self {
        let alone = cpus.is_some_and(|cpus| cpus.allowed < cpus.of_group);
        let threads = if alone { usable } else { (usable / processes.max(1)).max(1) };
        let cache = cpus.map(|cpus| cpus.cache / cpus.online.max(1) * threads.min(cpus.online));
        Self { threads, cache: cache.filter(|bytes| *bytes > 0) }
    }
}

impl Cpus {
    /// Reads the files below `root`.
    fn read(root: &Path) -> Option<Self> {
        let text = |path: &str| fs::read_to_string(root.join(path)).ok();
        let online = count(&text("sys/devices/system/cpu/online")?)?;
        let status = text("proc/self/status")?;
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).and_then(count)?;
        // Lines are `number:controllers:path`; the second version of control groups names no controller.
        let groups = text("proc/self/cgroup").unwrap_or_default();
        let group = groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            match (parts.next()?, parts.next()?) {
                ("", path) => Some((format!("sys/fs/cgroup{path}"), "cpuset.cpus.effective")),
                ("cpuset", path) => Some((format!("sys/fs/cgroup/cpuset{path}"), "cpuset.effective_cpus")),
                _ => None,
            }
        });
        // A container may see its own group as the root.
        let of_group = group.and_then(|(path, file)| {
            let groups = Path::new(&path).ancestors().take_while(|group| group.starts_with("sys/fs/cgroup"));
            groups
                .filter_map(|group| fs::read_to_string(root.join(group).join(file)).ok())
                .find_map(|list| count(&list))
        });
        // Each CPU that shares a cache lists it.
        let cache = |cpu: fs::DirEntry| {
            let text = |file| fs::read_to_string(cpu.path().join("cache/index3").join(file)).ok();
            let kib: usize = text("size")?.trim().strip_suffix('K')?.parse().ok()?; // Linux writes no other unit
            Some((text("shared_cpu_list")?, kib.checked_mul(1024)?))
        };
        let cpus = fs::read_dir(root.join("sys/devices/system/cpu")).into_iter().flatten().flatten();
        let caches: BTreeMap<_, _> = cpus.filter_map(cache).collect();
        Some(Self { online, of_group: of_group.unwrap_or(online), allowed, cache: caches.values().sum() })
    }
}

/// The number of CPUs in a list like `0-3,8`.
fn count(list: &str) -> Option<usize> {
    let parts = list.trim().split(',').map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    });
    parts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: Cpus = Cpus { online: 64, of_group: 64, allowed: 64, cache: 640 };

    #[test]
    fn what_linux_tells_is_read() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        };
        assert_eq!(Cpus::read(root.path()), None);
        for (cpu, shared, size) in [(0, "0-1", "32768K"), (1, "0-1", "32768K"), (2, "2-3", "1024K"), (3, "3", "?")] {
            write(&format!("sys/devices/system/cpu/cpu{cpu}/cache/index3/shared_cpu_list"), shared);
            write(&format!("sys/devices/system/cpu/cpu{cpu}/cache/index3/size"), size);
        }
        write("sys/devices/system/cpu/cpu9/online", "0");
        write("sys/devices/system/cpu/online", "0-8,10");
        write("proc/self/status", "Name:\tx\nCpus_allowed_list:\t2,4-5\nSeccomp:\t0");
        let cpus = Cpus { online: 10, of_group: 10, allowed: 3, cache: 33 << 20 };
        assert_eq!(Cpus::read(root.path()), Some(cpus), "no group");
        write("proc/self/cgroup", "3:cpuset:/a\n2:cpu:/");
        write("sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-7");
        assert_eq!(Cpus::read(root.path()), Some(Cpus { of_group: 8, ..cpus }));
        write("proc/self/cgroup", "0::/job/step");
        write("sys/fs/cgroup/job/cpuset.cpus.effective", "0-3");
        write("sys/fs/cgroup/cpuset.cpus.effective", "0-8");
        assert_eq!(Cpus::read(root.path()), Some(Cpus { of_group: 4, ..cpus }), "the nearest group that tells");
        assert_eq!(["", "x", "3-1", "0-"].map(count), [None; 4]);
    }

    #[test]
    fn a_process_takes_its_part_once() {
        let part = |usable, cpus, processes| {
            let Machine { threads, cache } = Machine::part(usable, Some(cpus), processes);
            (threads, cache.unwrap())
        };
        assert_eq!((part(64, HOST, 1), part(64, HOST, 8), part(2, HOST, 100)), ((64, 640), (8, 80), (1, 10)));
        assert_eq!(part(16, HOST, 4), (4, 40), "a container that may use 16 CPUs at a time");
        assert_eq!(part(32, Cpus { of_group: 32, allowed: 32, ..HOST }, 4), (8, 80), "a job with half of the machine");
        assert_eq!(part(8, Cpus { allowed: 8, ..HOST }, 8), (8, 80), "each process has CPUs of its own");
        assert_eq!(part(8, Cpus { of_group: 32, allowed: 8, ..HOST }, 4), (8, 80));
        assert_eq!(Machine::part(6, None, 2), Machine { threads: 3, cache: None });
    }
}
