//! Rows of text through the loader: workers make their tokens, and the loader treats them as the rows that they are made of.

use crate::{
    formats::{Format, ROWS, Row, files, remote},
    server::{Fault, Server},
};
use burn::tensor::{DType, Device, Int, Tensor};
use burn_pinned::{
    BoxError, Collate, Field, PinnedDataLoaderBuilder, RawBatch, RowMut,
    data::{Rows, TokenRow, Tokenized, tokenizer},
};

/// Sends the number of tokens, and their sum.
struct Totals;

impl Collate<TokenRow> for Totals {
    type Batch = Vec<i64>;

    fn layout(&self) -> Vec<Field> {
        vec![Field::new("totals", DType::I64, [2])]
    }

    fn write(&self, tokens: &TokenRow, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        let sum: u32 = tokens.tokens.iter().sum();
        row.slice_mut::<i64>("totals")?.copy_from_slice(&[i64::try_from(tokens.len())?, sum.into()]);
        Ok(())
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
        let totals: Tensor<2, Int> = batch.take("totals")?;
        Ok(totals.into_data().try_to_vec()?)
    }
}

fn tokenized(rows: Rows<Row>) -> Tokenized {
    rows.tokenized(tokenizer("bytes", |row: &Row, out: &mut TokenRow| {
        out.extend(row.bytes.iter().copied().map(u32::from));
        Ok(())
    }))
}

fn builder() -> PinnedDataLoaderBuilder<TokenRow, Vec<i64>> {
    PinnedDataLoaderBuilder::new(Totals).batch_size(8).num_workers(2).set_device(Device::flex())
}

#[test]
fn tokens_of_far_rows_are_made_of_what_is_fetched_ahead() {
    let (written, indices) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::new(files(Format::Tar, written.path()), |_| Fault::None);
    let local = tokenized(Format::Tar.open(written.path()).open().unwrap());
    let far = remote(Format::Tar, &server, indices.path()).open().unwrap();
    let before = far.fetched().unwrap().requests;
    let all = |rows: Tokenized| -> Vec<i64> {
        builder().build(rows).unwrap().iter().flat_map(|batch| batch.unwrap()).collect()
    };
    let got = all(tokenized(far.clone()));
    assert_eq!((got.len(), &got), (2 * ROWS, &all(local)));
    let requests = far.fetched().unwrap().requests - before;
    assert!(requests < ROWS as u64, "{requests} requests for {ROWS} rows");
}

#[test]
fn a_full_shuffle_of_tokenised_pages_that_do_not_fit_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let rows = tokenized(Format::Chunks.open(folder.path()).memory(2500).open().unwrap());
    let scattered = |builder: PinnedDataLoaderBuilder<_, _>| builder.build(rows.clone()).unwrap().stats().scattered;
    assert!(scattered(builder().shuffle(1)));
    assert!(!scattered(builder()));
}
