//! The memory of a batch comes from a stream of CubeCL. What is queued on that stream never writes to the batch, under
//! any settings of CubeCL.

use super::{Kept, loader};
use crate::common::byte;
use burn::{
    cubecl::config::{CubeClRuntimeConfig, RuntimeConfig},
    tensor::{Device, Tensor},
};
use std::{
    env,
    process::{Child, Command, Stdio},
    thread,
};

const WIDTH: usize = 150_528;
const ROWS: usize = 64;
/// Batches that the loop keeps at a time.
const KEPT: usize = 4;

/// A name, settings of CubeCL, the number of trainings under them, and the number of batches of each. The trainings run
/// one after the other, each on a new thread.
const SETTINGS: [(&str, &str, usize, usize); 7] = [
    ("defaults", "", 1, 700),
    ("one stream for all", "[streaming]\npolicy = \"single\"\n", 1, 700),
    ("a pool of one stream", "[streaming]\nmax_streams = 1\n", 1, 700),
    // Every second new thread shares the stream of the transfer threads.
    ("a pool of two streams", "[streaming]\nmax_streams = 2\n", 4, 180),
    ("asynchronous allocations", "[memory.cuda]\nallocator = \"async\"\n", 1, 700),
    (
        "asynchronous allocations on one stream",
        "[streaming]\nmax_streams = 1\n[memory.cuda]\nallocator = \"async\"\n",
        1,
        700,
    ),
    // There are so many trainings that threads share streams, although there are 128 streams.
    ("many trainings", "", 260, 4),
];

/// The variable that tells a child process its settings.
const CHILD: &str = "BURN_PINNED_SETTINGS";

/// CubeCL reads its settings once in a process, from the folder that the process runs in. So each of the settings has a
/// child process, and all run at the same time.
#[test]
#[ignore = "needs a CUDA device"]
fn late_kernels_leave_batches_alone() {
    if let Ok(at) = env::var(CHILD) {
        return train(&SETTINGS[at.parse::<usize>().unwrap()]);
    }
    let start =
        |(at, (name, settings, ..)): (usize, &(&str, &str, usize, usize))| -> (String, tempfile::TempDir, Child) {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("cubecl.toml"), settings).unwrap();
            let mut child = Command::new(env::current_exe().unwrap());
            child.args(["late::late_kernels_leave_batches_alone", "--exact", "--ignored", "--nocapture"]);
            child.current_dir(folder.path()).env(CHILD, at.to_string()).stdout(Stdio::piped()).stderr(Stdio::piped());
            (name.to_string(), folder, child.spawn().unwrap())
        };
    let children: Vec<_> = SETTINGS.iter().enumerate().map(start).collect();
    let mut failed = Vec::new();
    for (name, _folder, child) in children {
        let output = child.wait_with_output().unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let found = text.lines().filter(|line| line.starts_with("late: ")).collect::<Vec<_>>().join("\n");
        println!("{name}: {found}");
        if !output.status.success() || !found.contains(" 0 of ") {
            failed.push(format!("{name}:\n{text}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn train((name, _, trainings, batches): &(&str, &str, usize, usize)) {
    CubeClRuntimeConfig::get(); // otherwise the first stream is chosen before the policy is known
    let (mut wrong, mut rows) = (0, 0);
    for _ in 0..*trainings {
        let batches = *batches;
        let (bad, seen) = thread::spawn(move || training(batches)).join().unwrap();
        (wrong, rows) = (wrong + bad, rows + seen);
    }
    assert!(rows * WIDTH >= 6_500_000_000, "{name}: too few to tell");
    println!("late: {wrong} of {rows} rows wrong");
    assert_eq!(wrong, 0, "{name}");
}

/// Takes batches and launches long work. Behind this work, tensors of a batch's size are written, and they are dropped
/// at once. Then the batches are looked at. Returns the number of wrong rows, and of all rows.
fn training(batches: usize) -> (usize, usize) {
    let device = Device::cuda(0);
    let loader = loader(WIDTH, ROWS, 4, ROWS * batches);
    let matrix = Tensor::<2>::ones([4096, 4096], &device) * 1e-4;
    let (mut kept, mut wrong, mut rows) = (Vec::new(), 0, 0);
    for batch in loader.iter() {
        kept.push(batch.unwrap());
        if kept.len() < KEPT {
            continue;
        }
        let product = (0..8).fold(matrix.clone(), |product, _| product.matmul(matrix.clone()));
        let late = |nth: usize| product.clone().mean().expand([ROWS * WIDTH / 4]) + nth as f32 + 0.5;
        let written: Vec<Tensor<1>> = (0..6).map(late).collect();
        device.flush().unwrap(); // otherwise fusion leaves out what nobody reads
        drop((written, product));
        for batch in kept.drain(..) {
            let (bad, seen) = look(batch);
            (wrong, rows) = (wrong + bad, rows + seen);
        }
    }
    (wrong, rows)
}

/// The number of rows of a batch that differ from what the host wrote, and the number of all rows.
fn look((numbers, bytes): Kept) -> (usize, usize) {
    let numbers = numbers.into_data().try_to_vec::<i64>().unwrap();
    let bytes = bytes.into_data();
    let is_wrong = |(number, row): &(&i64, &[u8])| {
        let start = **number as usize % 251;
        row.iter().enumerate().any(|(at, value)| *value != byte(start, at))
    };
    let rows = numbers.iter().zip(bytes.bytes().chunks(WIDTH));
    (rows.filter(is_wrong).count(), numbers.len())
}
