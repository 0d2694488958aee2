//! A loader with a batch sampler: promises that the sampler breaks.

use crate::common::{self, Numbers};
use burn_pinned::order::{BatchSampler, EpochBatches};

/// Promises three batches of at most two samples, and breaks both promises.
#[derive(Debug)]
struct Large;

impl BatchSampler for Large {
    fn batches(&self, _: usize, _: usize) -> EpochBatches {
        EpochBatches::new(3, [vec![0, 1], vec![0, 1, 2], vec![]].into_iter())
    }
    fn max_batch_size(&self, _: usize) -> usize {
        2
    }
    fn num_items(&self, _: usize) -> usize {
        5
    }
}

#[test]
fn a_batch_sampler_is_held_to_its_word() {
    let loader = common::unsized_().order(Large).build(Numbers::new(10)).unwrap();
    let outcomes = common::outcomes(&*loader);
    assert_eq!(outcomes[0], Ok(vec![0, 1]));
    assert!(outcomes[1].as_ref().unwrap_err().contains("gave 3 samples, but its `max_batch_size` promised at most 2"));
    assert!(outcomes[2].as_ref().unwrap_err().contains("ended after 2 of the 3"), "{:?}", outcomes[2]);
    for wrong in [common::unsized_().batch_size(3), common::unsized_().shuffle(1), common::unsized_().drop_last(true)] {
        let error = wrong.order(Large).build(Numbers::new(10)).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("has a batch sampler, which decides it") || error.contains("`shuffle` is set too"),
            "{error}"
        );
    }
}
