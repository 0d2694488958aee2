//! Damaged headers and indices: an error, or exactly the rows that a plain reader of the same bytes finds.

use super::golden;
use burn::data::dataset::Dataset;
use burn_shards::{TokenWindow, Tokens};
use std::{fs, path::Path};

/// Numbers by seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }

    /// Damages a file in its first bytes, where its header is, or cuts it.
    fn damage(&mut self, bytes: &mut Vec<u8>, header: usize) {
        for _ in 0..=self.roll(2) {
            let at = self.roll(header.min(bytes.len()).max(1)).min(bytes.len().saturating_sub(1));
            if bytes.is_empty() {
                return;
            }
            match self.roll(7) {
                0 => bytes[at] = self.roll(256) as u8,
                1 => bytes[at] ^= 1 << self.roll(8),
                2 => bytes[at] = bytes[at].wrapping_add(1),
                3 => {
                    let value = [u64::MAX, 1 << 63, i64::MAX as u64, 1 << 40, 0, 1][self.roll(6)];
                    let end = (at + [4, 8][self.roll(2)]).min(bytes.len());
                    bytes[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
                }
                4 => bytes.truncate(self.roll(bytes.len() + 1)),
                5 => bytes.extend((0..=self.roll(16)).map(|n| n as u8)),
                _ => {
                    let from = self.roll(header.min(bytes.len()));
                    bytes[at] = bytes[from];
                }
            }
        }
    }
}

/// What a file says: its tokens, and where in them documents start.
type Said = (Vec<i64>, Option<Vec<usize>>);

fn number<const N: usize>(bytes: &[u8], at: i128) -> Option<i128> {
    let at = usize::try_from(at).ok()?;
    let mut wide = [0; 16];
    wide[..N].copy_from_slice(bytes.get(at..)?.get(..N)?);
    Some(i128::from_le_bytes(wide))
}

/// An integer of some bytes with a sign.
fn signed<const N: usize>(bytes: &[u8], at: i128) -> Option<i128> {
    let bits = 128 - 8 * N as u32;
    Some(number::<N>(bytes, at)? << bits >> bits)
}

/// Bare tokens or llm.c's, read number by number.
fn plain(file: &[u8]) -> Option<Said> {
    let bytes = file.len() as i128;
    (bytes > 0).then_some(())?;
    let (start, size, count) = match number::<4>(file, 0) {
        // Other files of llm.c, which differ in a byte.
        Some(20_240_522 | 20_240_527 | 20_240_803) => return None,
        Some(magic @ (20_240_520 | 20_240_801)) => {
            let (version, size) = if magic == 20_240_520 { (1, 2) } else { (7, 4) };
            (number::<4>(file, 4)? == version).then_some(())?;
            (1024, size, signed::<4>(file, 8)?)
        }
        _ => ((0), 2, bytes / 2),
    };
    (start + count * size == bytes).then_some(())?;
    let token = |n: i128| if size == 2 { number::<2>(file, start + 2 * n) } else { number::<4>(file, start + 4 * n) };
    let tokens: Option<Vec<i64>> = (0..count).map(|n| token(n).map(|token| token as i64)).collect();
    Some((tokens?, None))
}

/// Megatron's, read number by number.
fn megatron(file: &[u8], index: &[u8]) -> Option<Said> {
    (index.get(..9)? == b"MMIDIDX\0\0" && number::<8>(index, 9)? == 1).then_some(())?;
    let kind = number::<1>(index, 17)?;
    let size =
        [None, Some(1), Some(1), Some(2), Some(4), Some(8), None, None, Some(2)].get(kind as usize).copied()??;
    let (sequences, borders) = (number::<8>(index, 18)?, number::<8>(index, 26)?);
    let end = 34 + 12 * sequences + 8 * borders;
    let bytes = index.len() as i128;
    (end == bytes || end + sequences == bytes).then_some(())?;
    let (mut tokens, mut starts) = (Vec::new(), vec![]);
    for sequence in 0..sequences {
        let length = signed::<4>(index, 34 + 4 * sequence)?;
        let pointer = signed::<8>(index, 34 + 4 * sequences + 8 * sequence)?;
        let inside = length >= 0 && pointer >= 0 && pointer + length * size <= file.len() as i128;
        (inside && pointer % size == 0).then_some(())?;
        starts.push(tokens.len());
        for at in (0..length).map(|n| pointer + n * size) {
            tokens.push(match kind {
                1 => number::<1>(file, at),
                2 => signed::<1>(file, at),
                3 => signed::<2>(file, at),
                4 => signed::<4>(file, at),
                5 => signed::<8>(file, at),
                _ => number::<2>(file, at),
            }? as i64);
        }
    }
    starts.push(tokens.len());
    let (mut documents, mut last) = (vec![0], 0);
    for border in 0..borders {
        let sequence = signed::<8>(index, 34 + 12 * sequences + 8 * border)?;
        (sequence >= last && sequence <= sequences && (border > 0 || sequence == 0)).then_some(())?;
        documents.push(starts[sequence as usize]);
        last = sequence;
    }
    documents.dedup();
    documents.retain(|start| *start < tokens.len());
    Some((tokens, Some(documents)))
}

/// Opens a file, and compares all that it gives with what a plain reader finds. Whether it could be opened.
fn agrees(path: &Path, said: Option<Said>, what: &str) -> bool {
    let (opened, (known, starts)) = match (Tokens::open(path), said) {
        (Ok(opened), Some(said)) => (opened, said),
        (Err(error), None) => {
            assert!(error.to_string().contains("file."), "{what}: {error} names no file");
            return false;
        }
        (Ok(opened), None) => panic!("{what}: {opened:?} of a file that contradicts itself"),
        (Err(error), Some(_)) => panic!("{what}: {error}, of a file that could be read"),
    };
    assert_eq!((opened.len(), opened.documents()), (known.len(), starts.as_ref().map(Vec::len)), "{what}");
    let window = |windows: &dyn Dataset<TokenWindow>, index| windows.get(index).unwrap();
    if !known.is_empty() {
        let whole = opened.windows(known.len(), 1);
        assert!(window(&whole, 0).iter().eq(known.iter().copied()), "{what}: other tokens");
        if let Some(starts) = starts {
            let here: Vec<_> = window(&whole, 0).documents().map(|range| range.start).collect();
            assert_eq!(here, starts, "{what}");
        }
    }
    let windows = opened.windows(64, 63);
    for index in [0, windows.len().saturating_sub(1)].into_iter().filter(|index| *index < windows.len()) {
        let at = 63 * index;
        assert!(window(&windows, index).iter().eq(known[at..at + 64].iter().copied()), "{what}: window {index}");
    }
    true
}

#[test]
fn of_2000_damaged_headers_each_is_an_error_or_read_right() {
    let folder = tempfile::tempdir().unwrap();
    let (path, original) = (folder.path().join("file.bin"), fs::read(golden("llmc.bin")).unwrap());
    let mut opened = 0;
    for seed in 0..2000 {
        let mut file = original.clone();
        Dice(seed).damage(&mut file, 16);
        fs::write(&path, &file).unwrap();
        opened += usize::from(agrees(&path, plain(&file), &format!("seed {seed}")));
    }
    assert!((100..1900).contains(&opened), "{opened} of 2000 could be opened: the damage is too light or too heavy");
}

#[test]
fn of_2000_damaged_indices_each_is_an_error_or_read_right() {
    let folder = tempfile::tempdir().unwrap();
    let (path, file) = (folder.path().join("file.bin"), fs::read(golden("megatron.bin")).unwrap());
    let original = fs::read(golden("megatron.idx")).unwrap();
    fs::write(&path, &file).unwrap();
    let mut opened = 0;
    for seed in 0..2000 {
        let mut index = original.clone();
        Dice(seed).damage(&mut index, original.len());
        fs::write(path.with_extension("idx"), &index).unwrap();
        opened += usize::from(agrees(&path, megatron(&file, &index), &format!("seed {seed}")));
    }
    assert!((100..1900).contains(&opened), "{opened} of 2000 could be opened: the damage is too light or too heavy");
}

#[test]
fn of_500_cut_files_each_is_an_error_or_read_right() {
    let folder = tempfile::tempdir().unwrap();
    let (path, original) = (folder.path().join("file.bin"), fs::read(golden("megatron.bin")).unwrap());
    let index = fs::read(golden("megatron.idx")).unwrap();
    fs::write(path.with_extension("idx"), &index).unwrap();
    for seed in 0..500 {
        let file = &original[..Dice(seed).roll(original.len())];
        fs::write(&path, file).unwrap();
        assert!(!agrees(&path, megatron(file, &index), &format!("seed {seed}")), "all sequences in a part of the file");
    }
}
