//! Several sets in a folder, several readers of a set.

use super::*;
use crate::store::cache::{Folder, Id};

fn tagged(folder: &Path, limit: u64, fake: &Arc<Fake>, tag: u64) -> Cached {
    Cached::open(folder, limit, &fake.list(tag), Arc::clone(fake) as _, Arc::default()).unwrap()
}

#[test]
fn a_set_in_use_is_not_evicted_and_the_oldest_other_one_goes_first() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[3 << 20], 1)));
    let limit = (7 << 20) + 3 * SMALL; // two sets, and a third of another one
    let open = |tag| tagged(folder.path(), limit, &fake, tag);
    let fetched = |cached: &Cached| {
        fake.bytes();
        check_all(cached, &fake);
        fake.bytes()
    };
    let (one, two) = (open(1), open(2));
    assert_eq!((fetched(&one), fetched(&two)), (3 << 20, 3 << 20));
    // Both are in use: there is room for a page.
    let three = open(3);
    assert_eq!((fetched(&three), fetched(&three)), (3 << 20, 2 << 20));
    drop(three);
    drop(one);
    // The third was used last, but set 2 stays: it is in use.
    drop(open(1));
    let four = open(4); // needs set 3 and set 1
    assert_eq!((fetched(&four), fetched(&four), fetched(&two)), (3 << 20, 0, 0));
    assert_eq!(sets(folder.path()), 2);
    assert!(on_disk(folder.path()) <= limit);
    drop((two, four));
    // Opened again, set 2 is the youngest: set 4 goes.
    drop(open(2));
    let five = open(5);
    assert_eq!((fetched(&five), fetched(&five)), (3 << 20, 0));
    assert_eq!(fetched(&open(2)), 0);
}

#[test]
fn a_lower_limit_evicts_what_is_too_much() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[6 << 20], 1)));
    for (tag, limit) in [(1, 20 << 20), (2, 20 << 20), (2, 2 << 20), (2, 20 << 20), (1, 1 << 20), (3, 7 << 20)] {
        let cached = tagged(folder.path(), limit, &fake, tag);
        check_all(&cached, &fake);
        assert!(on_disk(folder.path()) <= limit, "set {tag} within {limit}: {}", on_disk(folder.path()));
    }
}

#[test]
fn threads_and_readers_fetch_no_page_twice() {
    let fake = Fake::new(&[11 << 20, 100, (3 << 20) - 1], 1);
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake { pause: Duration::from_millis(2), ..fake }));
    let readers = [0, 1, 2].map(|_| open(folder.path(), 50 << 20, &fake).unwrap());
    thread::scope(|scope| {
        for (n, reader) in readers.iter().chain(&readers).enumerate() {
            let fake = &fake;
            scope.spawn(move || epoch(reader, fake, n as u64));
        }
    });
    assert_eq!(fake.bytes(), fake.all());
}

#[test]
fn what_a_dead_reader_had_claimed_is_fetched_by_others() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[4 << 20], 1)));
    let cached = open(folder.path(), (4 << 20) + SMALL, &fake).unwrap();
    // Reader 7 had reserved all pages, and was killed.
    cached.pages.claim_as(7, 0..4);
    check_all(&cached, &fake);
    check_all(&cached, &fake);
    assert_eq!(fake.bytes(), fake.all(), "they had their place already");
}

#[test]
fn strangers_files_are_left_alone() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[3 << 20], 1)));
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("set-0123456789abcdef")).unwrap();
    for name in ["photo.jpg", "set-0123456789abcdef/data", "set-0123456789abcdef/diary.txt"] {
        fs::write(at(name), "dear").unwrap();
    }
    // A set that another version has made.
    fs::create_dir(at("set-0123456789abcde0")).unwrap();
    fs::write(at("set-0123456789abcde0/set"), b"burnpse2 and something more that is new").unwrap();
    for tag in 0..4 {
        check_all(&tagged(folder.path(), 4 << 20, &fake, tag), &fake);
    }
    assert_eq!(sets(folder.path()), 3, "only the last set is left of the four");
    for name in ["photo.jpg", "set-0123456789abcdef/data", "set-0123456789abcdef/diary.txt"] {
        assert_eq!(fs::read_to_string(at(name)).unwrap(), "dear");
    }
    assert!(at("set-0123456789abcde0/set").exists());

    // A folder of the very name, without a head.
    let other = tempfile::tempdir().unwrap();
    drop(tagged(other.path(), 4 << 20, &fake, 0));
    let set =
        fs::read_dir(other.path()).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap();
    fs::write(set.join("set"), "mine").unwrap();
    let error = open(other.path(), 4 << 20, &fake).unwrap_err().to_string();
    assert!(error.contains("was not made by this version") && error.contains("name an empty folder"), "{error}");
    assert_eq!(fs::read_to_string(set.join("set")).unwrap(), "mine");

    // An account of another version.
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("burn-pinned-cache"), b"burnpca2").unwrap();
    let error = open(other.path(), 4 << 20, &fake).unwrap_err().to_string();
    assert!(error.contains("was not made by this version"), "{error}");
    assert_eq!(fs::read(other.path().join("burn-pinned-cache")).unwrap(), b"burnpca2");
}

#[test]
fn what_is_reserved_for_other_kinds_counts() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[4 << 20], 1)));
    let other = Folder::open(folder.path(), 4 << 20).unwrap();
    let mut account = other.lock().unwrap();
    let (set, is_alone) = account.open(Id::of("other", &[])).unwrap();
    account.reserve(&set, 3 << 20).unwrap();
    assert!(is_alone && account.room() == 1 << 20);
    drop(account);
    check_all(&open(folder.path(), (4 << 20) + SMALL, &fake).unwrap(), &fake);
    let bytes = on_disk(folder.path());
    assert!((1 << 20..(1 << 20) + SMALL).contains(&bytes), "{bytes}: a page beside the other set");
}
