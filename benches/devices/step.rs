//! A loop like a training, on each device: with its batch already there, with plain copies beside it, and with the
//! loader's batches.

use crate::{
    batch::{Case, ROW},
    feed::{Feed, Source},
    links::beside,
    report::{each, median, rounded},
    window::{Start, joined},
};
use burn::tensor::{DType, Device, Distribution, Int, Tensor};
use burn_pinned::BoxError;
use serde_json::{Value, json};
use std::{
    thread,
    time::{Duration, Instant},
};

/// What a step should take, in milliseconds.
const AIM: f64 = 10.0;
/// Steps of the loop that finds out how many products a step needs, between two waits for the device.
const STRETCH: usize = 10;
/// Matrix products of the first step that is timed to find out how many a step needs, and how often that is done. A GPU
/// that has just begun to work is slower.
const TRIED: usize = 20;
const TRIALS: usize = 8;

/// The step of all devices.
#[derive(Clone, Copy)]
pub(crate) struct Work {
    matmuls: usize,
    side: usize,
    /// What a step takes.
    time: Duration,
    /// Steps from one wait for the device to the next.
    every: usize,
}

/// As in the bench `loaders`: casts, scales and reduces the batch, and multiplies matrices.
struct Step {
    matrix: Tensor<2>,
    matmuls: usize,
}

/// What one device did in one window.
struct Pace {
    /// The median over the stretches, and the mean.
    step_ms: f64,
    mean_ms: f64,
    /// The median over the last quarter of the stretches: by then the number of workers may have grown.
    late_ms: f64,
    /// The share of the time in which the loop waited for a batch.
    wait_share: f64,
}

impl Step {
    fn new(matmuls: usize, side: usize, device: &Device) -> Self {
        let matrix: Tensor<2> = Tensor::random([side, side], Distribution::Normal(0.0, 0.01), device);
        let matrix: Tensor<2> = if device.supports_dtype(DType::BF16) { matrix.cast(DType::BF16) } else { matrix };
        Self { matrix, matmuls }
    }

    fn run(&self, x: Tensor<4, Int>) -> Tensor<1> {
        let x = x.float() * 0.0039 - 0.5;
        let mut h = self.matrix.clone();
        for _ in 0..self.matmuls {
            h = h.matmul(self.matrix.clone());
        }
        let out = x.clone().mean() + (x * 2.0).mean();
        if self.matmuls > 0 { out + h.mean().cast(DType::F32) } else { out }
    }
}

impl Work {
    /// Finds out how many products take the time of a step.
    pub(crate) fn calibrate(case: &Case, device: &Device, side: usize, every: usize) -> Result<Self, BoxError> {
        let x = case.resident(device)?;
        let time = |matmuls| -> Result<f64, BoxError> {
            let step = Step::new(matmuls, side, device);
            let mut next = || -> Result<_, BoxError> { Ok(x.clone()) };
            stretch(&step, STRETCH, &mut next, device)?;
            Ok(stretch(&step, STRETCH, &mut next, device)?.0)
        };
        let mut matmuls = TRIED;
        for _ in 0..TRIALS {
            let light = time(0)?;
            let each = (time(matmuls)? - light) / matmuls as f64;
            matmuls = ((AIM - light) / each).round().clamp(1.0, 500.0) as usize;
        }
        let time = Duration::from_secs_f64(time(matmuls)? / 1e3);
        Ok(Self { matmuls, side, time, every })
    }

    /// Runs the step on all devices at once: with a resident batch, with copies beside it, and with the loader's batches.
    /// Each comes first in one of three rounds.
    pub(crate) fn run(
        self,
        case: &Case,
        feed: &Feed,
        devices: &[Device],
        time: Duration,
        round: usize,
        gpus: bool,
    ) -> Result<Value, BoxError> {
        let starts = [0, 1, 2].map(|_| Start::new(devices.len(), time));
        let all = thread::scope(|scope| {
            let starts = &starts;
            let sources = devices.iter().zip(&feed.sources).enumerate();
            let one = |(nth, (device, source))| {
                scope.spawn(move || self.one_device(case, source, (nth, device), starts, round))
            };
            joined(sources.map(one), "a training loop panicked")
        })?;
        let of = |pick: fn(&[Pace; 3]) -> f64| all.iter().map(pick).collect::<Vec<f64>>();
        let ratios = of(|[resident, _, loader]| loader.step_ms / resident.step_ms);
        // Without GPUs nothing was copied.
        let copied = |ratios: Vec<f64>| gpus.then(|| each(&ratios, 4));
        let first = ["resident", "copies", "loader"][round % 3];
        Ok(json!({
            "batch": case.batch,
            "matmuls": self.matmuls,
            "matmul_side": self.side,
            "every": self.every,
            "first": first,
            "resident_ms": each(&of(|[resident, _, _]| resident.step_ms), 3),
            "copies_ratio": copied(of(|[resident, copies, _]| copies.step_ms / resident.step_ms)),
            "copies_mean_ratio": copied(of(|[resident, copies, _]| copies.mean_ms / resident.mean_ms)),
            "loader_ms": each(&of(|[_, _, loader]| loader.step_ms), 3),
            "ratio": each(&ratios, 4),
            "ratio_max": rounded(ratios.iter().copied().fold(0.0, f64::max), 4),
            "late_ratio": each(&of(|[resident, _, loader]| loader.late_ms / resident.step_ms), 4),
            "workers_at_end": feed.workers(),
            "mean_ratio": each(&of(|[resident, _, loader]| loader.mean_ms / resident.mean_ms), 4),
            "wait_share": each(&of(|[_, _, loader]| loader.wait_share), 4),
        }))
    }

    /// The paces of one device: with a resident batch, with copies beside it, with the loader's batches.
    fn one_device(
        self,
        case: &Case,
        source: &Source,
        (nth, device): (usize, &Device),
        starts: &[Start; 3],
        round: usize,
    ) -> Result<[Pace; 3], BoxError> {
        let step = Step::new(self.matmuls, self.side, device);
        let x = case.resident(device);
        let resident = |start: &Start| {
            let mut next = || -> Result<_, BoxError> { Ok(x.as_ref().map_err(|error| error.to_string())?.clone()) };
            pace(&step, self.every, &mut next, device, start)
        };
        let copies = |start: &Start| beside(nth, case.batch * ROW, self.time, || resident(start));
        let loader = |start: &Start| {
            let mut epoch = source.iter();
            let mut next = || -> Result<_, BoxError> { Ok(epoch.next().ok_or("the epoch ended early")??.0) };
            pace(&step, self.every, &mut next, device, start)
        };
        // All run, also if one has failed: the other devices wait for this one at the next start.
        let mut paces = [None, None, None];
        for (turn, start) in starts.iter().enumerate() {
            let kind = (turn + round) % paces.len();
            paces[kind] = Some(match kind {
                0 => resident(start),
                1 => copies(start),
                _ => loader(start),
            });
        }
        let [Some(resident), Some(copies), Some(loader)] = paces else { return Err("a kind is missing".into()) };
        Ok([resident?, copies?, loader?])
    }
}

/// Where a step gets its images from.
type Next<'a> = &'a mut dyn FnMut() -> Result<Tensor<4, Int>, BoxError>;

/// Runs some steps, then waits for the device. Returns the milliseconds that each took, and the share of the time that
/// went to `next`.
fn stretch(step: &Step, steps: usize, next: Next<'_>, device: &Device) -> Result<(f64, f64), BoxError> {
    let (begun, mut waited, mut last) = (Instant::now(), 0.0, None);
    for _ in 0..steps {
        let asked = Instant::now();
        let x = next()?;
        waited += asked.elapsed().as_secs_f64();
        last = Some(step.run(x));
    }
    device.sync().map_err(|error| error.to_string())?;
    let time = begun.elapsed().as_secs_f64();
    drop(last);
    Ok((1e3 * time / steps as f64, waited / time))
}

/// Runs steps until the window is over.
fn pace(step: &Step, every: usize, next: Next<'_>, device: &Device, start: &Start) -> Result<Pace, BoxError> {
    let warmed = stretch(step, every, next, device);
    let window = start.wait();
    warmed?;
    let (mut times, mut waits) = (Vec::new(), Vec::new());
    loop {
        let now = Instant::now();
        // At least one stretch counts.
        if window.is_over(now) && !times.is_empty() {
            break;
        }
        let (ms, waited) = stretch(step, every, next, device)?;
        if window.has_begun(now) {
            times.push(ms);
            waits.push(waited);
        }
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let late_ms = median(times[times.len() * 3 / 4..].to_vec());
    Ok(Pace { mean_ms: mean(&times), wait_share: mean(&waits), step_ms: median(times), late_ms })
}
