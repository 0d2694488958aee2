//! Models of the pool. In any order of the threads' steps, permits and memory come back, and every wait ends.

use super::*;
use crate::{memory::block::HeapAlloc, sync::explore};
use loom::thread::{JoinHandle, spawn};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Time does not pass here: only a notification ends a wait.
const EVER: Duration = Duration::MAX;

impl Pool {
    /// Returns the number of permits that nobody holds.
    pub(crate) fn permits(&self) -> usize {
        self.left()
    }
}

fn pool(alloc: impl HostAlloc + 'static, slots: usize, bytes: usize, counters: &Arc<Counters>) -> Arc<Pool> {
    Pool::new(Arc::new(alloc), PoolLimits { slots, bytes }, Arc::clone(counters))
}

fn ever() -> Wait<'static> {
    Wait { ended: None, deadline: None, took: Cell::default() }
}

fn lease(pool: &Arc<Pool>, bytes: usize) -> Result<Slot, Error> {
    pool.slot(pool.permit(EVER).ok_or(Error::Ended)?, bytes, &ever())
}

fn beside<T: 'static>(pool: &Arc<Pool>, act: impl FnOnce(&Arc<Pool>) -> T + 'static) -> JoinHandle<T> {
    let pool = Arc::clone(pool);
    spawn(move || act(&pool))
}

/// Checks that each permit is there once, and that the allocated bytes are those of the free blocks. After a close, no
/// bytes are allocated.
fn check(pool: &Pool, counters: &Counters) {
    let (permits, allocated, free) = {
        let state = pool.lock();
        assert_eq!((state.away, pool.is_awaited()), (0, false));
        assert!(state.allocated == 0 || !state.closed);
        (pool.left(), state.allocated, state.free.iter().map(HostBlock::len).sum())
    };
    assert_eq!((permits, allocated), (pool.limits.slots, free));
    assert!(free <= pool.limits.bytes);
    assert_eq!(counters.snapshot().host_bytes, free);
    pool.close();
    assert_eq!((pool.lock().allocated, counters.snapshot().host_bytes), (0, 0));
}

#[test]
fn model_one_slot_goes_round() {
    let counters = Arc::<Counters>::default();
    explore("one slot goes round", 4, move || {
        let pool = pool(HeapAlloc, 1, 100, &counters);
        let others = [40, 100].map(|bytes| beside(&pool, move |pool| drop(lease(pool, bytes).unwrap())));
        drop(lease(&pool, 60).unwrap());
        others.into_iter().for_each(|other| other.join().unwrap());
        check(&pool, &counters);
    });
}

#[test]
fn model_no_more_batches_than_slots() {
    let counters = Arc::<Counters>::default();
    explore("no more batches than slots", 4, move || {
        let pool = pool(HeapAlloc, 1, 100, &counters);
        let held = Arc::<AtomicUsize>::default();
        let turn = || {
            let held = Arc::clone(&held);
            move |pool: &Arc<Pool>| {
                let permit = pool.permit(EVER).unwrap();
                assert_eq!(held.fetch_add(1, SeqCst), 0);
                pool.is_closed(); // a step: other threads may run before it
                held.fetch_sub(1, SeqCst);
                drop(permit);
            }
        };
        let others = [turn(), turn()].map(|turn| beside(&pool, turn));
        turn()(&pool);
        others.into_iter().for_each(|other| other.join().unwrap());
        check(&pool, &counters);
    });
}

#[test]
fn model_blocks_in_the_way_are_waited_for() {
    let counters = Arc::<Counters>::default();
    explore("blocks in the way", 3, move || {
        let pool = pool(HeapAlloc, 3, 100, &counters);
        let others = [60, 100].map(|bytes| beside(&pool, move |pool| drop(lease(pool, bytes).unwrap())));
        drop(lease(&pool, 50).unwrap());
        others.into_iter().for_each(|other| other.join().unwrap());
        check(&pool, &counters);
    });
}

#[test]
fn model_kept_memory_parts_from_its_permit() {
    let counters = Arc::<Counters>::default();
    explore("kept memory", 4, move || {
        let pool = pool(HeapAlloc, 1, 100, &counters);
        let consumer = beside(&pool, |pool| {
            let mut slot = lease(pool, 100).unwrap();
            let permit = pool.detach(&mut slot);
            drop(permit);
            slot
        });
        let other = beside(&pool, |pool| drop(lease(pool, 80).unwrap()));
        drop(consumer.join().unwrap()); // held for as long as the other may need
        other.join().unwrap();
        check(&pool, &counters);
    });
}

/// A consumer that keeps its batch forever blocks no other thread.
#[test]
fn model_memory_that_never_comes_back_is_not_waited_for() {
    let counters = Arc::<Counters>::default();
    explore("memory that never comes back", 4, move || {
        let pool = pool(HeapAlloc, 1, 100, &counters);
        let mut kept = lease(&pool, 100).unwrap();
        let other = beside(&pool, |pool| drop(lease(pool, 100).unwrap()));
        drop(pool.detach(&mut kept));
        other.join().unwrap();
        drop(kept);
        check(&pool, &counters);
    });
}

/// A device may keep memory forever, or give it back late. Its permit comes back exactly once.
#[test]
fn model_what_is_lost_comes_back_once() {
    let counters = Arc::<Counters>::default();
    explore("lost memory", 4, move || {
        let pool = pool(HeapAlloc, 1, 100, &counters);
        let slot = lease(&pool, 100).unwrap();
        let give_up = slot.give_up();
        let late = beside(&pool, move |_| drop(slot));
        let other = beside(&pool, |pool| drop(lease(pool, 100).unwrap()));
        give_up(); // it may be back already
        other.join().unwrap();
        late.join().unwrap();
        check(&pool, &counters);
    });
}

/// The epoch that a thread waits for memory for ends.
#[test]
fn model_an_epoch_that_ends_ends_the_wait_for_memory() {
    let counters = Arc::<Counters>::default();
    explore("an epoch ends at memory", 4, move || {
        let pool = pool(HeapAlloc, 2, 100, &counters);
        let held = lease(&pool, 100).unwrap();
        let ended = Arc::new(AtomicBool::new(false));
        let waits = {
            let ended = Arc::clone(&ended);
            beside(&pool, move |pool| pool.slot(pool.permit(EVER).unwrap(), 50, &Wait::until_ended(&ended)).is_err())
        };
        ended.store(true, Relaxed);
        pool.wake();
        assert!(waits.join().unwrap());
        drop(held);
        check(&pool, &counters);
    });
}

/// A consumer keeps memory while its permit is held, and another thread waits for a permit.
#[test]
fn model_kept_memory_is_replaced_before_its_permit_is_free() {
    let counters = Arc::<Counters>::default();
    explore("memory kept with its permit", 4, move || {
        let pool = pool(HeapAlloc, 2, 100, &counters);
        let mut kept = lease(&pool, 100).unwrap();
        let permit = pool.permit(EVER).unwrap();
        let for_memory = beside(&pool, |pool| drop(pool.slot(permit, 100, &ever()).unwrap()));
        let for_permit = beside(&pool, |pool| drop(pool.permit(EVER).unwrap()));
        let permit = pool.detach(&mut kept);
        for_memory.join().unwrap();
        for_permit.join().unwrap();
        drop((permit, kept));
        check(&pool, &counters);
    });
}

/// One thread waits for memory and another for a permit. The permit reaches the thread that waits for it.
#[test]
fn model_a_permit_reaches_who_waits_for_it() {
    let counters = Arc::<Counters>::default();
    explore("a permit among waits for memory", 3, move || {
        let pool = pool(HeapAlloc, 3, 100, &counters);
        let (mut kept, held) = (lease(&pool, 50).unwrap(), lease(&pool, 50).unwrap());
        let permit = pool.permit(EVER).unwrap();
        let for_memory = beside(&pool, |pool| drop(pool.slot(permit, 100, &ever()).unwrap()));
        let for_permit = beside(&pool, |pool| drop(pool.permit(EVER).unwrap()));
        drop(pool.detach(&mut kept));
        for_permit.join().unwrap();
        drop(held);
        for_memory.join().unwrap();
        drop(kept);
        check(&pool, &counters);
    });
}

#[test]
fn model_slots_are_allocated_ahead_beside_a_lease() {
    let counters = Arc::<Counters>::default();
    explore("allocated ahead", 3, move || {
        let pool = pool(HeapAlloc, 2, 200, &counters);
        let pin = beside(&pool, |pool| pool.preallocate(100));
        let other = beside(&pool, |pool| drop(lease(pool, 100).unwrap()));
        drop(lease(&pool, 100).unwrap());
        pin.join().unwrap();
        other.join().unwrap();
        check(&pool, &counters);
    });
}

/// Refuses some of its calls.
#[derive(Debug)]
struct Refuses(std::ops::Range<usize>, AtomicUsize);

impl HostAlloc for Refuses {
    fn allocate(&self, bytes: usize) -> Result<HostBlock, Error> {
        if self.0.contains(&self.1.fetch_add(1, SeqCst)) {
            return Err(Error::OutOfHostMemory { kind: "test", bytes, message: "refused".into() });
        }
        HeapAlloc.allocate(bytes)
    }
}

/// A thread that gets no memory gets an error, or the memory of another thread.
#[test]
fn model_refusals_leave_nobody_waiting() {
    let counters = Arc::<Counters>::default();
    explore("refusals", 2, move || {
        for refused in [0..1, 1..2, 0..2, 0..usize::MAX] {
            let all = refused.len() > 2;
            let pool = pool(Refuses(refused, AtomicUsize::new(0)), 2, 200, &counters);
            let other = beside(&pool, |pool| lease(pool, 100).is_ok());
            let served = lease(&pool, 100).is_ok();
            assert!(!(other.join().unwrap() || served) || !all);
            check(&pool, &counters);
        }
    });
}

/// If memory cannot be allocated ahead of its use, its bytes go to the thread that waits for memory.
#[test]
fn model_a_refusal_ahead_of_use_ends_a_wait() {
    let counters = Arc::<Counters>::default();
    explore("refused ahead", 3, move || {
        let pool = pool(Refuses(0..1, AtomicUsize::new(0)), 1, 100, &counters);
        let permit = pool.permit(EVER).unwrap();
        let pin = beside(&pool, |pool| pool.preallocate(100));
        let for_permit = beside(&pool, |pool| drop(pool.permit(EVER).unwrap()));
        // Its own allocation may be the one that is refused.
        let _ = pool.slot(permit, 100, &ever());
        pin.join().unwrap();
        for_permit.join().unwrap();
        check(&pool, &counters);
    });
}

#[test]
fn model_a_close_ends_the_wait_for_a_permit() {
    let counters = Arc::<Counters>::default();
    explore("closed at a permit", 4, move || {
        let pool = pool(HeapAlloc, 1, 100, &counters);
        let held = lease(&pool, 100).unwrap();
        let others = [(), ()].map(|()| beside(&pool, |pool| assert!(pool.permit(EVER).is_none())));
        pool.close();
        others.into_iter().for_each(|other| other.join().unwrap());
        drop(held);
        check(&pool, &counters);
    });
}

#[test]
fn model_a_close_ends_the_wait_for_memory() {
    let counters = Arc::<Counters>::default();
    explore("closed at memory", 3, move || {
        let pool = pool(HeapAlloc, 3, 100, &counters);
        let held = lease(&pool, 100).unwrap();
        let others = [50, 60].map(|bytes| beside(&pool, move |pool| assert!(lease(pool, bytes).is_err())));
        pool.close();
        others.into_iter().for_each(|other| other.join().unwrap());
        drop(held);
        check(&pool, &counters);
    });
}

#[test]
fn model_a_close_amid_leases_frees_everything() {
    let counters = Arc::<Counters>::default();
    explore("closed amid leases", 3, move || {
        let pool = pool(HeapAlloc, 1, 100, &counters);
        let others = [
            beside(&pool, |pool| {
                if let Ok(mut slot) = lease(pool, 100) {
                    drop(pool.detach(&mut slot));
                }
            }),
            beside(&pool, |pool| drop(lease(pool, 60))),
        ];
        pool.close();
        others.into_iter().for_each(|other| other.join().unwrap());
        assert!(pool.is_closed());
        check(&pool, &counters);
    });
}
