//! A loader that was resumed gives what the other one has left.

use super::*;
use burn_pinned::LoaderState;

fn saved(state: &LoaderState) -> LoaderState {
    serde_json::from_str(&serde_json::to_string(state).unwrap()).unwrap()
}

#[test]
fn a_resume_after_any_batch_is_exact() {
    for kind in kinds() {
        let whole = build(kind, builder());
        let all: Vec<Shown> = (0..3).flat_map(|_| shown(&whole)).collect();
        let loader = build(kind, builder());
        let mut given = 0;
        for epoch in 0..2 {
            for batch in loader.iter() {
                assert_eq!(batch.unwrap(), all[given]);
                given += 1;
                if given % 7 > 1 {
                    continue; // a loader for each place takes long
                }
                let state = saved(&loader.state());
                let resumed = build(kind, builder().num_workers(1 + given % 3).resume(state));
                let rest: Vec<Shown> = (epoch..3).flat_map(|_| shown(&resumed)).collect();
                let ends = &all[given..]; // a state of the last batch may be of the next epoch already
                assert_eq!(
                    rest[..ends.len().min(rest.len())],
                    ends[..ends.len().min(rest.len())],
                    "{} after {given}",
                    kind.0
                );
                assert!(rest.len() >= ends.len(), "{} after {given}: {} of {}", kind.0, rest.len(), ends.len());
            }
        }
    }
}

/// Without its places in the stream, as in the state of another process, a state still counts.
#[test]
fn a_resume_by_counting_alone_is_exact() {
    for kind in kinds() {
        let all = shown(&build(kind, builder()));
        for given in [1, all.len() / 2, all.len() - 1] {
            let loader = build(kind, builder());
            loader.iter().take(given).for_each(|batch| drop(batch.unwrap()));
            let mut state = serde_json::to_value(loader.state()).unwrap();
            state["streams"] = serde_json::json!({});
            let resumed = build(kind, builder().resume(serde_json::from_value(state).unwrap()));
            assert_eq!(shown(&resumed), all[given..], "{} after {given}", kind.0);
        }
    }
}

#[test]
fn what_was_given_is_not_read_again() {
    let reads = |stream: fn(&Arc<AtomicUsize>) -> Stream<usize>| {
        let whole = builder().build_stream(stream(&Arc::default())).unwrap();
        whole.iter().take(90).for_each(|batch| drop(batch.unwrap()));
        let read = Arc::default();
        let resumed = builder().resume(saved(&whole.state())).build_stream(stream(&read)).unwrap();
        resumed.iter().next().unwrap().unwrap();
        read.load(Relaxed)
    };
    let plain = reads(|read| saving(|_| 0..1000, read));
    assert!(plain < 300, "{plain}"); // some batches are read ahead
    let buffered = reads(|read| saving(|_| 0..1000, read).shuffle_buffer(10));
    assert!(buffered < 600, "{buffered}");
    // Of shards the current ones are read over.
    let read_again = reads(|read| {
        let read = Arc::clone(read);
        Stream::new(move |place| Ok(Saved(100 * place.shard..100 * (place.shard + 1), Arc::clone(&read)))).shards(10)
    });
    assert!(read_again < 400, "{read_again}");
}
