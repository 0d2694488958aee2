//! What a state cannot do is refused: to go on in another loader, and to be cut into slices.

use super::saved;
use crate::common::{Numbers, builder};
use burn_pinned::Error;

#[test]
fn a_state_of_another_loader_is_refused_by_name() {
    let state = builder().shuffle(1).build(Numbers::new(100)).unwrap().state();
    let cases = [
        (builder().shuffle(1), 99, "samples of the dataset: then 100, now 99"),
        (builder().shuffle(2), 100, "sampler: then RandomSampler { seed: 1"),
        (builder().shuffle(1).seed(7), 100, "seed: then 1, now 7"),
        (builder().shuffle(1).batch_size(9), 100, "batches: then of 8, now of 9"),
        (builder().shuffle(1).drop_last(true), 100, "now of 8, the last full"),
    ];
    for (builder, len, part) in cases {
        let error = builder.resume(saved(&state)).build(Numbers::new(len)).unwrap_err();
        assert!(matches!(error, Error::Config { option: "resume", .. }));
        assert!(error.to_string().contains(part), "{error}");
    }
    let both = builder().shuffle(1).start_epoch(2).resume(state.clone()).build(Numbers::new(100)).unwrap_err();
    assert!(both.to_string().contains("the state knows the epoch"), "{both}");
    // The default is no wish.
    assert!(builder().shuffle(1).start_epoch(0).resume(state.clone()).build(Numbers::new(100)).is_ok());
    assert!(builder().shuffle(1).num_workers(7).prefetch(3).resume(state).build(Numbers::new(100)).is_ok());
}

#[test]
fn a_resumed_epoch_cannot_be_sliced_and_says_so() {
    let loader = builder().build(Numbers::new(100)).unwrap();
    loader.iter().next().unwrap().unwrap();
    let resumed = builder().resume(loader.state()).build(Numbers::new(100)).unwrap();
    let slice = resumed.slice(0, 50);
    let error = slice.iter().next().unwrap().map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("cannot be cut into slices"), "{error}");
    assert_eq!(
        slice.iter().map(Result::unwrap).map(|shown| shown.numbers.len()).sum::<usize>(),
        50,
        "the next epoch can"
    );
}
