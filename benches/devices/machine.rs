//! What the host looks like, as Linux's files say.

use crate::links;
use serde_json::{Value, json};
use std::{fs, path::Path, thread};

/// NUMA nodes, GPUs, cores and memory. What is not known is null.
pub(crate) fn look(devices: usize) -> Value {
    let cpu = line("/proc/cpuinfo", "model name");
    let memory = line("/proc/meminfo", "MemTotal").and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    let level = |file| text(Path::new("/sys/devices/system/cpu/cpu0/cache/index3").join(file));
    let mut nodes = below("/sys/devices/system/node", |name, path| {
        let number: usize = name.strip_prefix("node")?.parse().ok()?;
        Some((number, text(path.join("cpulist"))))
    });
    nodes.sort();
    let mut gpus = below("/sys/bus/pci/devices", |address, path| {
        let of = |file| text(path.join(file));
        let is_gpu = of("vendor")? == "0x10de" && of("class")?.starts_with("0x03");
        is_gpu.then(|| {
            // The node is -1 where the host does not say.
            let node = of("numa_node").and_then(|node| node.parse::<i32>().ok());
            let link = json!([of("max_link_speed"), of("max_link_width")]);
            (address.to_string(), json!({ "pci": address, "numa_node": node, "link": link }))
        })
    });
    gpus.sort_by(|(one, _), (other, _)| one.cmp(other));
    json!({
        "cores": thread::available_parallelism().map_or(0, usize::from),
        "cpu": cpu,
        "memory_gb": memory.map(|kib| kib * 1024 / 1_000_000_000),
        "memory_limit": text("/sys/fs/cgroup/memory.max"),
        "l3": [level("size"), level("shared_cpu_list")],
        "numa_nodes": nodes.into_iter().map(|(node, cpus)| json!({ "node": node, "cpus": cpus })).collect::<Vec<_>>(),
        "gpus": gpus.into_iter().map(|(_, gpu)| gpu).collect::<Vec<_>>(),
        "cuda": (0..devices).map(links::address).collect::<Vec<_>>(),
        "max_connections": std::env::var("CUDA_DEVICE_MAX_CONNECTIONS").ok(),
    })
}

/// The threads of this process whose names begin like this.
pub(crate) fn threads(prefix: &str) -> usize {
    let named = |_: &str, task: &Path| text(task.join("comm"))?.starts_with(prefix).then_some(());
    below("/proc/self/task", named).len()
}

/// What is found of the entries of a folder.
fn below<T>(folder: &str, find: impl Fn(&str, &Path) -> Option<T>) -> Vec<T> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| find(entry.file_name().to_str()?, &entry.path())).collect()
}

fn text(file: impl AsRef<Path>) -> Option<String> {
    Some(fs::read_to_string(file).ok()?.trim().to_string())
}

/// What follows a name and a colon.
fn line(file: &str, name: &str) -> Option<String> {
    let text = text(file)?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_string())
}
