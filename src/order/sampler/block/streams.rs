//! One epoch: the blocks in random order, cut into streams, and the samples of each stream.

use super::blocks::Blocks;
use crate::order::draw::{PackedList, reserved};
use burn_augment::{KeyedRng, for_loader::Purpose};
use std::{ops::Range, sync::Arc};

/// The blocks of an epoch in random order, laid end to end. Each sample has a place in this sequence.
pub(super) struct BlockOrder {
    blocks: Blocks,
    /// The blocks that have samples.
    order: PackedList,
    /// The first place of each block of the order, and the end of the last one.
    places: Vec<usize>,
}

impl BlockOrder {
    pub(super) fn new(blocks: &Blocks, seed: u64, epoch: usize) -> Self {
        let mut order = PackedList::EMPTY;
        let filled = blocks.ranges().enumerate().filter(|(_, range)| !range.is_empty());
        filled.for_each(|(block, _)| order.push(block));
        order.shuffle(0..order.len(), &mut KeyedRng::for_order(seed, epoch));
        let ends = order.iter().scan(0, |end, block| {
            *end += blocks.range(block).len();
            Some(*end)
        });
        let mut places = reserved(order.len() + 1);
        places.extend([0].into_iter().chain(ends));
        Self { blocks: blocks.clone(), order, places }
    }

    /// Returns the block of the order that contains a place.
    fn block_at(&self, place: usize) -> usize {
        self.places.partition_point(|start| *start <= place) - 1 // the first starts at 0
    }

    /// Returns where a block of the order starts. Blocks after the last one start where it ends.
    fn start_of(&self, at: usize) -> usize {
        self.places.get(at).copied().unwrap_or(self.blocks.samples())
    }

    /// Returns the samples at these places.
    fn samples_at(&self, places: Range<usize>) -> Vec<usize> {
        let mut samples = reserved(places.len());
        for at in self.block_at(places.start)..self.order.len() {
            let start = self.start_of(at);
            if start >= places.end {
                break;
            }
            let block = self.blocks.range(self.order.get(at));
            let first = block.start + places.start.saturating_sub(start);
            samples.extend(first..block.end.min(block.start + (places.end - start)));
        }
        samples
    }
}

/// The order of an epoch: consecutive positions take the streams in turn.
///
/// The samples of a group of blocks are shuffled when one of them is first needed. Skipped samples take no time.
pub(super) struct Streams {
    plan: Arc<BlockOrder>,
    seed: u64,
    epoch: usize,
    count: usize,
    window: usize,
    /// For each stream, the group of blocks that was used last: its places, and its samples in random order.
    groups: Vec<Option<(Range<usize>, PackedList)>>,
}

impl Streams {
    pub(super) fn new(plan: Arc<BlockOrder>, seed: u64, epoch: usize, count: usize, window: usize) -> Self {
        let (count, window) = (count.max(1), window.max(1)); // `check` refuses 0
        let mut groups = Vec::new();
        groups.resize_with(count.min(plan.blocks.samples()), || None);
        Self { plan, seed, epoch, count, window, groups }
    }

    /// The number of positions of the epoch.
    pub(super) fn len(&self) -> usize {
        self.plan.blocks.samples()
    }

    /// Returns the first place of a stream. Lengths of streams differ by at most one, and the first ones are longer.
    fn border(&self, stream: usize) -> usize {
        stream * (self.len() / self.count) + stream.min(self.len() % self.count)
    }

    /// Returns the places of the group of a stream that contains a place.
    fn group_at(&self, stream: usize, place: usize) -> Range<usize> {
        let first = self.plan.block_at(self.border(stream));
        let number = self.plan.block_at(place) - first;
        // First groups are small in the first streams and large in the last ones. So the streams change groups at
        // different times.
        let lead = 1 + (stream as u128 * self.window as u128 / self.count as u128) as usize;
        let (start, end) = if number < lead {
            (0, lead)
        } else {
            let start = number - (number - lead) % self.window;
            (start, start.saturating_add(self.window))
        };
        let start = self.plan.start_of(first + start).max(self.border(stream));
        start..self.plan.start_of(first.saturating_add(end)).min(self.border(stream + 1))
    }

    /// Shuffles the samples at the places of a group.
    fn shuffled(&self, places: &Range<usize>) -> PackedList {
        let samples = self.plan.samples_at(places.clone());
        let mut samples = PackedList::collect(self.len(), samples.into_iter());
        // No other group starts at this place.
        let mut rng = KeyedRng::new(Purpose::Block, self.seed, self.epoch, places.start);
        samples.shuffle(0..places.len(), &mut rng);
        samples
    }

    /// Returns the sample at a position of the epoch.
    pub(super) fn sample_at(&mut self, position: usize) -> usize {
        let stream = position % self.count;
        let place = self.border(stream) + position / self.count;
        let group = self.groups[stream].take().filter(|(places, _)| places.contains(&place));
        let (places, samples) = group.unwrap_or_else(|| {
            let places = self.group_at(stream, place);
            let samples = self.shuffled(&places);
            (places, samples)
        });
        let sample = samples.get(place - places.start);
        self.groups[stream] = Some((places, samples));
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{Distributed, draw::LazyMap};
    use crate::sync::locks::Mutex;

    fn streams(blocks: &[usize], count: usize, window: usize) -> Streams {
        let blocks = Blocks::new(blocks.iter().map(|samples| (*samples, 0)));
        Streams::new(Arc::new(BlockOrder::new(&blocks, 5, 2)), 5, 2, count, window)
    }

    /// Returns where the groups of a stream end.
    fn ends(streams: &Streams, stream: usize) -> Vec<usize> {
        let mut ends = vec![streams.border(stream)];
        while ends[ends.len() - 1] < streams.border(stream + 1) {
            let start = ends[ends.len() - 1];
            let group = streams.group_at(stream, start);
            assert_eq!(group.start, start);
            assert!(group.clone().all(|place| streams.group_at(stream, place) == group));
            ends.push(group.end);
        }
        ends.split_off(1)
    }

    #[test]
    fn the_order_of_blocks_is_complete() {
        let streams = streams(&[3, 0, 1, 0, 7, 2], 2, 1);
        let plan = &streams.plan;
        let mut order: Vec<usize> = plan.order.iter().collect();
        for (at, block) in order.iter().enumerate() {
            assert_eq!(
                plan.samples_at(plan.start_of(at)..plan.start_of(at + 1)),
                plan.blocks.range(*block).collect::<Vec<_>>()
            );
        }
        let mut parts = plan.samples_at(0..4);
        parts.extend(plan.samples_at(4..13));
        assert_eq!(parts, plan.samples_at(0..13), "also across blocks, and from the middle of one");
        order.sort_unstable();
        assert_eq!(order, [0, 2, 4, 5]);
    }

    #[test]
    fn streams_are_equal_and_their_first_groups_grow() {
        let streams = streams(&[10; 81], 8, 4); // a stream has 101 or 102 samples
        let lens: Vec<usize> = (0..8).map(|stream| streams.border(stream + 1) - streams.border(stream)).collect();
        assert_eq!(lens, (0..8).map(|stream| (810usize - stream).div_ceil(8)).collect::<Vec<_>>());
        let groups: Vec<Vec<usize>> = (0..8).map(|stream| ends(&streams, stream)).collect();
        // The first blocks of streams 0 to 7 have 10, 8, 6, 5, 4, 3, 2 and 1 samples: the others are before the cut.
        let first: Vec<usize> = (0..8).map(|stream| groups[stream][0] - streams.border(stream)).collect();
        assert_eq!(first, [10, 8, 16, 15, 24, 23, 32, 31]);
        assert!(groups.iter().all(|ends| ends.windows(2).rev().skip(1).all(|ends| ends[1] - ends[0] == 40)));
        assert!((0..8).all(|stream| groups[stream].last() == Some(&streams.border(stream + 1))));
    }

    #[test]
    fn groups_may_be_larger_than_all_blocks() {
        for window in [100, usize::MAX] {
            let streams = streams(&[4; 10], 2, window);
            assert_eq!(ends(&streams, 0), [4, 20], "the first group of the first stream is one block");
            assert_eq!(ends(&streams, 1), [40]);
        }
    }

    /// A process shuffles only the groups of its own streams, also if it resumes in the middle of an epoch.
    #[test]
    fn what_is_skipped_is_not_shuffled() {
        for (rank, world, given) in [(0, 1, 0), (1, 2, 0), (3, 4, 400), (5, 8, 0), (5, 8, 808), (13, 16, 0)] {
            let watched = Arc::new(Mutex::new(streams(&[10; 160], 8, 4)));
            let again = || Box::new(0..1600usize) as Box<dyn Iterator<Item = usize> + Send>;
            let at = Arc::clone(&watched);
            let units = Box::new(LazyMap::new(1600, move |position| Some(at.lock().sample_at(position))));
            let mine = Distributed::new(rank, world).unwrap().units(units, given..1600, again);
            assert_eq!(mine.count(), (1600 - given) / world);
            let used: Vec<usize> = (0..8).filter(|stream| watched.lock().groups[*stream].is_some()).collect();
            let own: Vec<usize> = (rank % 8..8).step_by(world.min(8)).collect();
            assert_eq!(used, own, "rank {rank} of {world}");
        }
    }

    /// Skipping far ahead is immediate, however large the dataset is.
    #[test]
    fn a_far_sample_costs_one_group() {
        let mut far = streams(&[1 << 12; 1 << 10], 8, 4);
        let last = far.len() - 1;
        assert!(far.sample_at(last) <= last);
        assert_eq!(far.groups.iter().flatten().count(), 1);
    }
}
