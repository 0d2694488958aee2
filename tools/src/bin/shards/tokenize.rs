//! Makes token files of a column of text.

use burn_pinned::{
    BoxError,
    data::{HfTokenizer, TokenType},
};
use burn_pinned_tools::{
    open::Open,
    size::{several, time},
};
use std::{path::PathBuf, time::Instant};

/// The most tokens whose numbers fit into two bytes.
const OF_TWO_BYTES: usize = 1 << 16;

/// Makes token files of a column of text, on all cores
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    open: Open,
    /// A `tokenizer.json`
    #[arg(long, value_name = "FILE")]
    tokenizer: PathBuf,
    /// The column with the text
    #[arg(long, default_value = "text")]
    column: String,
    /// The file to write. It ends with `.bin`, and an `.idx` is written beside it
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// A token to add behind each text, such as `<|endoftext|>`
    #[arg(long, value_name = "TOKEN")]
    end: Option<String>,
    /// Leaves out the special tokens that the tokeniser adds to each text
    #[arg(long)]
    no_special_tokens: bool,
    /// Leaves out rows that have no such text, instead of ending with an error
    #[arg(long)]
    leave_out_bad_rows: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), BoxError> {
    let mut tokenizer = HfTokenizer::open(&args.tokenizer)?.with_special_tokens(!args.no_special_tokens);
    if let Some(end) = &args.end {
        tokenizer = tokenizer.with_end(end)?;
    }
    let kind = if tokenizer.vocabulary() <= OF_TWO_BYTES { TokenType::U16 } else { TokenType::I32 };
    let rows = args.open.rows::<(String,)>(std::slice::from_ref(&args.column), &[])?;
    let mut rows = rows.tokenized(tokenizer.column(|(text,): &(String,)| text));
    if args.leave_out_bad_rows {
        rows = rows.leave_out_bad_rows();
    }
    let started = Instant::now();
    let (documents, tokens) = rows.write(&args.out, kind)?;
    println!(
        "{} of {kind} in {}, {:.1} million a second: {}",
        several(usize::try_from(tokens)?, "token"),
        several(documents, "document"),
        tokens as f64 / 1e6 / started.elapsed().as_secs_f64(),
        args.out.display()
    );
    println!("took {}", time(started.elapsed()));
    Ok(())
}
