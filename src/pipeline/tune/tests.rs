use super::{tuner::*, tuning::*};
use crate::observe::CopyId;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// The only copy of a loader.
const ONE: CopyId = CopyId(0);

/// A loader whose workers each make `worker` batches a second, with a link and a step of these rates.
fn seen(workers: usize, worker: f64, step: f64, link: f64) -> Seen {
    let fill = worker * workers as f64;
    let rate = fill.min(step).min(link);
    let time = Duration::from_secs(1);
    Seen { time, waited: time.mul_f64(1.0 - rate / step), batches: rate.round() as u32 }
}

/// Returns the mean rate of some windows, and the number of workers at the end.
fn run(worker: f64, step: f64, link: f64, windows: usize) -> (f64, usize) {
    let mut tuner = Tuner::new((1, 16), (2, 2));
    let mut batches = 0;
    for _ in 0..windows {
        let seen = seen(tuner.workers(), worker, step, link);
        batches += seen.batches;
        let settled = tuner.settled();
        let said = tuner.window(seen).unwrap_or_default();
        if said.ends_with("a trial") {
            assert_eq!(tuner.settled(), settled, "{said}");
        } else if said.contains("are kept") {
            assert_ne!(tuner.settled(), settled, "{said}");
        }
    }
    (f64::from(batches) / windows as f64, tuner.workers())
}

#[test]
fn as_few_workers_as_give_the_full_rate() {
    // (a worker, the step, the link): the best rate is known, and so are the workers that it takes.
    for (worker, step, link, most) in
        [(100.0f64, 300.0, 1e9, 5), (100.0, 1e9, 650.0, 9), (10.0, 1e4, 1e9, 16), (1e5, 20.0, 1e9, 1)]
    {
        let best = (16.0 * worker).min(step).min(link);
        let (mean, workers) = run(worker, step, link, 400);
        assert!(mean > 0.97 * best, "{worker} {step} {link}: {mean} of {best}");
        assert!(workers <= most, "{worker} {step} {link}: {workers} workers");
        let (early, _) = run(worker, step, link, 20);
        assert!(early > 0.93 * best, "{early} of {best} in the first windows");
    }
}

fn normal(rng: &mut StdRng) -> f64 {
    (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
}

/// Runs a loop that only waits. Its share of the best rate depends on the number of workers, with noise, and one window
/// in 20 is much slower. Returns the mean of the share without the noise, and the mean number of workers in the second
/// half.
fn climb(share: &dyn Fn(f64) -> f64, noise: f64, windows: usize) -> (f64, f64) {
    let (mut sum, mut workers, mut late) = (0.0, 0.0, 0.0);
    for seed in 0..50 {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut tuner = Tuner::new((1, 15), (2, 2));
        for window in 0..windows {
            let now = tuner.workers() as f64;
            let slow = if noise > 0.0 && rng.random_bool(0.05) { 0.85 } else { 1.0 };
            let batches = (1e5 * slow * share(now) * (1.0 + noise * normal(&mut rng))) as u32;
            let time = Duration::from_secs(1);
            let seen = Seen { time, waited: time.mul_f64(0.97), batches };
            let part = if tuner.is_failing(seen) { 0.125 } else { 1.0 }; // it ends early
            sum += part * share(now) + (1.0 - part);
            if window >= windows / 2 {
                workers += now;
                late += 1.0;
            }
            tuner.window(seen);
        }
    }
    (sum / (50 * windows) as f64, workers / late)
}

#[test]
fn the_best_number_of_workers_is_found_in_spite_of_noise() {
    // Measured on an H200 with samples of 784 bytes: eight workers are best, and eleven worse than fifteen.
    let dip = |workers: f64| {
        [0.3, 0.5, 0.7, 0.85, 0.92, 0.965, 0.98, 1.0, 0.98, 0.95, 0.935, 0.93, 0.935, 0.94, 0.948][workers as usize - 1]
    };
    let all = |workers: f64| workers / 15.0;
    let mild = |workers: f64| (0.85 + 0.01 * workers).min(0.19 * workers);
    let three = |workers: f64| (workers / 3.0).min(1.0);
    let cases: [(_, &dyn Fn(f64) -> f64, _); 4] =
        [("dip", &dip, 7.0..9.0), ("all", &all, 14.5..15.1), ("mild", &mild, 9.0..15.0), ("three", &three, 2.9..6.0)];
    for (name, share, best) in cases {
        for noise in [0.0, 0.01, 0.03, 0.06] {
            for (windows, least) in [(15, 0.95), (60, 0.97), (1000, 0.98)] {
                let (mean, workers) = climb(share, noise, windows);
                println!("{name:5} noise {noise:.2}, {windows:4} windows: {mean:.3} of the best, {workers:.1} workers");
                assert!(
                    mean > least && (windows < 1000 || best.contains(&workers)),
                    "{name}: {mean}, {workers} workers"
                );
            }
        }
    }
}

#[test]
fn work_that_grows_gets_its_workers_back() {
    let mut tuner = Tuner::new((1, 16), (2, 2));
    for _ in 0..100 {
        tuner.window(seen(tuner.workers(), 100.0, 200.0, 1e9));
    }
    let few = tuner.workers();
    assert!(few <= 4);
    // A loop that only waits more gets some more, one level after the other.
    let mut some = tuner.clone();
    let said: Vec<_> = (0..30).filter_map(|_| some.window(seen(some.workers(), 50.0, 200.0, 1e9))).collect();
    assert!(said[0].starts_with("the work has changed: 0.5"), "{said:?}");
    assert!((4..=7).contains(&some.workers()), "{}", some.workers());
    // A loop that mostly waits gets all at once.
    let said: Vec<_> = (0..3).filter_map(|_| tuner.window(seen(tuner.workers(), 20.0, 200.0, 1e9))).collect();
    assert_eq!(said, [format!("workers {few} -> 16: the step mostly waits now")]);
    for _ in 0..100 {
        tuner.window(seen(tuner.workers(), 20.0, 200.0, 1e9));
    }
    assert!((10..=12).contains(&tuner.workers()), "{}", tuner.workers());
}

/// Returns the number of windows until fewer workers than 16 are settled on.
fn windows_until_fewer(tuner: &mut Tuner) -> usize {
    let calm = Seen { time: Duration::from_secs(1), waited: Duration::ZERO, batches: 100 };
    let windows = (0..1000).position(|_| {
        tuner.window(calm);
        tuner.settled().0 < 16
    });
    windows.expect("fewer workers")
}

/// All workers come at once. They stay longer each time, so that a loop whose fewer workers are always too few calls less
/// and less. After a long time without a call, they stay as long as at first.
#[test]
fn a_call_brings_all_workers() {
    let calm = Seen { time: Duration::from_secs(1), waited: Duration::ZERO, batches: 100 };
    let mut tuner = Tuner::new((1, 16), (2, 2));
    assert_eq!(tuner.called(), None, "nobody rests");
    let mut stayed = vec![windows_until_fewer(&mut tuner)];
    for quiet in [0, 0, 0, 200] {
        (0..quiet).for_each(|_| drop(tuner.window(calm)));
        while tuner.called().is_some() {} // the first may only take a trial back
        assert_eq!((tuner.workers(), tuner.settled().0), (16, 16));
        stayed.push(windows_until_fewer(&mut tuner));
    }
    assert!(stayed[1..4].is_sorted_by(|a, b| a < b) && stayed[1] == stayed[4], "{stayed:?}");
}

/// A trial of fewer workers that makes the loop call is taken back, and nothing else is lost.
#[test]
fn a_call_ends_a_trial() {
    let calm = Seen { time: Duration::from_secs(1), waited: Duration::ZERO, batches: 100 };
    let mut tuner = Tuner::new((1, 16), (2, 2));
    while tuner.workers() == tuner.settled().0 {
        tuner.window(calm);
    }
    assert_eq!(tuner.called().as_deref(), Some("workers 12 -> 16: the step waits for long"));
    assert_eq!((tuner.workers(), tuner.called()), (16, None));
}

/// Loops that wait for long call all workers. Only many calls within few batches change what is chosen, and the wait that
/// led to them is no measure.
#[test]
fn calls_count_if_they_are_many() {
    let mut tuner = Tuner::new((1, 16), (2, 2));
    let calm = Seen { time: Duration::from_secs(1), waited: Duration::ZERO, batches: 100 };
    while tuner.settled().0 > 1 {
        tuner.window(calm);
    }
    let settings = Settings::new(tuner.workers(), 2);
    let few = settings.workers();
    let tuning = Tuning::new(tuner, Arc::clone(&settings));
    let step = || tuning.delivered(ONE, Duration::ZERO, Some(Duration::ZERO));
    tuning.delivered(ONE, Duration::ZERO, None);
    assert_eq!(tuning.seen().batches, 0, "it only starts the clock");
    for _ in 0..10 {
        tuning.called();
        assert!(!(0..20).any(|_| step()));
    }
    assert_eq!(settings.workers(), few, "one call in twenty batches");
    (0..5).for_each(|_| tuning.called());
    assert!(!(0..20).any(|_| step()));
    assert_eq!(settings.workers(), few, "loops side by side wait for the same");
    for call in 0..3 {
        assert_eq!(settings.workers(), few, "call {call}");
        tuning.called();
        step();
    }
    assert_eq!(settings.workers(), 16);
    assert_eq!(tuning.seen().batches, 0, "that wait is left out");
    step();
    assert_eq!(tuning.seen().batches, 1);
}

/// Waits that are usual call nobody. Several batches may come at once, and loops may wait side by side.
#[test]
fn the_usual_wait_is_that_of_a_loop() {
    let settings = Settings::new(16, 2);
    let tuning = Tuning::new(Tuner::new((1, 16), (2, 2)), Arc::clone(&settings));
    let mut batches = 0;
    while settings.usual_wait().is_zero() {
        assert!(batches < 200, "no window ends");
        std::thread::sleep(Duration::from_millis(10));
        let waited = Duration::from_millis(if batches % 4 == 0 { 600 } else { 0 });
        tuning.delivered(ONE, waited, Some(Duration::ZERO));
        batches += 1;
    }
    assert_eq!(settings.usual_wait().as_secs_f64(), 0.6);
}

/// A loop that does not wait has enough workers, however long its steps take. Where it stands still now and then, that
/// says nothing.
#[test]
fn what_the_loop_does_itself_calls_nobody() {
    let second = Duration::from_secs(1);
    let mut tuner = Tuner::new((1, 16), (2, 8));
    for window in 0..3000 {
        let batches = match window {
            _ if window % 100 == 99 => 20, // it saves a checkpoint
            1000.. => 900 + window % 60,   // steps that take longer, and differ
            _ => 1000,
        };
        let said = tuner.window(Seen { time: second, waited: Duration::ZERO, batches });
        let settled = window < 100 || (tuner.workers(), tuner.prefetch()) == (1, 2);
        assert!(settled, "window {window}: {} workers, {said:?}", tuner.workers());
    }
}

/// One window with waits starts no growth.
#[test]
fn rare_waits_want_no_batches_ahead() {
    let second = Duration::from_secs(1);
    let mut tuner = Tuner::new((4, 4), (2, 8));
    for window in 0..2000 {
        let (waits, batches) = if window % 20 == 19 { (0.03, 970) } else { (0.002, 998) };
        tuner.window(Seen { time: second, waited: second.mul_f64(waits), batches });
        assert_eq!(tuner.prefetch(), 2);
    }
}

#[test]
fn a_trial_that_noise_has_saved_is_found_out() {
    // The step only waits, as for data alone: the shares of its waits tell nothing.
    let window =
        |rate: f64| Seen { time: Duration::from_secs(1), waited: Duration::from_millis(998), batches: rate as u32 };
    let mut tuner = Tuner::new((1, 2), (2, 2));
    let rate = |tuner: &Tuner| 1000.0 * tuner.workers() as f64;
    tuner.window(window(2000.0));
    tuner.window(window(0.4 * rate(&tuner))); // the second just before a trial
    assert_eq!(tuner.workers(), 1, "a trial");
    let kept = tuner.window(window(rate(&tuner))).expect("a judgement");
    assert!(kept.starts_with("workers 1 are kept: 1.25 x the rate of 2"), "{kept}");
    let said: Vec<_> = (0..4).filter_map(|_| tuner.window(window(rate(&tuner)))).collect();
    assert!(said.iter().any(|said| said.starts_with("workers 2 are kept")), "{said:?}");
}

/// The waits have a cause that more workers cannot remove (the device, a start), and differ from window to window.
#[test]
fn noise_does_not_wake_workers_that_are_not_needed() {
    for (noise, waits) in [(0.002, 0.05), (0.005, 0.05), (0.01, 0.1), (0.015, 0.2)] {
        let mut rng = StdRng::seed_from_u64(7);
        let mut tuner = Tuner::new((1, 15), (2, 2));
        let (mut workers, mut jumps, mut windows) = (0, 0, 0);
        for window in 0..5000 {
            let (time, share) = (Duration::from_secs(1), (waits + noise * normal(&mut rng)).clamp(0.0, 1.0));
            let batches = (10_000.0 * (1.0 + 0.01 * normal(&mut rng))) as u32;
            let before = tuner.workers();
            tuner.window(Seen { time, waited: time.mul_f64(share), batches });
            if window >= 2500 {
                jumps += usize::from(before < 15 && tuner.workers() == 15);
                workers += tuner.workers();
                windows += 1;
            }
        }
        let mean = workers as f64 / f64::from(windows);
        println!("noise {noise}: {jumps} jumps, {mean:.1} workers on average");
        assert!(jumps <= 12 && mean < 4.0, "noise {noise}: {jumps} jumps, {mean} workers on average");
    }
}

/// Epochs of ten batches, shorter than a window.
#[test]
fn short_epochs_are_seen_together() {
    let settings = Settings::new(8, 2);
    let tuning = Tuning::new(Tuner::new((1, 8), (2, 2)), Arc::clone(&settings));
    for _ in 0..20 {
        for batch in 0..10 {
            std::thread::sleep(Duration::from_millis(6));
            tuning.delivered(ONE, Duration::ZERO, (batch > 0).then_some(Duration::from_millis(6)));
        }
    }
    assert!(settings.workers() < 8, "no trial in 1.2 s");
}

#[test]
fn a_trial_that_fails_is_short() {
    let settings = Settings::new(8, 2);
    let tuning = Tuning::new(Tuner::new((1, 8), (2, 2)), Arc::clone(&settings));
    let mut at_fewer = Duration::ZERO;
    tuning.delivered(ONE, Duration::ZERO, None);
    let start = Instant::now();
    while start.elapsed() < 4 * WINDOW {
        // A batch takes twice as long with fewer workers.
        let time = Duration::from_millis(if settings.workers() < 8 { 10 } else { 5 });
        std::thread::sleep(time);
        tuning.delivered(ONE, time, Some(Duration::ZERO));
        at_fewer += if settings.workers() < 8 { time } else { Duration::ZERO };
    }
    assert!(at_fewer > Duration::ZERO && at_fewer < WINDOW / 2, "{at_fewer:?}");
}

#[test]
fn batches_ahead_grow_only_where_that_helps() {
    let second = Duration::from_secs(1);
    // Waiting halves with each batch ahead, as with samples of very different cost.
    let mut tuner = Tuner::new((4, 4), (2, 8));
    for _ in 0..50 {
        let share = 0.2 / f64::from(1u32 << (tuner.prefetch() - 2));
        let batches = (1000.0 * (1.0 - share)) as u32;
        tuner.window(Seen { time: second, waited: second.mul_f64(share), batches });
    }
    assert!((5..=8).contains(&tuner.prefetch()), "{}", tuner.prefetch());
    // It does not help where the workers are too slow.
    let mut tuner = Tuner::new((4, 4), (2, 8));
    for _ in 0..50 {
        tuner.window(Seen { time: second, waited: second.mul_f64(0.5), batches: 100 });
    }
    assert_eq!(tuner.prefetch(), 2);
}

/// Four loops that wait side by side wait no longer than the time that passes.
#[test]
fn waits_of_several_loops_count_once() {
    let settings = Settings::new(8, 2);
    let tuning = Tuning::new(Tuner::new((1, 8), (2, 2)), settings);
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(2));
        for _ in 0..4 {
            tuning.delivered(ONE, Duration::from_millis(2), Some(Duration::ZERO));
        }
    }
    let Seen { time, waited, batches } = tuning.seen();
    assert!(batches == 20 && waited >= Duration::from_millis(10) && waited <= time, "{waited:?} of {time:?}");
}

/// Two loops take ten batches at once, and then wait for their devices. Windows have whole bursts of both.
#[test]
fn bursts_are_seen_whole() {
    let settings = Settings::new(8, 2);
    let tuning = Tuning::new(Tuner::new((1, 8), (2, 2)), Arc::clone(&settings));
    let half = Duration::from_millis(45);
    let (start, mut ends) = (Instant::now(), 0);
    tuning.delivered(ONE, Duration::ZERO, Some(2 * half));
    while settings.workers() > 1 {
        assert!(start.elapsed() < 40 * WINDOW, "{} workers", settings.workers());
        for device in [0, 1] {
            std::thread::sleep(half);
            for nth in 0..10 {
                let stepped = if nth == 0 { 2 * half } else { Duration::ZERO };
                let before = tuning.seen().batches;
                tuning.delivered(CopyId(device), Duration::from_micros(100), Some(stepped));
                if tuning.seen().batches < before {
                    let batches = before + 1;
                    assert!(nth == 0 && (batches.is_multiple_of(20) || ends == 0), "a window of {batches} batches");
                    ends += 1;
                }
            }
        }
    }
    assert!(ends >= 6, "{ends} windows");
}

/// A long pause, as when kernels are compiled, and a hiccup now and then are no bursts.
#[test]
fn a_pause_does_not_hold_up_windows_for_long() {
    let settings = Settings::new(8, 2);
    let tuning = Tuning::new(Tuner::new((8, 8), (2, 3)), Arc::clone(&settings));
    let (mut ends, step) = (Vec::new(), Duration::from_millis(5));
    tuning.delivered(ONE, Duration::ZERO, None);
    tuning.delivered(ONE, Duration::ZERO, Some(Duration::from_secs(60)));
    let start = Instant::now();
    for nth in 0.. {
        std::thread::sleep(step);
        let before = tuning.seen().batches;
        let hiccup = Duration::from_millis(if nth == 300 { 500 } else { 12 });
        tuning.delivered(ONE, Duration::ZERO, Some(if nth % 50 == 0 { hiccup } else { step }));
        if tuning.seen().batches < before {
            ends.push(start.elapsed());
        }
        if start.elapsed() > 5 * LONGEST {
            break;
        }
    }
    // At most two windows are as long as they may be: those of the two pauses.
    assert!(ends.len() >= 2 + 6, "{ends:?}");
}

/// A loop that runs ahead gets half its batches in some short time, and hardly waits: it waits for its device.
#[test]
fn a_trial_fails_only_by_waits() {
    let window =
        |batches, waited| Seen { time: Duration::from_secs(1), waited: Duration::from_millis(waited), batches };
    let mut tuner = Tuner::new((1, 8), (2, 2));
    for _ in 0..2 {
        tuner.window(window(100, 20));
    }
    assert!(tuner.workers() < 8, "a trial");
    assert!(!tuner.is_failing(window(50, 40)));
    assert!(tuner.is_failing(window(50, 500)));
}
