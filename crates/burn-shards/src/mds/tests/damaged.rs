//! Shards and indices that are damaged.

use super::*;

#[test]
fn a_table_that_does_not_fit_is_an_error_of_its_shard_and_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut shards = write(folder.path(), 0, &[4, 3]);
    shards[0]["samples"] = 3.into();
    write_index(folder.path(), &shards);
    let source = opened(folder.path(), &["label"]).unwrap();
    assert!(source.read(0).unwrap_err().to_string().contains("it has 4 rows, and `index.json` says 3"));
    assert_eq!(record(&source, 4), [Cell::Int(0)]); // the other shard, whose rows begin with row 4 of `values`
    // The shard is cut off, and mended: the rows are right again.
    write_index(folder.path(), &write(folder.path(), 0, &[4, 3]));
    let source = opened(folder.path(), &["label"]).unwrap();
    let path = folder.path().join("shard.00001.mds");
    let (whole, time) = (fs::read(&path).unwrap(), fs::metadata(&path).unwrap().modified().unwrap());
    fs::write(&path, &whole[..10]).unwrap();
    assert!(matches!(source.read(5), Err(DataError::Changed { .. })));
    fs::write(&path, whole).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    assert_eq!(record(&source, 5), [Cell::Int(0)]);
}

#[test]
fn a_damaged_shard_gives_right_rows_or_errors() {
    let folder = tempfile::tempdir().unwrap();
    let (good, ranges) = shard(&COLUMNS, &(0..20).map(values).collect::<Vec<_>>());
    write_index(folder.path(), &[entry(&COLUMNS, "a.mds", good.len(), 20)]);
    let (path, mut rng) = (folder.path().join("a.mds"), ChaCha8Rng::seed_from_u64(1));
    let (mut errors, mut right) = (0, 0);
    for round in 0..3000 {
        let mut bad = good.clone();
        // Half of the damages are in the table of the rows.
        let end = if round % 2 == 0 { 22 * 4 } else { good.len() };
        let first = rng.random_range(0..end);
        let last = (first + rng.random_range(1..9)).min(end);
        bad[first..last].iter_mut().for_each(|byte| *byte = rng.random());
        fs::write(&path, &bad).unwrap();
        let source = opened(folder.path(), &["image", "label", "text"]).unwrap();
        for (n, range) in ranges.iter().enumerate() {
            match source.read(n) {
                Ok(_) if range.start < last && first < range.end => {} // nothing tells that a value is damaged
                Ok(record) => {
                    right += 1;
                    assert_eq!(record.into_iter().map(|(_, cell)| cell).collect::<Vec<_>>(), cells(n));
                }
                Err(_) => errors += 1,
            }
        }
    }
    assert!(errors > 10_000 && right > 10_000, "{errors} {right}");
}

#[test]
fn a_damaged_index_json_gives_rows_or_errors() {
    let folder = tempfile::tempdir().unwrap();
    write_index(folder.path(), &write(folder.path(), 0, &[3, 2]));
    let (path, mut rng) = (folder.path().join("index.json"), ChaCha8Rng::seed_from_u64(2));
    let good = fs::read(&path).unwrap();
    let (mut opened, mut refused) = (0, 0);
    for _ in 0..3000 {
        let mut bad = good.clone();
        let at = rng.random_range(0..bad.len());
        match rng.random_range(0..4) {
            0 => bad.truncate(at),
            1 => bad[at] ^= 1 << rng.random_range(0..8),
            2 => bad[at] = b"0123456789{}[],:\""[rng.random_range(0..17)],
            _ => drop(bad.splice(at..at, *b"99999")),
        }
        fs::write(&path, bad).unwrap();
        match open(&folder.path().into(), &Selection::All, &Options::default()) {
            Ok(source) => {
                opened += 1;
                assert!(source.len() <= 8, "{}", source.len());
                for row in 0..source.len() {
                    let place = source.place(row).1;
                    assert!(source.read(row).map_or(place < 8, |record| record.len() <= 3));
                }
            }
            Err(_) => refused += 1,
        }
    }
    assert!(opened > 100 && refused > 1000, "{opened} {refused}");
}
