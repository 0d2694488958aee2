//! Stands for `data.rs` where nothing reads data sets.

use burn_pinned::BoxError;
use std::time::Duration;

#[derive(clap::Args)]
pub(crate) struct Data {
    /// Measure a data set instead. It needs the feature `parquet`, and for URLs `http`
    #[arg(long, value_name = "URL|PATH", num_args = 1.., allow_hyphen_values = true)]
    pub(crate) data: Vec<String>,
}

pub(crate) fn measured(_: &Data, _: Duration) -> Result<String, BoxError> {
    Err("`--data` needs the feature `parquet`, and for URLs `http`: run with `--features parquet,http`".into())
}
