use super::*;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Weak,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

struct Block(u64);

fn cache(limit: u64) -> PieceCache<u32, Block> {
    PieceCache::new(limit, |block| block.0)
}

fn make(pieces: &PieceCache<u32, Block>, key: u32, bytes: u64) -> bool {
    let mut made = false;
    let make = || {
        made = true;
        Ok::<_, ()>(Block(bytes))
    };
    pieces.get_or_make(key, make).unwrap();
    made
}

#[test]
fn what_was_used_least_recently_goes() {
    let pieces = cache(1000);
    assert!(make(&pieces, 1, 400) && make(&pieces, 2, 400));
    assert!(!make(&pieces, 1, 400));
    assert!(make(&pieces, 3, 400)); // 2 goes
    assert!(pieces.get(1).is_some() && pieces.get(2).is_none() && pieces.get(3).is_some());
    assert_eq!(pieces.bytes(), 800);
}

#[test]
fn the_newest_piece_above_the_limit_is_kept_besides() {
    let pieces = cache(1000);
    assert!(make(&pieces, 1, 3) && make(&pieces, 2, 400));
    assert!(make(&pieces, 3, 1001));
    assert!((1..4).all(|key| !make(&pieces, key, 0)), "it drives nothing out, and nothing drives it out");
    assert!(make(&pieces, 4, 5000) && make(&pieces, 5, 600));
    assert!((1..6).map(|key| pieces.get(key).is_some()).eq([true, false, false, true, true]));
    assert_eq!(pieces.bytes(), 5603);
    let none = cache(0);
    assert!(make(&none, 1, 5) && !make(&none, 1, 5) && make(&none, 2, 7));
    assert_eq!(none.bytes(), 7);
}

#[test]
fn small_pieces_stay_until_they_take_half() {
    let pieces = cache(25_600);
    (0..50).for_each(|key| assert!(make(&pieces, key, 100)));
    (1000..1100).for_each(|key| assert!(make(&pieces, key, 5_000)));
    assert!((0..50).all(|key| pieces.get(key).is_some()));
    assert!(pieces.bytes() <= 25_600);
    (50..500).for_each(|key| assert!(make(&pieces, key, 100)));
    assert!(pieces.get(0).is_none() && pieces.get(499).is_some());
    assert!(pieces.bytes() <= 25_600);
    let small = (0..500).filter(|key| pieces.get(*key).is_some()).count();
    assert!((120..=256).contains(&small), "{small}");
}

#[test]
fn one_thread_makes_a_piece_and_others_wait() {
    let (pieces, made) = (cache(1000), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let make = || {
                    made.fetch_add(1, Relaxed);
                    thread::sleep(Duration::from_millis(30));
                    Ok::<_, ()>(Block(10))
                };
                assert_eq!(pieces.get_or_make(7, make).unwrap().0, 10);
            });
        }
    });
    assert_eq!(made.load(Relaxed), 1);
}

#[test]
fn waits_end_when_the_piece_cannot_be_made() {
    let (pieces, tries) = (cache(1000), AtomicUsize::new(0));
    thread::scope(|scope| {
        for n in 0..6 {
            let (pieces, tries) = (&pieces, &tries);
            scope.spawn(move || {
                let make = || {
                    tries.fetch_add(1, Relaxed);
                    thread::sleep(Duration::from_millis(10));
                    if n % 2 == 0 { panic!("as asked") } else { Err::<Block, _>(n) }
                };
                let result = catch_unwind(AssertUnwindSafe(|| pieces.get_or_make(7, make)));
                assert!(result.is_err() || result.is_ok_and(|result| result.is_err_and(|error| error == n)));
            });
        }
    });
    assert_eq!(tries.load(Relaxed), 6);
    assert!(make(&pieces, 7, 10));
    assert_eq!(pieces.bytes(), 10);
}

#[test]
fn the_limit_holds_at_every_moment() {
    let (pieces, highest) = (cache(10_000), AtomicUsize::new(0));
    thread::scope(|scope| {
        for n in 0..4_u64 {
            let (pieces, highest) = (&pieces, &highest);
            scope.spawn(move || {
                for step in 0..5000_u64 {
                    let key = (step * 7919 + n * 104_729) % 97;
                    make(pieces, key as u32, 1 + key * 13);
                    highest.fetch_max(pieces.bytes() as usize, Relaxed);
                }
            });
        }
    });
    assert!((5_000..=10_000).contains(&highest.load(Relaxed)), "{highest:?}");
}

/// Another thread makes the piece, and its store stalls.
#[cfg(feature = "remote")]
#[test]
fn a_thread_that_has_to_end_waits_for_nobody() {
    use std::{sync::atomic::AtomicBool, time::Instant};
    let (pieces, ends, stalls) = (cache(1000), Arc::new(AtomicBool::new(false)), AtomicBool::new(true));
    thread::scope(|scope| {
        scope.spawn(|| {
            pieces.get_or_make(7, || {
                while stalls.load(Relaxed) {
                    thread::sleep(Duration::from_millis(1));
                }
                Ok::<_, ()>(Block(10))
            })
        });
        thread::sleep(Duration::from_millis(50));
        let ended = scope.spawn(|| {
            crate::system::ends::end_waits_by(Arc::clone(&ends));
            pieces.get_or_make(7, || Err("the store refuses it")).err()
        });
        thread::sleep(Duration::from_millis(50));
        let since = Instant::now();
        ends.store(true, Relaxed);
        assert_eq!(ended.join().unwrap(), Some("the store refuses it"));
        assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
        stalls.store(false, Relaxed);
    });
    assert_eq!(pieces.get(7).unwrap().0, 10);
}

/// A large piece takes long to give back, and other threads want theirs.
#[test]
fn memory_is_given_back_outside_of_the_lock() {
    struct Looks(Weak<PieceCache<u32, Looks>>, Arc<AtomicUsize>);
    impl Drop for Looks {
        fn drop(&mut self) {
            let is_free = self.0.upgrade().is_some_and(|pieces| pieces.state.try_lock().is_some());
            self.1.fetch_add(usize::from(is_free), Relaxed);
        }
    }
    let (pieces, free) = (Arc::new(PieceCache::new(1000, |_| 600)), Arc::default());
    for key in 0..3 {
        pieces.get_or_make(key, || Ok::<_, ()>(Looks(Arc::downgrade(&pieces), Arc::clone(&free)))).unwrap();
    }
    assert_eq!(free.load(Relaxed), 2);
}
