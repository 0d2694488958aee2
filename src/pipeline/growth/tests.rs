//! A simulated loop: what it sees with a number of workers, by their rate and by the rates of the loop and of the link.

use super::*;

/// A training on a machine.
#[derive(Debug, Clone, Copy)]
struct World {
    /// Batches a second that one worker makes.
    worker: f64,
    /// Workers that can compute at the same time. Others wait for a core.
    cores: usize,
    /// Whether the workers sleep while they read, so that cores are no limit.
    asleep: bool,
    /// Batches a second that the link carries, and those that the steps take.
    link: f64,
    step: f64,
    /// Steps after which the loop waits for its device. It runs ahead until then.
    burst: u32,
}

const WORLD: World = World { worker: 10.0, cores: 16, asleep: false, link: 1e4, step: 1e4, burst: 1 };
const SIXTEEN: Bounds = Bounds { start: 8, most: 15, most_asleep: 64 };

/// A loop in its world.
struct Loop {
    world: World,
    growth: Growth,
    sight: Sight,
    batches: u32,
    changes: Vec<usize>,
}

impl Loop {
    fn new(world: World, bounds: Bounds) -> Self {
        let now = Instant::now();
        let none = Duration::ZERO;
        let sight = Sight { now, waited: none, stepped: None, worked: none, took: none, awake: none };
        Self { world, growth: Growth::new(bounds, 1), sight, batches: 0, changes: Vec::new() }
    }

    /// Takes batches for a time; returns how many a second.
    fn run(&mut self, seconds: f64) -> f64 {
        let (end, mut batches) = (self.sight.now + Duration::from_secs_f64(seconds), 0);
        while self.sight.now < end {
            self.batch();
            batches += 1;
        }
        f64::from(batches) / seconds
    }

    fn batch(&mut self) {
        let World { worker, cores, asleep, link, step, burst } = self.world;
        let workers = self.growth.workers() as f64;
        let useful = if asleep { workers } else { workers.min(cores as f64) };
        let rate = (useful * worker).min(link);
        let time = (1.0 / rate).max(1.0 / step);
        // The steps of a burst are launched at once, and the last one takes the time of all.
        self.batches += 1;
        let last = self.batches.is_multiple_of(burst);
        let stepped = if last { f64::from(burst) / step } else { 0.0 };
        let waited = (time - 1.0 / step).max(0.0);
        let spent = Duration::from_secs_f64(stepped + waited);
        // With more workers than cores, each takes longer.
        let worked = Duration::from_secs_f64((1.0 / worker) * (workers / useful) * (time * rate).min(1.0));
        self.sight.now += spent;
        self.sight.worked += worked;
        self.sight.took += worked;
        self.sight.awake += if asleep { worked / 100 } else { worked };
        let waited = Duration::from_secs_f64(waited);
        let sight = Sight { waited, stepped: Some(Duration::from_secs_f64(stepped)), ..self.sight };
        if let Some((workers, why)) = self.growth.choose(sight) {
            assert!(why.contains("workers"), "{why}");
            self.changes.push(workers);
        }
    }
}

/// A batch that holds as much as several counts as them: a window of a quarter of the batches is long enough.
#[test]
fn batches_of_several_end_a_window_sooner() {
    let world = World { worker: 0.25, ..WORLD };
    let batches_until_growth = |in_one: usize| {
        let mut training = Loop { growth: Growth::new(SIXTEEN, in_one), ..Loop::new(world, SIXTEEN) };
        while training.changes.is_empty() {
            training.batch();
        }
        assert_eq!(training.changes, [15]);
        training.batches
    };
    assert_eq!([1, 2, 3, 4, 16, 1000].map(batches_until_growth), [8, 4, 3, 2, 2, 2]);
}

/// Decoding on the CPU: all cores but one.
#[test]
fn workers_that_compute_double_up_to_the_cores() {
    let mut training = Loop::new(WORLD, SIXTEEN);
    training.run(3.0);
    assert_eq!(training.changes, [15]);
    assert!(training.run(60.0) > 149.0);
    assert_eq!(training.changes, [15], "it stays");
}

/// Storage that sleeps 5 ms a sample on two cores: as many workers as sixteen within three seconds.
#[test]
fn workers_that_sleep_are_many() {
    let bounds = Bounds { start: 2, most: 2, most_asleep: 16 };
    let mut training = Loop::new(World { cores: 2, asleep: true, worker: 6.0, ..WORLD }, bounds);
    training.run(3.0);
    assert_eq!(training.changes, [4, 8, 16]);
}

/// A step that takes longer than all batches of half the workers, and one that waits for its device after each ten.
#[test]
fn a_training_that_does_not_wait_keeps_its_workers() {
    for burst in [1, 10] {
        let mut training = Loop::new(World { step: 60.0, burst, ..WORLD }, SIXTEEN);
        let rate = training.run(30.0);
        assert!(training.changes.is_empty() && (rate - 60.0).abs() < 1.0, "{rate}: {:?}", training.changes);
    }
}

/// The link is the limit: the loop waits, but the workers are not busy.
#[test]
fn idle_workers_do_not_become_more() {
    let mut training = Loop::new(World { link: 30.0, ..WORLD }, SIXTEEN);
    training.run(30.0);
    assert!(training.changes.is_empty(), "{:?}", training.changes);
}

/// More workers than cores: tried, and taken back, and not again for half a minute.
#[test]
fn what_does_not_help_is_taken_back() {
    let mut training = Loop::new(World { cores: 8, ..WORLD }, SIXTEEN);
    training.run(20.0);
    assert_eq!(training.changes, [15, 8]);
    training.run(20.0);
    assert_eq!(training.changes, [15, 8, 15, 8], "tried again");
    let mut training = Loop::new(World { cores: 8, ..WORLD }, SIXTEEN);
    training.run(300.0);
    assert!((18..=20).contains(&training.changes.len()), "{:?}", training.changes);
}

/// What the user has set is not changed.
#[test]
fn a_number_that_is_set_stays() {
    let mut training = Loop::new(WORLD, Bounds::fixed(3));
    let rate = training.run(60.0);
    assert!(training.changes.is_empty() && (rate - 30.0).abs() < 1.0);
}

/// Between two epochs the clock stands still, and their first batches say nothing.
#[test]
fn the_start_of_an_epoch_says_nothing() {
    let mut training = Loop::new(World { step: 60.0, ..WORLD }, SIXTEEN);
    for _ in 0..20 {
        training.run(0.3);
        training.sight.now += Duration::from_secs(5);
        let first = Sight { waited: Duration::from_secs(2), stepped: None, ..training.sight };
        assert!(training.growth.choose(first).is_none());
    }
    assert!(training.changes.is_empty(), "{:?}", training.changes);
}
