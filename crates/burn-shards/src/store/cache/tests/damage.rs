//! Files of a cache that are not as they were written.

use super::*;
use rand::Rng;

#[test]
fn a_damaged_file_gives_no_wrong_byte() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[(2 << 20) + 5, 900, 1 << 20], 1)));
    let limit = 10 << 20;
    check_all(&open(folder.path(), limit, &fake).unwrap(), &fake);
    let (mut rng, mut again) = (ChaCha8Rng::seed_from_u64(1), 0);
    for round in 0..120 {
        let (path, is_head) = match round % 4 {
            0 | 1 => {
                let all = pages(folder.path());
                (all[rng.random_range(0..all.len())].clone(), false)
            }
            _ => (folder.path().join("burn-pinned-cache"), true),
        };
        let good = fs::read(&path).unwrap();
        let mut bad = good.clone();
        match rng.random_range(0..4) {
            0 => bad.truncate(rng.random_range(0..good.len())),
            1 => bad.extend(vec![rng.random::<u8>(); rng.random_range(1..100)]),
            2 => bad[rng.random_range(0..good.len())] ^= 1 << rng.random_range(0..8),
            _ => {
                let at = rng.random_range(0..good.len());
                let end = good.len().min(at + rng.random_range(1..5000));
                rng.fill_bytes(&mut bad[at..end]);
            }
        }
        fs::write(&path, &bad).unwrap();
        fake.bytes();
        match open(folder.path(), limit, &fake) {
            Ok(cached) => check_all(&cached, &fake),
            Err(error) => {
                assert!(is_head && error.to_string().contains("was not made by this version"), "{round}: {error}");
                assert_eq!(fs::read(&path).unwrap(), bad, "it is left as it is");
                fs::write(&path, &good).unwrap();
                check_all(&open(folder.path(), limit, &fake).unwrap(), &fake);
            }
        }
        again += u64::from(fake.bytes() > 0);
        // What was fetched again stays.
        check_all(&open(folder.path(), limit, &fake).unwrap(), &fake);
        assert_eq!(fake.bytes(), 0, "{round}");
        assert!(on_disk(folder.path()) <= limit, "{round}");
    }
    assert!(again > 30, "{again}: damage was seen");
}

#[test]
fn a_page_that_is_cut_off_meanwhile_turns_the_cache_off() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[3 << 20], 1)));
    let cached = open(folder.path(), 10 << 20, &fake).unwrap();
    check_all(&cached, &fake);
    for page in pages(folder.path()) {
        fs::OpenOptions::new().write(true).open(page).unwrap().set_len(1000).unwrap();
    }
    check_all(&cached, &fake);
    let mut all = Vec::new();
    cached.open(0, 7..3 << 20).unwrap().read_to_end(&mut all).unwrap();
    assert!(all == fake.objects[0][7..]);
    assert_eq!(fake.bytes(), 3 * fake.all() - 7);
}
