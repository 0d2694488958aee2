//! Packed batches, number by number.

use super::*;
use burn::{prelude::*, tensor::DType};
use proptest::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn device() -> Device {
    Device::flex()
}

fn row(tokens: impl Into<Vec<u32>>) -> TokenRow {
    TokenRow::from(tokens.into())
}

fn ints<const D: usize>(tensor: &Tensor<D, Int>) -> Vec<i64> {
    tensor.to_data().iter::<i64>().collect()
}

fn bools<const D: usize>(tensor: &Tensor<D, Bool>) -> Vec<u8> {
    tensor.to_data().iter::<bool>().map(u8::from).collect()
}

#[test]
fn documents_lie_side_by_side_in_rows() {
    let learned = vec![false, true, false, true];
    let documents = vec![row([1, 2]), TokenRow { tokens: vec![11, 12, 13, 14], learned }, row([]), row([21, 22, 23])];
    let pack = PackTokens::new(6).unwrap().vocabulary(100).cumulative_lengths();
    let batch = pack.batch(documents, &device());
    assert_eq!(batch.tokens.dims(), [2, 6]);
    assert_eq!(ints(&batch.tokens), [11, 12, 13, 14, 1, 2, 21, 22, 23, 0, 0, 0]);
    assert_eq!(ints(&batch.targets), [12, 13, 14, 0, 2, 0, 22, 23, 0, 0, 0, 0]);
    assert_eq!(bools(&batch.loss_mask), [1, 0, 1, 0, 1, 0, 1, 1, 0, 0, 0, 0]);
    assert_eq!(ints(&batch.positions), [0, 1, 2, 3, 0, 1, 0, 1, 2, 0, 0, 0]);
    assert_eq!(ints(&batch.documents), [1, 1, 1, 1, 2, 2, 1, 1, 1, 0, 0, 0]);
    let lengths = batch.cumulative_lengths.clone().unwrap();
    assert_eq!((ints(&lengths), lengths.dtype()), (vec![0, 4, 6, 9, 12], DType::I32));
    assert_eq!(
        bools(&batch.attention_mask().slice([1..2, 0..6, 0..6])),
        [
            [0, 1, 1, 1, 1, 1],
            [0, 0, 1, 1, 1, 1],
            [0, 0, 0, 1, 1, 1],
            [1, 1, 1, 0, 1, 1],
            [1, 1, 1, 0, 0, 1],
            [1, 1, 1, 0, 0, 0],
        ]
        .concat()
    );
    let one = bools(&batch.attention_mask().slice([0..1, 4..6, 0..6]));
    assert_eq!(one, [[1, 1, 1, 1, 0, 1], [1, 1, 1, 1, 0, 0]].concat());
}

#[test]
fn integers_are_as_narrow_as_the_vocabulary() {
    let pack = |row_tokens, vocabulary: Option<usize>, token| {
        let pack = PackTokens::new(row_tokens).unwrap();
        let pack = vocabulary.into_iter().fold(pack, PackTokens::vocabulary);
        pack.batch(vec![row([token, token])], &device())
    };
    for (row_tokens, vocabulary, token, dtype) in [
        (8, Some(1 << 16), 65_535, DType::U16),
        (8, Some((1 << 16) + 1), 65_536, DType::U32),
        (8, None, i32::MAX as u32, DType::U32),
        (8, Some(1 << 31), i32::MAX as u32, DType::U32),
        (65_535, Some(10), 9, DType::U16),
        (65_536, Some(10), 9, DType::U32),
    ] {
        let batch = pack(row_tokens, vocabulary, token);
        let all = [&batch.tokens, &batch.targets, &batch.positions, &batch.documents].map(|tensor| tensor.dtype());
        assert_eq!(all, [dtype; 4]);
        assert_eq!(ints(&batch.tokens)[..3], [i64::from(token), i64::from(token), 0]);
        assert_eq!(ints(&batch.targets)[0], i64::from(token));
    }
    let own = device().settings().int_dtype;
    for (vocabulary, token) in [(Some(10), 9), (None, i32::MAX as u32)] {
        let batch = pack(8, vocabulary, token).int();
        let all = [&batch.tokens, &batch.targets, &batch.positions, &batch.documents].map(|tensor| tensor.dtype());
        assert_eq!((all, ints(&batch.tokens)[0]), ([DType::from(own); 4], i64::from(token)));
    }
}

#[test]
fn what_does_not_fit_says_what_to_write() {
    let said = |pack: PackTokens, tokens: Vec<u32>| {
        let batch = || pack.batch(vec![row([1]), row(tokens)], &device());
        let panic = catch_unwind(AssertUnwindSafe(batch)).map(|_| ()).unwrap_err();
        panic.downcast_ref::<String>().unwrap().clone()
    };
    let pack = || PackTokens::new(3).unwrap();
    let long = said(pack(), vec![1; 5]);
    assert!(long.contains("document 1 of the batch has 5 tokens") && long.contains("TooLong::Cut"), "{long}");
    assert!(said(pack().vocabulary(7), vec![6, 7]).contains("token 7, but the vocabulary has 7"));
    for wide in [pack(), pack().vocabulary(usize::MAX), pack().too_long(TooLong::Cut)] {
        let large = said(wide, vec![1, 1 << 31]);
        assert!(
            large.contains("document 1 of the batch has the token 2147483648, and integers of 32 bits end"),
            "{large}"
        );
    }
    let all = said(PackTokens::new(1 << 24).unwrap().rows(128).cumulative_lengths(), vec![1]);
    assert!(all.contains("128 rows of 16777216 tokens end beyond 2147483647"), "{all}");
    assert!(PackTokens::new(0).unwrap_err().to_string().contains("rows of 0 tokens"));
    assert!(PackTokens::new(1 << 25).is_err());
    let documents = || vec![row([1, 2, 3, 4]), row([5])];
    let cut = pack().too_long(TooLong::Cut).batch(documents(), &device());
    assert_eq!((ints(&cut.tokens), ints(&cut.targets)), (vec![1, 2, 3, 5, 0, 0], vec![2, 3, 0, 0, 0, 0]));
    let dropped = pack().too_long(TooLong::Drop).batch(documents(), &device());
    assert_eq!(ints(&dropped.tokens), [5, 0, 0]);
}

#[test]
fn rows_of_padding_fill_up_a_batch() {
    let pack = PackTokens::new(2).unwrap().rows(3).cumulative_lengths();
    let batch = pack.batch(vec![row([7, 8])], &device());
    assert_eq!(ints(&batch.tokens), [7, 8, 0, 0, 0, 0]);
    assert_eq!(ints(&batch.cumulative_lengths.unwrap()), [0, 2, 4, 6]);
    let none = PackTokens::new(2).unwrap().batch(vec![row([])], &device());
    assert_eq!((none.tokens.dims(), bools(&none.loss_mask)), ([1, 2], vec![0, 0]));
}

proptest! {
    /// Nothing is lost: the documents can be read out of the batch again.
    #[test]
    fn a_batch_has_its_documents(lengths in prop::collection::vec(0u32..50, 0..40), row_tokens in 50usize..90) {
        let mut next = 0;
        let documents: Vec<TokenRow> = lengths.iter().map(|length| {
            let tokens: Vec<u32> = (next..next + length).collect();
            next += length;
            let learned = tokens.iter().map(|token| token % 3 > 0).collect();
            TokenRow { tokens, learned }
        }).collect();
        let batch = PackTokens::new(row_tokens).unwrap().batch(documents.clone(), &device());
        let [tokens, targets, positions, numbers] =
            [&batch.tokens, &batch.targets, &batch.positions, &batch.documents].map(ints);
        let mask = bools(&batch.loss_mask);
        let mut found = Vec::new();
        for at in 0..tokens.len() {
            if numbers[at] == 0 {
                prop_assert_eq!((tokens[at], targets[at], positions[at], mask[at]), (0, 0, 0, 0));
                continue;
            }
            if positions[at] == 0 {
                found.push(Vec::new());
                let before = if at % row_tokens == 0 { 0 } else { numbers[at - 1] };
                prop_assert_eq!(numbers[at], before + 1);
            }
            let document = found.last_mut().unwrap();
            prop_assert_eq!(document.len() as i64, positions[at]);
            document.push(tokens[at] as u32);
            let goes_on = (at + 1) % row_tokens > 0 && positions[at + 1] > 0;
            prop_assert_eq!(targets[at], if goes_on { tokens[at + 1] } else { 0 });
            prop_assert_eq!(mask[at] == 1, goes_on && tokens[at + 1] % 3 > 0);
        }
        found.sort();
        let mut wanted: Vec<Vec<u32>> = documents.into_iter().map(|row| row.tokens).filter(|row| !row.is_empty()).collect();
        wanted.sort();
        prop_assert_eq!(found, wanted);
    }
}
