//! The CPU's last cache, which slots should fit in.

use std::{collections::BTreeMap, fs, path::Path, sync::LazyLock, thread::available_parallelism};

/// Bytes of the third-level caches of all CPUs together, where Linux tells. Of that, it is the share of this process: it
/// may have a part of the CPUs.
pub(crate) fn last_cache() -> Option<usize> {
    static BYTES: LazyLock<Option<usize>> = LazyLock::new(|| {
        let (cpus, bytes) = read(Path::new("/sys/devices/system/cpu"))?;
        let own = available_parallelism().map_or(cpus, usize::from).min(cpus);
        Some(bytes / cpus * own)
    });
    *BYTES
}

/// Returns how many CPUs have such a cache, and the bytes of all. CPUs that share a cache all name it.
fn read(cpus: &Path) -> Option<(usize, usize)> {
    let of_cpu = |cpu: fs::DirEntry| {
        let cache = cpu.path().join("cache/index3");
        let text = |file| fs::read_to_string(cache.join(file)).ok();
        Some((text("shared_cpu_list")?, bytes(text("size")?.trim())?))
    };
    let caches: Vec<_> = fs::read_dir(cpus).ok()?.flatten().filter_map(of_cpu).collect();
    let count = caches.len();
    let each: BTreeMap<_, _> = caches.into_iter().collect();
    Some((count, each.values().sum())).filter(|(_, bytes)| *bytes > 0)
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
        assert_eq!(read(cpus.path()), Some((3, 33 << 20)));
    }
}
