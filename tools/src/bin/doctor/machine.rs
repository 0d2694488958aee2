//! What the system says about itself. Everything but the cores is from Linux's files.

use std::{env, fs, path::PathBuf, thread};

/// The machine, or the part of it that this process may use. What is not known is `None`.
#[derive(Clone, Default)]
pub(crate) struct Machine {
    pub(crate) cpu: Option<String>,
    /// Threads that may run at once.
    pub(crate) cores: usize,
    /// Bytes.
    pub(crate) memory: Option<u64>,
    /// Bytes that the control group allows.
    pub(crate) limit: Option<u64>,
    /// Bytes that a process may lock, as `ulimit -l` says; `u64::MAX` is no limit.
    pub(crate) lock: Option<u64>,
    /// `always`, `madvise` or `never`.
    pub(crate) huge_pages: Option<String>,
    /// The CPUs of each NUMA node, as in `0-15`.
    pub(crate) nodes: Vec<String>,
    /// Whether NVIDIA's driver is there.
    pub(crate) driver: bool,
    /// The folder with NCCL, if it is one where a program looks.
    pub(crate) nccl: Option<PathBuf>,
    /// `CUDA_DEVICE_MAX_CONNECTIONS`.
    pub(crate) connections: Option<u32>,
}

impl Machine {
    pub(crate) fn look() -> Self {
        let read = |path: &str| fs::read_to_string(path).ok();
        let cpu = read("/proc/cpuinfo").and_then(|text| after(&text, "model name", ':'));
        let memory = read("/proc/meminfo").and_then(|text| kibibytes(&after(&text, "MemTotal", ':')?));
        let limit = read("/sys/fs/cgroup/memory.max").and_then(|text| text.trim().parse().ok());
        let lock = read("/proc/self/limits").and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("Max locked memory"))?;
            let soft = line.split_whitespace().nth(3)?;
            if soft == "unlimited" { Some(u64::MAX) } else { soft.parse().ok() }
        });
        let huge_pages = read("/sys/kernel/mm/transparent_hugepage/enabled")
            .and_then(|text| Some(text.split_once('[')?.1.split_once(']')?.0.to_string()));
        let node = |nth| read(&format!("/sys/devices/system/node/node{nth}/cpulist"));
        Self {
            cpu,
            cores: thread::available_parallelism().map_or(1, usize::from),
            memory,
            limit,
            lock,
            huge_pages,
            nodes: (0..64).map_while(node).map(|cpus| cpus.trim().to_string()).collect(),
            driver: read("/proc/driver/nvidia/version").is_some(),
            nccl: library("libnccl.so"),
            connections: env::var("CUDA_DEVICE_MAX_CONNECTIONS").ok().and_then(|value| value.trim().parse().ok()),
        }
    }
}

/// The first folder with a library, of those in `LD_LIBRARY_PATH` and those that every system has.
fn library(name: &str) -> Option<PathBuf> {
    let own = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let usual = ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];
    let all = env::split_paths(&own).chain(usual.map(PathBuf::from)).chain([PathBuf::from("/usr/local/cuda/lib64")]);
    let mut all = all.filter(|folder| !folder.as_os_str().is_empty());
    all.find(|folder| folder.join(name).exists())
}

/// What follows a name and a separator in a line.
fn after(text: &str, name: &str, separator: char) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(separator)?.1.trim().to_string())
}

fn kibibytes(text: &str) -> Option<u64> {
    Some(text.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}
