//! Processes that share a cache, and some that are killed.

use super::*;
use crate::store::cache::pages::on_disk as page_on_disk;
use std::{
    env,
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
};

const SIZES: [u64; 3] = [10 << 20, 300_000, (5 << 20) + 77];
const FOLDER: &str = "BURN_PINNED_TEST_CACHE";

/// Each request is a line in a file that all processes append to.
#[derive(Debug)]
struct Noted(Fake, fs::File);

impl Store for Noted {
    fn open(&self, object: usize, part: Range<u64>) -> io::Result<Box<dyn Read + Send + '_>> {
        (&self.1).write_all(format!("{}\n", part.end - part.start).as_bytes())?;
        self.0.open(object, part)
    }
}

fn start(folder: &Path, limit: u64, seed: u64, epochs: u64) -> Child {
    let child = ["--exact", "store::cache::tests::processes::child", "--ignored", "--nocapture"];
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(child).env(FOLDER, folder).env("LIMIT", limit.to_string()).env("SEED", seed.to_string());
    command.env("EPOCHS", epochs.to_string()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Reads everything in epochs, and checks each byte.
#[test]
#[ignore = "run by the tests below"]
fn child() {
    let number = |name: &str| env::var(name).unwrap().parse::<u64>().unwrap();
    let folder = env::var(FOLDER).unwrap();
    let log = fs::OpenOptions::new().append(true).create(true).open(format!("{folder}.log")).unwrap();
    let fake = Arc::new(Noted(Fake { pause: Duration::from_micros(300), ..Fake::new(&SIZES, 1) }, log));
    let (list, below) = (fake.0.list(0), Arc::clone(&fake) as _);
    let cached = PageCache::open(Path::new(&folder), number("LIMIT"), &list, below, Arc::default()).unwrap();
    println!("ready");
    for n in 0..number("EPOCHS") {
        thread::scope(|scope| {
            for worker in 0..2 {
                let (cached, fake, seed) = (&cached, &fake.0, number("SEED") + 2 * n + worker);
                scope.spawn(move || epoch(cached, fake, seed));
            }
        });
    }
}

/// The bytes that all processes have asked for.
fn asked(folder: &Path) -> u64 {
    let log = fs::read_to_string(folder.with_extension("log")).unwrap();
    log.lines().map(|line| line.parse::<u64>().unwrap()).sum()
}

/// Near the limit each process may write what its two threads are fetching: two pages each.
fn beyond(processes: u64) -> u64 {
    processes.saturating_sub(1) * 4 * page_on_disk(PAGE)
}

fn share(processes: u64, limit: u64) -> u64 {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("cache");
    let mut children: Vec<_> = (0..processes).map(|n| start(&folder, limit, 100 * n, 2)).collect();
    let mut looks = 0;
    while children.iter_mut().any(|child| child.try_wait().unwrap().is_none()) {
        let bytes = on_disk(&folder);
        assert!(bytes <= limit + beyond(processes), "{bytes} of {limit}");
        looks += 1;
        thread::sleep(Duration::from_millis(1));
    }
    assert!(looks > 10);
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    asked(&folder)
}

#[test]
fn processes_pass_a_limit_by_what_they_are_fetching_at_most() {
    let all: u64 = SIZES.iter().sum();
    for processes in [2, 4] {
        let asked = share(processes, all / 2);
        let epochs = processes * 2 * 2;
        assert!(asked > all && asked < all * epochs * 8 / 10, "{processes} processes: {asked} of {epochs} times {all}");
    }
}

#[test]
fn a_kill_at_any_moment_leaves_a_good_cache() {
    let outer = tempfile::tempdir().unwrap();
    let (fake, all) = (Arc::new(Fake::new(&SIZES, 1)), SIZES.iter().sum::<u64>());
    let gone = Arc::new(Fake { is_gone: true, ..Fake::new(&SIZES, 1) });
    let (mut rng, mut cut, mut good) = (ChaCha8Rng::seed_from_u64(5), 0, 0);
    for kill in 0..50 {
        // Every fifth begins with an empty folder.
        let folder = outer.path().join(format!("cache-{}", kill / 5));
        let limit = if kill / 5 % 2 == 0 { all + (1 << 20) } else { all / 2 };
        let mut children: Vec<_> = (0..1 + kill % 2).map(|n| start(&folder, limit, 10 * kill + n, 1000)).collect();
        if kill % 5 > 0 {
            let mut said = BufReader::new(children[0].stdout.take().unwrap()).lines();
            assert!(said.any(|line| line.unwrap().contains("ready")));
        }
        thread::sleep(Duration::from_micros(rng.random_range(0..20_000)));
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        // What is there is right, and no more than it may be. What is not there is an error: the store is gone.
        let bytes = on_disk(&folder);
        assert!(bytes <= limit + beyond(1 + kill % 2), "kill {kill}: {bytes} of {limit}");
        let half_written = || pages(&folder).iter().filter(|path| path.extension().is_some()).count();
        cut += if folder.exists() { half_written() } else { 0 };
        let cached = open(&folder, limit, &gone).unwrap();
        assert_eq!(half_written(), 0, "kill {kill}");
        for (object, bytes) in gone.objects.iter().enumerate() {
            for start in (0..bytes.len()).step_by(PAGE as usize) {
                let end = bytes.len().min(start + PAGE as usize);
                if let Ok(page) = read(&cached, object, start as u64..end as u64) {
                    assert!(page == bytes[start..end], "kill {kill}: object {object}, {start}..{end}");
                    good += 1;
                }
            }
        }
        drop(cached);
        // It can be used: also the places of pages that were never written.
        if kill % 5 == 4 {
            let cached = open(&folder, limit, &fake).unwrap();
            check_all(&cached, &fake);
            fake.bytes();
            check_all(&cached, &fake);
            let missing = fake.bytes();
            assert!(missing <= all.saturating_sub(limit) + (3 << 20), "kill {kill}: {missing} bytes are not kept");
            assert!(on_disk(&folder) <= limit, "kill {kill}");
        }
    }
    assert!(cut > 0 && good > 50, "{cut} pages were being written, and {good} were there");
}
