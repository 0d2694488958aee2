//! A store that refuses, is busy, or gives a little at a time.

use super::*;
use crate::system::{ends::end_waits_by, locks::Mutex};
use std::{
    io::Cursor,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

/// Answers as told: with this number of bytes of the part, or with a refusal. After the last told answer it gives the
/// whole part.
#[derive(Debug)]
struct Told(Mutex<Vec<Result<usize, Refusal>>>, Mutex<Vec<Range<u64>>>);

impl Remote for Told {
    fn get(&self, _: usize, part: Range<u64>) -> Result<Box<dyn Read + Send + '_>, Refusal> {
        self.1.lock().push(part.clone());
        let bytes: Vec<u8> = part.map(|at| at as u8).collect();
        let most = match self.0.lock().pop() {
            Some(told) => told?,
            None => bytes.len(),
        };
        Ok(Box::new(Cursor::new(bytes).take(most as u64)))
    }

    fn beside(&self, object: usize, _: &str) -> Result<Option<Vec<u8>>, Refusal> {
        self.get(object, 0..1).map(|_| None)
    }
}

fn refused(again: Retry) -> Result<usize, Refusal> {
    Err(Refusal { status: Some(503), problem: "busy".into(), again })
}

fn after(ms: u64) -> Result<usize, Refusal> {
    refused(Retry::After(Duration::from_millis(ms)))
}

fn patience(longest: Duration) -> Patience {
    Patience { attempts: 3, pause: Duration::ZERO, ..Patience::new(Busy::new(longest)) }
}

fn waits_for(longest: Duration, mut told: Vec<Result<usize, Refusal>>) -> SteadyStore<Told> {
    told.reverse();
    let patience = patience(longest);
    let traffic = Arc::new(Traffic::new(patience.busy.clone()));
    SteadyStore::new(Told(Mutex::new(told), Mutex::default()), patience, traffic)
}

fn steady(told: Vec<Result<usize, Refusal>>) -> SteadyStore<Told> {
    waits_for(Duration::from_secs(60), told)
}

fn requests(store: &SteadyStore<Told>) -> usize {
    store.remote.1.lock().len()
}

#[test]
fn a_part_goes_on_inside_the_object() {
    let store = steady(vec![refused(Retry::Yes), Ok(10), refused(Retry::After(Duration::ZERO)), Ok(5)]);
    let mut bytes = [0; 50];
    store.read(0, 100, &mut bytes).unwrap();
    assert!(bytes.iter().copied().eq(100..150));
    assert_eq!(*store.remote.1.lock(), [100..150, 100..150, 110..150, 110..150, 115..150]);
    let seen = store.traffic.seen();
    assert_eq!((seen.requests, seen.retries, seen.bytes), (3, 4, 50));
}

#[test]
fn attempts_in_vain_are_bounded_and_told() {
    let store = steady(vec![Ok(1), refused(Retry::Yes), refused(Retry::Yes), refused(Retry::Yes)]);
    let error = store.read(0, 0, &mut [0; 9]).unwrap_err();
    let told = error.get_ref().and_then(|error| error.downcast_ref::<StoreError>()).unwrap();
    assert_eq!((told.status, told.attempts), (Some(503), 3));
    assert_eq!(error.to_string(), "busy (status 503, attempt 3)");
}

/// Gives one byte at a time, each a little later than the one before.
#[derive(Debug)]
struct Trickle;

impl Remote for Trickle {
    fn get(&self, _: usize, _: Range<u64>) -> Result<Box<dyn Read + Send + '_>, Refusal> {
        Ok(Box::new(Self))
    }
}

impl Read for Trickle {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        thread::sleep(Duration::from_millis(20));
        Ok(into.len().min(1))
    }
}

#[test]
fn a_store_that_trickles_has_an_end() {
    let patience = Patience { time: Duration::from_millis(200), ..Patience::default() };
    let store = SteadyStore::new(Trickle, patience, Arc::default());
    let error = store.read(0, 0, &mut [0; 99]).unwrap_err();
    assert!(error.to_string().contains("bytes a second"), "{error}");
    // The time between reads is the reader's, not the store's.
    let mut body = store.open(0, 0..2).unwrap();
    body.read_exact(&mut [0; 1]).unwrap();
    thread::sleep(Duration::from_millis(250));
    body.read_exact(&mut [0; 1]).unwrap();
}

/// A reader that pauses for longer than the patience costs no attempt: an idle connection is made again.
#[test]
fn a_reader_that_pauses_uses_up_no_patience() {
    let mut store = steady(vec![Ok(4), Ok(5)]);
    store.patience.time = Duration::from_millis(200);
    let mut body = store.open(0, 0..9).unwrap();
    body.read_exact(&mut [0; 4]).unwrap();
    thread::sleep(Duration::from_millis(300));
    body.read_exact(&mut [0; 5]).unwrap();
    assert_eq!(requests(&store), 2);
}

#[test]
fn what_cannot_succeed_is_not_tried_again() {
    let store = steady(vec![refused(Retry::No)]);
    assert!(store.read(0, 0, &mut [0; 9]).is_err());
    assert_eq!(requests(&store), 1);
}

/// It may ask in the middle of a body too, and more often than attempts in vain are allowed. The body then counts
/// neither as slow nor as late.
#[test]
fn a_server_may_ask_to_wait_as_long_as_it_likes() {
    let told = vec![after(60), after(60), after(60), Ok(4), after(100), after(60), Ok(2), after(60)];
    let mut store = steady(told);
    store.patience.time = Duration::from_millis(200);
    let since = Instant::now();
    store.read(0, 0, &mut [0; 9]).unwrap();
    assert!((400..900).contains(&since.elapsed().as_millis()), "{:?}", since.elapsed());
    let asked = store.traffic.seen().asked_to_wait.as_millis();
    assert!((400..900).contains(&asked), "{asked}");
    assert_eq!(store.traffic.seen().retries, 8);
}

#[test]
fn waits_for_a_server_have_a_limit() {
    let second = Duration::from_secs(1);
    let told = |store: &SteadyStore<Told>| store.read(0, 0, &mut [0; 9]).unwrap_err().to_string();
    let longer = waits_for(second, vec![after(1001)]);
    let text = "the server asks to wait 2 s, and the option `longest_wait` allows 1 s (status 503, attempt 1)";
    assert_eq!(told(&longer), text);
    let often = waits_for(second, vec![after(400), after(400), after(400)]);
    let text = told(&often);
    assert!(text.contains("asks to wait 1 s after 1 s, and"), "{text}");
    assert_eq!(requests(&often), 3);
    let never = waits_for(Duration::ZERO, vec![refused(Retry::After(Duration::ZERO)), after(1)]);
    assert!(told(&never).contains("allows 0 s (status 503, attempt 2)"));
    let ever = waits_for(Duration::MAX, vec![refused(Retry::After(Duration::from_millis(5)))]);
    ever.read(0, 0, &mut [0; 9]).unwrap();
    // Each byte begins anew.
    waits_for(second, vec![after(300), Ok(1), after(300), Ok(1), after(300), Ok(1), after(300)])
        .read(0, 0, &mut [0; 9])
        .unwrap();
    let beside = waits_for(second, vec![after(2000)]).beside(0, "idx").unwrap_err();
    assert!(beside.to_string().contains("`longest_wait`"), "{beside}");
}

#[test]
fn pauses_are_spread() {
    for (pause, more) in [(100, 50), (8_000, 4_000), (60_000, 5_000), (0, 0)] {
        let drawn = (0..1000).map(|_| spread(Duration::from_millis(pause))).collect::<Vec<_>>();
        let (least, most) = (drawn.iter().min().unwrap(), drawn.iter().max().unwrap());
        let (pause, more) = (Duration::from_millis(pause), Duration::from_millis(more));
        assert!(*least >= pause && *most <= pause + more + Duration::from_millis(1), "{least:?} to {most:?}");
        assert!(*least <= pause + more / 10 && *most >= pause + more * 9 / 10, "{least:?} to {most:?}");
    }
    assert!(spread(Duration::MAX) == Duration::MAX);
}

/// Runs `act` on a thread, calls `end`, and returns how long `act` went on after that.
fn ended<T: Send>(act: impl FnOnce() -> T + Send, end: impl FnOnce()) -> (T, Duration) {
    thread::scope(|scope| {
        let thread = scope.spawn(act);
        thread::sleep(Duration::from_millis(100));
        let since = Instant::now();
        end();
        (thread.join().unwrap(), since.elapsed())
    })
}

#[test]
fn an_end_reaches_waits_and_makes_no_request() {
    let soon = Duration::from_millis(200);
    let store = steady((0..9).map(|_| after(50_000)).collect());
    let (read, took) = ended(|| store.read(0, 0, &mut [0; 9]), || store.patience.stop.stop());
    assert!(took < soon, "{took:?}");
    assert_eq!(read.unwrap_err().to_string(), "nobody needs it any more (attempt 1)");
    assert!(store.read(0, 0, &mut [0; 9]).is_err() && store.beside(0, "idx").is_err());
    assert_eq!(requests(&store), 1);

    let (store, set) = (steady((0..9).map(|_| after(50_000)).collect()), Arc::new(AtomicBool::new(false)));
    let of_thread = Arc::clone(&set);
    let beside = || {
        end_waits_by(of_thread);
        store.beside(0, "idx")
    };
    let (beside, took) = ended(beside, || set.store(true, Relaxed));
    assert!(took < soon && beside.is_err(), "{took:?}");
    assert_eq!(requests(&store), 1);
    store.remote.0.lock().clear();
    store.read(0, 0, &mut [0; 9]).unwrap(); // of another thread
}

#[test]
fn an_end_ends_a_body_in_its_middle() {
    let store = steady(Vec::new());
    let mut body = store.open(0, 0..9).unwrap();
    assert_eq!(body.read(&mut [0; 4]).unwrap(), 4);
    store.patience.stop.stop();
    assert!(body.read(&mut [0; 4]).is_err());
}

/// Threads that look at objects for a thread end with it.
#[test]
fn an_end_reaches_the_threads_of_open() {
    let (store, set) = (steady((0..99).map(|_| after(50_000)).collect()), Arc::new(AtomicBool::new(false)));
    let of_thread = Arc::clone(&set);
    let open = || {
        end_waits_by(of_thread);
        crate::system::parallel::in_parallel_by(8, &[0; 8], |object| {
            let failed = |source| crate::error::DataError::Open { path: "a".into(), source };
            store.beside(*object, "idx").map_err(failed)
        })
    };
    let (opened, took) = ended(open, || set.store(true, Relaxed));
    assert!(opened.is_err() && took < Duration::from_millis(200), "{took:?}");
    assert_eq!(requests(&store), 8);
}
