//! What is printed: a line for each measurement.

use crate::link;
use serde_json::{Map, Value, json};
use std::time::{Duration, SystemTime};

/// What was measured where.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) devices: usize,
    /// Of all devices together; `None` where no worker had a part in it.
    pub(crate) workers: Option<usize>,
    pub(crate) round: usize,
}

pub(crate) struct Report {
    json: bool,
    /// What all lines have.
    head: Value,
}

impl Report {
    pub(crate) fn new(json: bool) -> Self {
        let date = SystemTime::UNIX_EPOCH.elapsed().unwrap_or(Duration::ZERO).as_secs();
        let head = json!({
            "date": date, "gpu": link::gpu(), "burn": "0.22.1", "burn_pinned": env!("CARGO_PKG_VERSION"),
        });
        if !json {
            println!("{}", words(&head));
        }
        Self { json, head }
    }

    pub(crate) fn print(&self, case: &str, place: Place, figures: &Value) {
        let Place { devices, workers, round } = place;
        if self.json {
            let place = json!({ "case": case, "devices": devices, "workers": workers, "round": round });
            let parts = [&self.head, &place, figures].into_iter().filter_map(Value::as_object);
            let line: Map<String, Value> = parts.flat_map(Clone::clone).collect();
            println!("{}", Value::Object(line));
        } else {
            let workers = workers.map_or(String::new(), |workers| format!(", workers {workers}"));
            println!("{case}: devices {devices}{workers}, round {round}: {}", words(figures));
        }
    }
}

fn words(figures: &Value) -> String {
    let figures = figures.as_object().into_iter().flatten();
    figures.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
}

pub(crate) fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

pub(crate) fn each(values: &[f64], digits: i32) -> Vec<f64> {
    values.iter().map(|value| rounded(*value, digits)).collect()
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
