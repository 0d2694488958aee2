//! A disk that takes no more.

use super::*;
use std::{
    env,
    process::Command,
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

/// The pages of the first objects may be written, and others are too long.
const SIZES: [u64; 9] = [400 << 10, 400 << 10, 1 << 20, 400 << 10, 2 << 20, 300 << 10, 300 << 10, 1 << 20, 1000];

/// Reads all while a file may have half of a page.
#[test]
#[ignore = "run by the test below"]
fn child() {
    log::set_logger(&Count).unwrap();
    log::set_max_level(log::LevelFilter::Warn);
    let (folder, fake) = (env::var(FOLDER).unwrap(), Arc::new(Fake::new(&SIZES, 1)));
    let cached = open(Path::new(&folder), 10 << 20, &fake).unwrap();
    (0..2).for_each(|object| _ = read(&cached, object, 0..SIZES[object]).unwrap()); // they fit
    thread::scope(|scope| {
        for seed in 0..3 {
            let (cached, fake) = (&cached, &fake);
            scope.spawn(move || epoch(cached, fake, seed));
        }
    });
    check_all(&cached, &fake);
    assert_eq!(WARNINGS.load(Relaxed), 1, "one warning");
}

/// A full disk, and a limit of file sizes, which a test can set anywhere: both refuse a page.
#[test]
fn a_page_that_cannot_be_written_turns_the_cache_off() {
    let folder = tempfile::tempdir().unwrap();
    let child = ["--exact", "store::cache::tests::full::child", "--ignored", "--nocapture"];
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 1000; exec \"$@\"", "sh"]).arg(env::current_exe().unwrap()).args(child);
    let output = shell.env(FOLDER, folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("is off from now on, and all is read from the store: "), "{said}");
    // Another process can write again. What is there is right.
    let fake = Arc::new(Fake::new(&SIZES, 1));
    let again = open(folder.path(), 10 << 20, &fake).unwrap();
    epoch(&again, &fake, 9);
    assert!(fake.bytes() < fake.all(), "some pages were kept");
    epoch(&again, &fake, 10);
    assert!(fake.bytes() < fake.all() / 3, "and the others are kept now");
}
