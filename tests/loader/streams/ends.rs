//! Where an epoch ends, and what its progress says.

use super::*;
use std::time::{Duration, Instant};

#[test]
fn each_item_comes_once_in_order_whatever_the_batch_size() {
    for len in [1, 6, 7, 8, 100] {
        for batch in [1, 7, 8, 200] {
            let loader = builder().batch_size(batch).build_stream(plain(len)).unwrap();
            for _ in 0..2 {
                let batches = shown(&loader);
                assert_eq!(batches.len(), len.div_ceil(batch));
                assert!(numbers(&batches).into_iter().map(|number| number as usize / 1000).eq(0..len));
            }
            if len >= batch {
                let loader = builder().batch_size(batch).drop_last(true).build_stream(plain(len)).unwrap();
                assert_eq!(items(&loader).len(), len - len % batch);
            }
        }
    }
}

/// Burn applies the last gradients of an epoch when the progress says that all is processed.
#[test]
fn the_progress_is_complete_after_the_last_batch_only() {
    for (kind, batches) in kinds().into_iter().zip([15, 10, 15, 15, 15, 8].map(Some).into_iter().chain([None; 20])) {
        let loader = build(kind, builder());
        for _ in 0..2 {
            let (mut iterator, mut complete) = (loader.iter(), Vec::new());
            while let Some(batch) = iterator.next() {
                batch.unwrap();
                let progress = iterator.progress();
                complete.push(progress.items_processed == progress.items_total);
            }
            assert_eq!(complete.iter().position(|is| *is), Some(complete.len() - 1), "{}", kind.0);
            assert!(batches.is_none_or(|batches| batches == complete.len()), "{}: {}", kind.0, complete.len());
        }
    }
}

#[test]
fn batches_are_the_same_for_any_number_of_workers() {
    for kind in kinds() {
        let of = |workers| {
            let loader = build(kind, builder().num_workers(workers));
            [shown(&loader), shown(&loader)]
        };
        let one = of(1);
        assert!([2, 5].into_iter().all(|workers| of(workers) == one), "{}", kind.0);
        assert_ne!(one[0], one[1], "{}: the epochs have the same random numbers", kind.0);
    }
}

#[test]
fn steps_make_epochs_of_that_length() {
    let of = |stream: Stream<usize>, steps| {
        let loader = builder().steps_per_epoch(steps).build_stream(stream).unwrap();
        [items(&loader), items(&loader)]
    };
    let twice = || (0..30).chain(0..30);
    assert_eq!(of(plain(30), 3), [(0..21).collect::<Vec<_>>(), (0..21).collect()]); // each epoch opens the stream
    assert_eq!(of(plain(30), 6)[0], twice().take(42).collect::<Vec<_>>());
    assert_eq!(of(plain(usize::MAX).endless(), 3), [(0..21).collect::<Vec<_>>(), (21..42).collect()]);
    // An endless stream that ends all the same ends its epoch.
    let [first, rest] = of(plain(30).endless(), 3);
    assert_eq!((first.len(), rest), (21, (21..30).collect()));
}

/// An epoch of an endless stream that is left early ends there for the next one too.
#[test]
fn an_epoch_that_is_left_is_read_over() {
    let loader = builder().steps_per_epoch(4).build_stream(plain(usize::MAX).endless()).unwrap();
    loader.iter().next().unwrap().unwrap();
    assert_eq!(items(&loader), (28..56).collect::<Vec<_>>());
}

#[test]
fn nothing_is_read_ahead_of_the_memory() {
    let read = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&read);
    let slow = Stream::new(move |_| {
        let read = Arc::clone(&counted);
        Ok(good(0..7000).inspect(move |_| {
            read.fetch_add(1, Relaxed);
            std::thread::sleep(Duration::from_micros(500)); // batches of 3 ms are read ahead
        }))
    });
    let loader = builder().prefetch(1).build_stream(slow).unwrap();
    let mut iterator = loader.iter();
    for taken in 1..20 {
        iterator.next().unwrap().unwrap();
        std::thread::sleep(Duration::from_millis(5));
        // `prefetch` batches are ready, and each slot may have another one.
        let (most, read) = (7 * (taken + 1 + loader.stats().slots), read.load(Relaxed));
        assert!(read <= most, "{read} items are read after {taken} batches, {most} have memory");
    }
}

/// Nobody waits for the end longer than the source takes to say it.
#[test]
fn the_end_comes_at_once() {
    let stream = || {
        Stream::new(|_| {
            let late = std::iter::from_fn(|| {
                std::thread::sleep(Duration::from_millis(20));
                None
            });
            Ok(good(0..70).chain(late))
        })
    };
    common::soon("the end", || {
        let loader = builder().build_stream(stream()).unwrap();
        let mut iterator = loader.iter();
        (0..10).for_each(|_| drop(iterator.next().unwrap().unwrap()));
        let start = Instant::now();
        assert!(iterator.next().is_none());
        start.elapsed()
    });
}

/// The reader of an epoch that was left goes on for the next one, however slow it is: no item is lost.
#[test]
fn an_endless_source_is_opened_once() {
    let opened = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&opened);
    let stream = Stream::new(move |_| {
        count.fetch_add(1, Relaxed);
        Ok(good(0..usize::MAX).inspect(|_| std::thread::sleep(Duration::from_millis(1))))
    });
    let loader = builder().steps_per_epoch(8).build_stream(stream.endless()).unwrap();
    for epoch in 0..3 {
        let first: Vec<_> = loader.iter().take(2).map(|batch| batch.unwrap().numbers[0] / 1000).collect();
        assert_eq!(first, [epoch * 56, epoch * 56 + 7]);
    }
    assert_eq!(opened.load(Relaxed), 1);
}

#[test]
fn chunks_lack_what_is_left_out() {
    let stream = plain(20).filter(|number| number % 3 == 0).chunks(4).map(|four| Ok(four.into_iter().sum()));
    let loader = common::sized(7).build_stream(stream).unwrap();
    assert_eq!(numbers(&shown(&loader)), [3, 6, 9, 12 + 15, 18]); // of 0 and 3, of 6, of 9, of 12 and 15, of 18
}
