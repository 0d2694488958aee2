//! What a recording shows of a run.

use crate::common::{Numbers, builder};
use std::{collections::BTreeSet, thread::sleep, time::Duration};

/// Every batch of every epoch is there with each of its stages; recording is bounded and can be stopped.
#[test]
fn all_batches_with_their_stages() {
    let loader = builder().build(Numbers::new(200)).unwrap();
    loader.record(10_000);
    for _ in 0..2 {
        for batch in loader.iter() {
            batch.unwrap();
            sleep(Duration::from_micros(100));
        }
    }
    let trace: serde_json::Value = serde_json::from_str(&loader.timeline().to_trace()).unwrap();
    let mut seen = BTreeSet::new();
    for event in trace["traceEvents"].as_array().unwrap() {
        if event["ph"] == "X" {
            assert!(event["dur"].as_f64().unwrap() >= 0.0);
            let number = |key: &str| event["args"][key].as_u64().unwrap();
            seen.insert((event["cat"].as_str().unwrap().to_string(), number("epoch"), number("batch")));
        }
    }
    for stage in ["slot wait", "fill", "finish", "ready", "wait", "step"] {
        let batches = seen.iter().filter(|(name, ..)| name == stage).map(|(_, epoch, batch)| (*epoch, *batch));
        let all = (0..2).flat_map(|epoch| (0..25).map(move |batch| (epoch, batch)));
        assert!(batches.eq(all), "{stage}");
    }
    loader.record(7);
    loader.iter().for_each(drop);
    assert_eq!(loader.timeline().len(), 7);
    loader.record(0);
    loader.iter().for_each(drop);
    assert!(loader.timeline().is_empty());
}
