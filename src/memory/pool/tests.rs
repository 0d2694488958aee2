use super::*;
use crate::memory::{LimitedAlloc, MemoryLimit, block::HeapAlloc};
use proptest::prelude::*;
use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
};

const SOON: Duration = Duration::from_millis(5);

fn pool(slots: usize, bytes: usize) -> Arc<Pool> {
    Pool::new(Arc::new(HeapAlloc), PoolLimits { slots, bytes }, Arc::default())
}

fn ever() -> Wait<'static> {
    Wait { ended: None, deadline: None, took: Cell::default() }
}

fn slot(pool: &Arc<Pool>, bytes: usize) -> Result<Slot, Error> {
    pool.slot(pool.permit(SOON).expect("a permit"), bytes, &Wait::at_most(SOON))
}

#[test]
fn memory_is_reused_and_waits_end() {
    let pool = pool(2, 200);
    pool.preallocate(100);
    let (a, b) = (slot(&pool, 100).unwrap(), slot(&pool, 100).unwrap());
    assert!(pool.permit(SOON).is_none());
    let at = a.as_slice().as_ptr();
    drop(a);
    let c = slot(&pool, 100).unwrap();
    assert_eq!(c.as_slice().as_ptr(), at);
    assert_eq!(pool.counters.snapshot().allocations, 2);
    let waiting = std::thread::spawn({
        let pool = Arc::clone(&pool);
        move || pool.permit(Duration::from_secs(60)).is_none()
    });
    pool.close();
    assert!(waiting.join().unwrap());
    drop((b, c));
    assert_eq!(pool.counters.snapshot().host_bytes, 0);
}

#[test]
fn a_batch_larger_than_the_limit_is_an_error() {
    let pool = pool(2, 200);
    let error = slot(&pool, 201).unwrap_err();
    assert!(matches!(error, Error::OverLimit { bytes: 201, limit: 200 }), "{error}");
    assert!(pool.permit(SOON).is_some(), "the permit came back");
}

#[test]
fn blocks_in_the_way_are_waited_for_as_long_as_wanted() {
    let pool = pool(2, 200);
    let held = slot(&pool, 150).unwrap();
    let error = slot(&pool, 100).unwrap_err();
    assert!(matches!(error, Error::LeaseTimeout { .. }), "{error}");
    let waiting = std::thread::spawn({
        let pool = Arc::clone(&pool);
        move || pool.slot(pool.permit(SOON).unwrap(), 100, &ever()).is_ok()
    });
    std::thread::sleep(SOON);
    drop(held);
    assert!(waiting.join().unwrap());
}

/// Allocates a number of blocks, then refuses, or breaks its contract.
#[derive(Debug)]
struct Moody(AtomicUsize, usize, &'static str);

impl HostAlloc for Moody {
    fn allocate(&self, bytes: usize) -> Result<HostBlock, Error> {
        match (self.0.fetch_add(1, SeqCst) < self.1, self.2) {
            (true, _) => HeapAlloc.allocate(bytes),
            (_, "short") => HeapAlloc.allocate(bytes - 1),
            (_, "panic") => panic!("no mood"),
            _ => Err(Error::OutOfHostMemory { kind: "test", bytes, message: "refused".into() }),
        }
    }
}

fn counts(pool: &Pool) -> (usize, usize) {
    let state = pool.lock();
    (state.allocated, pool.left())
}

#[test]
fn after_a_refusal_the_pool_makes_do_with_what_it_has() {
    for mood in ["refuse", "short", "panic"] {
        let limits = PoolLimits { slots: 4, bytes: 400 };
        let pool = Pool::new(Arc::new(Moody(0.into(), 2, mood)), limits, Arc::default());
        pool.preallocate(100);
        for _ in 0..10 {
            let (a, b) = (slot(&pool, 100).unwrap(), slot(&pool, 100).unwrap());
            assert!(matches!(slot(&pool, 100), Err(Error::LeaseTimeout { .. })), "a third must wait");
            drop((a, b));
        }
        assert_eq!(counts(&pool), (200, 4));
        let none = Pool::new(Arc::new(Moody(0.into(), 0, mood)), limits, Arc::default());
        none.preallocate(100);
        assert!(matches!(slot(&none, 100), Err(Error::OutOfHostMemory { .. })));
        assert_eq!(counts(&none), (0, 4));
    }
}

/// A refusal does not hold for ever. Larger blocks can be allocated once nothing else is there. In the next epoch the
/// pool asks again, and so gets more memory if there is more.
#[test]
fn after_a_refusal_larger_batches_still_come() {
    let scarce = LimitedAlloc { upstream: Arc::new(HeapAlloc), limit: MemoryLimit::new(1150) };
    let others = scarce.allocate(1000).unwrap();
    let pool = Pool::new(Arc::new(scarce), PoolLimits { slots: 4, bytes: 1000 }, Arc::default());
    let small = slot(&pool, 100).unwrap();
    assert!(matches!(slot(&pool, 120), Err(Error::LeaseTimeout { .. })), "it waits for the small one");
    drop(small);
    let large = slot(&pool, 140).unwrap();
    assert!(matches!(slot(&pool, 100), Err(Error::LeaseTimeout { .. })));
    drop(others);
    assert!(matches!(slot(&pool, 100), Err(Error::LeaseTimeout { .. })), "nobody asks again within an epoch");
    pool.ask_again();
    drop((slot(&pool, 100).unwrap(), large));
}

/// On a CPU backend the memory of delivered batches is away. After a refusal, the pool waits for it.
#[test]
fn memory_that_is_away_is_waited_for() {
    let scarce = LimitedAlloc { upstream: Arc::new(HeapAlloc), limit: MemoryLimit::new(150) };
    let pool = Pool::new(Arc::new(scarce), PoolLimits { slots: 2, bytes: 1000 }, Arc::default());
    let mut kept = slot(&pool, 100).unwrap();
    let permit = pool.detach(&mut kept);
    let waiting = {
        let pool = Arc::clone(&pool);
        std::thread::spawn(move || pool.slot(pool.permit(SOON).unwrap(), 100, &ever()).is_ok())
    };
    std::thread::sleep(2 * SOON);
    drop((permit, kept));
    assert!(waiting.join().unwrap());
}

/// Lets another thread wait for memory, until its epoch ends after `meanwhile`. Returns how the wait ended.
fn wait_until_ended(pool: &Arc<Pool>, bytes: usize, meanwhile: impl FnOnce()) -> Option<Error> {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let wait = || pool.slot(pool.permit(SOON).unwrap(), bytes, &Wait::until_ended(&ended)).err();
        let waiting = scope.spawn(wait);
        while !pool.is_awaited() {
            std::thread::sleep(SOON);
        }
        drop(pool.lock()); // it waits by now, and all that it did before is seen
        let met = catch_unwind(AssertUnwindSafe(meanwhile));
        ended.store(true, SeqCst);
        pool.wake();
        let error = waiting.join().unwrap();
        met.unwrap_or_else(|panic| resume_unwind(panic));
        error
    })
}

/// The thread that waits is told when nobody wants the memory any more.
#[test]
fn a_wait_for_memory_ends_with_its_epoch() {
    let pool = pool(2, 200);
    let held = slot(&pool, 150).unwrap();
    let error = wait_until_ended(&pool, 100, || ());
    assert!(matches!(error, Some(Error::Ended)));
    assert_eq!((pool.left(), pool.is_awaited()), (1, false));
    drop(held);
}

#[test]
fn growing_batches_replace_their_blocks() {
    let pool = pool(3, usize::MAX);
    for bytes in (100..4000).step_by(100) {
        let slots: Vec<_> = (0..3).map(|_| slot(&pool, bytes).unwrap()).collect();
        drop(slots);
        assert!(pool.lock().free.len() <= 3);
    }
    assert!(pool.counters.snapshot().host_bytes <= 3 * 3900);
}

proptest! {
    /// For any sizes and any order of lending, detaching and returning, the pool never exceeds its limit, and all
    /// memory is freed at the end.
    #[test]
    fn the_limit_holds(slots in 1usize..5, steps in prop::collection::vec((0usize..5, 1usize..120), 1..40)) {
        let pool = pool(slots, 250);
        let mut held = Vec::new();
        for (action, size) in steps {
            match action {
                0 | 1 => {
                    let room = pool.lock().allocated + size <= 250;
                    if room && let Some(permit) = pool.permit(Duration::ZERO) {
                        let slot = pool.slot(permit, size, &Wait::at_most(SOON)).unwrap();
                        let give_up = slot.give_up();
                        held.push((slot, None, Some(give_up)));
                    }
                }
                2 => drop(held.pop()),
                // A consumer keeps a batch, or a device loses it.
                3 => if let Some((slot, permit, give_up @ Some(_))) = held.first_mut() {
                    *give_up = None;
                    *permit = pool.detach(slot);
                },
                _ => {
                    let at = size % held.len().max(1);
                    held.get_mut(at).and_then(|(_, _, give_up)| give_up.take()).into_iter().for_each(|lose| lose());
                }
            }
            let state = pool.lock();
            prop_assert!(state.allocated <= 250 && pool.left() <= slots);
            let free: usize = state.free.iter().map(HostBlock::len).sum();
            prop_assert!(free <= state.allocated);
        }
        drop(held);
        {
            let state = pool.lock();
            prop_assert_eq!((pool.left(), state.away, pool.is_awaited()), (slots, 0, false));
        }
        pool.close();
        prop_assert_eq!(pool.lock().allocated, 0);
        prop_assert_eq!(pool.counters.snapshot().host_bytes, 0);
    }
}

/// Blocks that are too small are freed before the wait for a larger one, not after it.
#[test]
fn a_wait_for_memory_holds_no_other_memory() {
    let limit = MemoryLimit::new(1000);
    let alloc = LimitedAlloc { upstream: Arc::new(HeapAlloc), limit: limit.clone() };
    let pool = Pool::new(Arc::new(alloc), PoolLimits { slots: 3, bytes: 200 }, Arc::default());
    let (held, small) = (slot(&pool, 150).unwrap(), slot(&pool, 50).unwrap());
    drop(small);
    assert_eq!(limit.used(), 200);
    let error = wait_until_ended(&pool, 100, || assert_eq!(limit.used(), 150));
    assert!(matches!(error, Some(Error::Ended)));
    assert_eq!((pool.left(), pool.is_awaited()), (2, false));
    drop(held);
}
