//! One loader in one round: its batches are taken, and timed.

use crate::{
    args::Args,
    case::Case,
    data::{Repeat, Store},
    fail,
    kept::Costs,
    link, machine,
    source::Source,
    step::Step,
};
use burn::tensor::Device;
use std::{
    hint::spin_loop,
    time::{Duration, Instant},
};

/// What one loader did in one round.
#[derive(Clone, Default)]
pub(crate) struct Figures {
    pub(crate) items_per_s: f64,
    pub(crate) gb_per_s: f64,
    pub(crate) step_ms: f64,
    pub(crate) wait_us_p50: f64,
    pub(crate) wait_us_p99: f64,
    pub(crate) first_batch_ms: f64,
    /// What a batch took of the CPUs, on all threads.
    pub(crate) cpu_us: f64,
    pub(crate) pinned_mb: Option<f64>,
    pub(crate) device_mb: Option<f64>,
    /// Where images were decoded.
    pub(crate) decoder: Option<&'static str>,
    /// What it cost to keep the data.
    pub(crate) kept: Option<Costs>,
}

/// Runs one loader for one round.
pub(crate) fn drive(args: &Args, source: &Source, case: &Case, step: Option<&Step>, device: &Device) -> Figures {
    let warm = args.warm(case);
    let mut figures = Figures::default();
    let started = Instant::now();
    let mut epoch = source.iter(device);
    let (mut waits, mut clock, mut last) = (Vec::with_capacity(args.steps), started, None);
    let (mut cpu, busy) = (Duration::ZERO, Duration::from_micros(args.busy_us));
    let sync = || device.sync().unwrap_or_else(|error| fail(&error.to_string()));
    for nth in 0..warm + args.steps {
        if nth == warm {
            sync();
            (clock, cpu) = (Instant::now(), machine::cpu_time());
        }
        let asked = Instant::now();
        let next = epoch.next().or_else(|| {
            epoch = source.iter(device);
            epoch.next()
        });
        let Some(batch) = next else { fail("an epoch without batches") };
        let (x, labels) = batch.unwrap_or_else(|error| fail(&error.to_string()));
        let waited = asked.elapsed();
        if nth == 0 {
            sync();
            figures.first_batch_ms = 1e3 * started.elapsed().as_secs_f64();
        } else if nth >= warm {
            waits.push(waited);
        }
        if let Some(step) = step {
            last = Some(step.run(x));
        }
        drop(labels);
        let begun = Instant::now();
        while begun.elapsed() < busy {
            spin_loop();
        }
    }
    sync();
    let time = clock.elapsed().as_secs_f64();
    figures.cpu_us = 1e6 * machine::cpu_time().saturating_sub(cpu).as_secs_f64() / args.steps as f64;
    drop((last, epoch));
    waits.sort_unstable();
    let quantile = |share: usize| waits.get(waits.len() * share / 100).map_or(0.0, |wait| 1e6 * wait.as_secs_f64());
    let items = (args.steps * case.batch) as f64;
    figures.items_per_s = items / time;
    figures.gb_per_s = items * case.row_bytes() as f64 / time / 1e9;
    figures.step_ms = 1e3 * time / args.steps as f64;
    (figures.wait_us_p50, figures.wait_us_p99) = (quantile(50), quantile(99));
    figures.device_mb = link::device_mb();
    if let Source::Kept(_, costs) = source {
        figures.kept = Some(*costs);
    }
    if let Source::Pinned(loader) = source {
        let stats = loader.stats();
        if let Some(file) = &args.timeline {
            loader.timeline().save(file).unwrap_or_else(|error| fail(&format!("{}: {error}", file.display())));
            eprintln!("{}", stats.verdict());
        }
        figures.pinned_mb = Some(stats.host_bytes_peak as f64 / 1e6);
        figures.decoder = match (case.store, stats.stages.decode.count) {
            (Store::Raw { .. }, _) => None,
            (Store::Jpeg(_), 0) => Some("host"),
            (Store::Jpeg(_), _) => Some("device"),
        };
    }
    figures
}

/// What the same workers write into the same slots when nothing is sent anywhere: a CPU backend takes them as they are.
pub(crate) fn fill(args: &Args, case: &Case, workers: usize, device: &Device, len: usize) -> f64 {
    let alloc = burn_pinned::host_alloc(device, false).unwrap_or_else(|error| fail(&error.to_string()));
    let builder = args.builder(case, workers).set_device(Device::flex()).allocator(alloc);
    let dataset = Repeat { store: case.store, len };
    let loader = builder.build(dataset).unwrap_or_else(|error| fail(&error.to_string()));
    drive(args, &Source::Pinned(loader), case, None, &Device::flex()).gb_per_s
}
