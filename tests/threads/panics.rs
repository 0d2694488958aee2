//! What a panic leaves: a backtrace where one is asked for, the program's own hook, and a loader that lives on.
//!
//! Backtraces and hooks are the process's: each check runs in a process of its own.

use crate::common::*;
use burn_pinned::Error;
use std::{
    env,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

#[test]
#[ignore = "run by the test below, in a process of its own"]
fn inner() {
    let called = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&called);
    std::panic::set_hook(Box::new(move |_| {
        count.fetch_add(1, SeqCst);
    }));
    let loader = builder().build(Numbers::new(40).with(19, Mischief::Panic)).unwrap();
    for epoch in 1..4 {
        let errors: Vec<_> = loader.iter().filter_map(Result::err).collect();
        let Some(Error::Panicked { trace, message, .. }) = errors.first().and_then(Error::of) else { panic!() };
        assert_eq!(message, "number 19 is worse");
        // The dataset's name or its file: which of them depends on the profile.
        let names = |trace: &str| trace.contains("Numbers") || trace.contains("common/mod.rs");
        println!("trace: {}", trace.as_ref().is_some_and(|trace| names(&trace.to_string())));
        // With backtraces, only the first of the panics at one place is told in full.
        let told = if env::var("RUST_BACKTRACE").unwrap() == "1" { 1 } else { epoch };
        assert_eq!(called.load(SeqCst), told, "the program's hook is still called");
    }
}

#[test]
fn a_backtrace_comes_where_it_is_asked_for() {
    for (variable, value, wanted) in [("RUST_BACKTRACE", "1", true), ("RUST_BACKTRACE", "0", false)] {
        let mut inner = Command::new(env::current_exe().unwrap());
        inner
            .args(["--exact", "panics::inner", "--ignored", "--nocapture"])
            .env_remove("RUST_LIB_BACKTRACE")
            .env(variable, value);
        let output = inner.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
        assert_eq!(text.matches(&format!("trace: {wanted}")).count(), 3, "{text}");
        let lines = String::from_utf8_lossy(&output.stderr);
        let again = lines.lines().filter(|line| line.ends_with(" again: number 19 is worse"));
        assert_eq!(again.count(), if wanted { 2 } else { 0 }, "{lines}");
    }
}

#[test]
#[ignore = "run by the test below, in a process of its own"]
fn inner_end() {
    let data = Numbers::new(40).with(0, Mischief::Hang).with(9, Mischief::Hang);
    let loader = builder().build(data).unwrap();
    let mut iter = loader.iter();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            std::process::exit(7); // the main thread's end, while others wait and hang
        });
        assert!(iter.next().is_none());
    });
}

#[test]
fn a_process_ends_whatever_its_loader_does() {
    let mut inner = Command::new(env::current_exe().unwrap());
    let start = std::time::Instant::now();
    let status = inner.args(["--exact", "panics::inner_end", "--ignored"]).output().unwrap().status;
    assert_eq!(status.code(), Some(7));
    assert!(start.elapsed() < std::time::Duration::from_secs(5), "{:?}", start.elapsed());
}
