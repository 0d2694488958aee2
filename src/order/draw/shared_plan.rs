//! One plan of an epoch, which all its iterators share.

use crate::sync::locks::Mutex;
use std::sync::{Arc, Weak};

/// The plan of a sampler's newest epoch, as long as an iterator uses it. Devices that share an epoch, and clones of the
/// sampler, plan it once and share the plan.
pub(crate) struct SharedPlan<T> {
    /// The length of the dataset, the epoch, and its plan.
    newest: Mutex<(usize, usize, Weak<T>)>,
}

/// Not derived: `T` need not be `Default`.
impl<T> Default for SharedPlan<T> {
    fn default() -> Self {
        Self { newest: Mutex::new((0, 0, Weak::new())) }
    }
}

impl<T> SharedPlan<T> {
    /// Returns the plan of an epoch. Makes it unless an iterator still has it. Concurrent calls wait for it.
    pub(crate) fn get_or_make(&self, dataset_len: usize, epoch: usize, make: impl FnOnce() -> T) -> Arc<T> {
        let mut newest = self.newest.lock();
        if (newest.0, newest.1) == (dataset_len, epoch)
            && let Some(plan) = newest.2.upgrade()
        {
            return plan;
        }
        let plan = Arc::new(make());
        *newest = (dataset_len, epoch, Arc::downgrade(&plan));
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_lives_as_long_as_somebody_follows_it() {
        let shared = SharedPlan::default();
        let first = shared.get_or_make(10, 0, || 1);
        let same = shared.get_or_make(10, 0, || unreachable!("it is there"));
        assert!(Arc::ptr_eq(&first, &same));
        assert_eq!(
            (*shared.get_or_make(11, 0, || 2), *shared.get_or_make(11, 1, || 3)),
            (2, 3),
            "another dataset, another epoch"
        );
        drop((first, same));
        assert_eq!(*shared.get_or_make(11, 1, || 4), 4, "nobody had it any more");
    }
}
