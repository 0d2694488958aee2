use super::*;
use crate::{
    memory::{Field, HeapAlloc, HostAlloc, HostBlock},
    vocabulary::MemoryKind,
};
use burn::tensor::DType;
use std::sync::atomic::Ordering;

#[derive(Default)]
struct Home {
    blocks: AtomicUsize,
    permits: AtomicUsize,
    detached: AtomicUsize,
    lost: AtomicUsize,
}

impl SlotHome for Home {
    fn give_back(&self, block: HostBlock, permit: Option<&PermitFlag>) {
        assert_eq!(block.kind(), MemoryKind::Pageable);
        self.blocks.fetch_add(1, Ordering::SeqCst);
        self.permits.fetch_add(usize::from(permit.is_some_and(PermitFlag::let_go)), Ordering::SeqCst);
    }
    fn detach(&self, bytes: usize) {
        assert!(bytes != 0);
        self.detached.fetch_add(1, Ordering::SeqCst);
    }
    fn lose(&self, permit: &PermitFlag, bytes: usize) {
        assert!(bytes != 0);
        self.permits.fetch_add(usize::from(permit.let_go()), Ordering::SeqCst);
        self.lost.fetch_add(1, Ordering::SeqCst);
    }
}

fn slot(layout: &SlotLayout) -> (Arc<Home>, Slot) {
    let home = Arc::new(Home::default());
    let block = HeapAlloc.allocate(layout.bytes()).unwrap();
    (Arc::clone(&home), Slot::new(block, home, PermitFlag::new()))
}

fn layout(rows: usize) -> Arc<SlotLayout> {
    let fields = vec![Field::new("x", DType::U8, [5]), Field::new("y", DType::I64, [])];
    Arc::new(SlotLayout::new(fields, rows).unwrap())
}

#[test]
#[cfg_attr(miri, ignore = "it leaks, which is what it checks")]
fn memory_that_is_kept_for_ever_gives_back_its_permit_alone() {
    let freed = Arc::new(());
    let (home, mut slot) = slot(&layout(3));
    slot.block = slot.block.take().map(|block| {
        let (start, len, owner) = (block.start, block.len, (Arc::clone(&freed), block));
        // SAFETY: the memory is that of the block, which the new one owns.
        unsafe { HostBlock::from_raw(start, len, MemoryKind::Pageable, Box::new(owner)) }
    });
    slot.keep_for_ever();
    assert!(slot.as_slice().is_empty());
    drop(slot);
    let seen = [&home.blocks, &home.permits, &home.detached, &home.lost].map(|count| count.load(Ordering::SeqCst));
    assert_eq!(seen, [0, 1, 0, 1]);
    assert_eq!(Arc::strong_count(&freed), 2, "the memory is still there");
}

#[test]
fn threads_write_disjoint_rows_and_the_last_gets_the_slot() {
    let layout = layout(33);
    let (home, slot) = slot(&layout);
    let chunks = slot.split(&layout, 33, 4);
    assert_eq!(chunks.len(), 9);
    let finished: Vec<Option<Slot>> = std::thread::scope(|scope| {
        let threads: Vec<_> = chunks
            .into_iter()
            .map(|mut chunk| {
                scope.spawn(move || {
                    for row in chunk.rows() {
                        chunk.bytes_mut(0, row).fill(row as u8);
                        chunk.bytes_mut(1, row).copy_from_slice(&(row as i64).to_ne_bytes());
                    }
                    chunk.finish()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut slots: Vec<Slot> = finished.into_iter().flatten().collect();
    assert_eq!(slots.len(), 1);
    let bytes = slots.remove(0).freeze();
    for row in 0..33 {
        assert_eq!(bytes[row * 5..row * 5 + 5], [row as u8; 5]);
        let at = layout.offset(1) + row * 8;
        assert_eq!(bytes[at..at + 8], (row as i64).to_ne_bytes());
    }
    let part = bytes.slice(3..7);
    drop(bytes);
    assert_eq!(home.blocks.load(Ordering::SeqCst), 0);
    drop(part);
    assert_eq!((home.blocks.load(Ordering::SeqCst), home.permits.load(Ordering::SeqCst)), (1, 1));
}

#[test]
fn an_abandoned_chunk_sends_the_memory_home() {
    let layout = layout(8);
    let (home, slot) = slot(&layout);
    let mut chunks = slot.split(&layout, 8, 4);
    drop(chunks.pop());
    assert_eq!(home.blocks.load(Ordering::SeqCst), 0);
    assert!(chunks.pop().unwrap().finish().is_none(), "rows that nobody wrote are not handed on");
    assert_eq!((home.blocks.load(Ordering::SeqCst), home.permits.load(Ordering::SeqCst)), (1, 1));
}

#[test]
fn a_detached_slot_returns_without_its_permit() {
    let (home, mut slot) = slot(&layout(2));
    assert_eq!((slot.detach().is_some(), slot.detach().is_some()), (true, false));
    assert_eq!(home.detached.load(Ordering::SeqCst), 1);
    drop(slot);
    assert_eq!((home.blocks.load(Ordering::SeqCst), home.permits.load(Ordering::SeqCst)), (1, 0));
}

/// A permit that is given up comes back once, whatever becomes of the slot.
#[test]
fn a_permit_comes_back_once() {
    let (home, slot) = slot(&layout(2));
    let give_up = slot.give_up();
    give_up();
    drop(slot);
    assert_eq!((home.blocks.load(Ordering::SeqCst), home.permits.load(Ordering::SeqCst)), (1, 1));
}

#[test]
fn heap_memory_is_page_aligned_and_zeroed() {
    for bytes in [1, 4095, 4096, 1 << 20] {
        let (_home, slot) = {
            let home = Arc::new(Home::default());
            (Arc::clone(&home), Slot::new(HeapAlloc.allocate(bytes).unwrap(), home, PermitFlag::new()))
        };
        assert_eq!(slot.as_slice().as_ptr() as usize % 4096, 0);
        assert!(slot.as_slice().len() == bytes && slot.as_slice().iter().all(|byte| *byte == 0));
    }
    assert!(HeapAlloc.allocate(usize::MAX / 2).is_err());
}
