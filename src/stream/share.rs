//! The samples of one process in an epoch of a stream, in order: its part of the items, shuffled through a buffer.

use super::{
    lanes::{HERE, Item, Lanes, LanesMark},
    reader::Produce,
};
use crate::{
    fault::{Error, UserValues, discard},
    observe::Counters,
    order::{Distributed, below},
    sync::locks::Mutex,
};
use burn_augment::{KeyedRng, for_loader::Purpose};
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::{
    collections::{HashMap, VecDeque},
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// A place in a stream, from which the samples of a process can be had again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ShareMark {
    pub(super) epoch: usize,
    pub(super) world: usize,
    /// How many items of the lanes were read there. None of them is wanted any more.
    pub(super) read: usize,
    pub(super) lanes: LanesMark,
    /// The number of items of the process in the whole epoch, if the stream has ended.
    pub(super) end: Option<usize>,
}

/// The number of an item among those of its process, and the item until a worker takes it.
pub(super) type NumberedItem<I> = (usize, Mutex<Option<Item<I>>>);

/// The items of the stream that are this process's, in the stream's order.
pub(super) struct Dealt<I: Send + 'static> {
    pub(super) lanes: Lanes<I>,
    /// How many items of the lanes were read, and how many are to be read over before the first turn.
    pub(super) read: usize,
    pub(super) over: usize,
    /// Of this many items the process takes the one of number `rank`.
    pub(super) world: usize,
    pub(super) rank: usize,
    /// Whether a last turn that is too short for all processes gets the first items again. Otherwise it is left out.
    pub(super) fills: bool,
    /// Whether a stream that has ended begins again.
    pub(super) repeats: bool,
    /// The number of the next item of this process.
    pub(super) taken: usize,
    pub(super) ended: bool,
}

impl<I: Send + 'static> Dealt<I> {
    /// Begins the epoch again.
    fn restart(&mut self) -> Result<(), Error> {
        (self.read, self.over, self.taken, self.ended) = (0, 0, 0, false);
        self.lanes.restart()
    }

    /// The next item of the lanes.
    fn any(&mut self, stop: &AtomicBool, wanted: usize) -> Option<Result<Item<I>, Box<Error>>> {
        let mut item = self.lanes.produce(stop, wanted);
        if item.is_none() && self.repeats && !stop.load(Relaxed) {
            item = match self.lanes.restart() {
                Ok(()) => self.lanes.produce(stop, wanted),
                Err(error) => Some(Err(Box::new(error))),
            };
        }
        self.read += usize::from(item.is_some());
        item
    }

    /// The next item of this process, once all items of its turn were read.
    fn deal(&mut self, stop: &AtomicBool, wanted: usize) -> Result<Option<Item<I>>, Box<Error>> {
        let (mut own, mut number, mut begun) = (None, 0, None);
        while !self.ended && number < self.world {
            match self.any(stop, wanted.saturating_mul(self.world)).transpose()? {
                Some(item) if self.over > 0 => {
                    self.over -= 1;
                    discard(HERE, item);
                }
                Some(item) => {
                    match number == self.rank {
                        true => own = Some(item),
                        false => discard(HERE, item),
                    }
                    number += 1;
                }
                None if self.fills && number > 0 && begun != Some(number) => {
                    if own.is_some() {
                        break;
                    }
                    begun = Some(number);
                    self.lanes.restart()?;
                }
                None => self.ended = true,
            }
        }
        if self.ended {
            discard(HERE, own.take());
        }
        self.ended |= number < self.world || begun.is_some();
        self.taken += usize::from(own.is_some());
        Ok(own)
    }
}

/// How many places are kept before those that nobody needs are looked for.
const MOST_MARKS: usize = 16;

fn bytes<I>(item: &Item<I>) -> usize {
    item.as_ref().map_or(0, |item| item.bytes)
}

/// The samples of a process, in the order of its batches.
pub(super) struct Share<I: Send + 'static> {
    items: Dealt<I>,
    epoch: usize,
    world: usize,
    rng: KeyedRng,
    /// The buffer: the numbers of the items in it, and the items. It is empty if the stream is not shuffled.
    held: UserValues<(usize, Option<Item<I>>)>,
    /// The bytes of those items, as far as the user says them.
    bytes: usize,
    /// The size of the buffer. The stream is not shuffled if it is less than 2.
    size: usize,
    /// How many samples were given before.
    given: usize,
    /// How many items must be taken before the next sample is given.
    first: usize,
    filled: bool,
    /// Places in the stream: the items that were taken and read there. Nothing before the oldest is wanted any more.
    marks: VecDeque<(usize, usize, LanesMark)>,
    /// The number of items of the process in the whole epoch, if the stream has ended.
    end: Option<usize>,
    counters: Arc<Counters>,
    /// The samples and bytes of the buffer that the statistics have.
    noted: (usize, usize),
}

impl<I: Send + 'static> Share<I> {
    /// The samples after the first `given` ones, through a buffer of `size`. `items` are at the place of a mark of those samples, or of
    /// fewer, or at the begin of the epoch. `end` is that of the mark.
    pub(super) fn new(
        items: Dealt<I>,
        (seed, epoch): (u64, usize),
        of: Distributed,
        size: usize,
        given: usize,
        end: Option<usize>,
        counters: Arc<Counters>,
    ) -> Self {
        let rng = KeyedRng::new(Purpose::Order, seed, epoch, of.rank() + 1);
        let (held, marks, world) = (UserValues::default(), VecDeque::new(), of.world());
        Self {
            items,
            epoch,
            world,
            rng,
            held,
            bytes: 0,
            size,
            given,
            first: given,
            filled: false,
            marks,
            end,
            counters,
            noted: (0, 0),
        }
    }

    /// Finds which items the buffer holds after the samples that were given.
    fn place(&mut self) {
        if self.size < 2 {
            return;
        }
        self.rng.seek(0);
        let end = self.end.unwrap_or(usize::MAX);
        self.first = self.size.min(end);
        let mut held: Vec<usize> = (0..self.first).collect();
        for _ in 0..self.given {
            let (slot, _) = below(self.rng.next_u64(), held.len().max(1));
            if self.first < end {
                held[slot] = self.first;
                self.first += 1;
            } else if slot < held.len() {
                held.swap_remove(slot);
            }
        }
        (self.held, self.bytes) = (UserValues(held.into_iter().map(|number| (number, None)).collect()), 0);
    }

    /// Notes the size of the buffer in the statistics.
    fn note(&mut self, now: (usize, usize)) {
        let before = mem::replace(&mut self.noted, now);
        if now != before {
            self.counters.note(|stats| {
                stats.buffer_samples = stats.buffer_samples + now.0 - before.0;
                stats.buffer_bytes = stats.buffer_bytes + now.1 - before.1;
            });
        }
    }

    fn note_mark(&mut self) {
        self.marks.push_back((self.items.taken, self.items.read, self.items.lanes.mark()));
    }

    /// Takes the items that the buffer holds, and reads over those that were given before.
    fn fill(&mut self, stop: &AtomicBool, wanted: usize) -> Result<(), Box<Error>> {
        self.place();
        self.note_mark();
        loop {
            let slots: HashMap<_, _> =
                self.held.iter().enumerate().map(|(slot, (number, _))| (*number, slot)).collect();
            while self.items.taken < self.first {
                let number = self.items.taken;
                let Some(item) = self.items.deal(stop, wanted)? else { break };
                match slots.get(&number) {
                    Some(slot) => {
                        self.bytes += bytes(&item);
                        self.held[*slot].1 = Some(item);
                    }
                    None => discard(HERE, item),
                }
            }
            if self.items.taken >= self.first || stop.load(Relaxed) {
                return Ok(());
            }
            // The stream is shorter, which changes what the buffer held, if samples were given before.
            let is_known = self.end.replace(self.items.taken).is_some();
            if is_known || self.given == 0 || self.size < 2 {
                self.held.retain(|(_, item)| item.is_some());
                return Ok(());
            }
            self.place();
            self.items.restart()?;
        }
    }

    fn draw(&mut self, stop: &AtomicBool, wanted: usize) -> Result<Option<(usize, Item<I>)>, Box<Error>> {
        if !mem::replace(&mut self.filled, true) {
            self.fill(stop, wanted)?;
        }
        let new = if self.end.is_none() { self.items.deal(stop, wanted)? } else { None };
        let new = new.map(|item| (self.items.taken - 1, item));
        if new.is_none() {
            self.end = Some(self.items.taken);
        }
        if self.size < 2 || self.held.is_empty() {
            return Ok(new);
        }
        let (slot, _) = below(self.rng.next_u64(), self.held.len());
        self.bytes += new.as_ref().map_or(0, |(_, item)| bytes(item));
        let (number, item) = match new {
            Some((number, item)) => mem::replace(&mut self.held[slot], (number, Some(item))),
            None => self.held.swap_remove(slot),
        };
        self.bytes -= item.as_ref().map_or(0, bytes);
        Ok(item.map(|item| (number, item)))
    }
}

impl<I: Send + 'static> Produce for Share<I> {
    type Item = NumberedItem<I>;
    type Mark = ShareMark;

    fn produce(&mut self, stop: &AtomicBool, wanted: usize) -> Option<Result<Self::Item, Box<Error>>> {
        let next = self.draw(stop, wanted).transpose()?;
        Some(next.map(|(number, item)| (number, Mutex::new(Some(item)))))
    }

    fn mark(&mut self) -> ShareMark {
        self.note((self.held.len(), self.bytes));
        self.note_mark();
        // An older place is as good, so a large buffer is not looked through for each batch.
        if self.held.is_empty() || self.marks.len() > MOST_MARKS {
            let least = self.held.iter().map(|(number, _)| *number).min().unwrap_or(self.items.taken);
            while self.marks.get(1).is_some_and(|(taken, ..)| *taken <= least) {
                self.marks.pop_front();
            }
        }
        let (_, read, lanes) = self.marks[0].clone();
        let end = if self.items.ended { Some(self.items.taken) } else { self.end };
        ShareMark { epoch: self.epoch, world: self.world, read, lanes, end }
    }
}

impl<I: Send + 'static> Drop for Share<I> {
    fn drop(&mut self) {
        self.note((0, 0));
    }
}
