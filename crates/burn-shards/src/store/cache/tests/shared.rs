//! Several sets in a folder, several readers of a set.

use super::*;
use crate::store::cache::{CacheSet, id};

fn tagged(folder: &Path, limit: u64, fake: &Arc<Fake>, tag: u64) -> PageCache {
    PageCache::open(folder, limit, &fake.list(tag), Arc::clone(fake) as _, Arc::default()).unwrap()
}

#[test]
fn of_the_sets_that_nobody_has_open_the_oldest_goes_first() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[3 << 20], 1)));
    let limit = (7 << 20) + 3 * SMALL; // two sets, and a third of another one
    let open = |tag| tagged(folder.path(), limit, &fake, tag);
    let fetched = |cached: &PageCache| {
        fake.bytes();
        check_all(cached, &fake);
        fake.bytes()
    };
    let (one, two) = (open(1), open(2));
    assert_eq!((fetched(&one), fetched(&two)), (3 << 20, 3 << 20));
    // Both are open: there is room for a page.
    let three = open(3);
    assert_eq!((fetched(&three), fetched(&three)), (3 << 20, 2 << 20));
    drop((one, three));
    // Set 2 was opened before set 3, and is open. Set 1 was opened first, and goes.
    let four = open(4);
    assert_eq!((fetched(&four), fetched(&four), fetched(&two)), (3 << 20, 0, 0));
    assert!(on_disk(folder.path()) <= limit);
    assert_eq!(sets(folder.path()), 3, "that was enough");
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
fn threads_of_a_reader_fetch_no_page_twice_and_those_of_others_see_whole_pages() {
    let fake = Fake::new(&[11 << 20, 100, (3 << 20) - 1], 1);
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake { pause: Duration::from_millis(2), ..fake }));
    for (readers, most) in [(1, 1), (3, 3)] {
        let readers: Vec<_> = (0..readers).map(|_| open(folder.path(), 50 << 20, &fake).unwrap()).collect();
        thread::scope(|scope| {
            for (n, reader) in readers.iter().cycle().take(6).enumerate() {
                let fake = &fake;
                scope.spawn(move || epoch(reader, fake, n as u64));
            }
        });
        let bytes = fake.bytes();
        assert!((fake.all()..=most * fake.all()).contains(&bytes), "{bytes} of {}", fake.all());
        fs::remove_dir_all(folder.path()).unwrap();
    }
}

#[test]
fn what_a_dead_reader_left_half_written_goes_when_nobody_else_has_the_set_open() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[4 << 20], 1)));
    let limit = (4 << 20) + SMALL;
    let other = open(folder.path(), limit, &fake).unwrap();
    read(&other, 0, 0..1).unwrap();
    let half = pages(folder.path()).remove(0).with_extension("7-00.tmp");
    fs::write(&half, "half of a page").unwrap();
    let cached = open(folder.path(), limit, &fake).unwrap();
    assert!(half.exists(), "the other reader may be writing it");
    drop((cached, other));
    let cached = open(folder.path(), limit, &fake).unwrap();
    assert!(!half.exists());
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

    // Another version has made the folder.
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("burn-pinned-cache"), b"burnpca3").unwrap();
    let error = open(other.path(), 4 << 20, &fake).unwrap_err().to_string();
    assert!(error.contains("was not made by this version"), "{error}");
    assert_eq!(fs::read(other.path().join("burn-pinned-cache")).unwrap(), b"burnpca3");
}

#[test]
fn what_is_reserved_for_other_kinds_counts() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[4 << 20], 1)));
    let reserve = |kind, bytes| CacheSet::open(folder.path(), 4 << 20, &id(kind, &[]), bytes, true);
    let _set = reserve("other", 3 << 20).unwrap();
    let error = reserve("third", (1 << 20) + 5).unwrap_err().to_string();
    assert!(error.contains(&format!("leave {} of the limit", 1 << 20)), "{error}");
    assert!(error.contains(&format!(", {})`", (4 << 20) + 5)), "{error}");
    assert_eq!(sets(folder.path()), 1, "a set without room is not made");
    check_all(&open(folder.path(), (4 << 20) + SMALL, &fake).unwrap(), &fake);
    let bytes = on_disk(folder.path());
    assert!((1 << 20..(1 << 20) + SMALL).contains(&bytes), "{bytes}: a page beside the other set");
}
