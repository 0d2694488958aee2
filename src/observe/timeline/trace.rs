//! A timeline: which thread did what, and when. It is saved as JSON for Perfetto and Chrome.

use super::record::{Event, Lane};
use std::{
    cmp::Reverse,
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    io::{Error, ErrorKind, Result},
    path::Path,
    time::{Duration, Instant},
};

/// A recording of what each thread of a loader did, when, and for which batch; see
/// [`PinnedDataLoader::record`](crate::PinnedDataLoader::record).
///
/// ```
/// # use burn::{data::dataset::InMemDataset, prelude::*, tensor::DType};
/// # use burn_pinned::{BoxError, Collate, Field, PinnedDataLoaderBuilder, RawBatch, RowMut};
/// # struct Squares;
/// # impl Collate<f32> for Squares {
/// #     type Batch = Tensor<1>;
/// #     fn layout(&self) -> Vec<Field> { vec![Field::new("x", DType::F32, [])] }
/// #     fn write(&self, x: &f32, row: &mut RowMut<'_>) -> Result<(), BoxError> { Ok(row.put("x", x * x)?) }
/// #     fn finish(&self, mut batch: RawBatch) -> Result<Tensor<1>, BoxError> { Ok(batch.take("x")?) }
/// # }
/// # let loader = PinnedDataLoaderBuilder::new(Squares).batch_size(2).build(InMemDataset::new(vec![1.0, 2.0, 3.0]))?;
/// # let folder = tempfile::tempdir()?;
/// # let path = |name: &str| folder.path().join(name);
/// loader.record(10_000); // the last 10,000 events, 90 bytes each
/// for batch in loader.iter() { /* train */ }
/// let timeline = loader.timeline();
/// timeline.save(path("trace.json"))?; // for ui.perfetto.dev
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// The events, each with its row in the lane, sorted by lane, row and start. Events that overlap without nesting, such as ready
    /// batches, are in separate rows. An event inside another one comes after it.
    events: Vec<(usize, Event)>,
}

impl Timeline {
    pub(crate) fn of(mut events: Vec<Event>) -> Self {
        events.sort_by_key(|event| (event.lane, event.start, Reverse(event.end)));
        let mut placed = Vec::with_capacity(events.len());
        let mut rows: Vec<(Instant, Instant)> = Vec::new(); // the last outer event of each row of the lane
        let mut last = None;
        for event in events {
            let Event { lane, start, end, .. } = event;
            if last.replace(lane) != Some(lane) {
                rows.clear();
            }
            // A thread's events nest; ready batches do not.
            let within = |from: Instant, to: Instant| !matches!(lane, Lane::Ready(_)) && start >= from && end <= to;
            let fits = |(from, to): &(Instant, Instant)| start >= *to || within(*from, *to);
            let row = rows.iter().position(fits).unwrap_or(rows.len());
            match rows.get_mut(row) {
                None => rows.push((start, end)),
                Some(outer) if start >= outer.1 => *outer = (start, end),
                Some(_) => {}
            }
            placed.push((row, event));
        }
        placed.sort_by_key(|(row, event)| (event.lane, *row)); // stable: by start within a row
        Self { events: placed }
    }

    /// How many events were recorded.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Returns the trace as JSON, for <https://ui.perfetto.dev> or `chrome://tracing`. It has a track for each thread,
    /// and one slice for each activity with the numbers of its epoch and batch.
    pub fn to_trace(&self) -> String {
        let mut tracks = BTreeMap::new();
        for (row, event) in &self.events {
            let next = tracks.len() + 1;
            tracks.entry((event.lane, *row)).or_insert(next);
        }
        let origin = self.events.iter().map(|(_, event)| event.start).min();
        let mut json = String::from(
            "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n\
             {\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"burn-pinned\"}},",
        );
        // None of this text needs escaping, and writing to a string does not fail.
        for ((lane, _), track) in &tracks {
            for (kind, value) in [("name", format!("\"{lane}\"")), ("sort_index", track.to_string())] {
                let _ = write!(
                    json,
                    "\n{{\"ph\":\"M\",\"pid\":1,\"tid\":{track},\"name\":\"thread_{kind}\",\"args\":{{\"{kind}\":{value}}}}},"
                );
            }
        }
        for (row, Event { lane, activity, batch, start, end }) in &self.events {
            let (name, track) = (activity.name(), tracks.get(&(*lane, *row)).copied().unwrap_or_default());
            let device = batch.device.map_or_else(String::new, |device| format!(",\"device\":{device}"));
            let (ts, dur) = (micros(*start - origin.unwrap_or(*start)), micros(*end - *start));
            let _ = write!(
                json,
                "\n{{\"ph\":\"X\",\"pid\":1,\"tid\":{track},\"ts\":{ts},\"dur\":{dur},\"name\":\"{name} {}\",\"cat\":\"{name}\",\
                 \"args\":{{\"epoch\":{},\"batch\":{}{device}}}}},",
                batch.number, batch.epoch, batch.number
            );
        }
        json.pop(); // the last comma
        json.push_str("\n]}\n");
        json
    }

    /// Writes the [trace](Self::to_trace) to a file whose name ends in `.json`. Overwrites an existing file.
    ///
    /// # Errors
    /// If the file cannot be written, or its name has another ending.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        if path.extension().is_none_or(|ending| ending != "json") {
            let problem = format!(
                "a timeline is saved as a trace, which opens in https://ui.perfetto.dev: write {} instead of {}",
                path.with_extension("json").display(),
                path.display()
            );
            return Err(Error::new(ErrorKind::InvalidInput, problem));
        }
        fs::write(path, self.to_trace())
    }
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::{BatchKey, Stage};

    fn event(lane: Lane, activity: Stage, number: usize, start: u64, end: u64, origin: Instant) -> Event {
        let at = |us| origin + Duration::from_micros(us);
        Event { lane, activity, batch: BatchKey::new(0, number), start: at(start), end: at(end) }
    }

    fn timeline() -> Timeline {
        let now = Instant::now();
        Timeline::of(vec![
            event(Lane::Worker(None, 0), Stage::Fill, 0, 0, 100, now),
            event(Lane::of(None, Stage::Transfer, Some(0)), Stage::Transfer, 0, 100, 150, now),
            event(Lane::Worker(None, 0), Stage::Fill, 1, 100, 180, now),
            event(Lane::Ready(None), Stage::Ready, 0, 150, 400, now),
            event(Lane::Ready(None), Stage::Ready, 1, 180, 500, now),
            event(Lane::Ready(None), Stage::Ready, 2, 400, 500, now),
            event(Lane::Step(None), Stage::Finish, 0, 400, 410, now),
            event(Lane::Step(None), Stage::Wait, 0, 350, 410, now),
            event(Lane::Step(None), Stage::Step, 0, 410, 700, now),
            event(Lane::Step(None), Stage::Wait, 1, 700, 710, now),
        ])
    }

    #[test]
    fn overlapping_events_stand_in_rows_and_nested_ones_within() {
        let timeline = timeline();
        let rows = |of: Lane| {
            let events = timeline.events.iter().filter(move |(_, event)| event.lane == of);
            events.map(|(row, event)| (event.batch.number, *row)).collect::<Vec<_>>()
        };
        assert_eq!(rows(Lane::Ready(None)), [(0, 0), (2, 0), (1, 1)]);
        assert_eq!(rows(Lane::Step(None)), [(0, 0), (0, 0), (0, 0), (1, 0)]);
        assert_eq!(rows(Lane::Worker(None, 0)), [(0, 0), (1, 0)]);
        assert_eq!(rows(Lane::of(None, Stage::Transfer, Some(0))), [(0, 0)]);
    }

    /// One thread notes the start of a wait and another one its end.
    #[test]
    fn an_end_before_the_start_is_none() {
        let (recorder, now) = (super::super::record::Recorder::default(), Instant::now());
        recorder.start(4);
        recorder.add(Stage::Ready, BatchKey::new(0, 0), now + Duration::from_micros(3), now);
        let timeline = Timeline::of(recorder.events());
        assert!(timeline.to_trace().contains("\"dur\":0,\"name\":\"ready 0\""), "{}", timeline.to_trace());
    }

    #[test]
    fn the_trace_is_json_with_all_events() {
        let trace: serde_json::Value = serde_json::from_str(&timeline().to_trace()).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let fill = events.iter().find(|event| event["name"] == "fill 1").unwrap();
        assert_eq!((fill["ts"].as_f64(), fill["dur"].as_f64()), (Some(100.0), Some(80.0)));
        assert_eq!(events.iter().filter(|event| event["ph"] == "X").count(), 10);
        let names: Vec<_> = events.iter().filter_map(|event| event["args"]["name"].as_str()).collect();
        assert_eq!(names, ["burn-pinned", "step", "ready", "ready", "transfer 0", "worker 0"]);
    }

    #[test]
    fn another_ending_is_refused_with_the_right_one() {
        for name in ["timeline.svg", "timeline"] {
            let error = timeline().save(name).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().ends_with(&format!("write timeline.json instead of {name}")), "{error}");
        }
    }
}
