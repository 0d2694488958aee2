//! What `build_stream` refuses.

use super::*;
use burn_pinned::{BadSamples, Distributed, order::RandomSampler};

#[test]
fn options_that_do_not_fit_are_named_with_what_to_write() {
    let two = || builder().distributed(Distributed::new(0, 2).unwrap());
    let endless = || plain(9).endless();
    let refusals: [(Builder, Stream<usize>, &str); 9] = [
        (builder().shuffle(1), plain(9), "shuffle"),
        (builder().order(RandomSampler::new(1)), plain(9), "order"),
        (builder().read_many(4), plain(9), "read_many"),
        (builder().bad_samples(BadSamples::Replace { tries: 3 }), plain(9), "bad_samples"),
        (builder(), endless(), "steps_per_epoch"),
        (two(), shards(4), "steps_per_epoch"),
        (two().steps_per_epoch(3), shards(1), "Stream::shards"),
        (builder(), plain(9).interleave(2), "Stream::interleave"),
        (builder().steps_per_epoch(0), plain(9), "steps_per_epoch"),
    ];
    for (builder, stream, option) in refusals {
        let error = builder.build_stream(stream).unwrap_err().to_string();
        assert!(error.contains(&format!("`{option}`")), "{option}: {error}");
    }
}

#[test]
fn a_state_of_another_stream_is_refused() {
    let state = |stream: Stream<usize>| {
        let loader = builder().build_stream(stream).unwrap();
        loader.iter().next().unwrap().unwrap();
        loader.state()
    };
    let two = || builder().distributed(Distributed::new(0, 2).unwrap()).steps_per_epoch(9);
    let of_two = two().build_stream(shards(4)).unwrap();
    of_two.iter().next().unwrap().unwrap();
    for (builder, stream) in [
        (builder().resume(state(plain(90))), plain(90).shuffle_buffer(5)),
        (builder().resume(state(plain(90).shuffle_buffer(6))), plain(90).shuffle_buffer(5)),
        (builder().resume(state(shards(5))), shards(5).interleave(2)),
        (builder().resume(of_two.state()).steps_per_epoch(9), shards(4)), // another number of processes
        (builder().resume(state(plain(90))).steps_per_epoch(5), plain(90)),
    ] {
        let error = builder.build_stream(stream).unwrap_err().to_string();
        assert!(error.contains("`resume`") && error.contains("sampler"), "{error}");
    }
}

#[test]
fn a_slice_of_a_stream_is_an_error() {
    let loader = builder().build_stream(plain(90)).unwrap();
    let outcomes = common::outcomes(&*loader.slice(0, 10));
    assert!(outcomes.len() == 1 && outcomes[0].as_ref().unwrap_err().contains("`slice`"), "{outcomes:?}");
}

#[test]
fn a_share_of_an_unknown_total_and_a_huge_buffer_are_refused() {
    use burn_pinned::fault::Quota;
    let share = || builder().bad_samples(BadSamples::Skip(Quota::Share(0.1)));
    for (builder, stream, option) in [
        (share(), plain(9), "bad_samples"),
        (share().drop_last(true), plain(9), "bad_samples"),
        (share().distributed(Distributed::new(0, 2).unwrap()), plain(9), "bad_samples"),
        (builder(), plain(9).shuffle_buffer(usize::MAX), "Stream::shuffle_buffer"),
    ] {
        let error = builder.build_stream(stream).unwrap_err().to_string();
        assert!(error.contains(&format!("`{option}`")), "{option}: {error}");
    }
    assert_eq!(builder().drop_last(true).build_stream(plain(90)).unwrap().stats().left_out, 0);
}
