//! What `doctor` concludes from its measurements.

// Of a data set. The server is in no package that is published.
#[cfg(all(feature = "parquet", feature = "http"))]
mod data;

use super::{
    advice::{Facts, advice, enough},
    clock::Clock,
    feed,
    gpus::Gpu,
    machine::Machine,
};
use burn::tensor::Device;
use std::time::Duration;

#[test]
fn numbers_of_workers_go_up_to_the_cores() {
    assert_eq!(feed::counts(1), [1]);
    assert_eq!(feed::counts(2), [1, 2]);
    assert_eq!(feed::counts(4), [1, 2, 3]);
    assert_eq!(feed::counts(16), [1, 2, 4, 8, 15]);
    assert_eq!(feed::counts(64), [1, 4, 16, 63]);
    assert_eq!(feed::counts(192), [1, 4, 16, 64, 191]);
    assert_eq!(feed::few(&[1]), [1]);
    assert_eq!(feed::few(&[1, 2]), [1, 2]);
    assert_eq!(feed::few(&[1, 2, 4, 8, 15]), [1, 4, 15]);
}

#[test]
fn all_measurements_share_the_time() {
    let (ms, seconds) = (Duration::from_millis, Duration::from_secs);
    let next = |clock: &Clock| clock.next("a test");
    assert_eq!(next(&Clock::new(3, None)), ms(500));
    let many = Clock::new(30, None);
    let first = next(&many);
    assert!(first > ms(170) && first <= ms(178), "a third of 16 s for 30: {first:?}");
    assert!((0..29).all(|_| next(&many) >= first), "no time has passed, so what is left is enough");
    assert_eq!(next(&Clock::new(1000, None)), ms(100));
    assert_eq!(next(&Clock::new(1000, Some(seconds(2)))), seconds(2));
}

#[test]
fn few_workers_are_enough_if_more_bring_little() {
    assert_eq!(enough(&vec![(1, 20.0), (2, 39.0), (4, 53.0), (8, 54.0), (15, 55.0)]), Some((4, 53.0)));
    assert_eq!(enough(&vec![(1, 20.0), (2, 15.0)]), Some((1, 20.0)));
    assert_eq!(enough(&Vec::new()), None);
}

/// Two GPUs on a host with two nodes, in a container with less memory, huge pages off.
fn facts() -> Facts {
    let gpu =
        Gpu { name: "GPU".into(), node: Some(1), free: 80_000_000_000, pageable: 11.0, locked: 55.0, together: 44.0 };
    let machine = Machine {
        cores: 16,
        memory: Some(512 << 30),
        limit: Some(64 << 30),
        huge_pages: Some("never".into()),
        nodes: vec!["0-7".into(), "8-15".into()],
        driver: true,
        ..Machine::default()
    };
    Facts {
        machine,
        gpus: Ok(vec![gpu.clone(), gpu]),
        rows: Ok(vec![(1, 12.0), (4, 44.0), (8, 54.0)]),
        host: Ok(vec![(1, 700.0), (15, 10_000.0)]),
        on_device: Ok(Ok(vec![(1, 9_000.0), (15, 25_000.0)])),
    }
}

#[track_caller]
fn says(facts: &Facts, words: &str) {
    let lines = advice(facts);
    assert!(lines.iter().any(|line| line.contains(words)), "{words}: {lines:#?}");
}

#[test]
fn advice_follows_from_the_facts() {
    let all = facts();
    for words in [
        "Data of up to 40.0 GB can stay",
        "5.0 x as fast",
        "All 2 GPUs at once take 88 GB/s, 80 %",
        "numactl --cpunodebind=1",
        "`num_workers(8)` is enough, for 54.0 GB/s, 98 % of the link",
        "10000 images/s of 500 x 375 with 15, 667 each",
        "25000 images/s with 15 workers, 2.5 x the workers",
        "CUDA_DEVICE_MAX_CONNECTIONS=32",
        "allows 68.7 of 549.8 GB",
        "transparent_hugepage",
    ] {
        says(&all, words);
    }
    let queues = Machine { connections: Some(32), huge_pages: Some("madvise".into()), limit: None, ..facts().machine };
    let lines = advice(&Facts { machine: queues, ..facts() });
    assert!(!lines.iter().any(|line| line.contains("CUDA_DEVICE") || line.contains("huge")), "{lines:#?}");
    says(&Facts { gpus: Err("of a reason".into()), ..facts() }, "Build with `--features cuda`");
    let none = Machine { driver: false, cores: 2, ..Machine::default() };
    let none = Facts { machine: none, gpus: Err("of a reason".into()), on_device: Err("no".into()), ..facts() };
    says(&none, "of a reason. The loader's figures are those of a CPU backend");
    says(&none, "2 cores are few");
    says(&Facts { on_device: Err("no engines".into()), ..facts() }, "does not decode JPEGs: no engines");
}

/// On a CPU backend, in short.
#[test]
fn what_the_loader_delivers_is_measured() {
    let (device, time) = (Device::flex(), Duration::from_millis(30));
    let rows = feed::sweep(&[1, 2], |workers| feed::rows(&device, workers, time)).unwrap();
    assert!(rows.len() == 2 && rows.iter().all(|(_, rate)| *rate > 0.0), "{rows:?}");
    let Err(reason) = feed::decoder(&device) else { panic!("a CPU backend has no engines") };
    assert!(reason.contains("no engines"), "{reason}");
}

#[test]
fn the_machine_is_described() {
    let machine = Machine::look();
    assert!(machine.cores > 0);
    if cfg!(target_os = "linux") {
        assert!(machine.memory.is_some_and(|bytes| bytes > 1 << 28), "{:?}", machine.memory);
    }
}
