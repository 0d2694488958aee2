//! A disk that is full.

use super::*;
use std::{
    env,
    process::{Command, Output},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

const FOLDER: &str = "BURN_PINNED_TEST_FULL";
static WARNINGS: AtomicUsize = AtomicUsize::new(0);

struct Count;

impl log::Log for Count {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &log::Record<'_>) {
        println!("{}", record.args());
        WARNINGS.fetch_add(1, Relaxed);
    }
    fn flush(&self) {}
}

/// Runs this test program's `child` by a script, which finds the program and its arguments in `$@`.
fn run(script: &str, folder: &Path) -> Output {
    let child = ["--exact", "data::store::cache::tests::full::child", "--ignored", "--nocapture"];
    let mut shell = Command::new("unshare");
    if script.contains("ulimit") {
        shell = Command::new("env");
    } else {
        shell.args(["--map-root-user", "--mount"]);
    }
    shell.args(["sh", "-c", script, "sh"]).arg(env::current_exe().unwrap()).args(child);
    shell.env(FOLDER, folder).output().unwrap()
}

/// Reads all while the disk gets full.
#[test]
#[ignore = "run by the tests below"]
fn child() {
    log::set_logger(&Count).unwrap();
    log::set_max_level(log::LevelFilter::Warn);
    let (folder, fake) = (env::var(FOLDER).unwrap(), Arc::new(Fake::new(&[12 << 20], 1)));
    let cached = open(Path::new(&folder), 10 << 20, &fake).unwrap();
    // If the disk is small, this takes most of what is left of it.
    let other = Path::new(&folder).join("other");
    let is_written = fs::write(&other, vec![1; 8 << 20]).is_ok();
    thread::scope(|scope| {
        for seed in 0..3 {
            let (cached, fake) = (&cached, &fake);
            scope.spawn(move || epoch(cached, fake, seed));
        }
    });
    check_all(&cached, &fake);
    assert_eq!(WARNINGS.load(Relaxed), 1, "one warning");
    fs::remove_file(other).unwrap();
    drop(cached);
    if !is_written {
        return; // it is the file that may not be longer
    }
    // With room again, another process has a cache again. What is there is right.
    let again = open(Path::new(&folder), 10 << 20, &fake).unwrap();
    fake.bytes();
    epoch(&again, &fake, 9);
    assert!(fake.bytes() < fake.all(), "some pages were kept");
}

fn check(output: &Output) {
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("is off from now on, and all is read from the store: "), "{said}");
}

/// A file may not be longer than so many blocks.
#[test]
fn a_limit_of_file_sizes_turns_the_cache_off() {
    let folder = tempfile::tempdir().unwrap();
    check(&run("trap '' XFSZ; ulimit -f 10000; exec \"$@\"", folder.path()));
}

/// A file system of 11 MiB, where the system lets a user make one.
#[test]
fn a_full_disk_turns_the_cache_off() {
    let folder = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o size=11m none '{}'", folder.path().display());
    let can = run(&mount, folder.path()).status.success();
    if can {
        check(&run(&format!("{mount} && exec \"$@\""), folder.path()));
    } else {
        eprintln!("no file system can be mounted here");
    }
}
