//! What was measured, as a table or as a line of JSON.

use burn_pinned_tools::{
    collate::Tally,
    measure::Epoch,
    remote::Traffic,
    size::{count, several, time},
};
use serde_json::json;
use std::time::Duration;

/// The number of first epochs that have lines of their own. Later epochs share a line.
const LINES: usize = 5;

/// What was measured.
pub(crate) struct Report {
    pub(crate) format: String,
    /// What was made of the rows.
    pub(crate) work: String,
    pub(crate) rows: usize,
    pub(crate) opened: Duration,
    pub(crate) workers: usize,
    pub(crate) batch_size: usize,
    pub(crate) order: String,
    pub(crate) epochs: Vec<Epoch>,
    /// Of a store behind a network.
    pub(crate) traffic: Option<Traffic>,
    pub(crate) verdict: String,
}

/// Samples and MB a second.
fn rates(tally: &Tally, time: Duration) -> (f64, f64) {
    let seconds = time.as_secs_f64().max(1e-9);
    (tally.rows as f64 / seconds, tally.bytes as f64 / 1e6 / seconds)
}

/// Several epochs as one.
fn together(epochs: &[Epoch]) -> (Tally, Duration) {
    let mut all = Tally::default();
    epochs.iter().for_each(|epoch| all.add(&epoch.tally));
    (all, epochs.iter().map(|epoch| epoch.time).sum())
}

impl Report {
    pub(crate) fn print(&self) {
        let Self { format, work, rows, opened, workers, batch_size, order, .. } = self;
        println!("{format}, {}, opened in {}: {work}", several(*rows, "row"), time(*opened));
        println!("{}, batches of {batch_size}, {order}\n", several(*workers, "worker"));
        println!("  epoch    samples/s       MB/s   first batch       time");
        let (first, later) = match self.epochs.split_at_checked(LINES) {
            Some((first, later)) if later.len() > 1 => (first, later),
            _ => (&*self.epochs, [].as_slice()),
        };
        for (number, epoch) in (1..).zip(first) {
            let share = match epoch.whole {
                true => String::new(),
                false => format!("  ({:.0} % of it)", 100.0 * epoch.tally.rows as f64 / (*rows).max(1) as f64),
            };
            line(&number.to_string(), &epoch.tally, epoch.time, &time(epoch.first_batch), &share);
        }
        if !later.is_empty() {
            let (tally, time) = together(later);
            line(&format!("{}-{}", LINES + 1, self.epochs.len()), &tally, time, "", "");
        }
        if self.epochs.len() > 1 {
            let (tally, time) = together(&self.epochs);
            line("all", &tally, time, "", "");
        }
        if let Some(traffic) = &self.traffic {
            println!("\n{traffic}");
        }
        println!("\n{}", self.verdict);
    }

    pub(crate) fn json(&self) -> String {
        let line = |tally: &Tally, time: Duration| {
            let (samples, mb) = rates(tally, time);
            json!({"samples": tally.rows, "bytes": tally.bytes, "seconds": time.as_secs_f64(), "samples_per_s": samples, "mb_per_s": mb})
        };
        let epochs = self.epochs.iter().map(|epoch| {
            let mut json = line(&epoch.tally, epoch.time);
            json["first_batch_s"] = epoch.first_batch.as_secs_f64().into();
            json["whole"] = epoch.whole.into();
            json
        });
        let (tally, time) = together(&self.epochs);
        let report = json!({
            "format": self.format, "work": self.work, "rows": self.rows, "open_s": self.opened.as_secs_f64(),
            "workers": self.workers, "batch_size": self.batch_size, "order": self.order,
            "epochs": epochs.collect::<Vec<_>>(), "all": line(&tally, time), "verdict": self.verdict,
            "fetched": self.traffic.as_ref().map(Traffic::json),
        });
        report.to_string()
    }
}

fn line(name: &str, tally: &Tally, took: Duration, first_batch: &str, note: &str) {
    let (samples, mb) = rates(tally, took);
    let (samples, mb) = (count(samples.round() as u64), count(mb.round() as u64));
    println!("{name:>7} {samples:>12} {mb:>10} {first_batch:>13} {:>10}{note}", time(took));
}
