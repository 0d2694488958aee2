//! `doctor` tells what this machine gives a training, and what to set: cores, memory, GPUs, links, workers, decoders. Of a data set,
//! it tells what the store gives that it lies on, and how fast it is read from there. The README of the package shows both.

mod advice;
mod clock;
mod data;
mod feed;
mod gpus;
mod machine;
mod report;
#[cfg(test)]
mod tests;

use advice::Facts;
use burn::tensor::Device;
use burn_pinned::{BoxError, memory::Decoder};
use burn_pinned_tools::end::end;
use clap::Parser;
use clock::Clock;
use std::{process::ExitCode, time::Duration};

/// Measures this machine, and says what to set
///
/// It takes about 20 s. The figures are rough: other programs on the machine disturb them. With --data it measures a data set, and
/// the store that it lies on.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Seconds for each measurement; by default 0.1 to 0.5, so that all of them end in time, and 3 of a data set
    #[arg(long)]
    seconds: Option<f64>,
    #[command(flatten)]
    data: data::Data,
}

/// For each measurement of a data set.
const OF_DATA: Duration = Duration::from_secs(3);

fn main() -> ExitCode {
    let Args { seconds, data } = Args::parse();
    let fixed = seconds.map(|seconds| Duration::from_secs_f64(seconds.clamp(0.05, 60.0)));
    end(match data.data.as_slice() {
        [] => the_machine(fixed),
        _ => data::measured(&data, fixed.unwrap_or(OF_DATA)).map(|facts| print!("{facts}")),
    })
}

fn the_machine(fixed: Option<Duration>) -> Result<(), BoxError> {
    let machine = machine::Machine::look(); // as other programs find it
    burn_pinned::prepare()?;
    let counts = feed::counts(machine.cores);
    let few = feed::few(&counts);
    let clock = Clock::new(counts.len() + 2 * few.len(), fixed);
    clock.say("looks for GPUs");
    let gpus = gpus::measure(&clock);
    // Without a GPU the loader's own work is measured on a CPU backend.
    let device = if gpus.is_ok() { Device::default() } else { Device::flex() };
    let rows = feed::sweep(&counts, |workers| {
        let time = clock.next(format_args!("rows from memory, {}", feed::words(workers)));
        feed::rows(&device, workers, time)
    });
    clock.say("draws JPEGs");
    let files = feed::photos()?;
    let jpegs = |decoder, by| {
        feed::sweep(&few, |workers| {
            let time = clock.next(format_args!("JPEGs decoded by {by}, {}", feed::words(workers)));
            feed::jpegs(&files, &device, decoder, workers, time)
        })
    };
    let host = jpegs(Decoder::Host, "the workers");
    clock.say("opens the decoder of the GPU, if there is one");
    // It stays open until the last of its measurements.
    let on_device = feed::decoder(&device).map(|_opened| jpegs(Decoder::Device, "the GPU"));
    drop(clock);
    let facts = Facts { machine, gpus, rows, host, on_device };
    report::print(&facts);
    Ok(())
}
