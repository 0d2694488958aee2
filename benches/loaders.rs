//! This crate's loader beside Burn's own: the same data, the same batches, equal workers, in alternating rounds.
//!
//!     cargo bench --bench loaders -- --help
//!     BURN_PINNED_UNTIMED=1 cargo bench --bench loaders  # without the clocks of the statistics: what do they cost?

#[path = "loaders/args.rs"]
mod args;
#[path = "loaders/case.rs"]
mod case;
#[path = "support/data.rs"]
mod data;
#[path = "loaders/drive.rs"]
mod drive;
#[path = "loaders/finish.rs"]
mod finish;
#[path = "loaders/kept.rs"]
mod kept;
#[path = "support/link.rs"]
mod link;
#[path = "support/logger.rs"]
mod logger;
#[path = "loaders/machine.rs"]
mod machine;
#[path = "loaders/source.rs"]
mod source;
#[path = "loaders/step.rs"]
mod step;
#[path = "loaders/table.rs"]
mod table;

use args::Args;
use clap::Parser;
use drive::{Figures, drive, fill};
use std::{collections::BTreeMap, time::Duration};
use step::Step;
use table::table;

fn main() {
    let args = Args::parse();
    if args.log {
        logger::start();
    }
    let device = args.device();
    let gpu = link::gpu();
    if !args.json {
        println!(
            "{} threads, {}",
            std::thread::available_parallelism().map_or(0, usize::from),
            gpu.as_deref().unwrap_or("no GPU")
        );
    }
    let date = time_of_day();
    for (name, finish) in args.case.iter().flat_map(|name| args.finish.iter().map(move |finish| (name, finish))) {
        let case = args.case(name, finish);
        let step = args.matmuls.map(|matmuls| Step::new(matmuls, args.matmul_side, &device));
        for &workers in &args.workers {
            let len = case.batch * args.epoch.unwrap_or(args.warm(&case) + args.steps + 120);
            let mut all: BTreeMap<&str, Vec<Figures>> = BTreeMap::new();
            let (mut links, mut fills) = (Vec::new(), Vec::new());
            for round in 0..args.rounds {
                let link = link::gb_per_s(case.batch_bytes());
                let fill = (!args.no_fill).then(|| fill(&args, &case, workers, &device, len));
                links.extend(link);
                fills.extend(fill);
                for loader in &args.loader {
                    let source = args.source(loader, &case, workers, &device, len);
                    let figures = drive(&args, &source, &case, step.as_ref(), &device);
                    drop(source);
                    device.memory_cleanup();
                    if args.json {
                        println!(
                            "{}",
                            serde_json::json!({
                                "date": date, "gpu": gpu, "burn": "0.22.1", "burn_pinned": env!("CARGO_PKG_VERSION"),
                                "loader": loader, "case": case.name, "decoder": figures.decoder, "decoder_asked": format!("{:?}", args.decoder), "room": case.room, "batch": case.batch, "workers": workers,
                                "matmuls": args.matmuls, "matmul_side": args.matmul_side, "busy_us": args.busy_us, "finish": finish, "round": round, "steps": args.steps, "epoch": args.epoch, "shuffle": args.shuffle,
                                "items_per_s": figures.items_per_s.round(), "gb_per_s": rounded(figures.gb_per_s, 3),
                                "link_gb_per_s": link.map(|rate| rounded(rate, 2)),
                                "fill_gb_per_s": fill.map(|rate| rounded(rate, 3)),
                                "step_ms": rounded(figures.step_ms, 4), "cpu_us": rounded(figures.cpu_us, 2), "wait_us_p50": rounded(figures.wait_us_p50, 1),
                                "wait_us_p99": rounded(figures.wait_us_p99, 1),
                                "first_batch_ms": rounded(figures.first_batch_ms, 2),
                                "pinned_mb": figures.pinned_mb.map(|mb| rounded(mb, 1)),
                                "device_mb": figures.device_mb.map(|mb| rounded(mb, 1)),
                                "read_ms": figures.kept.map(|kept| rounded(kept.read_ms, 2)),
                                "epoch_ms": figures.kept.map(|kept| rounded(kept.epoch_ms, 2)),
                                "rows_mb": figures.kept.map(|kept| rounded(kept.rows_mb, 2)),
                                "kept_mb": figures.kept.and_then(|kept| Some(rounded(kept.kept_mb?, 2))),
                            })
                        );
                    }
                    all.entry(loader).or_default().push(figures);
                }
            }
            if !args.json {
                table(&args, &case, workers, &all, &links, &fills);
            }
        }
    }
}

fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

/// Seconds since 1970, for the record.
fn time_of_day() -> u64 {
    std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or(Duration::ZERO).as_secs()
}

fn fail(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(2)
}
