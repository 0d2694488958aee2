//! What a loader says of itself without being asked: an error at which a loop stopped, what an epoch leaves out.
//!
//! Log and stderr belong to the process, so each check runs in a process of its own.

use crate::common::*;
use burn_pinned::{
    Distributed, PinnedDataLoaderBuilder,
    order::{
        FixedBatchSampler, MixPart, MixSampler, PackingSampler, RandomSampler, RepeatSampler, SequentialSampler,
        SubsetSampler, TooLong, WeightedSampler,
    },
};
use std::{env, process::Command};

/// Runs an ignored test of this file in a process of its own. Returns what it has written on stderr.
fn said(test: &str, how: &str) -> String {
    let mut inner = Command::new(env::current_exe().unwrap());
    let output = inner.args(["--exact", test, "--ignored", "--nocapture"]).env("HOW", how).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{how}: {}{text}", String::from_utf8_lossy(&output.stdout));
    text
}

const UNASKED: &str = "nobody asked the loader's statistics";

#[test]
fn an_error_that_ends_a_loop_is_said_once() {
    let lines = |text: &str| text.lines().filter(|line| line.contains(UNASKED)).count();
    for how in ["plain", "copies", "thread"] {
        let text = said("said::drop_child", how);
        assert_eq!(lines(&text), 1, "{how}: {text}");
        assert!(text.contains("number 3 is bad"), "{how}: {text}");
    }
    for how in ["asked", "good", "unread", "logged", "handled"] {
        let text = said("said::drop_child", how);
        assert_eq!(lines(&text), 0, "{how}: {text}");
    }
}

#[test]
#[ignore = "run by the test above"]
fn drop_child() {
    let how = env::var("HOW").unwrap();
    let data = Numbers::new(40);
    let data = if how == "good" { data } else { data.with(3, Mischief::Error).with(39, Mischief::Error) };
    if how == "logged" {
        keep_log(log::LevelFilter::Warn);
    }
    let run = move |how: &str| {
        let loader = builder().build(data).unwrap();
        let copies = [loader.to_device(&device()), loader.slice(0, 40)];
        match how {
            // As Burn's learner, a loop stops at the first error.
            "copies" => assert!(copies[0].iter().any(|batch| batch.is_err())),
            "unread" => {}
            "handled" | "good" => drop(loader.iter().collect::<Vec<_>>()),
            _ => assert!(loader.iter().any(|batch| batch.is_err())),
        }
        if how == "asked" {
            assert_eq!(loader.stats().errors, 1);
        }
        drop(loader);
        copies
    };
    if how == "thread" {
        std::thread::spawn(move || drop(run("thread"))).join().unwrap();
        return;
    }
    let copies = run(&how);
    let unasked = || logged().iter().filter(|line| line.contains(UNASKED)).count();
    assert_eq!(unasked(), 0, "there are copies left");
    drop(copies);
    assert_eq!(unasked(), usize::from(how == "logged"));
}

#[test]
fn what_an_epoch_leaves_out_is_said_once() {
    said("said::left_out_child", "");
}

#[test]
#[ignore = "run by the test above"]
fn left_out_child() {
    keep_log(log::LevelFilter::Info);
    let said = |builder: PinnedDataLoaderBuilder<usize, Shown>, kept: bool| {
        let before = logged().len();
        let data = Numbers::new(100);
        let loader = if kept { builder.build_kept(data) } else { builder.build(data) }.unwrap();
        let copies = [loader.to_device(&device()), loader.slice(0, 50)];
        drop((epoch(&*loader), epoch(&*loader), copies));
        let lines: Vec<_> = logged().split_off(before).into_iter().filter(|line| line.contains("leaves out")).collect();
        let left_out = loader.stats().left_out;
        assert_eq!(loader.stats().to_string().contains(&format!("left out       {left_out} samples")), left_out > 0);
        (lines.join("; "), left_out)
    };
    let check = |(said, left_out): (String, usize), words: &str, right: usize| {
        assert!(said.contains(words), "{said}");
        assert_eq!(left_out, right, "{said}");
    };
    for kept in [false, true] {
        let say = |builder| said(builder, kept);
        assert_eq!(say(builder()), (String::new(), 0));
        assert_eq!(
            say(builder().order(RepeatSampler::new(SequentialSampler, 2).unwrap()).drop_last(true)),
            (String::new(), 0)
        );
        let part = "each epoch leaves out";
        check(say(builder().order(RandomSampler::new(1).with_size(30))), &format!("{part} 70"), 70);
        check(say(builder().order(SubsetSampler::new(0..60))), &format!("{part} 40"), 40);
        check(say(builder().drop_last(true)), &format!("{part} 4"), 4);
        // Rows that no draw has, and rows that several short passes have together.
        let weights = || (0..100).map(|at| f64::from(at % 10 == 0));
        check(say(builder().order(WeightedSampler::new(weights(), 1).unwrap())), &format!("{part} 90"), 90);
        let drawn = WeightedSampler::new(weights(), 1).unwrap();
        check(say(sized(64).order(drawn).drop_last(true)), "leaves out 36 of the 100 samples", 90);
        let parts = [MixPart::new(70, 0.0, SequentialSampler), MixPart::new(30, 1.0, SequentialSampler)];
        check(say(builder().order(MixSampler::new(parts, 1).unwrap())), &format!("{part} 70"), 70);
        let again = SubsetSampler::new((0..100).map(|at| at % 40));
        check(say(builder().order(again)), &format!("{part} 60"), 60);
        let passes = |size| RepeatSampler::new(RandomSampler::new(1).with_size(size), 3).unwrap();
        assert_eq!(say(builder().order(passes(40))), (String::new(), 0));
        check(say(builder().order(passes(20))), &format!("{part} 40"), 40);
        let rows = |size| FixedBatchSampler::new(WeightedSampler::new(weights(), 1).unwrap(), size).unwrap();
        check(say(unsized_().order(rows(8))), &format!("{part} 90"), 90);
        check(say(sized(64).drop_last(true)), "leaves out 36 of the 100 samples of the data set in each epoch", 36);
        let fixed = FixedBatchSampler::new(SequentialSampler, 8).unwrap().drop_last(true);
        check(say(unsized_().order(fixed)), &format!("{part} 4"), 4);
        let share = Distributed::new(0, 3).unwrap().drop_uneven();
        check(say(builder().distributed(share)), &format!("{part} 1"), 1);
        // Four batches, the last one of 10, for three processes.
        let batches = || FixedBatchSampler::new(SequentialSampler, 30).unwrap();
        let words = "leaves out 10 of the 100 samples of the data set in each epoch";
        check(say(unsized_().order(batches()).distributed(share)), words, 10);
        assert_eq!(say(unsized_().order(batches()).distributed(Distributed::new(0, 3).unwrap())), (String::new(), 0));
    }
    let lengths: Vec<u32> = (0..100).map(|at| if at % 4 == 0 { 40 } else { 10 }).collect();
    let packing = |too_long| PackingSampler::new(SequentialSampler, lengths.clone(), 32, 1).unwrap().too_long(too_long);
    let (dropped, left_out) = said(unsized_().order(packing(TooLong::Drop)), false);
    let words = "25 of 100 documents have more tokens than a row of 32, and come in no batch: `TooLong::Drop` leaves out 1000 of \
                 1750 tokens";
    assert!(dropped.starts_with(words), "{dropped}");
    assert_eq!((left_out, dropped.matches("TooLong").count()), (25, 1));
    check(said(unsized_().order(packing(TooLong::Cut)), false), "`TooLong::Cut` leaves out 200 of 1750 tokens", 0);
}

#[cfg(feature = "vision")]
#[test]
fn pictures_that_a_folder_leaves_out_are_said() {
    said("said::folder_child", "");
}

#[cfg(feature = "vision")]
#[test]
#[ignore = "run by the test above"]
fn folder_child() {
    use burn::data::dataset::Dataset;

    keep_log(log::LevelFilter::Warn);
    let root = tempfile::tempdir().unwrap();
    let put = |name: &str| {
        let path = root.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    };
    let opened = || {
        let before = logged().len();
        let images = burn_pinned::vision::ImageFolder::open(root.path()).unwrap().len();
        (images, logged().split_off(before).join("; "))
    };
    ["cat/1.jpg", "cat/Thumbs.db", "cat/1.txt", "cat/.hidden/1.jpg", "dog/1.PNG", "dog/none"].into_iter().for_each(put);
    assert_eq!(opened(), (2, String::new()));
    ["cat/2.bmp", "cat/3.HEIC", "cat/4.tiff", "cat/more/5.jpg"].into_iter().for_each(put);
    let (images, said) = opened();
    assert_eq!(images, 2);
    assert!(said.contains("cat has 4 folders or pictures that are left out, such as \"2.bmp\": only .png"), "{said}");
}
