//! Several sets in a folder, several readers of a set.

use super::*;
use crate::store::cache::{Folder, Id};

fn tagged(folder: &Path, limit: u64, fake: &Arc<Fake>, tag: u64) -> Cached {
    Cached::open(folder, limit, &fake.list(tag), Arc::clone(fake) as _, Arc::default()).unwrap()
}

#[test]
fn of_the_sets_that_nobody_has_open_the_oldest_goes_first() {
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

/// As version 1 has left it: one sparse file for all pages.
#[test]
fn a_set_of_an_earlier_version_is_removed_when_nobody_has_it_open() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[1 << 20], 1)));
    fs::write(folder.path().join("burn-pinned-cache"), b"burnpca1 and the account").unwrap();
    let set = folder.path().join("set-0123456789abcdef");
    fs::create_dir(&set).unwrap();
    for name in ["set", "in-use", "table", "reader-0", "sums", "writer", "00000-shard.mds", "00001-shard.7-00.tmp"] {
        fs::write(set.join(name), b"burnpse1 and more").unwrap();
    }
    let data = fs::File::create(set.join("data")).unwrap();
    data.set_len(1 << 40).unwrap();
    let in_use = fs::File::open(set.join("in-use")).unwrap();
    in_use.lock_shared().unwrap();
    let limit = (1 << 20) + SMALL;
    check_all(&tagged(folder.path(), limit, &fake, 1), &fake);
    assert!(set.join("data").exists());
    drop(in_use);
    let cached = tagged(folder.path(), limit, &fake, 1);
    assert!(!set.exists());
    check_all(&cached, &fake);
    assert_eq!(fake.bytes(), 1 << 20, "what was kept beside it is good");
    assert_eq!(fs::read(folder.path().join("burn-pinned-cache")).unwrap(), b"burnpca2");
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
    fs::write(other.path().join("burn-pinned-cache"), b"burnpca3").unwrap();
    let error = open(other.path(), 4 << 20, &fake).unwrap_err().to_string();
    assert!(error.contains("was not made by this version"), "{error}");
    assert_eq!(fs::read(other.path().join("burn-pinned-cache")).unwrap(), b"burnpca3");
}

#[test]
fn what_is_reserved_for_other_kinds_counts() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[4 << 20], 1)));
    let other = Folder::open(folder.path(), 4 << 20).unwrap();
    let (_set, lacking) = other.set(Id::of("other", &[]), 3 << 20, true).unwrap();
    assert_eq!((lacking, other.set(Id::of("third", &[]), (1 << 20) + 5, true).unwrap().1), (0, 5));
    check_all(&open(folder.path(), (4 << 20) + SMALL, &fake).unwrap(), &fake);
    let bytes = on_disk(folder.path());
    assert!((1 << 20..(1 << 20) + SMALL).contains(&bytes), "{bytes}: a page beside the other set");
}
