//! Decoded pieces of shards in memory, up to a limit in bytes.
//!
//! One thread makes a piece. Only threads that want the same piece wait for it. If a new piece does not fit, the least recently used pieces
//! are evicted. Small pieces are evicted only if they alone take half of the limit, because the labels of a row group are needed far more
//! often than a page of its images. The newest piece that is larger than the limit is kept in addition, or it would be made again for each
//! of its rows.

use crate::system::{ends::thread_ends, locks::Mutex, turn::Turn};
use fnv::FnvHashMap;
use std::{
    collections::BTreeMap,
    fmt,
    hash::Hash,
    mem,
    sync::{Arc, OnceLock},
};

/// A piece is small if it takes at most the limit divided by this number.
const SMALL_PIECE: u64 = 256;

/// The cache. Clones of the pieces may outlive their eviction.
pub(crate) struct PieceCache<K, V> {
    limit: u64,
    /// Returns the bytes of memory that a piece takes.
    bytes_of: fn(&V) -> u64,
    state: Mutex<CacheState<K, V>>,
}

struct CacheState<K, V> {
    entries: FnvHashMap<K, PieceEntry<V>>,
    small: Queue<K>,
    large: Queue<K>,
    /// At most one piece, if it is larger than the limit.
    over: Queue<K>,
    /// The number of uses so far.
    now: u64,
}

/// Kept pieces by their last use.
struct Queue<K> {
    bytes: u64,
    by_use: BTreeMap<u64, K>,
}

enum PieceEntry<V> {
    Kept {
        piece: Arc<V>,
        bytes: u64,
        used: u64,
    },
    /// A thread makes the piece, and holds the turn meanwhile. Then it stores the piece here.
    Made(Arc<(Turn, OnceLock<Arc<V>>)>),
}

impl<K: Copy + Eq + Hash, V> PieceCache<K, V> {
    pub(crate) fn new(limit: u64, bytes_of: fn(&V) -> u64) -> Self {
        let queue = || Queue { bytes: 0, by_use: BTreeMap::new() };
        let state =
            CacheState { entries: FnvHashMap::default(), small: queue(), large: queue(), over: queue(), now: 0 };
        Self { limit, bytes_of, state: Mutex::new(state) }
    }

    /// Returns a piece if it is kept.
    pub(crate) fn get(&self, key: K) -> Option<Arc<V>> {
        self.state.lock().take(key, self.limit)
    }

    /// Returns a piece, and makes it if it is not kept.
    pub(crate) fn get_or_make<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<Arc<V>, E> {
        let mut state = self.state.lock();
        if let Some(piece) = state.take(key, self.limit) {
            return Ok(piece);
        }
        let place = match state.entries.entry(key).or_insert_with(|| PieceEntry::Made(Arc::default())) {
            PieceEntry::Made(place) => Arc::clone(place),
            PieceEntry::Kept { piece, .. } => return Ok(Arc::clone(piece)),
        };
        drop(state);
        // A thread whose waits must end makes the piece itself, without the turn. The store then ends its read.
        let (turn, made) = &*place;
        let Some(_turn) = turn.take(thread_ends) else { return make().map(Arc::new) };
        if let Some(piece) = made.get() {
            return Ok(Arc::clone(piece));
        }
        // An error or a panic leaves the place empty. Each waiting thread then tries to make the piece itself.
        let piece = Arc::new(make()?);
        let piece = Arc::clone(made.get_or_init(|| piece));
        let evicted = self.state.lock().keep(key, &piece, (self.bytes_of)(&piece), self.limit);
        drop(evicted);
        Ok(piece)
    }

    /// The bytes of all kept pieces.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        let state = self.state.lock();
        state.bytes()
    }
}

impl<K, V> CacheState<K, V> {
    fn bytes(&self) -> u64 {
        self.small.bytes + self.large.bytes + self.over.bytes
    }
}

impl<K: Copy + Eq + Hash, V> CacheState<K, V> {
    /// The queue for a piece of `bytes` bytes.
    fn queue(&mut self, bytes: u64, limit: u64) -> &mut Queue<K> {
        match bytes {
            bytes if bytes > limit => &mut self.over,
            bytes if bytes <= limit / SMALL_PIECE => &mut self.small,
            _ => &mut self.large,
        }
    }

    /// Returns a kept piece and notes its use.
    fn take(&mut self, key: K, limit: u64) -> Option<Arc<V>> {
        let Some(PieceEntry::Kept { piece, bytes, used }) = self.entries.get_mut(&key) else { return None };
        self.now += 1;
        let (piece, bytes, last) = (Arc::clone(piece), *bytes, mem::replace(used, self.now));
        let now = self.now;
        let queue = self.queue(bytes, limit);
        queue.by_use.remove(&last);
        queue.by_use.insert(now, key);
        Some(piece)
    }

    /// Keeps a piece, after evicting others to make space. Returns the others, whose memory must be freed outside of the lock.
    fn keep(&mut self, key: K, piece: &Arc<V>, bytes: u64, limit: u64) -> Vec<Arc<V>> {
        let mut evicted = Vec::new();
        loop {
            let queue = match limit.checked_sub(bytes) {
                None => &mut self.over,
                Some(room) if self.small.bytes + self.large.bytes <= room => break,
                _ if self.small.bytes > limit / 2 || self.large.by_use.is_empty() => &mut self.small,
                _ => &mut self.large,
            };
            let Some((_, oldest)) = queue.by_use.pop_first() else { break };
            if let Some(PieceEntry::Kept { piece, bytes, .. }) = self.entries.remove(&oldest) {
                queue.bytes -= bytes;
                evicted.push(piece);
            }
        }
        self.now += 1;
        let now = self.now;
        let queue = self.queue(bytes, limit);
        queue.bytes += bytes;
        queue.by_use.insert(now, key);
        self.entries.insert(key, PieceEntry::Kept { piece: Arc::clone(piece), bytes, used: self.now });
        evicted
    }
}

impl<K, V> fmt::Debug for PieceCache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        let bytes = state.bytes();
        f.debug_struct("PieceCache").field("limit", &self.limit).field("bytes", &bytes).finish()
    }
}

#[cfg(test)]
mod tests;
