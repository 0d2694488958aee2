//! What to fetch, and in which order: a state machine without threads, clocks and stores.
//!
//! A *part* is what one read of a format asks for: a range of an object. A *piece* is some neighbouring parts, fetched by one
//! request. An *order* is an epoch that has announced its rows.

use super::piece::AheadPiece;
use std::{
    collections::{BTreeMap, HashMap, VecDeque, hash_map::Entry},
    io,
    ops::Range,
    sync::{Arc, atomic::Ordering::Relaxed},
};

/// Parts with a gap of at most `GAP` bytes between them are fetched together, and the gap is discarded. Headers of a tar are such gaps. In
/// a long piece a gap may be as long as the piece divided by `GAP_OF_PIECE`.
const GAP: u64 = 4 << 10;
const GAP_OF_PIECE: u64 = 16;
/// The most bytes of a piece, unless it is a single part.
const LARGEST_PIECE: u64 = 4 << 20;
/// The first pieces of an order are small, so that its first batch arrives soon. A piece has at most the bytes requested so far divided by
/// `RAMP`, or [`FIRST_PIECE`] bytes, which take no longer than the wait for an answer.
const RAMP: u64 = 4;
const FIRST_PIECE: u64 = 64 << 10;
/// The most rows that an order has planned and not read yet, however small they are.
pub(super) const ROWS_AHEAD: u64 = 1 << 16;

/// An object, and where a part begins in it.
pub(super) type PartKey = (usize, u64);

/// The later rows. `None` is a row of another data set.
pub type Plan = Box<dyn Iterator<Item = Option<PlannedRow>> + Send>;

/// A later row, with its parts.
#[derive(Debug)]
pub struct PlannedRow {
    /// The row's number in the source.
    pub row: usize,
    /// Objects, and ranges of them.
    pub parts: Vec<(usize, Range<u64>)>,
}

#[derive(Debug)]
struct PlannedPart {
    end: u64,
    /// The number of later rows that need the part.
    uses: usize,
    /// Whether each of these rows reads the part again. Otherwise it is decoded once for all of them.
    again: bool,
    is: PartState,
}

/// Where a part is.
#[derive(Debug)]
pub enum PartState {
    /// The part has not been requested from the store.
    Wanted,
    /// The request with this number fetches the part. The answer of an older request is not used, because it was made for rows that are no
    /// longer needed.
    Coming(u64),
    /// Its bytes are here.
    Here(Arc<Vec<u8>>),
    /// The request of this number failed.
    Failed(u64, Arc<io::Error>),
    /// A row has taken the bytes. Other rows of the same page find the page decoded.
    Taken,
}

/// What a read of a part must do.
#[derive(Debug)]
pub enum ReadAction {
    /// Take these bytes.
    Here(Arc<Vec<u8>>),
    /// Return this error.
    Failed(Arc<io::Error>),
    /// The request with this number fetches the part: wait until something arrives.
    Coming(u64),
    /// Fetch the part now, as the request with this number, and report to [`AheadState::ended`]. Other reads wait for it.
    Fetch(u64),
    /// No order has announced the part.
    Unknown,
}

/// An epoch that has announced its rows.
#[derive(Default)]
struct Order {
    id: u64,
    /// Whether each row reads its parts again.
    again: bool,
    /// `None` while a thread is planning, and at the end.
    plan: Option<Plan>,
    /// Planned parts, the nearest first. Some may be no longer wanted.
    queue: VecDeque<(u64, PartKey)>,
    /// The numbers of rows that were planned, and of those that were read.
    planned: u64,
    done: u64,
    /// Bytes that were planned and not read yet.
    ahead: u64,
    /// Bytes that were requested from the store.
    asked: u64,
}

/// The parts that an order has planned for a row.
#[derive(Debug)]
struct Need {
    order: u64,
    bytes: u64,
    keys: Vec<PartKey>,
}

/// The orders, parts and pieces of a data set.
#[derive(Default, derive_more::Debug)]
#[debug("AheadState {{ limit: {limit}, held: {held}, .. }}")]
pub struct AheadState {
    /// The most bytes that may be in flight, or here and not read yet.
    limit: u64,
    pub(super) held: u64,
    parts: BTreeMap<PartKey, PlannedPart>,
    rows: HashMap<usize, Vec<Need>>,
    /// Rows that were read before they were planned, and how often.
    early: HashMap<usize, usize>,
    orders: Vec<Order>,
    /// The pieces in flight.
    pieces: Vec<Arc<AheadPiece>>,
    last_id: u64,
    last_request: u64,
    pub(super) is_closed: bool,
}

impl AheadState {
    /// `limit` is the most bytes that are in flight, or here and not read yet.
    pub fn new(limit: u64) -> Self {
        Self { limit, ..Self::default() }
    }

    /// `again` says that each row reads its parts anew. Else a part that several rows need is read and decoded once.
    pub fn begin(&mut self, plan: Plan, again: bool) -> u64 {
        self.last_id += 1;
        self.orders.push(Order { id: self.last_id, again, plan: Some(plan), ..Order::default() });
        self.last_id
    }

    /// Forgets an order. Returns its plan, which must be dropped outside of the lock.
    pub(super) fn end(&mut self, id: u64) -> Option<Plan> {
        let at = self.orders.iter().position(|order| order.id == id)?;
        let mut keys = Vec::new();
        self.rows.retain(|_, needs| {
            let of_it = needs.extract_if(.., |need| need.order == id);
            keys.extend(of_it.flat_map(|need| need.keys));
            !needs.is_empty()
        });
        keys.into_iter().for_each(|key| self.release(key));
        self.pieces.iter().filter(|piece| !self.needs(piece)).for_each(|piece| piece.ended.store(true, Relaxed));
        let plan = self.orders.swap_remove(at).plan;
        if self.orders.is_empty() {
            self.early.clear();
        }
        plan
    }

    /// Takes the plan of an order that may plan more: the one that has planned the fewest rows ahead.
    pub fn next_plan(&mut self) -> Option<(u64, Plan)> {
        let each = self.limit / self.orders.len().max(1) as u64;
        let may = |order: &&mut Order| {
            let rows = order.planned - order.done;
            order.plan.is_some() && (rows == 0 || order.ahead < each && rows < ROWS_AHEAD)
        };
        let order = self.orders.iter_mut().filter(may).min_by_key(|order| order.planned - order.done)?;
        Some((order.id, order.plan.take()?))
    }

    /// Adds rows of a plan, and puts the plan back, unless it has ended. If the order has ended, returns its plan, which must be dropped
    /// outside of the lock.
    pub fn planned(&mut self, id: u64, rows: Vec<PlannedRow>, plan: Option<Plan>) -> Option<Plan> {
        let Some(order) = self.orders.iter_mut().find(|order| order.id == id) else { return plan };
        order.plan = plan;
        for PlannedRow { row, parts } in rows {
            if let Entry::Occupied(mut times) = self.early.entry(row) {
                *times.get_mut() -= 1;
                if *times.get() == 0 {
                    times.remove();
                }
                continue;
            }
            let (position, mut bytes) = (order.planned, 0);
            order.planned += 1;
            let mut keys = Vec::with_capacity(parts.len());
            for (object, range) in parts {
                let key = (object, range.start);
                let part = self.parts.entry(key).or_insert(PlannedPart {
                    end: range.end,
                    uses: 0,
                    again: order.again,
                    is: PartState::Wanted,
                });
                // Two reads begin at the same place and have different ends: the second one is not announced.
                if part.end != range.end {
                    continue;
                }
                part.uses += 1;
                if let PartState::Wanted = part.is {
                    order.queue.push_back((position, key));
                    if part.uses == 1 {
                        bytes += range.end - range.start;
                    }
                }
                keys.push(key);
            }
            order.ahead += bytes;
            self.rows.entry(row).or_default().push(Need { order: id, bytes, keys });
        }
        None
    }

    /// Takes the most urgent piece that there is space for.
    pub fn next_piece(&mut self) -> Option<Arc<AheadPiece>> {
        let parts = &self.parts;
        for order in &mut self.orders {
            let is_wanted = |key: &PartKey| parts.get(key).is_some_and(|part| matches!(part.is, PartState::Wanted));
            while order.queue.pop_front_if(|(_, key)| !is_wanted(key)).is_some() {}
        }
        let nearest = self.orders.iter().enumerate();
        let nearest = nearest.filter_map(|(at, order)| {
            let (position, key) = *order.queue.front()?;
            Some((position.saturating_sub(order.done), at, key))
        });
        let (_, at, key) = nearest.min_by_key(|(distance, ..)| *distance)?;
        let largest = (self.orders[at].asked / RAMP).clamp(FIRST_PIECE, LARGEST_PIECE);
        let end = self.parts.get(&key)?.end;
        if self.held > 0 && self.held + (end - key.1) > self.limit {
            return None;
        }
        let parts = self.neighbours(key, end, largest.min(self.limit.saturating_sub(self.held)));
        let piece = Arc::new(AheadPiece { object: key.0, request: self.request(), parts, ended: Arc::default() });
        for part in &piece.parts {
            self.coming((piece.object, part.start), piece.request);
        }
        let range = piece.range();
        self.orders[at].asked += range.end - range.start;
        self.pieces.push(Arc::clone(&piece));
        Some(piece)
    }

    /// Notes that the request for a piece has ended.
    pub fn over(&mut self, request: u64) {
        self.pieces.retain(|piece| piece.request != request);
    }

    /// Ends all requests.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.pieces.iter().for_each(|piece| piece.ended.store(true, Relaxed));
    }

    /// The wanted parts around one, up to `largest` bytes together.
    fn neighbours(&self, key: PartKey, end: u64, largest: u64) -> Vec<Range<u64>> {
        let (object, start) = key;
        let (mut whole, mut parts) = (start..end, VecDeque::new());
        parts.push_back(start..end);
        let wanted = |part: &PlannedPart| matches!(part.is, PartState::Wanted);
        let gap = |whole: &Range<u64>| GAP.max((whole.end - whole.start) / GAP_OF_PIECE);
        for ((_, next), part) in self.parts.range((object, start + 1)..=(object, u64::MAX)) {
            let near = *next >= whole.end && next - whole.end <= gap(&whole);
            if !near || !wanted(part) || part.end - whole.start > largest {
                break;
            }
            whole.end = part.end;
            parts.push_back(*next..part.end);
        }
        for ((_, before), part) in self.parts.range((object, 0)..key).rev() {
            let near = part.end <= whole.start && whole.start - part.end <= gap(&whole);
            if !near || !wanted(part) || whole.end - before > largest {
                break;
            }
            whole.start = *before;
            parts.push_front(*before..part.end);
        }
        parts.into()
    }

    fn request(&mut self) -> u64 {
        self.last_request += 1;
        self.last_request
    }

    fn coming(&mut self, key: PartKey, request: u64) {
        if let Some(part) = self.parts.get_mut(&key) {
            part.is = PartState::Coming(request);
            self.held += part.end - key.1;
        }
    }

    /// Notes that a request for a part has ended, and sets the part's new state, unless this request is outdated. The bytes count only
    /// while they are here.
    pub fn ended(&mut self, request: u64, key: PartKey, end: u64, becomes: PartState) {
        let part = self.parts.get_mut(&key);
        let awaited = part.filter(|part| matches!(part.is, PartState::Coming(of) if of == request));
        let is_held = awaited.is_some() && matches!(becomes, PartState::Here(_));
        if let Some(part) = awaited {
            part.is = becomes;
        }
        if !is_held {
            self.held -= end - key.1;
        }
    }

    /// Says what a read of a part must do. A read that waited for a request gets its error. Any other read asks the store itself, as
    /// without reading ahead.
    pub fn want(&mut self, key: PartKey, end: u64, waited: Option<u64>) -> ReadAction {
        let Some(part) = self.parts.get_mut(&key).filter(|part| part.end == end) else { return ReadAction::Unknown };
        match &mut part.is {
            PartState::Coming(request) => ReadAction::Coming(*request),
            PartState::Taken => ReadAction::Unknown,
            PartState::Failed(request, error) if waited == Some(*request) => ReadAction::Failed(Arc::clone(error)),
            PartState::Here(bytes) if part.again && part.uses > 1 => ReadAction::Here(Arc::clone(bytes)),
            PartState::Here(bytes) => {
                let bytes = Arc::clone(bytes);
                part.is = PartState::Taken;
                self.held -= end - key.1;
                ReadAction::Here(bytes)
            }
            PartState::Wanted | PartState::Failed(..) => {
                let request = self.request();
                self.coming(key, request);
                ReadAction::Fetch(request)
            }
        }
    }

    /// Notes that a row was read. If a worker was faster than the plan, the row may be planned later.
    pub fn row_read(&mut self, row: usize) {
        let Some(needs) = self.rows.get_mut(&row) else {
            if !self.orders.is_empty() && self.early.len() < ROWS_AHEAD as usize {
                *self.early.entry(row).or_default() += 1;
            }
            return;
        };
        let need = (!needs.is_empty()).then(|| needs.remove(0));
        if needs.is_empty() {
            self.rows.remove(&row);
        }
        let Some(Need { order, bytes, keys }) = need else { return };
        if let Some(order) = self.orders.iter_mut().find(|other| other.id == order) {
            order.done += 1;
            order.ahead -= bytes;
        }
        keys.into_iter().for_each(|key| self.release(key));
    }

    fn release(&mut self, key: PartKey) {
        let Some(part) = self.parts.get_mut(&key) else { return };
        part.uses -= 1;
        if part.uses > 0 {
            return;
        }
        if let Some(part) = self.parts.remove(&key)
            && matches!(part.is, PartState::Here(_))
        {
            self.held -= part.end - key.1;
        }
    }

    /// Whether something is left to plan or to fetch.
    pub(super) fn has_more(&self) -> bool {
        self.orders.iter().any(|order| order.plan.is_some() || !order.queue.is_empty())
    }

    /// Whether a later row needs a part of a piece that has not arrived yet.
    fn needs(&self, piece: &AheadPiece) -> bool {
        let is_awaited = |part: &PlannedPart| matches!(part.is, PartState::Coming(of) if of == piece.request);
        piece.parts.iter().any(|part| self.parts.get(&(piece.object, part.start)).is_some_and(is_awaited))
    }
}
