//! A timeline: which thread did what, from when until when. It is saved as a picture or as a trace.

use super::record::{Event, Lane};
use crate::vocabulary::{BatchKey, Stage};
use std::{
    cmp::Reverse,
    fs,
    io::{Error, ErrorKind, Result},
    ops::Range,
    path::Path,
    time::{Duration, Instant},
};

/// A recording of what each thread of a loader did when, and for which batch; see
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
/// timeline.batches(0, 20..32).save(path("timeline.svg"))?; // for any browser
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// Sorted by lane, row and start. An event inside another one comes after it.
    pub(super) bars: Vec<Bar>,
}

#[derive(Debug, Clone)]
pub(super) struct Bar {
    pub(super) lane: Lane,
    /// The row in the lane. Events that overlap without nesting are in rows of their own, for example batches that lie
    /// ready.
    pub(super) row: usize,
    pub(super) activity: Stage,
    pub(super) batch: BatchKey,
    /// The time since the first event.
    pub(super) start: Duration,
    pub(super) end: Duration,
}

impl Timeline {
    pub(crate) fn of(mut events: Vec<Event>) -> Self {
        let Some(origin) = events.iter().map(|event| event.start).min() else { return Self::default() };
        events.sort_by_key(|event| (event.lane, event.start, Reverse(event.end)));
        let mut bars = Vec::with_capacity(events.len());
        let mut rows: Vec<(Instant, Instant)> = Vec::new(); // the last outer event of each row of the lane
        let mut last = None;
        for Event { lane, activity, batch, start, end } in events {
            if last.replace(lane) != Some(lane) {
                rows.clear();
            }
            // A thread's events nest; batches that lie ready do not.
            let within = |from: Instant, to: Instant| !matches!(lane, Lane::Ready(_)) && start >= from && end <= to;
            let fits = |(from, to): &(Instant, Instant)| start >= *to || within(*from, *to);
            let row = rows.iter().position(fits).unwrap_or(rows.len());
            match rows.get_mut(row) {
                None => rows.push((start, end)),
                Some(outer) if start >= outer.1 => *outer = (start, end),
                Some(_) => {}
            }
            bars.push(Bar { lane, row, activity, batch, start: start - origin, end: end - origin });
        }
        bars.sort_by_key(|bar| (bar.lane, bar.row)); // stable: by start within a row
        Self { bars }
    }

    /// How many events were recorded.
    pub fn len(&self) -> usize {
        self.bars.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.bars.is_empty()
    }

    /// Returns the part from the wait for the last `batches` batches on. A dozen make a readable picture.
    /// Of several devices, the batches of all count together.
    pub fn last_batches(&self, batches: usize) -> Self {
        let mut waits: Vec<Duration> =
            self.bars.iter().filter(|bar| bar.activity == Stage::Wait).map(|bar| bar.start).collect();
        waits.sort_unstable();
        match waits.len().checked_sub(batches).and_then(|at| waits.get(at)) {
            Some(from) => self.part(*from, Duration::MAX),
            None => self.clone(),
        }
    }

    /// Returns the part for these batches of an epoch. It goes from the wait for the first of them to the step of the
    /// last. Epochs and batches are counted from 0. Of several devices, it has
    /// these batches of all. The part is empty if none of these batches was recorded. Batches in
    /// the middle of an epoch show more than the last ones, for which the workers have long been done.
    pub fn batches(&self, epoch: usize, batches: Range<usize>) -> Self {
        let of_step = |bar: &&Bar| {
            matches!(bar.activity, Stage::Wait | Stage::Step)
                && bar.batch.epoch == epoch
                && batches.contains(&bar.batch.number)
        };
        let shown = self.bars.iter().filter(of_step);
        match (shown.clone().map(|bar| bar.start).min(), shown.map(|bar| bar.end).max()) {
            (Some(from), Some(to)) => self.part(from, to),
            _ => Self::default(),
        }
    }

    /// Returns what goes on between two times, cut at both.
    fn part(&self, from: Duration, to: Duration) -> Self {
        let cut = |bar: &Bar| Bar {
            start: bar.start.saturating_sub(from),
            end: bar.end.min(to).saturating_sub(from),
            ..bar.clone()
        };
        Self { bars: self.bars.iter().filter(|bar| bar.end > from && bar.start < to).map(cut).collect() }
    }

    /// Writes a file: a trace for Perfetto or Chrome (`.json`), or a picture (`.svg`). A file that is there is
    /// overwritten.
    ///
    /// # Errors
    /// If the file cannot be written, or its name has another ending.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let text = match ending {
            "json" => self.to_trace(),
            "svg" => self.to_svg(),
            _ => return Err(Error::new(ErrorKind::InvalidInput, "a timeline is saved as .svg or .json")),
        };
        fs::write(path, text)
    }

    pub(super) fn end(&self) -> Duration {
        self.bars.iter().map(|bar| bar.end).max().unwrap_or_default()
    }

    /// Returns the lanes from top to bottom, each with its number of rows.
    pub(super) fn lanes(&self) -> Vec<(Lane, usize)> {
        let mut lanes: Vec<(Lane, usize)> = Vec::new();
        for bar in &self.bars {
            match lanes.last_mut() {
                Some((lane, rows)) if *lane == bar.lane => *rows = bar.row + 1,
                _ => lanes.push((bar.lane, bar.row + 1)),
            }
        }
        lanes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let lanes = [
            (Lane::Step(None), 1),
            (Lane::Ready(None), 2),
            (Lane::of(None, Stage::Transfer, Some(0)), 1),
            (Lane::Worker(None, 0), 1),
        ];
        assert_eq!(timeline.lanes(), lanes);
        let ready: Vec<_> = timeline
            .bars
            .iter()
            .filter(|bar| bar.lane == Lane::Ready(None))
            .map(|bar| (bar.batch.number, bar.row))
            .collect();
        assert_eq!(ready, [(0, 0), (2, 0), (1, 1)]);
        let last = timeline.last_batches(1);
        assert_eq!((last.len(), last.end()), (1, Duration::from_micros(10)));
        assert_eq!(timeline.last_batches(5).len(), timeline.len());
    }

    #[test]
    fn a_part_is_cut_at_both_ends() {
        let timeline = timeline();
        let part = timeline.batches(0, 0..1); // its wait began at 350, its step ended at 700
        let bars: Vec<_> = part
            .bars
            .iter()
            .map(|bar| (bar.activity.name(), bar.batch.number, bar.start.as_micros(), bar.end.as_micros()))
            .collect();
        assert_eq!(
            bars,
            [
                ("wait", 0, 0, 60),
                ("finish", 0, 50, 60),
                ("step", 0, 60, 350),
                ("ready", 0, 0, 50),
                ("ready", 2, 50, 150),
                ("ready", 1, 0, 150),
            ]
        );
        assert_eq!(timeline.batches(0, 0..100).end(), Duration::from_micros(360));
        assert!(timeline.batches(0, 7..9).is_empty() && timeline.batches(1, 0..9).is_empty());
    }

    /// One thread notes the start of a wait and another one its end.
    #[test]
    fn an_end_before_the_start_is_none() {
        let (recorder, now) = (super::super::record::Recorder::default(), Instant::now());
        recorder.start(4);
        recorder.add(Stage::Ready, BatchKey::new(0, 0), now + Duration::from_micros(3), now);
        let timeline = Timeline::of(recorder.events());
        assert!(timeline.to_svg().starts_with("<svg ") && timeline.to_trace().contains("ready"));
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
    fn the_picture_has_a_bar_for_each_event() {
        let svg = timeline().to_svg();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert_eq!(svg.matches("<title>").count(), 10);
        assert!(Timeline::default().to_svg().contains("</svg>"));
    }

    #[test]
    fn only_two_kinds_of_files() {
        assert_eq!(timeline().save("timeline.png").unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
