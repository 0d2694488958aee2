//! Rows of a store behind a network: their options, and what they fetched. Without a feature that brings a store, there are none.

use crate::size::{count, show_bytes, time};
use burn_pinned::{
    PinnedDataLoaderBuilder,
    data::{Rows, RowsBuilder},
};
use serde_json::{Value, json};
use std::{
    fmt,
    ops::{AddAssign, Sub},
    time::Duration,
};

/// How URLs are read.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Remote {
    /// Of URLs: the most bytes that are fetched ahead of the workers; 0 fetches nothing ahead. By default 512 MiB
    #[cfg(feature = "remote")]
    #[arg(long, value_name = "BYTES", value_parser = bytes_or_none)]
    read_ahead: Option<u64>,
    /// Of URLs: how many requests are made at once. By default 64
    #[cfg(feature = "remote")]
    #[arg(long, value_name = "N")]
    requests: Option<usize>,
}

impl Remote {
    /// Has no effect without a feature that brings a store.
    pub fn set_requests(&mut self, requests: usize) {
        #[cfg(feature = "remote")]
        (self.requests = Some(requests));
        #[cfg(not(feature = "remote"))]
        let _ = requests;
    }
}

/// Reads a number of bytes. 0 turns something off.
#[cfg(feature = "remote")]
fn bytes_or_none(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { crate::size::bytes(text) }
}

impl Remote {
    #[cfg(feature = "remote")]
    pub fn set<T: serde::de::DeserializeOwned>(&self, mut builder: RowsBuilder<T>) -> RowsBuilder<T> {
        if let Some(bytes) = self.read_ahead {
            builder = builder.read_ahead(bytes);
        }
        if let Some(requests) = self.requests {
            builder = builder.requests(requests);
        }
        builder
    }

    #[cfg(not(feature = "remote"))]
    pub fn set<T>(&self, builder: RowsBuilder<T>) -> RowsBuilder<T> {
        builder
    }
}

/// Tells rows the order. The loader does so by itself only if they are its dataset as they are.
#[cfg(feature = "remote")]
pub fn reads_ahead<I, B, T>(builder: PinnedDataLoaderBuilder<I, B>, rows: &Rows<T>) -> PinnedDataLoaderBuilder<I, B>
where
    I: Send + Sync + Clone + 'static,
    B: Send + 'static,
    T: 'static,
{
    builder.reads_ahead(rows)
}

#[cfg(not(feature = "remote"))]
pub fn reads_ahead<I, B, T>(builder: PinnedDataLoaderBuilder<I, B>, _: &Rows<T>) -> PinnedDataLoaderBuilder<I, B> {
    builder
}

/// What went over the network.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    pub requests: u64,
    pub retries: u64,
    pub bytes: u64,
    pub used: u64,
    pub cached: u64,
    /// The sum of all waits for a first byte.
    pub waits: Duration,
}

impl Traffic {
    /// What went over the network for these rows since they were opened. `None` for local files.
    #[cfg(feature = "remote")]
    pub fn of<T>(rows: &Rows<T>) -> Option<Self> {
        let seen = rows.fetched()?;
        let waits = seen.first_byte.mul_f64(seen.requests as f64);
        Some(Self {
            requests: seen.requests,
            retries: seen.retries,
            bytes: seen.bytes,
            used: seen.used,
            cached: seen.cached,
            waits,
        })
    }

    #[cfg(not(feature = "remote"))]
    pub fn of<T>(_: &Rows<T>) -> Option<Self> {
        None
    }

    /// The mean wait for a first byte.
    pub fn first_byte(&self) -> Duration {
        self.waits.div_f64(self.requests.max(1) as f64)
    }

    pub fn json(&self) -> Value {
        let Self { requests, retries, bytes, used, cached, .. } = self;
        json!({
            "requests": requests, "retries": retries, "bytes": bytes, "used": used, "cached": cached,
            "first_byte_s": self.first_byte().as_secs_f64(),
        })
    }
}

impl Sub for Traffic {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            requests: self.requests - earlier.requests,
            retries: self.retries - earlier.retries,
            bytes: self.bytes - earlier.bytes,
            used: self.used - earlier.used,
            cached: self.cached - earlier.cached,
            waits: self.waits.saturating_sub(earlier.waits), // a product of a mean is rounded
        }
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, more: Self) {
        self.requests += more.requests;
        self.retries += more.retries;
        self.bytes += more.bytes;
        self.used += more.used;
        self.cached += more.cached;
        self.waits += more.waits;
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requests, retries, bytes, used, cached, .. } = self;
        let ([bytes, used, cached], requests) =
            ([bytes, used, cached].map(|bytes| show_bytes(*bytes)), count(*requests));
        write!(f, "{requests} requests, {retries} retries, {bytes} fetched, {used} used, {cached} from the cache, ")?;
        write!(f, "{} to a first byte", time(self.first_byte()))
    }
}
