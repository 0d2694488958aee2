//! A stream whose batches go to the device: the same batches as through an index, and an end that comes at once.

use super::*;
use burn_pinned::stream::Stream;
use std::{convert::Infallible, time::Instant};

#[test]
#[ignore = "needs a GPU"]
fn a_stream_gives_the_batches_of_an_index() {
    let (width, len) = (150_000, 999);
    let builder =
        || PinnedDataLoaderBuilder::new(OnDevice { width }).batch_size(64).num_workers(4).set_device(Device::cuda(0));
    let indexed = builder().build(Numbers::new(len)).unwrap();
    let stream = Stream::new(move |_| Ok((0..len).map(Ok::<_, Infallible>)));
    let streamed = builder().build_stream(stream).unwrap();
    for _ in 0..2 {
        let (mut one, mut other) = (indexed.iter(), streamed.iter());
        for _ in 0..len.div_ceil(64) {
            let [(n, x), (m, y)] = [one.next().unwrap().unwrap(), other.next().unwrap().unwrap()];
            assert_eq!(n.into_data(), m.into_data());
            assert_eq!(x.into_data(), y.into_data());
        }
        let start = Instant::now();
        assert!(other.next().is_none() && one.next().is_none());
        assert!(start.elapsed() < Duration::from_millis(500), "{:?}", start.elapsed());
    }
}

/// The source says late that there is no more: the consumer, which sleeps by then, is woken.
#[test]
#[ignore = "needs a GPU"]
fn a_late_end_wakes_the_consumer() {
    let late = || {
        std::iter::from_fn(|| {
            std::thread::sleep(Duration::from_millis(100));
            None
        })
    };
    let stream = Stream::new(move |_| Ok((0..128usize).map(Ok::<_, Infallible>).chain(late())));
    let loader = PinnedDataLoaderBuilder::new(OnDevice { width: 1000 })
        .batch_size(64)
        .set_device(Device::cuda(0))
        .build_stream(stream)
        .unwrap();
    let mut batches = loader.iter();
    (0..2).for_each(|_| drop(batches.next().unwrap().unwrap()));
    let start = Instant::now();
    assert!(batches.next().is_none());
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}
