//! What a consumer does while its batch does not come, and after how long.

use super::flow::Flow;
use std::time::Duration;

const fn unless_modelled(time: Duration, modelled: Duration) -> Duration {
    if cfg!(all(test, burn_pinned_loom)) { modelled } else { time } // a model must not depend on a clock
}

/// Most waits are over sooner, and then the consumer's own next tasks let Burn begin.
const GRACE: Duration = unless_modelled(Duration::from_micros(200), Duration::ZERO);
const UNREAD: Duration = unless_modelled(Duration::from_millis(100), Duration::ZERO);
const CALL: Duration = unless_modelled(Duration::from_millis(250), Duration::MAX);

/// What a consumer can do about a long wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aid {
    /// Let Burn begin what it has gathered.
    Hurry,
    /// Take the permits of batches that are ready for others: nobody may be reading them.
    TakePermits,
    /// Call all workers, whatever `Auto` has chosen: the work may have grown, or the few at work may hang.
    CallAll,
}

#[derive(Debug, Clone, Copy)]
struct Alarm {
    aid: Aid,
    at: Duration,
    every: Duration,
}

/// One wait of a consumer.
#[derive(Debug)]
pub(super) struct Waits([Option<Alarm>; 3]);

impl Waits {
    /// A wait for batches that stay on the host or not, of workers that rest at times or not.
    pub(super) fn new(flow: &Flow, on_host: bool, tunes: bool) -> Self {
        let every = |aid, time| Alarm { aid, at: time, every: time };
        let call = || CALL.max(2 * flow.now.usual_wait());
        Self([
            (!on_host).then_some(Alarm { aid: Aid::Hurry, at: GRACE, every: Duration::MAX }),
            on_host.then(|| every(Aid::TakePermits, flow.patience(UNREAD))),
            tunes.then(|| every(Aid::CallAll, flow.patience(call()))),
        ])
    }

    /// Returns what is due after a wait of this length. The same is due again later, except [`Aid::Hurry`].
    pub(super) fn due(&mut self, waited: Duration) -> impl Iterator<Item = Aid> {
        let due = self.0.iter_mut().flatten().filter(move |alarm| alarm.at <= waited);
        due.map(move |alarm| {
            alarm.at = waited.saturating_add(alarm.every);
            alarm.aid
        })
    }

    /// Returns when the next thing is due.
    pub(super) fn next(&self, waited: Duration) -> Option<Duration> {
        let later = self.0.iter().flatten().map(|alarm| alarm.at).filter(|at| *at > waited);
        later.min().filter(|at| *at < Duration::MAX)
    }
}

#[cfg(all(test, not(burn_pinned_loom)))]
mod tests {
    use super::*;
    use crate::pipeline::{Settings, transfer::tests::fake::flow};

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn what_is_due_and_when() {
        let flow = Flow { now: Settings::new(3, 2), ..flow() };
        let mut waits = Waits::new(&flow, false, true);
        assert_eq!(waits.next(Duration::ZERO), Some(GRACE));
        let mut due = |ms: u32| waits.due(ms * MS).collect::<Vec<_>>();
        assert_eq!(due(1), [Aid::Hurry]);
        assert_eq!(due(249), []);
        assert_eq!(due(260), [Aid::CallAll]);
        assert_eq!(due(509), []);
        assert_eq!(due(510), [Aid::CallAll]);
        assert_eq!(waits.next(510 * MS), Some(760 * MS));
        let mut waits = Waits::new(&flow, true, false);
        assert_eq!(waits.next(Duration::ZERO), Some(UNREAD));
        assert_eq!(waits.due(UNREAD).collect::<Vec<_>>(), [Aid::TakePermits]);
    }

    /// A consumer acts before its time is over.
    #[test]
    fn a_timeout_makes_it_act_sooner() {
        for (timeout, first) in [(100 * MS, Some(50 * MS)), (Duration::from_nanos(1), None)] {
            let flow = Flow { timeout: Some(timeout), ..flow() };
            assert_eq!(Waits::new(&flow, true, true).next(Duration::ZERO), first);
        }
    }
}
