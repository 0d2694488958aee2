//! The spans of the feature `tracing`. Their receiver belongs to the process, and a training by Burn sets its own: this test
//! is alone.
#![cfg(feature = "tracing")]

mod common;

use common::{Numbers, builder};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use tracing::{Event, Metadata, Subscriber, span};

/// Counts spans of this crate by name, and checks that each entered is left.
#[derive(Clone, Default)]
struct Count {
    spans: Arc<Mutex<HashMap<&'static str, usize>>>,
    open: Arc<Mutex<i64>>,
    next: Arc<AtomicU64>,
}

impl Subscriber for Count {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("burn_pinned")
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        assert!(attributes.fields().field("epoch").is_some() && attributes.fields().field("batch").is_some());
        *self.spans.lock().unwrap().entry(attributes.metadata().name()).or_default() += 1;
        span::Id::from_u64(self.next.fetch_add(1, Relaxed) + 1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &span::Id) {
        *self.open.lock().unwrap() += 1;
    }

    fn exit(&self, _: &span::Id) {
        *self.open.lock().unwrap() -= 1;
    }
}

#[test]
fn a_span_for_each_stage_of_each_batch() {
    let count = Count::default();
    tracing::subscriber::set_global_default(count.clone()).unwrap();
    let loader = builder().build(Numbers::new(80)).unwrap();
    loader.iter().for_each(|batch| drop(batch.unwrap()));
    drop(loader);
    let spans = count.spans.lock().unwrap();
    assert!(spans["fill"] >= 10, "{spans:?}");
    assert_eq!((spans["finish"], spans["wait"]), (10, 11)); // the last wait is for the end of the epoch
    assert_eq!(*count.open.lock().unwrap(), 0);
}
