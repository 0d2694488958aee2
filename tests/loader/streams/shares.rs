//! Processes and devices that share a stream.

use super::*;
use burn_pinned::Distributed;
use std::time::{Duration, Instant};

fn ranks(world: usize, of: fn(Distributed) -> Distributed, stream: impl Fn() -> Stream<usize>) -> Vec<Vec<usize>> {
    let rank = |rank| builder().distributed(of(Distributed::new(rank, world).unwrap())).build_stream(stream()).unwrap();
    (0..world).map(|number| items(&rank(number))).collect()
}

#[test]
fn each_takes_every_worldth_item_and_all_stop_at_the_same_step() {
    for world in [2, 3, 5, 40] {
        for len in [1, 29, 30, 31, 79, 80] {
            let shares = ranks(world, |all| all, || plain(len));
            for (rank, share) in shares.iter().enumerate() {
                // As of a data set: the first items come again at the end.
                let own: Vec<_> = (0..len.div_ceil(world)).map(|step| (step * world + rank) % len).collect();
                assert_eq!(*share, own, "rank {rank} of {world}, {len} items");
            }
            if len >= world {
                let dropped = ranks(world, Distributed::drop_uneven, || plain(len));
                for (rank, share) in dropped.iter().enumerate() {
                    assert!(
                        share.iter().copied().eq((rank..len / world * world).step_by(world)),
                        "rank {rank} of {world}"
                    );
                }
            }
        }
    }
}

/// The rest of an epoch, with another number of processes: each of the items that were not given comes, the first few of the epoch again
/// to fill up, and all processes have as many.
#[test]
fn another_number_of_processes_goes_on() {
    for (before, after) in [(2, 3), (3, 2), (1, 4), (4, 1), (3, 5)] {
        for steps in [1, 2, 3] {
            let states = (0..before).map(|rank| {
                let of = Distributed::new(rank, before).unwrap();
                let loader = builder().batch_size(4).distributed(of).build_stream(plain(100)).unwrap();
                loader.iter().take(steps).for_each(|batch| drop(batch.unwrap()));
                loader.state()
            });
            for state in states {
                let rank = |rank| {
                    let of = Distributed::new(rank, after).unwrap();
                    builder().batch_size(4).distributed(of).resume(state.clone()).build_stream(plain(100)).unwrap()
                };
                let shares: Vec<_> = (0..after).map(|number| items(&rank(number))).collect();
                let (given, each) = (before * steps * 4, shares[0].len());
                for (rank, share) in shares.into_iter().enumerate() {
                    let own = (0..each).map(|step| (given + step * after + rank) % 100);
                    assert!(share.into_iter().eq(own), "{before} to {after}, {steps} steps, rank {rank}");
                }
                assert_eq!(each, (100 - given).div_ceil(after));
            }
        }
    }
}

/// After the last batch of each, as after every other: nothing comes again.
#[test]
fn a_state_of_the_last_batch_has_nothing_left() {
    for (world, len) in [(2, 5), (2, 6), (3, 7), (3, 9), (4, 41)] {
        for rank in 0..world {
            let of = || builder().batch_size(3).distributed(Distributed::new(rank, world).unwrap());
            let loader = of().build_stream(plain(len)).unwrap();
            let mut left: Vec<Vec<usize>> = Vec::new();
            for batch in loader.iter() {
                batch.unwrap();
                left.push(items(&of().resume(loader.state()).build_stream(plain(len)).unwrap()));
            }
            let all = len.div_ceil(world);
            let expected: Vec<_> = (1..=left.len()).map(|given| all.saturating_sub(3 * given)).collect();
            assert_eq!(left.iter().map(Vec::len).collect::<Vec<_>>(), expected, "rank {rank} of {world}, {len} items");
        }
    }
}

#[test]
fn shards_are_dealt_and_steps_keep_processes_together() {
    let share = |rank| {
        let of = Distributed::new(rank, 2).unwrap();
        builder().distributed(of).steps_per_epoch(20).build_stream(shards(5)).unwrap()
    };
    let shares = [0, 1].map(|rank| items(&share(rank)));
    let own = |of: [usize; 3]| {
        let shard = |shard| shard_of(shard).collect::<Vec<_>>();
        of.into_iter().flat_map(shard).cycle().take(140).collect::<Vec<_>>()
    };
    assert_eq!(shares, [own([0, 2, 4]), own([1, 3, 1])]);
}

fn shard_of(shard: usize) -> Range<usize> {
    let mut place = StreamPlace::default();
    place.shard = shard;
    super::shard(&place)
}

#[test]
fn devices_of_a_process_share_the_stream() {
    let loader = builder().devices(2).build_stream(plain(100)).unwrap();
    let half = loader.num_items() / 2;
    let shares = [0..half, half..2 * half].map(|cut| loader.slice(cut.start, cut.end));
    for (device, share) in shares.iter().enumerate() {
        let numbers = numbers(&common::epoch(&**share));
        assert!(
            numbers.into_iter().map(|number| number as usize / 1000).eq((device..100).step_by(2)),
            "device {device}"
        );
    }
}

/// The shards behind those that end at the same time are opened at the same time, and the order stays.
#[test]
fn shards_that_end_together_are_followed_together() {
    let [now, longest] = [0; 2].map(|_| Arc::<AtomicUsize>::default());
    let late = Arc::clone(&longest);
    let stream = Stream::new(move |place| {
        if place.shard >= 3 {
            now.fetch_add(1, Relaxed);
            let since = Instant::now();
            while now.load(Relaxed) < 3 && since.elapsed() < Duration::from_secs(5) {
                std::thread::sleep(Duration::from_millis(1)); // each waits for the others
            }
            late.fetch_max(since.elapsed().as_secs() as usize, Relaxed);
        }
        Ok(good(100 * place.shard..100 * place.shard + 10))
    });
    // A batch asks each shard for more than it has, so its end is known with its last items.
    let loader = common::sized(60).augment(jitter).build_stream(stream.shards(6).interleave(3)).unwrap();
    let in_turn =
        |shards: Range<usize>| (0..10).flat_map(move |item| shards.clone().map(move |shard| 100 * shard + item));
    assert_eq!(items(&loader), in_turn(0..3).chain(in_turn(3..6)).collect::<Vec<_>>());
    assert!(longest.load(Relaxed) < 5, "the next shards were opened one after the other");
}
