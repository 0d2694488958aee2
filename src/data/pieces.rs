//! Decoded pieces of shards in memory, up to a limit in bytes.
//!
//! One thread makes a piece, others that want the same one wait for it. No lock is held meanwhile. When a new piece does
//! not fit, those go that were used least recently. Small ones go only if they alone take half of the limit: the labels
//! of a row group are wanted far more often than a page of its images.

use crate::sync::{Condvar, Mutex};
use fnv::FnvHashMap;
use std::{collections::BTreeMap, fmt, hash::Hash, sync::Arc};

/// Pieces of at most this part of the limit are small.
const SMALL: u64 = 256;

/// Something whose memory is known.
pub(crate) trait Weigh {
    /// The bytes of memory that it takes.
    fn bytes(&self) -> u64;
}

/// The cache. Clones of the pieces may live on after they were evicted.
pub(crate) struct Pieces<K, V> {
    limit: u64,
    state: Mutex<State<K, V>>,
}

struct State<K, V> {
    entries: FnvHashMap<K, Entry<V>>,
    small: Queue<K>,
    large: Queue<K>,
    /// Counts uses.
    now: u64,
}

/// Kept pieces by their last use.
struct Queue<K> {
    bytes: u64,
    by_use: BTreeMap<u64, K>,
}

enum Entry<V> {
    Kept { piece: Arc<V>, bytes: u64, used: u64 },
    Made(Arc<Flight<V>>),
}

/// A piece that a thread is making now.
struct Flight<V> {
    end: Mutex<End<V>>,
    ended: Condvar,
}

enum End<V> {
    Open,
    Made(Arc<V>),
    /// The thread that tried has the error. Each that waited tries itself.
    Failed,
}

impl<K: Copy + Eq + Hash, V: Weigh> Pieces<K, V> {
    pub(crate) fn new(limit: u64) -> Self {
        let queue = || Queue { bytes: 0, by_use: BTreeMap::new() };
        let state = State { entries: FnvHashMap::default(), small: queue(), large: queue(), now: 0 };
        Self { limit, state: Mutex::new(state) }
    }

    /// Returns a piece if it is kept.
    pub(crate) fn get(&self, key: K) -> Option<Arc<V>> {
        self.state.lock().take(key, self.limit)
    }

    /// Returns a piece, and makes it if it is not there. A piece that is larger than the limit is not kept.
    pub(crate) fn get_or_make<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<Arc<V>, E> {
        let flight = loop {
            let mut state = self.state.lock();
            if let Some(piece) = state.take(key, self.limit) {
                return Ok(piece);
            }
            if let Some(Entry::Made(flight)) = state.entries.get(&key) {
                let flight = Arc::clone(flight);
                drop(state);
                if let Some(piece) = flight.wait() {
                    return Ok(piece);
                }
                continue;
            }
            let flight = Arc::new(Flight { end: Mutex::new(End::Open), ended: Condvar::new() });
            state.entries.insert(key, Entry::Made(Arc::clone(&flight)));
            break flight;
        };
        let mut landing = Landing { pieces: self, key, flight, made: None };
        let piece = Arc::new(make()?);
        landing.made = Some(Arc::clone(&piece));
        Ok(piece)
    }

    /// The bytes of all kept pieces.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        let state = self.state.lock();
        state.small.bytes + state.large.bytes
    }
}

impl<K: Copy + Eq + Hash, V: Weigh> State<K, V> {
    /// Returns a kept piece and notes its use.
    fn take(&mut self, key: K, limit: u64) -> Option<Arc<V>> {
        let Some(Entry::Kept { piece, bytes, used }) = self.entries.get_mut(&key) else { return None };
        let queue = if *bytes <= limit / SMALL { &mut self.small } else { &mut self.large };
        self.now += 1;
        queue.by_use.remove(used);
        queue.by_use.insert(self.now, key);
        *used = self.now;
        Some(Arc::clone(piece))
    }

    /// Keeps a piece, after it has made room for it.
    fn keep(&mut self, key: K, piece: &Arc<V>, limit: u64) {
        let bytes = piece.bytes();
        self.entries.remove(&key);
        if bytes > limit {
            return;
        }
        while self.small.bytes + self.large.bytes > limit - bytes {
            let small = self.small.bytes > limit / 2 || self.large.by_use.is_empty();
            let queue = if small { &mut self.small } else { &mut self.large };
            let Some((_, oldest)) = queue.by_use.pop_first() else { break };
            if let Some(Entry::Kept { bytes, .. }) = self.entries.remove(&oldest) {
                queue.bytes -= bytes;
            }
        }
        self.now += 1;
        let queue = if bytes <= limit / SMALL { &mut self.small } else { &mut self.large };
        queue.bytes += bytes;
        queue.by_use.insert(self.now, key);
        self.entries.insert(key, Entry::Kept { piece: Arc::clone(piece), bytes, used: self.now });
    }
}

impl<V> Flight<V> {
    /// Waits for its end. `None` if it failed.
    fn wait(&self) -> Option<Arc<V>> {
        let mut end = self.end.lock();
        loop {
            match &*end {
                End::Open => self.ended.wait(&mut end),
                End::Made(piece) => return Some(Arc::clone(piece)),
                End::Failed => return None,
            }
        }
    }
}

/// Ends a flight, also if making the piece fails or panics.
struct Landing<'a, K: Copy + Eq + Hash, V: Weigh> {
    pieces: &'a Pieces<K, V>,
    key: K,
    flight: Arc<Flight<V>>,
    made: Option<Arc<V>>,
}

impl<K: Copy + Eq + Hash, V: Weigh> Drop for Landing<'_, K, V> {
    fn drop(&mut self) {
        let mut state = self.pieces.state.lock();
        let end = match self.made.take() {
            Some(piece) => {
                state.keep(self.key, &piece, self.pieces.limit);
                End::Made(piece)
            }
            None => {
                state.entries.remove(&self.key);
                End::Failed
            }
        };
        drop(state);
        *self.flight.end.lock() = end;
        self.flight.ended.notify_all();
    }
}

impl<K, V> fmt::Debug for Pieces<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        let bytes = state.small.bytes + state.large.bytes;
        f.debug_struct("Pieces").field("limit", &self.limit).field("bytes", &bytes).finish()
    }
}

#[cfg(test)]
mod tests;
