//! What a loader says of itself without being asked: errors that nobody counted, a data set of another length.
//!
//! Log and stderr belong to the process, so each check runs in a process of its own.

use crate::common::*;
use burn::data::dataset::{Dataset, DatasetError};
use std::{
    env,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

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
fn errors_that_nobody_counted_are_said_once() {
    let lines = |text: &str| text.lines().filter(|line| line.contains(UNASKED)).count();
    for how in ["plain", "copies", "thread"] {
        let text = said("said::drop_child", how);
        assert_eq!(lines(&text), 1, "{how}: {text}");
        assert!(text.contains("2 errors") && text.contains("number 3 is bad"), "{how}: {text}");
    }
    for how in ["asked", "good", "unread", "logged"] {
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
            "copies" => drop(copies[0].iter().collect::<Vec<_>>()),
            "unread" => {}
            _ => drop(loader.iter().collect::<Vec<_>>()),
        }
        if how == "asked" {
            assert_eq!(loader.stats().errors, 2);
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

/// Numbers that become more.
struct Growing(Arc<AtomicUsize>);

impl Dataset<usize> for Growing {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        Ok(index)
    }
    fn len(&self) -> usize {
        self.0.load(SeqCst)
    }
}

#[test]
fn a_data_set_that_grows_is_warned_of() {
    said("said::growing_child", "");
}

#[test]
#[ignore = "run by the test above"]
fn growing_child() {
    keep_log(log::LevelFilter::Warn);
    let warnings = || logged().into_iter().filter(|line| line.contains("has another length")).collect::<Vec<_>>();
    let len = Arc::new(AtomicUsize::new(40));
    let loader = builder().build(Growing(Arc::clone(&len))).unwrap();
    let copies = [loader.to_device(&device()), loader.slice(0, 40)];
    let delivers = |samples: usize| assert_eq!(numbers(&epoch(&*loader)).len(), samples);
    delivers(40);
    assert_eq!(warnings(), [""; 0]);
    len.store(48, SeqCst);
    delivers(40);
    assert_eq!(warnings().len(), 1);
    assert!(warnings()[0].contains("48") && warnings()[0].contains("40"), "{:?}", warnings());
    delivers(40);
    copies.iter().for_each(|copy| assert_eq!(numbers(&epoch(&**copy)).len(), 40));
    assert_eq!(warnings().len(), 1, "it was said");
    len.store(64, SeqCst);
    delivers(40);
    assert_eq!(warnings().len(), 2, "it grows on");
    let kept = builder().build_kept(Growing(Arc::clone(&len))).unwrap();
    len.store(80, SeqCst);
    assert_eq!(numbers(&epoch(&*kept)).len(), 64);
    assert_eq!(warnings().len(), 2, "what is kept is no data set any more");
}
