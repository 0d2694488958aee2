//! Readers and processes that hang: each is waited for once.

use super::*;
use crate::store::cache::{Folder, Id};
use std::time::Instant;

const PATIENCE: Duration = Duration::from_millis(400);
/// More than one wait, and less than those of these tests one after the other.
const LONG: Duration = Duration::from_millis(8 * 400);

#[test]
fn a_reader_that_hangs_is_not_waited_for_for_ever() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[4 << 20], 1)));
    let slow = Arc::new(Fake { pause: Duration::from_millis(1500), ..Fake::new(&[4 << 20], 1) });
    let (hangs, mut other) =
        (open(folder.path(), 50 << 20, &slow).unwrap(), open(folder.path(), 50 << 20, &fake).unwrap());
    other.pages.patience = Duration::from_millis(20);
    thread::scope(|scope| {
        scope.spawn(|| check_all(&hangs, &slow));
        while slow.asked.lock().is_empty() {
            thread::yield_now();
        }
        assert!(read(&other, 0, 10..2000).unwrap() == fake.objects[0][10..2000]);
        assert_eq!(*fake.asked.lock(), [(0, 10..2000)], "as it was asked for, and not kept");
    });
    check_all(&other, &fake);
    assert_eq!(fake.bytes(), 1990, "it found what came late");
}

#[test]
fn a_reader_that_hangs_costs_one_wait_however_many_pages_it_has() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[20 << 20], 1)));
    let [hangs, mut other] = [0, 1].map(|_| open(folder.path(), 50 << 20, &fake).unwrap());
    other.pages.patience = PATIENCE;
    hangs.pages.claim_as(0, 0..5);
    hangs.pages.claim_as(0, 7..20);
    let since = Instant::now();
    assert!(read(&other, 0, 0..6 * PAGE).unwrap() == fake.objects[0][..6 * PAGE as usize]);
    assert_eq!(*fake.asked.lock(), [(0, 0..5 * PAGE), (0, 5 * PAGE..6 * PAGE)]);
    for page in 7..20 {
        read(&other, 0, page * PAGE + 3..page * PAGE + 9).unwrap();
    }
    assert!(since.elapsed() < LONG, "{:?}", since.elapsed());
    // When the reader has ended, its pages are fetched and kept.
    drop(hangs);
    check_all(&other, &fake);
    fake.bytes();
    check_all(&other, &fake);
    assert_eq!(fake.bytes(), 0);
}

#[test]
fn an_account_that_is_held_costs_one_wait_for_all_threads() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[16 << 20], 1)));
    let mut cached = open(folder.path(), 50 << 20, &fake).unwrap();
    cached.pages.folder.patience = PATIENCE;
    let other = Folder::open(folder.path(), 50 << 20).unwrap();
    let (_account, since) = (other.lock().unwrap(), Instant::now());
    thread::scope(|scope| {
        for page in 0..16 {
            let (cached, fake, part) = (&cached, &fake, page * PAGE..page * PAGE + 9);
            scope.spawn(move || {
                let right = &fake.objects[0][part.start as usize..part.end as usize];
                assert!(read(cached, 0, part).unwrap() == right);
            });
        }
    });
    assert!(since.elapsed() < LONG, "{:?}", since.elapsed());
    assert_eq!(fake.bytes(), 16 * 9, "all is read from the store");
}

#[test]
fn nobody_waits_for_a_cache_that_is_off() {
    for is_account_held in [false, true] {
        let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[2 << 20], 1)));
        let cached = open(folder.path(), 50 << 20, &fake).unwrap();
        cached.pages.claim_as(0, 0..1); // by another thread
        read(&cached, 0, PAGE..PAGE + 9).unwrap();
        let (other, since) = (Folder::open(folder.path(), 50 << 20).unwrap(), Instant::now());
        let _account = is_account_held.then(|| other.lock().unwrap());
        thread::scope(|scope| {
            let waits = scope.spawn(|| read(&cached, 0, 0..9).unwrap());
            thread::sleep(PATIENCE / 4);
            assert!(!waits.is_finished());
            let set = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
            let data = set.filter(|path| path.is_dir()).map(|set| set.join("data")).next().unwrap();
            fs::write(data, "cut off").unwrap();
            read(&cached, 0, PAGE..PAGE + 9).unwrap();
        });
        assert!(since.elapsed() < Duration::from_secs(20), "{is_account_held}: {:?}", since.elapsed());
    }
}

#[test]
fn sets_in_use_cost_one_wait_when_room_is_made() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[1 << 20], 1)));
    let tagged =
        |tag| Cached::open(folder.path(), 12 << 20, &fake.list(tag), Arc::clone(&fake) as _, Arc::default()).unwrap();
    let _in_use: Vec<_> = (0..100).map(tagged).collect();
    let (since, big) = (Instant::now(), Arc::new(Fake::new(&[12 << 20], 1)));
    check_all(&open(folder.path(), 12 << 20, &big).unwrap(), &big);
    assert!(since.elapsed() < LONG, "{:?}", since.elapsed());
    assert_eq!(sets(folder.path()), 101, "none is evicted");
}

#[test]
fn who_writes_shards_is_waited_for_as_long_as_they_grow() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Folder::open(folder.path(), 1 << 20).unwrap();
    let [one, two] = [0, 1].map(|_| cache.lock().unwrap().open(Id::of("shards", &[])).unwrap().0);
    let writer = one.writer(PATIENCE).unwrap();
    let error = two.writer(PATIENCE).unwrap_err();
    assert!(error.to_string().contains("another process decompresses shards into"), "{error}");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    let half = one.folder().join("shard.77-00.tmp");
    thread::scope(|scope| {
        scope.spawn(|| {
            for bytes in 1..100 {
                fs::write(&half, vec![1; bytes]).unwrap();
                thread::sleep(PATIENCE / 20);
            }
            drop(writer);
        });
        two.writer(2 * PATIENCE).unwrap();
    });
    assert!(!half.exists(), "what was left half written is removed");
}
