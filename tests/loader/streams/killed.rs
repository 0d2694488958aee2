//! A process that is killed at a random place, and the one that goes on.

use super::*;
use burn_pinned::LoaderState;
use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

fn victim() -> Builder {
    builder().num_workers(2)
}

fn stream() -> Stream<usize> {
    saving(|place| 100 * place.shard..100 * place.shard + 60, &Arc::default())
        .shards(9)
        .interleave(3)
        .shuffle_buffer(40)
}

/// The process that is killed. It goes on from the state in the environment, and prints each batch and the state after it.
#[test]
#[ignore = "run by the test below"]
fn child() {
    let state: Option<LoaderState> = std::env::var("STATE").ok().map(|state| serde_json::from_str(&state).unwrap());
    let loader = state.into_iter().fold(victim(), Builder::resume).build_stream(stream()).unwrap();
    let mut out = std::io::stdout().lock();
    for batch in (0..2).flat_map(|_| shown_one_by_one(&loader)) {
        writeln!(out, "\nbatch {}", serde_json::to_string(&(batch, loader.state())).unwrap()).unwrap();
        out.flush().unwrap();
    }
}

fn shown_one_by_one(loader: &PinnedDataLoader<Shown>) -> impl Iterator<Item = Vec<i64>> {
    loader.iter().map(|batch| batch.unwrap().numbers)
}

#[test]
fn twenty_killed_processes_make_the_same_epochs() {
    let whole = victim().build_stream(stream()).unwrap();
    let all: Vec<Vec<i64>> = (0..2).flat_map(|_| shown_one_by_one(&whole)).collect();
    let (mut given, mut state, mut rng) = (Vec::new(), None, KeyedRng::for_order(7, 0));
    for _ in 0..20 {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "streams::killed::child", "--ignored", "--nocapture"]).stdout(Stdio::piped());
        command.envs(state.as_ref().map(|state: &LoaderState| ("STATE", serde_json::to_string(state).unwrap())));
        let mut process = command.spawn().unwrap();
        let mut lives = rng.random_range(1..12);
        for line in BufReader::new(process.stdout.take().unwrap()).lines() {
            let Some(batch) = line.unwrap().strip_prefix("batch ").map(ToString::to_string) else { continue };
            let (numbers, after): (Vec<i64>, LoaderState) = serde_json::from_str(&batch).unwrap();
            given.push(numbers);
            state = Some(after);
            lives -= 1;
            if lives == 0 {
                break;
            }
        }
        process.kill().unwrap(); // SIGKILL
        process.wait().unwrap();
        if given.len() >= all.len() {
            break;
        }
    }
    let compared = given.len().min(all.len());
    assert!(compared > 60, "{compared}");
    assert_eq!(given[..compared], all[..compared]);
}
