//! The table: medians of the rounds.

use crate::{args::Args, case::Case, drive::Figures, kept::Costs};
use std::collections::BTreeMap;

pub(crate) fn table(
    args: &Args,
    case: &Case,
    workers: usize,
    all: &BTreeMap<&str, Vec<Figures>>,
    links: &[f64],
    fills: &[f64],
) {
    let [c, h, w] = case.shape;
    println!(
        "\n{}: {} x [{c}, {h}, {w}] {}, {workers} workers, medians of {} rounds",
        case.name,
        case.batch,
        case.dtype.name(),
        args.rounds
    );
    if !links.is_empty() {
        println!("  raw link {:.1} GB/s", median(links.to_vec()));
    }
    if !fills.is_empty() {
        println!("  the workers alone fill {:.2} GB/s", median(fills.to_vec()));
    }
    println!(
        "  {:<9} {:>11} {:>8} {:>9} {:>9} {:>11} {:>11} {:>9} {:>9}",
        "loader", "items/s", "GB/s", "ms/step", "CPU us", "wait p50 us", "wait p99 us", "first ms", "slots MB"
    );
    let of = |figures: &[Figures], pick: fn(&Figures) -> f64| median(figures.iter().map(pick).collect());
    for loader in &args.loader {
        let Some(figures) = all.get(loader.as_str()) else { continue };
        println!(
            "  {loader:<9} {:>11.0} {:>8.2} {:>9.3} {:>9.1} {:>11.1} {:>11.1} {:>9.1} {:>9}",
            of(figures, |f| f.items_per_s),
            of(figures, |f| f.gb_per_s),
            of(figures, |f| f.step_ms),
            of(figures, |f| f.cpu_us),
            of(figures, |f| f.wait_us_p50),
            of(figures, |f| f.wait_us_p99),
            of(figures, |f| f.first_batch_ms),
            figures[0].pinned_mb.map_or("-".into(), |mb| format!("{mb:.1}")),
        );
    }
    if let Some(kept) = all.get("kept") {
        let costs = |pick: fn(&Costs) -> Option<f64>| {
            median(kept.iter().filter_map(|figures| pick(figures.kept.as_ref()?)).collect())
        };
        println!(
            "  kept: read once in {:.0} ms, {:.2} x an epoch of `pinned`; {:.1} MB of rows",
            costs(|kept| Some(kept.read_ms)),
            costs(|kept| Some(kept.read_ms / kept.epoch_ms)),
            costs(|kept| Some(kept.rows_mb)),
        );
        let taken = costs(|kept| Some(kept.kept_mb? / kept.rows_mb));
        if taken.is_finite() {
            println!("  kept: they take {taken:.3} x as much of the device");
        }
        for other in ["resident", "pinned", "burn"] {
            let Some(others) = all.get(other) else { continue };
            let ratio = median(kept.iter().zip(others).map(|(a, b)| a.step_ms / b.step_ms).collect());
            println!("  kept / {other}: {ratio:.3} x the time of a step");
        }
    }
    if let (Some(ours), Some(burns)) = (all.get("pinned"), all.get("burn")) {
        let ratio =
            |pick: fn(&Figures) -> f64| median(ours.iter().zip(burns).map(|(a, b)| pick(a) / pick(b)).collect());
        println!(
            "  pinned / burn: {:.2} x the throughput, {:.2} x the time to the first batch",
            ratio(|f| f.items_per_s),
            ratio(|f| f.first_batch_ms)
        );
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
