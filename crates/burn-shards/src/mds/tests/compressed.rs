//! Shards that are there only in compressed form.

use super::*;
use std::{io::Write, path::PathBuf};

const CODECS: [&str; 7] = ["br", "bz2:9", "gz", "snappy", "zstd", "zstd:3", "gz:0"];

fn compress(codec: &str, bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    match codec.split(':').next().unwrap() {
        "br" => {
            let mut writer = brotli::CompressorWriter::new(&mut packed, 4096, 5, 22);
            writer.write_all(bytes).unwrap();
        }
        "bz2" => {
            let mut writer = bzip2::write::BzEncoder::new(&mut packed, bzip2::Compression::fast());
            writer.write_all(bytes).unwrap();
            writer.finish().unwrap();
        }
        "gz" => {
            let mut writer = flate2::write::GzEncoder::new(&mut packed, flate2::Compression::fast());
            writer.write_all(bytes).unwrap();
            writer.finish().unwrap();
        }
        "snappy" => packed = snap::raw::Encoder::new().compress_vec(bytes).unwrap(),
        _ => packed = zstd::encode_all(bytes, 3).unwrap(),
    }
    packed
}

/// Compresses the shards of a folder, and returns what they take in a cache.
fn compress_all(folder: &Path, shards: &mut [Value], codec: &str) -> u64 {
    let mut bytes = 64 << 10;
    for shard in shards.iter_mut() {
        let path = folder.join(shard["raw_data"]["basename"].as_str().unwrap());
        let name = format!("{}.z", path.file_name().unwrap().to_str().unwrap());
        let (file, packed) = (fs::read(&path).unwrap(), compress(codec, &fs::read(&path).unwrap()));
        fs::write(folder.join(&name), &packed).unwrap();
        fs::remove_file(path).unwrap();
        shard["zip_data"] = json!({"basename": name, "bytes": packed.len(), "hashes": {}});
        shard["compression"] = codec.into();
        bytes += (file.len() as u64).next_multiple_of(4096);
    }
    write_index(folder, shards);
    bytes
}

fn cached(folder: &Path, cache: &Path, bytes: u64) -> Result<MdsSource, DataError> {
    let options = Options { cache: Some((cache.into(), bytes)), ..Options::default() };
    open(&folder.into(), &Selection::All, &options)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The decompressed shards.
fn kept(cache: &Path) -> Vec<PathBuf> {
    let sets = files(cache).into_iter().filter(|path| path.is_dir());
    sets.flat_map(|set| files(&set)).filter(|path| path.extension().is_some_and(|end| end == "mds")).collect()
}

#[test]
fn every_codec_gives_the_same_rows_and_is_decompressed_once() {
    for codec in CODECS {
        let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut shards = write(folder.path(), 0, &[30, 4]);
        let bytes = compress_all(folder.path(), &mut shards, codec);
        let before: Vec<_> = files(folder.path()).iter().map(|path| fs::read(path).unwrap()).collect();
        let source = cached(folder.path(), cache.path(), bytes).unwrap();
        (0..34).for_each(|n| assert_eq!(record(&source, n), cells(n), "{codec} {n}"));
        assert_eq!(files(folder.path()).iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>(), before);
        // What is there is used.
        let kept = self::kept(cache.path());
        assert_eq!(kept.len(), 2);
        let changed = || kept.iter().map(|path| fs::metadata(path).unwrap().modified().unwrap()).collect::<Vec<_>>();
        let (made, good) = (changed(), fs::read(&kept[0]).unwrap());
        drop(source);
        assert_eq!(record(&cached(folder.path(), cache.path(), bytes).unwrap(), 29), cells(29));
        assert_eq!(changed(), made);
        // Another content of the same size is not.
        let mut other = good.clone();
        *other.last_mut().unwrap() = b'!';
        fs::write(&kept[0], other).unwrap();
        assert_eq!(record(&cached(folder.path(), cache.path(), bytes).unwrap(), 29), cells(29), "{codec}");
        // A copy of the folder is.
        fs::remove_file(&kept[0]).unwrap();
        fs::write(&kept[0], good).unwrap();
        let copied = changed();
        assert_eq!(record(&cached(folder.path(), cache.path(), bytes).unwrap(), 29), cells(29));
        assert_eq!(changed(), copied);
        // A file of another size is made again.
        fs::write(&kept[0], "short").unwrap();
        assert_eq!(record(&cached(folder.path(), cache.path(), bytes).unwrap(), 29), cells(29));
        assert_eq!(self::kept(cache.path()), kept);
    }
}

/// Somebody has put a link in the place of a shard. What it names stays as it is, and is not read.
#[cfg(unix)]
#[test]
fn a_planted_link_is_no_shard() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut shards = write(folder.path(), 0, &[5]);
    let bytes = compress_all(folder.path(), &mut shards, "zstd");
    drop(cached(folder.path(), cache.path(), bytes).unwrap());
    let (shard, victim) = (kept(cache.path()).remove(0), folder.path().join("victim"));
    let mut other = fs::read(&shard).unwrap();
    *other.last_mut().unwrap() = b'!';
    fs::write(&victim, &other).unwrap();
    fs::remove_file(&shard).unwrap();
    std::os::unix::fs::symlink(&victim, &shard).unwrap();
    assert_eq!(record(&cached(folder.path(), cache.path(), bytes).unwrap(), 4), cells(4));
    assert_eq!(fs::read(&victim).unwrap(), other);
}

#[test]
fn a_shard_under_another_number_is_not_taken() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut shards = write(folder.path(), 10, &[40, 40]);
    let bytes = compress_all(folder.path(), &mut shards, "zstd");
    drop(cached(folder.path(), cache.path(), bytes).unwrap());
    let kept = kept(cache.path());
    assert_eq!(fs::metadata(&kept[0]).unwrap().len(), fs::metadata(&kept[1]).unwrap().len());
    // Each takes its checksum with it.
    let names = [0, 1].map(|n| kept[n].file_name().unwrap().to_str().unwrap().to_owned());
    for n in [0, 1] {
        let swapped = format!("{}{}", &names[1 - n][..6], &names[n][6..]);
        fs::rename(&kept[n], kept[n].with_file_name(swapped)).unwrap();
    }
    let source = cached(folder.path(), cache.path(), bytes).unwrap();
    (0..80).for_each(|n| assert_eq!(record(&source, n), cells(10 + n), "{n}"));
    assert_eq!(self::kept(cache.path()), kept);
}

#[test]
fn a_changed_shard_is_decompressed_again() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut shards = write(folder.path(), 0, &[5]);
    compress_all(folder.path(), &mut shards, "zstd");
    assert_eq!(record(&cached(folder.path(), cache.path(), 1 << 20).unwrap(), 1), cells(1));
    let mut shards = write(folder.path(), 40, &[5]);
    compress_all(folder.path(), &mut shards, "zstd");
    assert_eq!(record(&cached(folder.path(), cache.path(), 1 << 20).unwrap(), 1), cells(41));
}

#[test]
fn a_limit_that_is_too_small_is_an_error_with_figures() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut shards = write(folder.path(), 0, &[5, 6]);
    let bytes = compress_all(folder.path(), &mut shards, "gz");
    let error = cached(folder.path(), cache.path(), bytes - 1).unwrap_err();
    assert!(matches!(&error, DataError::Option { option: "cache", .. }));
    let error = error.to_string();
    assert!(error.contains(&format!("take {bytes} bytes, and the limit is {}", bytes - 1)), "{error}");
    let error = self::error(folder.path());
    assert!(error.contains("shard.00000.mds.z is compressed") && error.contains(&format!("{bytes})")), "{error}");
    assert!(files(cache.path()).is_empty());
    // A shard that is there as it is needs no room.
    write_index(folder.path(), &shards);
    write(folder.path(), 0, &[5, 6]);
    assert_eq!(record(&cached(folder.path(), cache.path(), 0).unwrap(), 7), cells(7));
}

#[test]
fn a_shard_that_is_not_what_the_index_says_leaves_nothing_behind() {
    for codec in CODECS {
        let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut shards = write(folder.path(), 0, &[20]);
        let limit = compress_all(folder.path(), &mut shards, codec);
        let bytes = shards[0]["raw_data"]["bytes"].as_u64().unwrap();
        for claimed in [bytes - 1, bytes + 1, 0, 32 << 20] {
            let mut shard = shards[0].clone();
            shard["raw_data"]["bytes"] = claimed.into();
            write_index(folder.path(), &[shard]);
            let error = cached(folder.path(), cache.path(), 64 << 20).unwrap_err();
            assert!(matches!(&error, DataError::Damaged { .. }), "{codec} {claimed}: {error}");
        }
        let path = folder.path().join("shard.00000.mds.z");
        let mut packed = fs::read(&path).unwrap();
        packed.truncate(packed.len() / 2);
        fs::write(&path, &packed).unwrap();
        write_index(folder.path(), &shards);
        assert!(cached(folder.path(), cache.path(), limit).unwrap_err().to_string().contains("`index.json` says"));
        shards[0]["zip_data"]["bytes"] = packed.len().into();
        write_index(folder.path(), &shards);
        let error = cached(folder.path(), cache.path(), limit).unwrap_err();
        assert!(matches!(&error, DataError::Damaged { .. }), "{codec}: {error}");
        assert!(kept(cache.path()).is_empty(), "{codec}");
    }
}

#[test]
fn damaged_compressed_shards_are_errors_or_have_the_right_size() {
    for codec in CODECS {
        let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut shards = write(folder.path(), 0, &[20]);
        let limit = compress_all(folder.path(), &mut shards, codec);
        let bytes = shards[0]["raw_data"]["bytes"].as_u64().unwrap();
        let (path, mut rng) = (folder.path().join("shard.00000.mds.z"), ChaCha8Rng::seed_from_u64(3));
        let (good, mut refused) = (fs::read(&path).unwrap(), 0);
        for _ in 0..200 {
            let mut bad = good.clone();
            for _ in 0..rng.random_range(1..4) {
                let (at, bit) = (rng.random_range(0..bad.len()), rng.random_range(0..8));
                bad[at] ^= 1 << bit;
            }
            fs::write(&path, bad).unwrap();
            match cached(folder.path(), cache.path(), limit) {
                Ok(source) => (0..20).for_each(|row| assert!(source.read(row).map_or(true, |it| it.len() == 3))),
                Err(_) => refused += 1,
            }
            for file in kept(cache.path()) {
                assert_eq!(fs::metadata(&file).unwrap().len(), bytes);
                fs::remove_file(file).unwrap();
            }
        }
        assert!(refused > 5, "{codec} {refused}");
    }
}

#[test]
fn several_may_decompress_at_the_same_time() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut shards = write(folder.path(), 0, &[20, 20, 20]);
    let bytes = compress_all(folder.path(), &mut shards, "br");
    std::thread::scope(|scope| {
        let open = || record(&cached(folder.path(), cache.path(), bytes).unwrap(), 59);
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        threads.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap(), cells(59)));
    });
    assert_eq!(kept(cache.path()).len(), 3);
}

#[test]
fn data_sets_share_the_limit() {
    let (folders, cache) = ([0, 1].map(|_| tempfile::tempdir().unwrap()), tempfile::tempdir().unwrap());
    let bytes = [0, 1].map(|n| {
        let mut shards = write(folders[n].path(), 0, &[20 + n]);
        compress_all(folders[n].path(), &mut shards, "zstd")
    });
    let open = |n: usize, limit| cached(folders[n].path(), cache.path(), limit);
    let one = open(0, bytes[0] + bytes[1]).unwrap();
    // While the first is open, there is no room for the second.
    let error = open(1, bytes[0] + bytes[1] - 1).unwrap_err().to_string();
    assert!(error.contains(&format!("leave {} of the limit", bytes[1] - 1)), "{error}");
    assert!(error.contains(&format!(", {})`", bytes[0] + bytes[1])), "{error}");
    drop(open(1, bytes[0] + bytes[1]).unwrap());
    assert_eq!(kept(cache.path()).len(), 2);
    drop(one);
    // What is not open makes room.
    assert_eq!(record(&open(1, bytes[1]).unwrap(), 3), cells(3));
    assert_eq!(kept(cache.path()).len(), 1);
}

#[cfg(unix)]
#[test]
fn small_shards_count_as_whole_blocks() {
    let (folders, cache) = ([0, 1].map(|_| tempfile::tempdir().unwrap()), tempfile::tempdir().unwrap());
    let bytes = folders.each_ref().map(|folder| {
        let mut shards = write(folder.path(), 0, &[1; 40]);
        compress_all(folder.path(), &mut shards, "zstd")
    });
    let limit = bytes[0] + bytes[1] / 2;
    let open = |n: usize| cached(folders[n].path(), cache.path(), limit);
    let one = open(0).unwrap();
    let error = open(1).unwrap_err().to_string();
    assert!(error.contains(&format!("take {} bytes, and other data sets", bytes[1])), "{error}");
    let of_set = files(cache.path()).into_iter().filter(|path| path.is_dir()).flat_map(|set| files(&set));
    let all = of_set.chain([cache.path().join("burn-pinned-cache")]);
    let held: u64 = all.map(|path| std::os::unix::fs::MetadataExt::blocks(&fs::metadata(path).unwrap()) * 512).sum();
    assert!(held > 40 * 4000 && held <= bytes[0], "{held} of {}", bytes[0]);
    drop(one);
}

#[test]
fn what_was_left_half_written_is_removed() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut shards = write(folder.path(), 0, &[5]);
    let bytes = compress_all(folder.path(), &mut shards, "zstd");
    drop(cached(folder.path(), cache.path(), bytes).unwrap());
    let shard = kept(cache.path()).remove(0);
    let half = shard.with_extension("77-00.tmp");
    fs::rename(&shard, &half).unwrap();
    assert_eq!(record(&cached(folder.path(), cache.path(), bytes).unwrap(), 1), cells(1));
    assert!(shard.exists() && !half.exists());
}
