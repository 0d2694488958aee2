//! A timeline in the JSON that Perfetto and Chrome read.

use super::bars::{Bar, Timeline};
use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

impl Timeline {
    /// Returns the trace as JSON, for <https://ui.perfetto.dev> or `chrome://tracing`. It has a track for each thread,
    /// and one slice for each activity with the numbers of its epoch and batch.
    pub fn to_trace(&self) -> String {
        let mut tracks = BTreeMap::new();
        for bar in &self.bars {
            let next = tracks.len() + 1;
            tracks.entry((bar.lane, bar.row)).or_insert(next);
        }
        let mut json = String::from(
            "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n\
             {\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"burn-pinned\"}},",
        );
        // Nothing that is written here needs escaping, and writing to a string does not fail.
        for ((lane, _), track) in &tracks {
            for (kind, value) in [("name", format!("\"{lane}\"")), ("sort_index", track.to_string())] {
                let _ = write!(
                    json,
                    "\n{{\"ph\":\"M\",\"pid\":1,\"tid\":{track},\"name\":\"thread_{kind}\",\"args\":{{\"{kind}\":{value}}}}},"
                );
            }
        }
        for bar in &self.bars {
            let Bar { lane, row, activity, batch, start, end } = bar;
            let (name, track) = (activity.name(), tracks.get(&(*lane, *row)).copied().unwrap_or_default());
            let device = batch.device.map_or_else(String::new, |device| format!(",\"device\":{device}"));
            let (ts, dur) = (micros(*start), micros(*end - *start));
            let _ = write!(
                json,
                "\n{{\"ph\":\"X\",\"pid\":1,\"tid\":{track},\"ts\":{ts},\"dur\":{dur},\"name\":\"{name} {}\",\"cat\":\"{name}\",\
                 \"args\":{{\"epoch\":{},\"batch\":{}{device}}}}},",
                batch.number, batch.epoch, batch.number
            );
        }
        if json.ends_with(',') {
            json.pop();
        }
        json.push_str("\n]}\n");
        json
    }
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}
