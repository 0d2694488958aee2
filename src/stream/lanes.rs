//! The items of the shards that a process reads, in order: one shard after the other, or several at once in turn.

use super::{
    reader::{Produce, Reader},
    source::{OpenItems, Stream, StreamItem, StreamPlace, is_of_stream},
};
use crate::{
    fault::{BoxError, Error, discard, guard_at},
    vocabulary::{BatchKey, Place, Stage},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::VecDeque,
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    vec,
};

/// The place of a stream's errors until it is known which batch they are for.
pub(super) const HERE: Place = Place::batch(Stage::Stream, BatchKey::NONE);

/// An item, which may be bad.
pub(super) type Item<I> = Result<StreamItem<I>, BoxError>;

/// A place in the items of several shards.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LanesMark {
    lanes: Vec<LaneMark>,
    /// The lane whose turn it is.
    turn: usize,
    /// The number of shards that were opened.
    opened: usize,
}

/// A place in a shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LaneMark {
    shard: usize,
    /// How many of its items were given.
    given: usize,
    /// The newest state of the source, and after how many items it was saved.
    saved: Option<(usize, String)>,
}

/// A shard that is opened when its first item is wanted.
struct OpenShard<I> {
    stream: Arc<Stream<I>>,
    place: StreamPlace,
    /// How many items are read over first.
    over: usize,
    items: Option<Box<dyn OpenItems<I>>>,
    /// The number of the next item.
    at: usize,
    failed: Option<Box<Error>>,
    ended: bool,
}

impl<I: Send + 'static> OpenShard<I> {
    fn new(stream: &Arc<Stream<I>>, epoch: usize, from: &LaneMark) -> Self {
        let LaneMark { shard, given, ref saved } = *from;
        let (skip, before, state) = match saved.as_ref().filter(|_| stream.saves) {
            Some((before, state)) => (0, *before, Some(state.clone())),
            None if stream.seeks => (given.saturating_mul(stream.group), given, None),
            None => (0, 0, None),
        };
        let place = StreamPlace { epoch, shard, skip, state };
        let (stream, over) = (Arc::clone(stream), given - before.min(given));
        Self { stream, place, over, items: None, at: given, failed: None, ended: false }
    }
}

impl<I: Send + 'static> Produce for OpenShard<I> {
    type Item = Item<I>;
    type Mark = Option<(usize, String)>;

    fn produce(&mut self, stop: &AtomicBool, _: usize) -> Option<Result<Self::Item, Box<Error>>> {
        if self.ended {
            return None;
        }
        let mut item = None;
        let next = || {
            let items = match &mut self.items {
                Some(items) => items,
                None => self.items.insert((self.stream.open)(&self.place)?),
            };
            while !stop.load(Relaxed) {
                match items.next() {
                    Some(Err(error)) if is_of_stream(&error) => return Err(error),
                    Some(_) if self.over > 0 => self.over -= 1,
                    next => {
                        item = next;
                        break;
                    }
                }
            }
            Ok(())
        };
        let failed = self.failed.take().or_else(|| guard_at(|| HERE, next).map_err(Box::new).err());
        self.ended = failed.is_some() || item.is_none();
        self.at += 1;
        failed.map(Err).or_else(|| item.map(Ok))
    }

    fn mark(&mut self) -> Self::Mark {
        let items = self.items.as_mut().filter(|_| !self.ended)?;
        match guard_at(|| HERE, || items.save().transpose()) {
            Ok(state) => return Some((self.at, state?)),
            Err(error) => self.failed = Some(Box::new(error)),
        }
        None
    }
}

impl<I> Drop for OpenShard<I> {
    fn drop(&mut self) {
        discard(HERE, self.items.take());
    }
}

/// Where the items of a lane come from.
enum Supply<I: Send + 'static> {
    Here(OpenShard<I>),
    Thread {
        reader: Reader<OpenShard<I>>,
        items: vec::IntoIter<Item<I>>,
        failed: Option<Box<Error>>,
        next: Option<(usize, String)>,
        asked: bool,
    },
}

struct LaneOfShard<I: Send + 'static> {
    mark: LaneMark,
    /// Whether it has just become known that its last items are there.
    ends: bool,
    supply: Supply<I>,
}

impl<I: Send + 'static> LaneOfShard<I> {
    /// Whether items must be asked for.
    fn is_empty(&self) -> bool {
        matches!(&self.supply, Supply::Thread { items, asked: false, failed: None, .. } if items.len() == 0)
    }

    /// Asks for items, if none are left.
    fn ask(&mut self, wanted: usize) {
        if self.is_empty()
            && let Supply::Thread { reader, asked, .. } = &mut self.supply
        {
            *asked = true;
            reader.desk.ask(wanted);
        }
    }
}

impl<I: Send + 'static> Produce for LaneOfShard<I> {
    type Item = Item<I>;
    type Mark = LaneMark;

    fn produce(&mut self, stop: &AtomicBool, wanted: usize) -> Option<Result<Self::Item, Box<Error>>> {
        let item = match &mut self.supply {
            Supply::Here(shard) => shard.produce(stop, wanted),
            Supply::Thread { reader, items, failed, next, asked } => {
                if mem::take(asked) {
                    let lot = reader.desk.take(stop)?;
                    if let Some(saved) = mem::replace(next, lot.mark.flatten()) {
                        self.mark.saved = Some(saved);
                    }
                    (*items, *failed, self.ends) = (lot.items.take().into_iter(), lot.failed, lot.ended);
                }
                items.next().map(Ok).or_else(|| failed.take().map(Err))
            }
        }?;
        self.mark.given += 1;
        Some(item)
    }

    fn mark(&mut self) -> LaneMark {
        if let Supply::Here(shard) = &mut self.supply
            && let Some(saved) = shard.mark()
        {
            self.mark.saved = Some(saved);
        }
        self.mark.clone()
    }
}

/// The items of the shards of a process.
pub(super) struct Lanes<I: Send + 'static> {
    stream: Arc<Stream<I>>,
    epoch: usize,
    /// The name of the thread, before the number of a shard.
    name: String,
    shards: Vec<usize>,
    lanes: Vec<LaneOfShard<I>>,
    /// The next shards, which were opened when others came to their last items.
    ahead: VecDeque<LaneOfShard<I>>,
    turn: usize,
    opened: usize,
}

impl<I: Send + 'static> Lanes<I> {
    pub(super) fn new(
        stream: Arc<Stream<I>>,
        epoch: usize,
        name: String,
        shards: Vec<usize>,
        from: Option<LanesMark>,
    ) -> Result<Self, Error> {
        let LanesMark { lanes: marks, turn, opened } = from.unwrap_or_default();
        let mut lanes = Self { stream, epoch, name, shards, lanes: Vec::new(), ahead: VecDeque::new(), turn, opened };
        for mark in marks {
            let lane = lanes.lane(mark)?;
            lanes.lanes.push(lane);
        }
        lanes.fill()?;
        Ok(lanes)
    }

    fn lane(&self, mark: LaneMark) -> Result<LaneOfShard<I>, Error> {
        let shard = OpenShard::new(&self.stream, self.epoch, &mark);
        let supply = if self.stream.interleave > 1 {
            let reader = Reader::start(format!("{}-{}", self.name, mark.shard), shard)?;
            Supply::Thread { reader, items: vec![].into_iter(), failed: None, next: None, asked: false }
        } else {
            Supply::Here(shard)
        };
        Ok(LaneOfShard { mark, ends: false, supply })
    }

    fn open(&self, at: usize) -> Result<Option<LaneOfShard<I>>, Error> {
        let shard = self.shards.get(at).copied();
        shard.map(|shard| self.lane(LaneMark { shard, given: 0, saved: None })).transpose()
    }

    fn open_next(&mut self) -> Result<Option<LaneOfShard<I>>, Error> {
        let next = self.ahead.pop_front().map_or_else(|| self.open(self.opened), |lane| Ok(Some(lane)))?;
        self.opened += usize::from(next.is_some());
        Ok(next)
    }

    /// Opens a shard before its turn. Shards of one length end at the same time, so the next ones are opened at the same time too. If the last
    /// items of a shard fill what it was asked for, its end is not known yet.
    #[cold]
    fn open_ahead(&mut self, wanted: usize) {
        if let Ok(Some(mut lane)) = self.open(self.opened + self.ahead.len()) {
            lane.ask(wanted);
            self.ahead.push_back(lane);
        }
    }

    fn fill(&mut self) -> Result<(), Error> {
        while self.lanes.len() < self.stream.interleave.max(1)
            && let Some(lane) = self.open_next()?
        {
            self.lanes.push(lane);
        }
        Ok(())
    }

    /// Begins again with the first shard.
    pub(super) fn restart(&mut self) -> Result<(), Error> {
        (self.turn, self.opened) = (0, 0);
        self.lanes.clear();
        self.ahead.clear();
        self.fill()
    }
}

impl<I: Send + 'static> Produce for Lanes<I> {
    type Item = Item<I>;
    type Mark = LanesMark;

    fn produce(&mut self, stop: &AtomicBool, wanted: usize) -> Option<Result<Self::Item, Box<Error>>> {
        while !self.lanes.is_empty() && !stop.load(Relaxed) {
            // Each item comes here, so nothing is divided.
            if self.lanes[self.turn].is_empty() {
                let each = wanted.div_ceil(self.lanes.len());
                self.lanes.iter_mut().for_each(|lane| lane.ask(each)); // they read at the same time
            }
            let lane = &mut self.lanes[self.turn];
            if let Some(item) = lane.produce(stop, wanted) {
                if mem::take(&mut lane.ends) {
                    self.open_ahead(wanted.div_ceil(self.lanes.len()));
                }
                self.turn = if self.turn + 1 < self.lanes.len() { self.turn + 1 } else { 0 };
                return Some(item);
            }
            if stop.load(Relaxed) {
                return None;
            }
            match self.open_next() {
                Ok(Some(lane)) => self.lanes[self.turn] = lane,
                Ok(None) => {
                    self.lanes.remove(self.turn);
                    self.turn %= self.lanes.len().max(1);
                }
                Err(error) => return Some(Err(Box::new(error))),
            }
        }
        None
    }

    fn mark(&mut self) -> LanesMark {
        LanesMark {
            lanes: self.lanes.iter_mut().map(LaneOfShard::mark).collect(),
            turn: self.turn,
            opened: self.opened,
        }
    }
}
