//! Windows through the loader: tokens cross the link in the type that they have in the file, and are `Int` tensors.

use crate::golden::golden;
use burn::data::dataset::Dataset;
use burn::tensor::{DType, Int, Tensor};
use burn_pinned::data::{TokenType, TokenWindow, TokenWindows, Tokens};
use burn_pinned::{BoxError, Collate, Field, PinnedDataLoaderBuilder, RawBatch, RowMut};
use burn_pinned_made::shards::bare;

/// Tokens as they are, and the number of the document of each.
struct Rows {
    kind: TokenType,
    len: usize,
}

impl Collate<TokenWindow> for Rows {
    type Batch = (Tensor<2, Int>, Tensor<2, Int>, Vec<usize>);

    fn layout(&self) -> Vec<Field> {
        vec![Field::new("tokens", self.kind.dtype(), [self.len]), Field::new("documents", DType::U16, [self.len])]
    }
    fn write(&self, window: &TokenWindow, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        match window.kind() {
            TokenType::U8 => window.copy_to(row.slice_mut::<u8>("tokens")?)?,
            TokenType::U16 => window.copy_to(row.slice_mut::<u16>("tokens")?)?,
            TokenType::U32 => window.copy_to(row.slice_mut::<u32>("tokens")?)?,
            TokenType::I32 => window.copy_to(row.slice_mut::<i32>("tokens")?)?,
            TokenType::I64 => window.copy_to(row.slice_mut::<i64>("tokens")?)?,
            other => return Err(format!("no test of {other}").into()),
        }
        let documents = row.slice_mut::<u16>("documents")?;
        for (number, range) in (0..).zip(window.documents()) {
            documents[range].fill(number);
        }
        Ok(())
    }
    fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
        let tokens: Tensor<2, Int> = batch.take("tokens")?;
        assert_eq!(tokens.dtype(), self.kind.dtype(), "they crossed as they are in the file");
        let indices = batch.indices().ok_or("no indices")?.to_vec();
        Ok((tokens, batch.take_int("documents")?, indices))
    }
}

/// Loads two shuffled epochs, and compares each row with the data set.
fn check(tokens: &Tokens, windows: TokenWindows, len: usize, workers: usize) {
    let builder = PinnedDataLoaderBuilder::new(Rows { kind: tokens.kind(), len });
    let loader = builder.batch_size(5).shuffle(9).num_workers(workers).build(windows.clone()).unwrap();
    for _ in 0..2 {
        let mut seen = vec![0; windows.len()];
        for batch in loader.iter() {
            let (tokens, documents, indices) = batch.unwrap();
            assert_eq!(tokens.dims(), [indices.len(), len]);
            let tokens = tokens.into_data().convert::<i64>().try_to_vec::<i64>().unwrap();
            let documents = documents.into_data().convert::<i64>().try_to_vec::<i64>().unwrap();
            for (row, index) in indices.into_iter().enumerate() {
                let window = windows.get(index).unwrap();
                let here = row * len..(row + 1) * len;
                assert!(window.iter().eq(tokens[here.clone()].iter().copied()), "other tokens of window {index}");
                let numbers = (0..).zip(window.documents()).flat_map(|(number, range)| range.map(move |_| number));
                assert!(numbers.eq(documents[here].iter().copied()), "other documents of window {index}");
                seen[index] += 1;
            }
        }
        assert!(seen.iter().all(|times| *times == 1));
    }
}

#[test]
fn golden_files_arrive_token_by_token() {
    for name in ["nanogpt.bin", "llmc.bin", "megatron.bin"] {
        let tokens = Tokens::open(golden("tokens").join(name)).unwrap();
        check(&tokens, tokens.windows(65, 64), 65, 3);
        let tokens = tokens.documents_end_with(50256).unwrap();
        check(&tokens, tokens.packed(100).unwrap(), 100, 2);
    }
}

#[test]
fn large_values_of_every_type_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens");
    let bytes: Vec<u8> = (0..4096u32).map(|n| (n * 7 % 251) as u8 & 0x7f | 0x40).collect();
    std::fs::write(&path, bytes).unwrap();
    for kind in [TokenType::U8, TokenType::U16, TokenType::U32, TokenType::I32, TokenType::I64] {
        let tokens = Tokens::open_raw(&path, kind).unwrap();
        assert!(tokens.largest().unwrap() >= 0x7f << (8 * (kind.size() - 1)));
        check(&tokens, tokens.windows(16, 16), 16, 1);
    }
}

#[test]
fn u16_of_more_than_15_bits_stay_positive() {
    let folder = bare(&[("a.bin", &[65_535, 32_768, 1, 0])]);
    let tokens = Tokens::open(folder.path().join("a.bin")).unwrap();
    let loader = PinnedDataLoaderBuilder::new(Rows { kind: TokenType::U16, len: 4 })
        .batch_size(1)
        .build(tokens.windows(4, 4))
        .unwrap();
    let (tokens, ..) = loader.iter().next().unwrap().unwrap();
    let device = tokens.device();
    let values = tokens.cast(device.settings().int_dtype).into_data().convert::<i64>();
    assert_eq!(values.try_to_vec::<i64>().unwrap(), [65_535, 32_768, 1, 0]);
}
