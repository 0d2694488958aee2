//! The tables, the bars and the advice, as text.

use super::{
    advice::{Facts, advice, enough, gb},
    feed::Sweep,
    gpus::Gpu,
    machine::Machine,
};

/// Characters of the longest bar.
const WIDE: f64 = 32.0;

pub(crate) fn print(facts: &Facts) {
    println!("\nMachine");
    machine(&facts.machine);
    if let Ok(gpus) = &facts.gpus {
        println!("\nLinks                                    pageable   page-locked   all at once");
        gpus.iter().enumerate().for_each(|(nth, gpu)| link(nth, gpu));
    }
    sweep("Rows of 3 x 224 x 224 bytes from memory, GB/s", "GB/s", 1, &facts.rows);
    sweep("JPEGs of 500 x 375, decoded by the workers, images/s", "images/s", 0, &facts.host);
    if let Ok(rates) = &facts.on_device {
        sweep("JPEGs of 500 x 375, decoded by the GPU, images/s", "images/s", 0, rates);
    }
    println!("\nAdvice");
    advice(facts).iter().for_each(|line| println!("  - {line}"));
}

fn machine(machine: &Machine) {
    let Machine { cpu, cores, memory, limit, lock, huge_pages, nodes, driver, nccl, .. } = machine;
    let line = |name: &str, value: String| println!("  {name:<18} {value}");
    line("cores", format!("{cores}{}", cpu.as_ref().map_or(String::new(), |cpu| format!(" of {cpu}"))));
    if let Some(memory) = memory {
        let limit = limit.map_or(String::new(), |limit| format!(", of which {:.1} are allowed", gb(limit)));
        line("memory", format!("{:.1} GB{limit}", gb(*memory)));
    }
    let lock = lock.map(|bytes| if bytes == u64::MAX { "no limit".into() } else { format!("{:.3} GB", gb(bytes)) });
    line("ulimit -l", lock.unwrap_or_else(|| "not known".into()));
    line("huge pages", huge_pages.clone().unwrap_or_else(|| "not known".into()));
    let cpus = || format!("{} (CPUs {})", nodes.len(), nodes.join(" | "));
    line("NUMA nodes", if nodes.is_empty() { "not known".into() } else { cpus() });
    if *driver {
        let folder = nccl.as_ref().map(|folder| folder.display().to_string());
        line("NCCL", folder.unwrap_or_else(|| "no libnccl.so found; Burn's `ddp` on several GPUs needs it".into()));
    }
}

fn link(nth: usize, gpu: &Gpu) {
    let name = format!("{nth} {}", gpu.name);
    println!("  {name:<36} {:>6.1} GB/s {:>8.1} GB/s {:>8.1} GB/s", gpu.pageable, gpu.locked, gpu.together);
}

/// A bar for each number of workers, and a mark at the fewest that are enough.
fn sweep(title: &str, unit: &str, digits: usize, rates: &Result<Sweep, String>) {
    println!("\n{title}");
    let rates = match rates {
        Ok(rates) => rates,
        Err(error) => return println!("  not measured: {error}"),
    };
    let best = rates.iter().map(|(_, rate)| *rate).fold(f64::MIN_POSITIVE, f64::max);
    let enough = enough(rates);
    for (workers, rate) in rates {
        let bar = "█".repeat((WIDE * rate / best).round().max(1.0) as usize);
        let mark = if enough == Some((*workers, *rate)) { "  <- enough" } else { "" };
        let s = if *workers == 1 { " " } else { "s" };
        println!("  {workers:>3} worker{s} {rate:>10.digits$} {unit}  {bar}{mark}");
    }
}
