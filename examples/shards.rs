//! A tool for data sets of shards: it writes them from a folder of images, makes their indices, measures how fast they are
//! read, and makes token files of text.
//!
//!     cargo run --release --features parquet --example shards -- write --data DIR --out SHARDS --format tar
//!     cargo run --release --features parquet --example shards -- write --data DIR --out HUB --format parquet
//!     cargo run --release --features parquet --example shards -- index 'SHARDS/*.tar'
//!     cargo run --release --features parquet --example shards -- bench 'SHARDS/*.tar'
//!     cargo run --release --features parquet --example shards -- bench 'HUB/*.parquet' --columns image --decode 224
//!     cargo run --release --features parquet,http --example shards -- bench 'https://HOST/{000..146}.tar'   # on a store
//!     cargo run --release --features parquet --example shards -- bench 'SHARDS/*.tar' --resume   # the first batch
//!     cargo run --release --features parquet --example shards -- bench DIR              # loose files, to compare
//!     cargo run --release --features parquet --example shards -- bench 'tokens/*.bin'   # windows of 1,024 tokens
//!     cargo run --release --features parquet,tokenizers --example shards -- tokenize 'DOCS/*.parquet' --tokenizer FILE --out docs.bin
//!
//! `DIR` is a folder of images as `DIR/cat/1.jpg`. `bench` runs on a CPU backend, so no link to a device is in the way.

#[path = "shards/bench.rs"]
mod bench;
#[path = "shards/collate.rs"]
mod collate;
#[path = "shards/end.rs"]
mod end;
#[path = "shards/first.rs"]
mod first;
#[path = "shards/format.rs"]
mod format;
#[path = "shards/index.rs"]
mod index;
#[allow(dead_code)] // the example `doctor` uses the rest
#[path = "shards/measure.rs"]
mod measure;
#[path = "shards/open.rs"]
mod open;
#[path = "shards/order.rs"]
mod order;
#[allow(dead_code)] // as above
#[path = "shards/remote.rs"]
mod remote;
#[path = "shards/report.rs"]
mod report;
#[path = "shards/row.rs"]
mod row;
#[path = "shards/size.rs"]
mod size;
#[cfg(feature = "tokenizers")]
#[path = "shards/tokenize.rs"]
mod tokenize;
#[path = "shards/write.rs"]
mod write;
#[path = "shards/write_parquet.rs"]
mod write_parquet;
#[path = "shards/write_tar.rs"]
mod write_tar;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Writes data sets of shards, makes their indices, measures how fast they are read, and makes token files of text.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Write(write::Args),
    Index(index::Args),
    Bench(bench::Args),
    #[cfg(feature = "tokenizers")]
    Tokenize(tokenize::Args),
}

fn main() -> ExitCode {
    let command = Args::parse().command;
    end::end(burn_pinned::prepare().map_err(Into::into).and_then(|()| match command {
        Command::Write(args) => write::run(&args),
        Command::Index(args) => index::run(&args),
        Command::Bench(args) => bench::run(&args),
        #[cfg(feature = "tokenizers")]
        Command::Tokenize(args) => tokenize::run(&args),
    }))
}
