//! Readers and processes that hang: each is waited for once.

use super::*;
use crate::{
    store::cache::{CacheSet, Shards, id, paged::NextBytes},
    system::ends::end_waits_by,
};
use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Instant,
};

const PATIENCE: Duration = Duration::from_millis(400);
/// More than one wait, and less than those of these tests one after the other.
const LONG: Duration = Duration::from_millis(8 * 400);

#[test]
fn a_reader_that_hangs_is_not_waited_for() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[20 << 20], 1)));
    let slow = Arc::new(Fake { pause: Duration::from_millis(1500), ..Fake::new(&[20 << 20], 1) });
    let (hangs, other) = (open(folder.path(), 50 << 20, &slow).unwrap(), open(folder.path(), 50 << 20, &fake).unwrap());
    thread::scope(|scope| {
        let hanging = scope.spawn(|| read(&hangs, 0, 0..PAGE).unwrap());
        while slow.asked.lock().is_empty() {
            thread::yield_now();
        }
        check_all(&other, &fake);
        assert_eq!(*fake.asked.lock(), [(0, 0..16 * PAGE), (0, 16 * PAGE..20 * PAGE)]);
        assert!(!hanging.is_finished(), "nothing was waited for");
    });
    check_all(&other, &fake);
    assert_eq!(fake.bytes(), fake.all(), "both have the same page");
}

/// A thread that waits for a page which another one fetches ends when its loader ends, or when the cache is off.
#[test]
fn a_wait_for_another_thread_ends() {
    for is_off in [false, true] {
        let (folder, pause) = (tempfile::tempdir().unwrap(), Duration::from_secs(3));
        let slow = Arc::new(Fake { pause, ..Fake::new(&[2 << 20], 1) });
        let cached = open(folder.path(), 50 << 20, &slow).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        thread::scope(|scope| {
            let fetches = scope.spawn(|| read(&cached, 0, 0..9).unwrap());
            while slow.asked.lock().is_empty() {
                thread::yield_now();
            }
            let waits = scope.spawn(|| {
                end_waits_by(Arc::clone(&stop));
                cached.next_bytes(0, &(0..9)).unwrap()
            });
            thread::sleep(PATIENCE / 4);
            assert!(!waits.is_finished());
            if is_off {
                cached.is_off.store(true, Relaxed);
            } else {
                stop.store(true, Relaxed);
            }
            assert_eq!(waits.join().unwrap(), NextBytes::Below(9));
            assert!(!fetches.is_finished());
        });
    }
}

#[test]
fn sets_in_use_cost_one_wait_when_room_is_made() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[1 << 20], 1)));
    let tagged = |tag| {
        PageCache::open(folder.path(), 12 << 20, &fake.list(tag), Arc::clone(&fake) as _, Arc::default()).unwrap()
    };
    let _in_use: Vec<_> = (0..100).map(tagged).collect();
    let (since, big) = (Instant::now(), Arc::new(Fake::new(&[12 << 20], 1)));
    check_all(&open(folder.path(), 12 << 20, &big).unwrap(), &big);
    assert!(since.elapsed() < LONG, "{:?}", since.elapsed());
    assert_eq!(sets(folder.path()), 101, "none is evicted");
}

#[test]
fn who_writes_shards_is_waited_for_as_long_as_they_grow() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = [0, 1].map(|_| CacheSet::open(folder.path(), 1 << 20, &id("shards", &[]), 0, true).unwrap());
    let writer = Shards::open(&one, PATIENCE).unwrap();
    let error = Shards::open(&two, PATIENCE).unwrap_err();
    assert!(error.to_string().contains("another process decompresses shards into"), "{error}");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    const MORE: Duration = Duration::from_secs(3);
    let half = one.folder.join("shard.77-00.tmp");
    thread::scope(|scope| {
        scope.spawn(|| {
            // Half as long again as the other one waits without growth. On a busy machine, a pause of seconds is none.
            for bytes in 1..60 {
                fs::write(&half, vec![1; bytes]).unwrap();
                thread::sleep(MORE / 40);
            }
            drop(writer);
        });
        Shards::open(&two, MORE).unwrap();
    });
    assert!(!half.exists(), "what was left half written is removed");
}
