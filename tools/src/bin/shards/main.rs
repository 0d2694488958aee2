//! `shards` reads and times data sets of shards, and simulates many nodes that read one. It also writes them from a folder of images, makes their indices, and makes token
//! files of text. The README of the package shows how.

mod bench;
mod first;
mod index;
mod report;
#[cfg(feature = "remote")]
mod simulate;
#[cfg(feature = "tokenizers")]
mod tokenize;
mod write;
#[cfg(feature = "parquet")]
mod write_parquet;
mod write_tar;

use burn_pinned_tools::end::end;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Reads and times data sets of shards; simulates many nodes; writes them from a folder of images; makes their indices
#[derive(Parser)]
#[command(version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Write(write::Args),
    Index(index::Args),
    Bench(bench::Args),
    #[cfg(feature = "remote")]
    Simulate(simulate::Args),
    #[cfg(feature = "tokenizers")]
    Tokenize(tokenize::Args),
}

fn main() -> ExitCode {
    let command = Args::parse().command;
    end(burn_pinned::prepare().map_err(Into::into).and_then(|()| match command {
        Command::Write(args) => write::run(&args),
        Command::Index(args) => index::run(&args),
        Command::Bench(args) => bench::run(&args),
        #[cfg(feature = "remote")]
        Command::Simulate(args) => simulate::run(&args),
        #[cfg(feature = "tokenizers")]
        Command::Tokenize(args) => tokenize::run(&args),
    }))
}
