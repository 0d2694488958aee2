//! Bad items, iterators that fail, panic, block, and loaders that are dropped meanwhile.

use super::*;
use crate::common::Gate;
use burn_pinned::{BadSamples, Error, Stage, fault::Quota, stream::StreamError};
use std::{
    io, iter,
    time::{Duration, Instant},
};

/// The numbers below 30; some are bad.
fn bad(number: usize) -> Result<usize, io::Error> {
    if number % 10 == 4 { Err(io::Error::other(format!("number {number} is bad"))) } else { Ok(number) }
}

#[test]
fn a_bad_item_is_a_bad_sample() {
    let stream = || Stream::new(|_| Ok((0..30).map(bad)));
    let outcomes = common::outcomes(&*common::sized(7).build_stream(stream()).unwrap());
    assert_eq!(outcomes.len(), 5);
    for (batch, index) in [(0, 4), (2, 14), (3, 24)] {
        let error = outcomes[batch].as_ref().unwrap_err();
        assert!(
            error.contains(&format!("sample {index} ")) && error.contains(&format!("number {index} is bad")),
            "{error}"
        );
    }
    assert_eq!(outcomes[1].as_ref().unwrap(), &[7, 8, 9, 10, 11, 12, 13]);
    let loader = common::sized(7).bad_samples(BadSamples::Skip(Quota::Count(3))).build_stream(stream()).unwrap();
    let left = common::numbers(&common::epoch(&*loader));
    assert!(left.into_iter().eq((0..30).filter(|number| number % 10 != 4)));
    assert_eq!(loader.stats().skipped, 3);
}

#[test]
fn work_on_items_fails_with_their_sample() {
    let stream = plain(20).map(|number| Ok(bad(number)?));
    let outcomes = common::outcomes(&*common::sized(7).build_stream(stream).unwrap());
    assert!(outcomes[0].as_ref().unwrap_err().contains("sample 4 "), "{outcomes:?}");
    assert!(outcomes[1].is_ok());
}

/// The error is in place of its batch, and nothing from behind it is given, also where the stream would begin again or has more shards.
#[test]
fn an_iterator_that_panics_ends_its_epoch_there() {
    let stream = Stream::new(|_| Ok(good(0..30).inspect(|number| assert_ne!(number, &Ok(16), "worse"))));
    let outcomes = common::outcomes(&*common::sized(7).build_stream(stream).unwrap());
    assert_eq!(outcomes.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, false]);
    assert!(outcomes[2].as_ref().unwrap_err().contains("worse"), "{outcomes:?}");
}

#[test]
fn an_error_of_the_stream_ends_its_epoch_there() {
    let opened = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&opened);
    let stream = move || {
        let count = Arc::clone(&count);
        Stream::new(move |place| {
            count.fetch_add(1, Relaxed);
            let lost = || Err(StreamError("the connection is lost".into()));
            let numbers = move |number| if number == 116 { lost() } else { Ok(number) };
            if place.shard == 2 { Err("no such shard".into()) } else { Ok(shard(place).map(numbers).chain([])) }
        })
    };
    let of = |stream: Stream<usize>, steps: Option<usize>| {
        let builder = steps.into_iter().fold(common::sized(7), Builder::steps_per_epoch);
        common::outcomes(&*builder.build_stream(stream).unwrap())
    };
    for (at_once, good) in [(1, &[true, false][..]), (2, &[false])] {
        for steps in [None, Some(50)] {
            let outcomes = of(stream().shards(5).interleave(at_once), steps);
            assert_eq!(outcomes.iter().map(Result::is_ok).collect::<Vec<_>>(), good, "{at_once}");
            assert!(outcomes.last().unwrap().as_ref().unwrap_err().contains("no such shard"), "{outcomes:?}");
        }
    }
    assert!(opened.load(Relaxed) <= 4 * 4, "{opened:?}");
    // Behind good items of a shard that is read beside others, in a chunk, and while items are read over.
    let broken = |place: &StreamPlace| {
        let first = 100 * place.shard;
        let lost = move |n| if n == first + 5 { Err(StreamError("lost".into())) } else { Ok(n) };
        Ok((first..first + 40).map(lost))
    };
    let kinds = [
        Stream::new(broken).shards(3).interleave(2),
        Stream::new(broken).shards(3).interleave(2).shuffle_buffer(4),
        Stream::new(broken).shards(3).chunks(2).map(|two| Ok(two.into_iter().sum())),
    ];
    for stream in kinds {
        let outcomes = of(stream, None);
        assert!(outcomes.len() <= 2 && outcomes.last().unwrap().is_err(), "{outcomes:?}");
    }
    let (good, bad) = (common::sized(7).build_stream(plain(60)).unwrap(), Stream::new(broken));
    good.iter().take(3).for_each(|batch| drop(batch.unwrap()));
    let outcomes = common::outcomes(&*common::sized(7).resume(good.state()).build_stream(bad).unwrap());
    assert!(outcomes.len() == 1 && outcomes[0].is_err(), "{outcomes:?}");
    let long = Stream::new(|_| Ok((0..30).map(|n| if n == 16 { Err(StreamError("lost".into())) } else { Ok(n) })));
    let outcomes = of(long, None);
    assert_eq!(outcomes.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, false]);
}

#[test]
fn a_stream_that_cannot_be_opened_is_an_error_of_each_epoch() {
    let stream = Stream::<usize>::new(|_| Err::<iter::Empty<Result<usize, io::Error>>, _>("no such host".into()));
    let loader = common::sized(7).build_stream(stream).unwrap();
    for _ in 0..2 {
        let outcomes = common::outcomes(&*loader);
        assert!(outcomes.len() == 1 && outcomes[0].as_ref().unwrap_err().contains("no such host"), "{outcomes:?}");
    }
}

#[test]
fn an_empty_stream_is_an_error() {
    for builder in [builder(), builder().steps_per_epoch(3), builder().drop_last(true)] {
        let loader = builder.build_stream(plain(0)).unwrap();
        let outcomes = common::outcomes(&*loader);
        assert!(
            outcomes.len() == 1 && outcomes[0].as_ref().unwrap_err().contains("before the first batch"),
            "{outcomes:?}"
        );
    }
}

/// Gives some numbers, and then waits at a gate.
fn blocking(gate: &Gate) -> Stream<usize> {
    let gate = gate.clone();
    Stream::new(move |_| {
        let gate = gate.clone();
        Ok(good(0..1000).inspect(move |number| {
            if number == &Ok(20) {
                gate.pass()
            }
        }))
    })
}

#[test]
fn a_drop_ends_although_the_source_blocks() {
    for kind in 0..3 {
        let gate = Gate::default();
        let stream = match kind {
            0 => blocking(&gate),
            1 => blocking(&gate).shards(3).interleave(3),
            _ => blocking(&gate).endless(),
        };
        let steps = if kind == 2 { builder().steps_per_epoch(50) } else { builder() };
        let loader = steps.num_workers(2).build_stream(stream).unwrap();
        let mut iterator = loader.iter();
        (0..if kind == 1 { 6 } else { 1 }).for_each(|_| drop(iterator.next().unwrap().unwrap()));
        gate.wait_for(if kind == 1 { 3 } else { 1 });
        let start = Instant::now();
        drop(iterator);
        drop(loader);
        assert!(
            start.elapsed() < Duration::from_millis(if cfg!(debug_assertions) { 200 } else { 100 }),
            "{:?}",
            start.elapsed()
        );
        gate.open();
    }
}

#[test]
fn a_timeout_names_the_stream_and_the_item() {
    let gate = Gate::default();
    let loader = builder().timeout(Duration::from_millis(200)).build_stream(blocking(&gate)).unwrap();
    let error = loader.iter().find_map(Result::err).unwrap();
    let Some(Error::Timeout { hung: Some(hung), .. }) = Error::of(&error) else { panic!("{error}") };
    assert_eq!((hung.place.stage, hung.place.index), (Stage::Stream, Some(14))); // the batch of item 20 begins there
    assert!(error.to_string().contains("stream of sample 14"), "{error}");
    gate.open();
}
