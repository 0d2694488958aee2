//! Builds a loader of a stream.

use super::{builder::PinnedDataLoaderBuilder, data_loader::PinnedDataLoader, options::Options, plan::Plan};
use crate::{
    batch::Samples,
    fault::{BadSamples, Error},
    order::{IntoOrder, Sampler},
    stream::{EmptyStream, Stream, StreamOrigin},
    sync::locks::Mutex,
};
use std::sync::{Arc, atomic::Ordering::Relaxed};

/// The most samples of a shuffle buffer.
const MOST_BUFFERED: usize = 1 << 24;

/// The numbers of the samples of a stream.
#[derive(Debug)]
struct StreamOrder {
    len: usize,
    text: String,
}

impl Sampler for StreamOrder {
    fn len(&self, _: usize) -> usize {
        self.len
    }

    fn indices(&self, _: usize, _: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        Box::new(0..self.len)
    }

    /// A stream that begins again within an epoch has its items again.
    fn repeats(&self) -> bool {
        true
    }

    fn fingerprint(&self) -> String {
        self.text.clone()
    }
}

impl<I: Send + 'static, O: Send + 'static> PinnedDataLoaderBuilder<I, O> {
    /// Like [`build`](Self::build), for samples without an index: a [`Stream`], whose page has an example and says what it does, or the
    /// rows of shards ([`ShardStream`](crate::data::ShardStream)).
    ///
    /// # Errors
    /// As for `build`, and [`Error::Config`]
    /// - for `shuffle`, `order`, `read_many`, `reads_ahead` and [`BadSamples::Replace`], which need an index;
    /// - if `steps_per_epoch` is missing: for an [`endless`](Stream::endless) stream, whose epochs would never end, and for
    ///   [`shards`](Stream::shards) that several processes or devices share, since their shares end at different steps;
    /// - if there are fewer shards than processes and devices, or several are interleaved and there are no shards.
    ///
    /// # Panics
    /// As `build`.
    pub fn build_stream(self, stream: impl Into<Stream<I>>) -> Result<Arc<PinnedDataLoader<O>>, Error> {
        let (Self { way, mut options, augment }, stream) = (self, stream.into());
        let epoch_samples = check(&options, &stream)?;
        let (ranks, steps) = (options.distributed().world().saturating_mul(options.devices()), options.steps);
        let len = epoch_samples.unwrap_or(usize::MAX); // only the stream knows its end
        let filters = stream.filters;
        let text = stream.fingerprint(ranks, steps);
        (options.order, options.steps) = (Some(StreamOrder { len, text }.into_order()), None);
        let mut plan = Plan::checked(options, 1, Arc::default())?; // the data set has no length
        plan.counters().leaves_out.store(filters, Relaxed);
        plan.options.steps = steps;
        let (seed, drop_last, counters) = (plan.options.seed(), plan.options.drop_last, Arc::clone(plan.counters()));
        let (stream, readers) = (Arc::new(stream), Mutex::default());
        plan.stream = Some(Arc::new(StreamOrigin { stream, seed, epoch_samples, drop_last, counters, readers }));
        let (fields, faults) = (way.fields()?, plan.faults.clone());
        let get = Arc::new(|_| Err(EmptyStream.into())); // a batch of a stream has its items
        plan.loader(way, fields, Arc::new(Samples { get, many: None, len: usize::MAX, augment, seed, faults }))
    }
}

/// Checks the options of a loader of a stream. Returns the number of samples of all processes and devices in an epoch, if it is set.
fn check<I>(options: &Options, stream: &Stream<I>) -> Result<Option<usize>, Error> {
    let wrong = |option: &'static str, problem: &str, advice: &str| Err(Error::config(option, problem, advice));
    let need_index = [
        ("shuffle", options.shuffle.is_some()),
        ("order", options.order.is_some()),
        ("read_many", options.read_many.is_some()),
        ("reads_ahead", !options.ahead.is_empty()),
        ("bad_samples", matches!(options.policy, BadSamples::Replace { .. })),
    ];
    if let Some((option, _)) = need_index.into_iter().find(|(_, is_set)| *is_set) {
        return wrong(
            option,
            "the samples of a stream have no index",
            "leave it out; to shuffle, use `Stream::shuffle_buffer` and `seed`",
        );
    }
    let ranks = options.distributed().world().saturating_mul(options.devices());
    match (stream.shards, options.steps) {
        (Some(shards), _) if shards < ranks => {
            let problem = format!("{shards} shards are fewer than the {ranks} processes and devices");
            return wrong("Stream::shards", &problem, "make more shards, or leave `shards` out");
        }
        (Some(_), None) if ranks > 1 => {
            return wrong(
                "steps_per_epoch",
                "the shares of the shards end at different steps",
                "add e.g. `.steps_per_epoch(1000)`",
            );
        }
        (None, _) if stream.interleave > 1 => {
            return wrong(
                "Stream::interleave",
                "the stream has no shards",
                "say how many there are with `Stream::shards`",
            );
        }
        _ if stream.buffer > MOST_BUFFERED => {
            let problem = format!("a buffer of {} samples is too large", stream.buffer);
            return wrong("Stream::shuffle_buffer", &problem, "use at most 16777216, and shards in random order");
        }
        (_, None) if stream.endless => {
            return wrong(
                "steps_per_epoch",
                "an endless stream has no end of an epoch",
                "add e.g. `.steps_per_epoch(1000)`",
            );
        }
        _ => {}
    }
    options.epoch_units(options.batch_size.unwrap_or(1).max(1)) // other checks say if it is missing or 0
}
