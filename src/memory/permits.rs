//! The permits of a pool: how many are left, and who holds the others.

use super::slot::Ticket;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

#[derive(Debug)]
pub(crate) struct Permits {
    /// Changed under the pool's lock only. Others may read it without the lock.
    left: Arc<AtomicUsize>,
    /// Permits beyond those of the limits.
    extra: usize,
    /// The number of permits to take away as they come back.
    debt: usize,
    /// Permits that are held, each with the bytes that belong to it.
    held: Vec<(Ticket, usize)>,
    tickets: u64,
}

impl Permits {
    pub(crate) fn new(left: usize) -> Self {
        Self { left: Arc::new(AtomicUsize::new(left)), extra: 0, debt: 0, held: Vec::new(), tickets: 0 }
    }

    pub(crate) fn left(&self) -> usize {
        self.left.load(Relaxed)
    }

    /// The number that is left, for those who do not have the pool's lock.
    pub(crate) fn shared_left(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.left)
    }

    fn set_left(&self, left: usize) {
        self.left.store(left, Relaxed);
    }

    pub(crate) fn extra(&self) -> usize {
        self.extra
    }

    /// Takes a permit that has no bytes yet. Returns `None` if none is left.
    pub(crate) fn take(&mut self) -> Option<Ticket> {
        self.set_left(self.left().checked_sub(1)?);
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.held.push((ticket, 0));
        Some(ticket)
    }

    /// Takes a permit back, and returns the bytes that belong to it. Returns `None` if it was taken back before, and
    /// replaced.
    pub(crate) fn release(&mut self, ticket: Ticket) -> Option<usize> {
        let at = self.held.iter().position(|(held, _)| *held == ticket)?;
        match self.debt {
            0 => self.set_left(self.left() + 1),
            _ => self.debt -= 1,
        }
        Some(self.held.swap_remove(at).1)
    }

    /// Notes the bytes that belong to a permit. Returns `false` if the permit was replaced.
    pub(crate) fn hold(&mut self, ticket: Ticket, bytes: usize) -> bool {
        let held = self.held.iter_mut().find(|(held, _)| *held == ticket);
        held.map(|(_, behind)| *behind = bytes).is_some()
    }

    /// Sets the number of extra permits.
    pub(crate) fn allow(&mut self, extra: usize) {
        let more = extra.saturating_sub(self.extra);
        let paid = more.min(self.debt);
        self.debt -= paid;
        self.set_left(self.left() + more - paid);
        let fewer = self.extra.saturating_sub(extra);
        let gone = fewer.min(self.left());
        self.set_left(self.left() - gone);
        self.debt += fewer - gone;
        self.extra = extra;
    }

    /// Returns how many permits are still to be taken away, and how many are held.
    #[cfg(test)]
    pub(crate) fn debt_and_held(&self) -> (usize, usize) {
        (self.debt, self.held.len())
    }
}
