//! Links in the place of what a cache has.

use super::*;
use crate::store::cache::is_foreign;
use std::os::unix::fs::symlink;

/// All files and folders in a folder.
fn all(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { [vec![path.clone()], all(&path)].concat() } else { vec![path] })
        .collect()
}

/// Reads all, through the cache or without it, and a second set, which evicts the first one.
fn use_it(folder: &Path, fake: &Arc<Fake>, name: &str) {
    for tag in [0, 1] {
        match PageCache::open(folder, (3 << 20) + SMALL, &fake.list(tag), Arc::clone(fake) as _, Arc::default()) {
            Ok(cached) => check_all(&cached, fake),
            Err(error) => assert!(is_foreign(&error), "{name}: {error}"),
        }
    }
}

#[test]
fn a_planted_link_is_not_followed() {
    let (outer, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[2 << 20, 700], 1)));
    let [cache, made, victim, elsewhere] = ["cache", "made", "victim", "elsewhere"].map(|name| outer.path().join(name));
    let make = |folder: &Path| check_all(&open(folder, 50 << 20, &fake).unwrap(), &fake);
    make(&made);
    for path in all(&made).iter().map(|path| cache.join(path.strip_prefix(&made).unwrap())) {
        for target in [&victim, &elsewhere] {
            let name = path.display().to_string();
            make(&cache);
            fs::write(&victim, "precious").unwrap();
            let is_folder = path.is_dir();
            if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }.unwrap();
            symlink(target, &path).unwrap();
            use_it(&cache, &fake, &name);
            assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{name}");
            assert!(!elsewhere.exists(), "{name}");
            fs::remove_dir_all(&cache).unwrap();
            // A folder whose files have names of pages.
            if is_folder {
                make(&cache);
                fs::create_dir(&elsewhere).unwrap();
                fs::write(elsewhere.join("0"), "precious").unwrap();
                fs::remove_dir_all(&path).unwrap();
                symlink(&elsewhere, &path).unwrap();
                use_it(&cache, &fake, &name);
                assert_eq!(all(&elsewhere).len(), 1, "{name}");
                assert_eq!(fs::read_to_string(elsewhere.join("0")).unwrap(), "precious", "{name}");
                [&cache, &elsewhere].into_iter().for_each(|folder| fs::remove_dir_all(folder).unwrap());
            }
        }
    }
}
