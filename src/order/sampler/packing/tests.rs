//! The promises of packing, for any lengths and options.

use super::{PackingSampler, TooLong, best_fit::BestFit, plan::PackingPlan};
use crate::order::{
    BatchSampler, Distributed, MixPart, MixSampler, RandomSampler, RepeatSampler, Sampler, SequentialSampler,
};
use burn_augment::KeyedRng;
use proptest::prelude::*;
use rand::RngExt;
use std::fs;

type Batch = Vec<usize>;

/// The rows of a batch, packed again as `PackTokens` does it: the tokens of each.
fn rows(batch: &[usize], lengths: &[u32], row_tokens: u32) -> Vec<u32> {
    let lengths: Vec<u32> = batch.iter().map(|document| lengths[*document].min(row_tokens)).collect();
    let (_, free) = BestFit::new(row_tokens).pack(&lengths);
    free.iter().map(|free| row_tokens - free).collect()
}

fn all(sampler: &impl BatchSampler, len: usize, epoch: usize) -> Vec<Batch> {
    let planned = sampler.batches(len, epoch);
    let batches: Vec<Batch> = planned.batches.collect();
    assert_eq!(planned.len, batches.len());
    batches
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn packing_keeps_its_word(
        lengths in prop::collection::vec(prop_oneof![3 => 0u32..40, 1 => 30u32..90], 1..400),
        row_tokens in 40usize..80,
        batch_size in 1usize..6,
        window in 6usize..90,
        cut: bool,
        epoch in 0usize..3,
        skips in prop::collection::vec(0usize..9, 1..9),
        world in 1usize..5,
    ) {
        let too_long = if cut { TooLong::Cut } else { TooLong::Drop };
        let sampler = PackingSampler::new(RandomSampler::new(3), lengths.clone(), row_tokens, batch_size).unwrap();
        let sampler = sampler.window(window).too_long(too_long);
        let n = lengths.len();
        prop_assert_eq!(sampler.check(n).is_ok(), sampler.num_items(n) > 0);
        let batches = all(&sampler, n, epoch);
        // Each document once, but those without tokens and those that are dropped.
        let mut documents = batches.concat();
        documents.sort_unstable();
        let wanted = |document: &usize| lengths[*document] > 0 && (cut || lengths[*document] as usize <= row_tokens);
        prop_assert!(documents.iter().copied().eq((0..n).filter(wanted)));
        prop_assert_eq!(sampler.num_items(n), documents.len());
        for (number, batch) in batches.iter().enumerate() {
            prop_assert!(!batch.is_empty() && batch.len() <= sampler.max_batch_size(n));
            // The documents of a batch fall into its rows again, and no row is too full.
            let rows = rows(batch, &lengths, row_tokens as u32);
            prop_assert!(rows.len() == batch_size || (number + 1 == batches.len() && rows.len() < batch_size));
            prop_assert!(batch.is_sorted_by_key(|document| u32::MAX - lengths[*document].min(row_tokens as u32)));
        }
        // The same again, from any place, in any steps.
        let mut skipping = sampler.clone().batches(n, epoch).batches;
        let mut at = 0;
        for skip in skips {
            prop_assert_eq!(skipping.nth(skip), batches.get(at + skip).cloned());
            at = (at + skip + 1).min(batches.len());
            prop_assert_eq!(skipping.size_hint(), (batches.len() - at, Some(batches.len() - at)));
        }
        prop_assert!(skipping.eq(batches[at..].iter().cloned()));
        // Processes have the batches that one process has.
        let mut shared = vec![Batch::new(); batches.len()];
        for rank in 0..world {
            let (again, share) = (sampler.clone(), Distributed::new(rank, world).unwrap());
            let units = share.units(sampler.batches(n, epoch).batches, 0..batches.len(), move || again.batches(n, epoch).batches);
            for (turn, batch) in units.enumerate().filter(|(turn, _)| turn * world + rank < batches.len()) {
                shared[turn * world + rank] = batch;
            }
        }
        prop_assert_eq!(shared, batches);
    }
}

/// Lengths as those of texts: log-normal, cut to the length of a row.
fn texts(count: usize, median: f64, most: u32) -> Vec<u32> {
    let normal = |n: usize| {
        let mut rng = KeyedRng::for_order(7, n);
        let (u, v): (f64, f64) = (rng.random_range(f64::MIN_POSITIVE..1.0), rng.random());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    };
    (0..count).map(|n| ((median * normal(n).exp()) as u32).clamp(1, most)).collect()
}

#[test]
fn hardly_any_padding_is_left() {
    let lengths = texts(100_000, 400.0, 2048);
    let sampler = PackingSampler::new(RandomSampler::new(1), lengths.clone(), 2048, 16).unwrap();
    let batches = all(&sampler, lengths.len(), 0);
    let (last, whole) = batches.split_last().unwrap();
    let tokens: u64 = whole.iter().flatten().map(|document| u64::from(lengths[*document])).sum();
    let padding = 1.0 - tokens as f64 / (whole.len() * 16 * 2048) as f64;
    assert!(padding <= 0.005 && !last.is_empty(), "{padding}");
}

/// Documents stay near their places in the order. Few of them are left to a next window more than once.
#[test]
fn documents_are_late_by_few_windows() {
    let lengths = texts(20_000, 400.0, 2048);
    let sampler = PackingSampler::new(SequentialSampler, lengths, 2048, 16).unwrap().window(1000);
    let batches = all(&sampler, 20_000, 0);
    let places = batches.iter().enumerate().flat_map(|(number, batch)| {
        let place = number * 20_000 / batches.len();
        batch.iter().map(move |document| document.abs_diff(place))
    });
    let far = places.filter(|moved| *moved > 2000).count();
    assert!(far < 200, "{far} of 20,000 documents are more than two windows away");
}

#[test]
fn epochs_have_other_batches_and_rows_in_another_order() {
    let lengths = texts(3000, 400.0, 2048);
    let shuffled = PackingSampler::new(RandomSampler::new(1), lengths.clone(), 2048, 4).unwrap();
    assert_ne!(all(&shuffled, 3000, 0), all(&shuffled, 3000, 1));
    let plain = PackingSampler::new(SequentialSampler, lengths, 2048, 4).unwrap();
    assert_ne!(all(&plain, 3000, 0), all(&plain, 3000, 1), "the rows are shuffled");
}

#[test]
fn what_cannot_be_packed_is_refused_with_advice() {
    let made = |row, batch| PackingSampler::new(SequentialSampler, vec![3, 900, 5], row, batch);
    let new = |row, batch| made(row, batch).unwrap();
    let refused = |sampler: &dyn BatchSampler, len| sampler.check(len).unwrap_err().to_string();
    let long = refused(&new(512, 1), 3);
    assert!(long.contains("document 1 has 900 tokens") && long.contains("TooLong::Cut"), "{long}");
    assert!(new(512, 1).too_long(TooLong::Cut).check(3).is_ok());
    assert!(refused(&new(1024, 1), 4).contains("3 lengths for a dataset of 4"));
    assert!(made(0, 1).unwrap_err().to_string().contains("rows of 0 tokens"));
    assert!(made(1 << 30, 1).unwrap_err().to_string().contains("rows of 1073741824 tokens"));
    assert!(made(1024, 0).unwrap_err().to_string().contains("0 rows"));
    assert!(refused(&new(1024, 8).window(7), 3).contains("`.window(128)`"));
    assert!(refused(&new(1024, 8).window(0), 3).contains("do not fill a batch of 8 rows"));
    let endless = RepeatSampler::endless(SequentialSampler);
    let endless = refused(&PackingSampler::new(endless, vec![3, 900, 5], 1024, 1).unwrap(), 3);
    assert!(endless.contains("has no end") && endless.contains("RepeatSampler::new"), "{endless}");
    let wrong = PackingSampler::new(RandomSampler::new(1).with_size(9), vec![3, 900, 5], 1024, 1).unwrap();
    assert!(refused(&wrong, 3).contains("9 samples"));
    let none = PackingSampler::new(SequentialSampler, vec![0, 9], 8, 1).unwrap().too_long(TooLong::Drop);
    assert!(refused(&none, 2).contains("all 1 have more than the 8 of a row, and `TooLong::Drop` leaves them out"));
    let empty = PackingSampler::new(SequentialSampler, vec![0, 0], 8, 1).unwrap();
    assert!(refused(&empty, 2).contains("no document has tokens to pack"));
    let twice = RepeatSampler::new(SequentialSampler, 2).unwrap();
    let twice = PackingSampler::new(twice, vec![0, 9, 3, 4], 8, 1).unwrap().too_long(TooLong::Drop);
    assert_eq!((twice.left_out(4), twice.num_items(4)), (2, 4));
    // Nobody has to call `check`.
    assert_eq!(all(&new(512, 8).window(0), 3, 0).concat().len(), 3);
    assert!(all(&none, 2, 0).is_empty());
}

/// The loader reports such an index. Until then it must not do harm.
#[test]
fn a_document_that_is_not_there_takes_a_row() {
    #[derive(Debug)]
    struct Beyond;
    impl Sampler for Beyond {
        fn len(&self, _: usize) -> usize {
            4
        }
        fn indices(&self, _: usize, _: usize) -> Box<dyn Iterator<Item = usize> + Send> {
            Box::new([0, usize::MAX, 1, 7].into_iter())
        }
    }
    let sampler = PackingSampler::new(Beyond, vec![4, 4], 8, 1).unwrap();
    let mut batches = all(&sampler, 2, 0);
    batches.sort();
    assert_eq!(batches, [vec![0, 1], vec![7], vec![usize::MAX]]);
}

#[test]
fn a_saved_plan_is_read_and_a_damaged_one_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let plans = folder.path().join("checkpoints/plans");
    let lengths = texts(5000, 100.0, 512);
    let sampler = |lengths: &Vec<u32>, batch_size| {
        let parts = [MixPart::new(2000, 1.0, RandomSampler::new(1)), MixPart::new(3000, 2.0, SequentialSampler)];
        let order = MixSampler::new(parts, 4).unwrap();
        PackingSampler::new(order, lengths.clone(), 512, batch_size).unwrap().window(300).save_plans_in(&plans)
    };
    let files = || {
        let files = fs::read_dir(&plans).unwrap().map(|entry| entry.unwrap().path());
        files.collect::<std::collections::BTreeSet<_>>()
    };
    let whole = all(&sampler(&lengths, 8), 5000, 2);
    let file = files().pop_first().unwrap();
    assert!(file.file_name().unwrap().to_string_lossy().starts_with("burn-pinned.plan-"));
    let good = fs::read(&file).unwrap();
    // That the plan comes from the file shows in a file with another plan.
    let saved = |bytes: &[u8]| fs::write(&file, bytes).unwrap();
    assert_eq!(all(&sampler(&lengths, 8), 5000, 2), whole);
    for damage in [0, 8, 16, 24, 33, good.len() / 2, good.len() - 1] {
        let mut bytes = good.clone();
        bytes[damage] ^= 4;
        saved(&bytes);
        assert_eq!(all(&sampler(&lengths, 8), 5000, 2), whole, "byte {damage}");
        assert_eq!(fs::read(&file).unwrap(), good, "the file is made again");
    }
    for len in [0, 7, 16, 40, good.len() - 8, good.len() - 1] {
        saved(&good[..len]);
        assert_eq!(all(&sampler(&lengths, 8), 5000, 2), whole, "{len} bytes");
    }
    // Other inputs have other files.
    let mut other = lengths.clone();
    other[2500] += 1; // each epoch has the whole second part
    assert_ne!(all(&sampler(&other, 8), 5000, 2), whole);
    assert_eq!(files().len(), 2);
    all(&sampler(&lengths, 9), 5000, 2);
    (0..2).for_each(|epoch| drop(sampler(&lengths, 8).batches(5000, epoch)));
    assert_eq!(files().len(), 4, "the newest plans are kept");
    assert!(!files().contains(&file));
    // A folder that cannot be made costs time alone.
    let taken = folder.path().join("taken");
    fs::write(&taken, "").unwrap();
    assert_eq!(all(&sampler(&lengths, 8).save_plans_in(&taken), 5000, 2), whole);
}

#[test]
fn numbers_that_are_no_plan_are_none() {
    // Two windows with 3 and 2 batches; the first leaves documents 8 and 9.
    let plan = PackingPlan::of_words(&[3, 5, 0, 2, 8, 9], 2).unwrap();
    assert_eq!((plan.batches(), plan.left_for(0).count(), plan.left_for(1).collect()), (5, 0, vec![8, 9]));
    assert_eq!(plan.words(), [3, 5, 0, 2, 8, 9]);
    assert!(PackingPlan::of_words(&[3, 5, 0, 2, 8], 2).is_none(), "a document is missing");
    assert!(PackingPlan::of_words(&[3, 5, 3, 2, 8, 9], 2).is_none(), "a window leaves fewer than none");
    assert!(PackingPlan::of_words(&[3, 5, 0], 2).is_none() && PackingPlan::of_words(&[3, 5, 0, 2, 8, 9], 4).is_none());
    assert_eq!(PackingPlan::of_words(&[], 0).unwrap().batches(), 0);
}

#[test]
fn a_far_batch_packs_one_window() {
    let lengths = texts(40_000, 400.0, 2048);
    let folder = tempfile::tempdir().unwrap();
    let sampler = PackingSampler::new(SequentialSampler, lengths, 2048, 16).unwrap().save_plans_in(folder.path());
    let batches = all(&sampler, 40_000, 0);
    for at in [0, 1, batches.len() / 2, batches.len() - 1, batches.len()] {
        assert_eq!(sampler.batches(40_000, 0).batches.nth(at).as_ref(), batches.get(at));
    }
    assert_eq!(sampler.batches(40_000, 0).batches.nth(usize::MAX), None);
}
