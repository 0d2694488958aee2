//! How fast what is kept is read again. `SPEED_MB` says how much there is; `cargo test --release -- --ignored speed --nocapture`.

use super::*;
use std::{hint::black_box, time::Instant};

/// Reads samples of one size at random for two seconds on so many threads, and prints reads and MB a second.
fn random(cached: &PageCache, fake: &Fake, bytes: usize, threads: usize) {
    let (begun, most) = (Instant::now(), Duration::from_secs(2));
    let count = |seed: usize| {
        let (mut rng, mut buffer, mut reads) = (ChaCha8Rng::seed_from_u64(seed as u64), vec![0; bytes], 0u64);
        while begun.elapsed() < most {
            for _ in 0..16 {
                let object = rng.random_range(0..fake.objects.len());
                let start = rng.random_range(0..fake.objects[object].len() - bytes);
                cached.read(object, start as u64, &mut buffer).unwrap();
                assert!(black_box(&buffer)[0] == fake.objects[object][start]);
                reads += 1;
            }
        }
        reads
    };
    let reads: u64 = thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|seed| scope.spawn(move || count(seed))).collect();
        all.into_iter().map(|one| one.join().unwrap()).sum()
    });
    let rate = reads as f64 / begun.elapsed().as_secs_f64();
    println!("SPEED random {bytes} x{threads}: {rate:.0} reads/s {:.0} MB/s", rate * bytes as f64 / 1e6);
}

/// Reads all objects from begin to end, in pieces.
fn run(name: &str, cached: &PageCache, fake: &Fake, piece: usize, times: usize) {
    let (begun, mut buffer, mut all) = (Instant::now(), vec![0; piece], 0);
    for _ in 0..times {
        for (object, bytes) in fake.objects.iter().enumerate() {
            let mut from = cached.open(object, 0..bytes.len() as u64).unwrap();
            loop {
                match from.read(&mut buffer).unwrap() {
                    0 => break,
                    bytes => all += bytes,
                }
            }
        }
    }
    assert_eq!(all as u64, times as u64 * fake.all());
    println!("SPEED {name} {piece}: {:.0} MB/s", all as f64 / 1e6 / begun.elapsed().as_secs_f64());
}

#[test]
#[ignore = "a measurement"]
fn speed() {
    let megabytes: u64 = std::env::var("SPEED_MB").map_or(384, |text| text.parse().unwrap());
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[(megabytes / 3) << 20; 3], 1)));
    let cached = open(folder.path(), (megabytes + 100) << 20, &fake).unwrap();
    run("fill", &cached, &fake, 1 << 20, 1);
    let asked = fake.bytes();
    assert_eq!(asked, fake.all());
    drop(cached);
    let cached = open(folder.path(), (megabytes + 100) << 20, &fake).unwrap();
    run("first", &cached, &fake, 1 << 20, 1);
    for piece in [1 << 16, 1 << 20, 16 << 20] {
        run("run", &cached, &fake, piece, 3);
    }
    for bytes in [4096, 100_000, 1_000_000] {
        for threads in [1, 2] {
            random(&cached, &fake, bytes, threads);
        }
    }
    assert_eq!(fake.bytes(), 0, "all is warm");
}
