//! A process that is killed in an epoch, and the one that goes on.

use super::{Builder, jitter, shown};
use crate::common::{Numbers, builder, numbers};
use burn_pinned::LoaderState;
use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
    time::Duration,
};

fn victim() -> Builder {
    builder().shuffle(77).augment(jitter)
}

/// The process that is killed. It prints each batch and the state after it.
#[test]
#[ignore = "run by the test below"]
fn child() {
    let loader = victim().num_workers(3).build(Numbers::new(400)).unwrap();
    let mut out = std::io::stdout().lock();
    for batch in loader.iter() {
        let line = serde_json::to_string(&(batch.unwrap().numbers, loader.state())).unwrap();
        writeln!(out, "\nbatch {line}").unwrap();
        out.flush().unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_killed_process_and_the_next_make_one_epoch() {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "resume::killed::child", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut given, mut last) = (Vec::new(), None);
    for line in BufReader::new(process.stdout.take().unwrap()).lines() {
        let Some(batch) = line.unwrap().strip_prefix("batch ").map(ToString::to_string) else { continue };
        let (numbers, state): (Vec<i64>, LoaderState) = serde_json::from_str(&batch).unwrap();
        given.extend(numbers);
        last = Some(state);
        if given.len() >= 160 {
            break;
        }
    }
    process.kill().unwrap(); // SIGKILL
    process.wait().unwrap();
    let resumed = victim().num_workers(1).resume(last.unwrap()).build(Numbers::new(400)).unwrap();
    given.extend(numbers(&shown(&resumed)));
    assert_eq!(given, numbers(&shown(&victim().build(Numbers::new(400)).unwrap())));
}
