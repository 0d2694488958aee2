//! What the machine has, and the part of it that one process may take.

use std::{collections::BTreeMap, fs, path::Path, sync::LazyLock, thread::available_parallelism};

/// The part of the machine that is for this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Machine {
    /// CPU threads.
    pub(super) threads: usize,
    /// Bytes of the third-level caches, where Linux tells.
    pub(super) cache: Option<usize>,
}

impl Machine {
    /// The part of one of so many processes on this host.
    pub(super) fn of(processes: usize) -> Self {
        static ALL: LazyLock<Option<(usize, usize)>> = LazyLock::new(|| read(Path::new("/sys/devices/system/cpu")));
        let own = available_parallelism().map_or(1, usize::from);
        Self::part(own, *ALL, processes)
    }

    /// `own` are the threads that the system lets the process use. They may be its part already: some launchers give each
    /// process CPUs of its own. `all` are the machine's CPUs and the bytes of their caches.
    fn part(own: usize, all: Option<(usize, usize)>, processes: usize) -> Self {
        let (cpus, bytes) = all.unwrap_or((own, 0));
        let threads = own.min(cpus / processes.max(1)).max(1);
        let cache = Some(bytes / cpus.max(1) * threads).filter(|bytes| *bytes > 0);
        Self { threads, cache }
    }

    /// The default number of workers: the threads, less one in eight. Training and transfer need their own.
    pub(super) fn workers(self) -> usize {
        self.threads - self.threads / 8
    }

    /// The number of workers that [`Auto`](crate::Auto) starts with: all threads but one, where there are many.
    pub(super) fn most_workers(self) -> usize {
        (self.threads - 1).max(self.workers())
    }
}

/// Returns the number of CPUs, and the bytes of all their third-level caches. CPUs that share a cache all name it.
fn read(cpus: &Path) -> Option<(usize, usize)> {
    let is_cpu = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("cpu"));
        number.is_some_and(|number| number.parse::<usize>().is_ok())
    };
    let cpus: Vec<_> = fs::read_dir(cpus).ok()?.flatten().filter(is_cpu).collect();
    let cache = |cpu: &fs::DirEntry| {
        let cache = cpu.path().join("cache/index3");
        let text = |file| fs::read_to_string(cache.join(file)).ok();
        Some((text("shared_cpu_list")?, bytes(text("size")?.trim())?))
    };
    let caches: BTreeMap<_, _> = cpus.iter().filter_map(cache).collect();
    Some((cpus.len(), caches.values().sum())).filter(|(cpus, _)| *cpus > 0)
}

/// The number in a text like `32768K`.
fn bytes(text: &str) -> Option<usize> {
    let unit = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    let shift = match unit {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return None,
    };
    number.parse::<usize>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_that_cpus_share_count_once() {
        let cpus = tempfile::tempdir().unwrap();
        assert_eq!(read(cpus.path()), None, "no CPU tells");
        for (cpu, shared, size) in [(0, "0-1", "32768K"), (1, "0-1", "32768K"), (2, "2-3", "1M"), (3, "3", "?")] {
            let cache = cpus.path().join(format!("cpu{cpu}/cache/index3"));
            fs::create_dir_all(&cache).unwrap();
            fs::write(cache.join("shared_cpu_list"), format!("{shared}\n")).unwrap();
            fs::write(cache.join("size"), format!("{size}\n")).unwrap();
        }
        fs::create_dir_all(cpus.path().join("cpufreq")).unwrap();
        assert_eq!(read(cpus.path()), Some((4, 33 << 20)));
    }

    #[test]
    fn a_process_takes_its_part_once() {
        let part = |own, processes| {
            let Machine { threads, cache } = Machine::part(own, Some((64, 640)), processes);
            (threads, cache.unwrap())
        };
        assert_eq!((part(64, 1), part(64, 8)), ((64, 640), (8, 80)));
        assert_eq!((part(8, 8), part(16, 1)), ((8, 80), (16, 160)), "it has CPUs of its own");
        assert_eq!(part(2, 100), (1, 10));
        assert_eq!(Machine::part(6, None, 2), Machine { threads: 3, cache: None });
        let workers =
            |threads| [Machine::workers, Machine::most_workers].map(|of| of(Machine { threads, cache: None }));
        assert_eq!([1, 2, 8, 16].map(workers), [[1, 1], [2, 2], [7, 7], [14, 15]]);
    }
}
