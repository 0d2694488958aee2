//! What the measurements mean: what to set, in plain words.

use super::{
    feed::{Sweep, words},
    gpus::Gpu,
    machine::Machine,
};

/// All that was found out.
pub(crate) struct Facts {
    pub(crate) machine: Machine,
    /// The GPUs, or why there is none.
    pub(crate) gpus: Result<Vec<Gpu>, String>,
    /// GB/s of rows from memory to the device.
    pub(crate) rows: Result<Sweep, String>,
    /// Images a second of JPEGs that the workers decode.
    pub(crate) host: Result<Sweep, String>,
    /// The same where the device decodes, or why it does not.
    pub(crate) on_device: Result<Result<Sweep, String>, String>,
}

/// Fewer workers are as good, if they reach this share of the best.
const AS_GOOD: f64 = 0.95;
/// Hardware queues that are enough for a step and a decoder.
const QUEUES: u32 = 16;

/// Returns the fewest workers that are as good as any, and what comes with them.
pub(crate) fn enough(sweep: &Sweep) -> Option<(usize, f64)> {
    let best = sweep.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    sweep.iter().find(|(_, rate)| *rate >= AS_GOOD * best).copied()
}

/// What to do on this machine, the most important first.
pub(crate) fn advice(facts: &Facts) -> Vec<String> {
    let mut advice = Vec::new();
    let mut say = |line: String| advice.push(line);
    let Facts { machine, gpus, rows, host, on_device } = facts;
    match gpus {
        Err(reason) if machine.driver => {
            say(format!("NVIDIA's driver is there, but no GPU was used: {reason}. Build with `--features cuda`."));
        }
        Err(reason) => {
            say(format!("No NVIDIA GPU was used: {reason}. The loader's figures are those of a CPU backend."))
        }
        Ok(gpus) => gpus_advice(gpus, machine, &mut say),
    }
    if let Some((workers, rate)) = rows.as_ref().ok().and_then(enough) {
        let link = gpus.as_ref().ok().and_then(|gpus| Some(gpus.first()?.locked));
        let of_link = link.map_or(String::new(), |link| format!(", {:.0} % of the link", 100.0 * rate / link));
        say(format!("Data in memory: `num_workers({workers})` is enough, for {rate:.1} GB/s{of_link}."));
    }
    let by_host = host.as_ref().ok().and_then(enough);
    if let Some((workers, rate)) = by_host {
        let each = rate / workers as f64;
        say(format!("JPEGs on the workers: {rate:.0} images/s of 500 x 375 with {workers}, {each:.0} each."));
        if !cfg!(feature = "turbo") {
            say("The feature `turbo` decodes them by libjpeg-turbo, which is faster.".into());
        }
    }
    match on_device {
        Ok(sweep) => {
            if let Some((workers, rate)) = sweep.as_ref().ok().and_then(enough) {
                let gain = by_host.map_or(String::new(), |(_, host)| format!(", {:.1} x the workers", rate / host));
                let workers = words(workers);
                say(format!("JPEGs on the GPU: {rate:.0} images/s with {workers}{gain}: use `Field::image`."));
            }
            if machine.connections.is_none_or(|queues| queues < QUEUES) {
                say("Call `burn_pinned::prepare()` first in `main`, or set CUDA_DEVICE_MAX_CONNECTIONS=32: steps may wait for the decoder.".into());
            }
        }
        Err(reason) if gpus.is_ok() => say(format!("The GPU does not decode JPEGs: {reason}.")),
        Err(_) => {}
    }
    if machine.cores <= 2 {
        say(format!("{} cores are few: one of them is for the training loop.", machine.cores));
    }
    if let (Some(limit), Some(memory)) = (machine.limit, machine.memory)
        && limit < memory
    {
        say(format!("The control group allows {:.1} of {:.1} GB of memory: slots count.", gb(limit), gb(memory)));
    }
    if machine.huge_pages.as_deref() == Some("never") {
        say("Huge pages are off: write `madvise` to /sys/kernel/mm/transparent_hugepage/enabled.".into());
    }
    advice
}

fn gpus_advice(gpus: &[Gpu], machine: &Machine, say: &mut impl FnMut(String)) {
    if let Some(gpu) = gpus.first() {
        let gain = gpu.locked / gpu.pageable;
        say(format!("Page-locked memory is {gain:.1} x as fast as other memory here. The loader uses it by itself."));
        // The other half is for the training, as in the loader's verdict.
        let half = gb(gpu.free as u64 / 2);
        say(format!("Data of up to {half:.1} GB can stay on the GPU: `build_kept` reads them once."));
    }
    let (alone, together): (f64, f64) =
        (gpus.iter().map(|gpu| gpu.locked).sum(), gpus.iter().map(|gpu| gpu.together).sum());
    if gpus.len() > 1 {
        let share = 100.0 * together / alone;
        say(format!("All {} GPUs at once take {together:.0} GB/s, {share:.0} % of their links.", gpus.len()));
    }
    if machine.nodes.len() > 1
        && let Some(node) = gpus.first().and_then(|gpu| gpu.node)
    {
        say(format!("There are several NUMA nodes. For the first GPU, start with `numactl --cpunodebind={node}`."));
    }
}

pub(crate) fn gb(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}
