//! How much memory is page-locked for loaders: what the driver says of the memory of the process, against their limits.

use crate::common::{Numbers, eventually};
use burn::tensor::{DType, Device, Int, Tensor};
use burn_pinned::{Field, PinnedDataLoader, PinnedDataLoaderBuilder, collate, memory::MemoryLimit};
use cudarc::driver::{
    CudaContext,
    sys::{CUmemorytype, CUpointer_attribute, CUresult, cuPointerGetAttribute},
};
use std::{
    fs,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

/// A row of a huge page, and a batch of 16 MB: large enough that its memory comes from no pool of the driver's.
const ROW: usize = 2 << 20;
const BATCH: usize = 8 * ROW;
/// The driver is asked of one address in so many bytes.
const LOOK: usize = 64 << 10;
/// What Burn may lock for itself meanwhile.
const SLACK: usize = BATCH / 2;

/// Whether the driver has page-locked the memory at an address. The calling thread is in a context.
fn is_locked(at: usize) -> bool {
    let mut kind = 0u32;
    // SAFETY: the driver writes 4 bytes for this attribute. It reads nothing at the address.
    #[expect(unsafe_code, reason = "cudarc has no other way to ask")]
    let asked = unsafe {
        let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
        cuPointerGetAttribute((&raw mut kind).cast(), attribute, at as u64)
    };
    asked == CUresult::CUDA_SUCCESS && kind == CUmemorytype::CU_MEMORYTYPE_HOST as u32
}

/// The bytes that the driver has page-locked, of all memory that the kernel lists for this process.
fn locked(context: &CudaContext) -> usize {
    context.bind_to_thread().unwrap();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let writable = maps.lines().filter_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        rest.starts_with("rw").then_some(number(from)?..number(to)?)
    });
    let is_memory = |range: &Range<usize>| range.len() < 1 << 36; // no address space that is only reserved
    let looks = |range: Range<usize>| (range.start.next_multiple_of(LOOK)..range.end).step_by(LOOK);
    writable.filter(is_memory).flat_map(looks).filter(|at| is_locked(*at)).count() * LOOK
}

type Loader = Arc<PinnedDataLoader<Tensor<2, Int>>>;

/// A loader that may lock `batches` batches.
fn loader(batches: usize, shared: Option<&MemoryLimit>) -> Loader {
    let bytes = collate(
        [Field::new("bytes", DType::U8, [ROW])],
        |&number: &usize, row| {
            row.slice_mut::<u8>("bytes")?.fill(number as u8);
            Ok(())
        },
        |mut batch| Ok(batch.take::<2, Int>("bytes")?),
    );
    let mut builder = PinnedDataLoaderBuilder::new(bytes).batch_size(BATCH / ROW).num_workers(4);
    if let Some(shared) = shared {
        builder = builder.shared_limit(shared);
    }
    let builder = builder.pinned_limit(batches * BATCH).require_pinned(true).set_device(Device::cuda(0));
    builder.build(Numbers::new(20 * BATCH / ROW)).unwrap()
}

/// Three epochs of each loader at the same time. Nothing is computed and nothing is read: Burn locks memory for that. Returns
/// the most bytes that were seen locked meanwhile.
fn epochs(context: &CudaContext, loaders: &[Loader; 2]) -> usize {
    let done = AtomicBool::new(false);
    let epochs = |loader: &Loader| (0..3).flat_map(|_| loader.iter()).for_each(|batch| drop(batch.unwrap()));
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut most = 0;
            while !done.load(Relaxed) {
                most = most.max(locked(context));
            }
            most
        });
        let trained = loaders.each_ref().map(|loader| scope.spawn(move || epochs(loader))).map(|thread| thread.join());
        done.store(true, Relaxed); // also after a failure, or the watch would go on
        trained.into_iter().for_each(Result::unwrap);
        watch.join().unwrap()
    })
}

/// Two loaders that may lock `batches` batches together: neither the driver nor the statistics have more at any time,
/// all of it is used, and all of it comes back.
fn compare(context: &CudaContext, name: &str, batches: usize, loaders: [Loader; 2]) {
    let before = locked(context);
    let most = epochs(context, &loaders);
    let (after, allowed) = (locked(context), batches * BATCH);
    let stats = loaders.each_ref().map(|loader| loader.stats());
    let [now, peak] = [stats.each_ref().map(|stats| stats.host_bytes), stats.map(|stats| stats.host_bytes_peak)];
    let [now, peak]: [usize; 2] = [now, peak].map(|bytes| bytes.iter().sum());
    println!(
        "{name}: {allowed} bytes allowed; the driver has {before} before, at most {most}, {after} after; {now} in slots"
    );
    assert_eq!((now, peak), (allowed, allowed), "{name}: slots");
    assert!(most.saturating_sub(before) <= allowed + SLACK, "{name}: {most} bytes are locked, {before} before");
    assert!(
        after.saturating_sub(before).abs_diff(allowed) <= SLACK,
        "{name}: {after} bytes are locked, {before} before"
    );
    drop(loaders);
    eventually("the memory is unlocked", || locked(context) <= before + SLACK);
}

#[test]
#[ignore = "needs a CUDA device"]
fn no_more_than_the_limit_is_page_locked() {
    let ordinary = vec![1u8; 4 * LOOK];
    let context = &*CudaContext::new(0).unwrap();
    context.bind_to_thread().unwrap();
    assert!(!is_locked(ordinary.as_ptr() as usize + LOOK), "ordinary memory");
    epochs(context, &[loader(4, None), loader(4, None)]); // what Burn locks for itself is there
    for batches in [1, 2, 4] {
        compare(context, "a limit each", 2 * batches, [loader(batches, None), loader(batches, None)]);
    }
    // Of three batches one loader gets two, and the other one.
    let shared = MemoryLimit::new(3 * BATCH);
    compare(context, "a limit for both", 3, [loader(2, Some(&shared)), loader(2, Some(&shared))]);
    assert_eq!(shared.used(), 0);
}
