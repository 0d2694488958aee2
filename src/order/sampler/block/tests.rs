//! The promises of the order, for any blocks, streams and windows.

mod quality;

use super::{BlockShuffle, Blocks};
use crate::order::{Distributed, Sampler};
use proptest::prelude::*;
use std::collections::HashSet;

fn order(sampler: &BlockShuffle, epoch: usize) -> Vec<usize> {
    sampler.indices(sampler.len(0), epoch).collect()
}

fn blocks(samples: &[usize]) -> Blocks {
    Blocks::new(samples.iter().map(|samples| (*samples, 1)))
}

/// Returns the block of each sample.
fn block_of_samples(blocks: &Blocks) -> Vec<usize> {
    blocks.ranges().enumerate().flat_map(|(block, range)| range.map(move |_| block)).collect()
}

/// Returns for each position which blocks of each stream are in use: those of which samples came and will come.
fn in_use(order: &[usize], block_of: &[usize], streams: usize) -> Vec<Vec<HashSet<usize>>> {
    let mut used = vec![vec![HashSet::new(); streams]; order.len()];
    for stream in 0..streams {
        let mine: Vec<usize> = (stream..order.len()).step_by(streams).collect();
        for block in mine.iter().map(|position| block_of[order[*position]]).collect::<HashSet<_>>() {
            let mut positions = mine.iter().copied().filter(|position| block_of[order[*position]] == block);
            let first = positions.next().unwrap();
            let last = positions.next_back().unwrap_or(first);
            used[first..=last].iter_mut().for_each(|streams| {
                streams[stream].insert(block);
            });
        }
    }
    used
}

fn any_samples() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![3 => 0usize..30, 1 => Just(0), 1 => Just(1)], 0..40)
}

fn any_shuffle() -> impl Strategy<Value = BlockShuffle> {
    (any_samples(), any::<u64>(), 1usize..12, 1usize..7).prop_map(|(samples, seed, streams, window)| {
        BlockShuffle::new(blocks(&samples), seed).streams(streams).window(window)
    })
}

proptest! {
    #[test]
    fn every_sample_comes_once(shuffle in any_shuffle(), epoch in 0usize..50) {
        let n = shuffle.len(0);
        prop_assert!(shuffle.check(n).is_ok());
        prop_assert!(shuffle.check(n + 1).is_err());
        let mut all = order(&shuffle, epoch);
        prop_assert_eq!(&all, &order(&shuffle, epoch));
        all.sort_unstable();
        prop_assert!(all.into_iter().eq(0..n));
    }

    #[test]
    fn skipping_is_stepping(shuffle in any_shuffle(), skips in prop::collection::vec(0usize..60, 1..12)) {
        let all = order(&shuffle, 1);
        for skip in 0..=all.len() {
            prop_assert_eq!(shuffle.indices(all.len(), 1).nth(skip), all.get(skip).copied());
        }
        let (mut skipping, mut at) = (shuffle.indices(all.len(), 1), 0);
        for skip in skips {
            prop_assert_eq!(skipping.nth(skip), all.get(at + skip).copied());
            at = (at + skip + 1).min(all.len());
            prop_assert_eq!(skipping.size_hint(), (all.len() - at, Some(all.len() - at)));
        }
        prop_assert!(skipping.eq(all[at..].iter().copied()));
    }

    #[test]
    fn all_worlds_have_one_order(shuffle in any_shuffle(), given in 0usize..100) {
        let all = order(&shuffle, 3);
        let n = all.len();
        for world in [1, 2, 3, 4, 8] {
            let given = (given * world).min(n);
            let ranks: Vec<Vec<usize>> = (0..world)
                .map(|rank| {
                    let share = Distributed::new(rank, world).unwrap().drop_uneven();
                    let again = || Box::new(std::iter::empty()) as Box<dyn Iterator<Item = usize> + Send>;
                    share.units(shuffle.indices(n, 3), given..n, again).collect()
                })
                .collect();
            let together: Vec<usize> = (given..n).map(|p| ranks[(p - given) % world][(p - given) / world]).collect();
            prop_assert_eq!(&together, &all[given..]);
        }
    }

    /// `check` counts the blocks that the order really uses at once.
    #[test]
    fn few_blocks_are_in_use(
        samples in any_samples(),
        sizes in prop::collection::vec(0u64..1000, 40),
        streams in 1usize..12,
        window in 1usize..7,
    ) {
        let blocks = Blocks::new(samples.into_iter().zip(sizes.iter().copied()));
        let shuffle = |blocks| BlockShuffle::new(blocks, 7).streams(streams).window(window);
        let mut most = 0;
        for used in in_use(&order(&shuffle(blocks.clone()), 0), &block_of_samples(&blocks), streams) {
            prop_assert!(used.iter().all(|blocks| blocks.len() <= window));
            let together: HashSet<usize> = used.into_iter().flatten().collect();
            most = most.max(together.into_iter().map(|block| sizes[block]).sum());
        }
        let limited = |limit| shuffle(blocks.clone().with_limit(limit));
        prop_assert!(most == 0 || limited(most - 1).check(blocks.samples()).is_err(), "{most} bytes are in use");
        let used = blocks.ranges().zip(&sizes).filter(|(range, _)| !range.is_empty());
        let mut largest: Vec<u64> = used.map(|(_, size)| *size).collect();
        largest.sort_unstable();
        let counted: u64 = largest.iter().rev().take(streams * window).sum();
        prop_assert!(limited(counted).check(blocks.samples()).is_ok());
        prop_assert!(counted == 0 || limited(counted - 1).check(blocks.samples()).is_err());
    }
}

#[test]
fn all_that_is_counted_is_used() {
    let blocks = blocks(&[50; 200]);
    let shuffle = BlockShuffle::new(blocks.clone(), 3);
    let used = in_use(&order(&shuffle, 0), &block_of_samples(&blocks), 8);
    assert_eq!(used.into_iter().map(|used| used.into_iter().flatten().count()).max(), Some(8 * 4));
}

/// A block comes whole in one stream, or it is cut where two streams meet.
#[test]
fn few_blocks_are_cut() {
    let blocks = blocks(&[30; 101]);
    let block_of = block_of_samples(&blocks);
    let order = order(&BlockShuffle::new(blocks.clone(), 1), 0);
    let mut streams_of = vec![HashSet::new(); blocks.len()];
    order.iter().enumerate().for_each(|(position, sample)| {
        streams_of[block_of[*sample]].insert(position % 8);
    });
    let cut: Vec<_> = streams_of.iter().filter(|streams| streams.len() > 1).collect();
    assert_eq!(cut.len(), 7);
    assert!(cut.iter().all(|streams| streams.len() == 2));
}

#[test]
fn odd_tables_have_an_order_too() {
    let sorted = |shuffle: &BlockShuffle| {
        let mut order = order(shuffle, 0);
        order.sort_unstable();
        order
    };
    assert!(sorted(&BlockShuffle::new(blocks(&[]), 1)).is_empty());
    assert!(sorted(&BlockShuffle::new(blocks(&[0, 0]), 1)).is_empty());
    assert_eq!(sorted(&BlockShuffle::new(blocks(&[0, 1, 0, 2]), 1)), [0, 1, 2], "fewer samples than streams");
    let one = BlockShuffle::new(blocks(&[1000]), 1);
    assert!(sorted(&one).into_iter().eq(0..1000));
    assert_ne!(order(&one, 0)[..8], [0, 125, 250, 375, 500, 625, 750, 875], "the pieces of a block are shuffled");
    assert!(sorted(&BlockShuffle::new(blocks(&[3, 4]), 1).streams(usize::MAX).window(usize::MAX)).into_iter().eq(0..7));
    let refused = BlockShuffle::new(blocks(&[3, 4]), 1).streams(0).window(0);
    assert!(sorted(&refused).into_iter().eq(0..7), "it is refused by `check`, but does not panic");
}

#[test]
fn epochs_seeds_and_options_differ() {
    let shuffle = |seed| BlockShuffle::new(blocks(&[10; 50]), seed);
    let all = [
        order(&shuffle(1), 0),
        order(&shuffle(1), 1),
        order(&shuffle(2), 0),
        order(&shuffle(1).streams(4), 0),
        order(&shuffle(1).window(2), 0),
        order(&BlockShuffle::new(blocks(&[20; 25]), 1), 0),
        (0..500).collect(),
    ];
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    let texts =
        [shuffle(1), shuffle(2), shuffle(1).streams(4), shuffle(1).window(2)].map(|shuffle| shuffle.fingerprint());
    assert_eq!(texts.iter().collect::<HashSet<_>>().len(), texts.len());
    assert_ne!(texts[0], BlockShuffle::new(blocks(&[20; 25]), 1).fingerprint());
    let other_machine = BlockShuffle::new(Blocks::new([(10, 77); 50]).with_limit(5), 1);
    assert_eq!((texts[0].clone(), order(&shuffle(1), 0)), (other_machine.fingerprint(), order(&other_machine, 0)));
}

/// Training that is resumed, or repeated to reproduce a result, relies on these. A change here breaks them for users,
/// and needs an entry in CHANGELOG.md.
#[test]
fn a_seed_gives_the_order_that_it_always_gave() {
    let shuffle = BlockShuffle::new(Blocks::new((0..60).map(|block| (block % 7 * 25, 0))), 42);
    assert_eq!(
        shuffle.fingerprint(),
        "BlockShuffle { seed: 42, streams: 8, window: 4, blocks: 60 of hash c5ed3ad1bc133185 }"
    );
    let first = |epoch, from| shuffle.indices(shuffle.len(0), epoch).skip(from).take(8).collect::<Vec<_>>();
    assert_eq!(
        [first(0, 0), first(1, 0), first(0, 3000)],
        [
            [2338, 669, 3123, 2230, 3385, 2418, 2695, 818],
            [4223, 2447, 3647, 1981, 2681, 2521, 3116, 3859],
            [3243, 2858, 433, 264, 3695, 3650, 4278, 3921],
        ]
    );
}

#[test]
fn wrong_options_are_refused_with_advice() {
    let refused = |shuffle: BlockShuffle| shuffle.check(1000).unwrap_err().to_string();
    let table = |limit| Blocks::new([(10, 2_000_000); 100]).with_limit(limit);
    let shuffle = |limit| BlockShuffle::new(table(limit), 1);
    assert!(shuffle(64_000_000).check(1000).is_ok());
    assert_eq!(
        refused(shuffle(63_999_999)),
        "`BlockShuffle::new`: 32 blocks are in use at once (8 streams of 4 blocks) and take up to 64.0 MB, but the \
         source has 63.9 MB for them; write `.window(3)` or `.streams(4)`, or give the source at least 64.0 MB"
    );
    assert!(shuffle(63_999_999).window(3).check(1000).is_ok() && shuffle(63_999_999).streams(4).check(1000).is_ok());
    assert!(refused(shuffle(15_000_000)).contains("write `.streams(1)`, or"));
    assert!(refused(shuffle(15_000_000).window(1)).contains("write `.streams(4)`, or"));
    assert!(refused(shuffle(15_000_000).streams(1).window(9)).contains("write `.window(7)`, or"));
    assert!(refused(shuffle(7_000_000)).contains("write `.streams(1).window(3)`, or"));
    assert!(shuffle(7_000_000).streams(1).window(3).check(1000).is_ok());
    assert!(refused(shuffle(1_000_000)).ends_with("for them; give the source at least 64.0 MB"));
    assert!(refused(shuffle(1_000_000).streams(99).window(99)).contains("100 blocks are in use at once"));
    assert!(refused(shuffle(64_000_000).streams(0)).contains("`BlockShuffle::streams`: 0 streams"));
    assert!(refused(shuffle(64_000_000).window(0)).contains("`BlockShuffle::window`: 0 blocks"));
    let other = shuffle(64_000_000).check(999).unwrap_err().to_string();
    assert!(other.contains("1000 samples in all blocks for a dataset of 999 items"), "{other}");
}
