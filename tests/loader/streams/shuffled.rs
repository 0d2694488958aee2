//! The shuffle buffer.

use super::*;
use std::{collections::HashSet, fmt::Write as _, fs};

/// The order of a buffer, by its rule: fill it, give one at random, put the next item in its place.
#[test]
fn an_epoch_is_a_permutation_that_differs_by_epoch_and_seed() {
    let of = |seed| {
        let loader = builder().seed(seed).build_stream(plain(1000).shuffle_buffer(50)).unwrap();
        [items(&loader), items(&loader)]
    };
    let ([first, second], other) = (of(1), of(2));
    assert_eq!(of(1)[0], first);
    for pair in [[&first, &second], [&first, &other[0]]] {
        let same = pair[0].iter().zip(pair[1]).filter(|(a, b)| a == b).count();
        assert!(same < 100, "{same} items are at the same place");
    }
    for mut epoch in [first, second] {
        // An item is given after it was read: not before it by more than the buffer.
        assert!(epoch.iter().enumerate().all(|(place, item)| *item < place + 50 + 1));
        epoch.sort_unstable();
        assert!(epoch.into_iter().eq(0..1000));
    }
}

/// How long an item stays in the buffer is geometric, and the first item of a full buffer is each of its items equally often.
#[test]
fn the_distribution_is_that_of_a_buffer() {
    const SIZE: usize = 20;
    let (mut first, mut delays, mut count) = ([0u32; SIZE], 0.0, 0.0);
    for seed in 0..400 {
        let loader = common::sized(50).seed(seed).build_stream(plain(200).shuffle_buffer(SIZE)).unwrap();
        let order: Vec<_> = numbers(&shown(&loader)).into_iter().map(|number| number as usize).collect();
        first[order[0]] += 1;
        for (place, item) in order.into_iter().enumerate().filter(|(_, item)| (SIZE..100).contains(item)) {
            delays += (place + SIZE - item) as f64;
            count += 1.0;
        }
    }
    let chi: f64 = first.iter().map(|seen| (f64::from(*seen) - 20.0).powi(2) / 20.0).sum();
    assert!(chi < 43.8, "{chi}: {first:?}"); // 19 degrees of freedom, p = 0.001
    // Of those that enter a full buffer, one in SIZE leaves with each sample: the mean is SIZE.
    let mean = delays / count;
    assert!((mean - SIZE as f64).abs() < 0.5, "{mean}");
}

/// The data of the table for `BlockShuffle`: sorted by class, in shards of 500.
#[test]
fn samples_are_mixed_as_the_docs_say() {
    const SAMPLES: usize = 100_000;
    let shards = || Stream::new(|place| Ok(good(500 * place.shard..500 * (place.shard + 1)))).shards(200);
    let streams = [
        ("one", 1, 1_000, plain(SAMPLES)),
        ("one", 1, 10_000, plain(SAMPLES)),
        ("200", 1, 1_000, shards()),
        ("200", 8, 1_000, shards()),
        ("200", 8, 10_000, shards()),
        ("200", 32, 10_000, shards()),
    ];
    let mut rows = String::new();
    for (of, at_once, size, stream) in streams {
        let loader = common::sized(1000).seed(1).build_stream(stream.interleave(at_once).shuffle_buffer(size)).unwrap();
        let order: Vec<_> = numbers(&shown(&loader)).into_iter().map(|number| number as usize).collect();
        let moves: usize = order.iter().enumerate().map(|(place, item)| place.abs_diff(*item)).sum();
        let classes = |batch: &[usize]| batch.iter().map(|item| item / 1000).collect::<HashSet<_>>().len();
        let classes: Vec<_> = order.chunks_exact(64).map(classes).collect();
        let mean = classes.iter().sum::<usize>() as f64 / classes.len() as f64;
        let (moves, fewest) = (moves as f64 / (SAMPLES * SAMPLES) as f64, classes.iter().min().unwrap());
        writeln!(rows, "| {of} | {at_once} | {size} | {moves:.2} | {mean:.1} | {fewest} |").unwrap();
    }
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/samplers.md")).unwrap();
    assert!(page.contains(&rows), "docs/samplers.md should say:\n{rows}");
}

#[test]
fn the_statistics_have_the_buffer() {
    let stream = plain(1000).measured(|_| 8).map(Ok).shuffle_buffer(50);
    let loader = builder().build_stream(stream).unwrap();
    let mut iterator = loader.iter();
    iterator.next().unwrap().unwrap();
    let stats = loader.stats();
    assert_eq!((stats.buffer_samples, stats.buffer_bytes), (50, 400));
    drop(iterator);
    common::eventually("the buffer is empty", || {
        loader.stats().buffer_samples == 0 && loader.stats().buffer_bytes == 0
    });
}
