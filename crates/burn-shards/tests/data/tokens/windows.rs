//! Windows and documents at all borders.

use crate::shards::bare;
use burn::data::dataset::Dataset;
use burn_shards::{TokenWindows, Tokens, TokensError};
use std::{fs, ops::Range, path::Path};

fn rows(windows: &TokenWindows) -> Vec<Vec<i64>> {
    (0..windows.len()).map(|index| windows.get(index).unwrap().iter().collect()).collect()
}

fn documents(windows: &TokenWindows, index: usize) -> Vec<Range<usize>> {
    windows.get(index).unwrap().documents().collect()
}

#[test]
fn windows_are_those_of_the_slices_of_each_file() {
    let files: [Vec<u16>; 4] = [(0..23).collect(), vec![], (100..105).collect(), (200..216).collect()];
    let folder = bare(&[("a.bin", &files[0]), ("b.bin", &files[1]), ("c.bin", &files[2]), ("d.bin", &files[3])]);
    without_tokens(&folder.path().join("b.bin"));
    let tokens = Tokens::open(folder.path().join("*.bin")).unwrap();
    for len in 1..30 {
        for stride in 1..30 {
            let mut expected = Vec::new();
            for file in &files {
                let starts = (0..file.len()).step_by(stride).filter(|start| start + len <= file.len());
                expected.extend(
                    starts.map(|start| {
                        file[start..start + len].iter().map(|token| i64::from(*token)).collect::<Vec<_>>()
                    }),
                );
            }
            assert_eq!(rows(&tokens.windows(len, stride)), expected, "len {len}, stride {stride}");
        }
    }
    let huge = tokens.windows(1, usize::MAX);
    assert_eq!(rows(&huge), [[0], [100], [200]], "the first token of each file");
    assert_eq!(tokens.windows(usize::MAX, 1).len(), 0);
}

#[test]
fn packed_windows_cross_documents_and_files() {
    let folder = bare(&[("a.bin", &[1, 0, 2, 2, 0, 3]), ("b.bin", &[0, 4, 4, 4, 4]), ("c.bin", &[0, 0, 5])]);
    let tokens = Tokens::open(folder.path().join("*.bin")).unwrap();
    assert!(matches!(tokens.packed(4), Err(TokensError::NoDocuments)));

    // 1 0 | 2 2 0 | 3 || 0 | 4 4 4 4 || 0 | 0 | 5
    let ends = tokens.clone().documents_end_with(0).unwrap();
    assert_eq!(ends.documents(), Some(8));
    let packed = ends.packed(4).unwrap();
    assert_eq!(rows(&packed), [[1, 0, 2, 2], [0, 3, 0, 4], [4, 4, 4, 0]]);
    assert_eq!(documents(&packed, 0), [0..2, 2..4]);
    assert_eq!(documents(&packed, 1), [0..1, 1..2, 2..3, 3..4]);
    assert_eq!(documents(&packed, 2), [0..3, 3..4]);

    // 1 | 0 2 2 | 0 3 || 0 4 4 4 4 || 0 | 0 5
    let begins = tokens.documents_begin_with(0).unwrap();
    assert_eq!(begins.documents(), Some(6));
    let packed = begins.packed(7).unwrap();
    assert_eq!(documents(&packed, 0), [0..1, 1..4, 4..6, 6..7]);
    assert_eq!(documents(&packed, 1), [0..4, 4..5, 5..7]);
    assert_eq!(begins.packed(15).unwrap().len(), 0);
    assert_eq!(begins.packed(14).unwrap().len(), 1);
}

#[test]
fn windows_tell_documents_too_and_are_one_without() {
    let folder = bare(&[("a.bin", &[1, 0, 2, 2, 0, 3])]);
    let tokens = Tokens::open(folder.path().join("a.bin")).unwrap();
    assert!(documents(&tokens.windows(4, 2), 1).into_iter().eq(std::iter::once(0..4)));
    let windows = tokens.documents_end_with(0).unwrap().windows(4, 2);
    assert_eq!((documents(&windows, 0), documents(&windows, 1)), (vec![0..2, 2..4], vec![0..3, 3..4]));
}

#[test]
fn a_token_that_the_type_does_not_have_ends_nothing() {
    let folder = bare(&[("a.bin", &[1, 65_535])]);
    let tokens = Tokens::open(folder.path().join("a.bin")).unwrap();
    assert_eq!(
        tokens.clone().documents_end_with(65_535).unwrap().documents(),
        Some(1),
        "none begins behind the last token"
    );
    assert_eq!(tokens.clone().documents_end_with(7).unwrap().documents(), Some(1));
    for token in [65_536, -1, i64::MAX] {
        let error = tokens.clone().documents_end_with(token).unwrap_err();
        assert!(matches!(error, TokensError::NoSuchToken { .. }), "{error}");
    }
}

#[test]
fn a_copy_needs_a_place_of_its_type_and_length() {
    let folder = bare(&[("a.bin", &[5, 6, 7]), ("b.bin", &[8])]);
    let tokens = Tokens::open(folder.path().join("*.bin")).unwrap().documents_end_with(0).unwrap();
    let window = tokens.packed(4).unwrap().get(0).unwrap();
    let mut place = [0u16; 4];
    window.copy_to(&mut place).unwrap();
    assert_eq!(place, [5, 6, 7, 8], "from two files");
    assert!(matches!(window.copy_to(&mut [0u16; 3]), Err(TokensError::Place { len: 4, places: 3, .. })));
    assert!(matches!(window.copy_to(&mut [0i16; 4]), Err(TokensError::Place { place: "i16", .. })));
    assert!(matches!(window.copy_to(&mut [0u32; 2]), Err(TokensError::Place { .. })));
    assert_eq!((window.get(3), window.get(4), window.get(usize::MAX)), (Some(8), None, None));
}

/// Writes a file of llm.c whose header says that no tokens follow.
fn without_tokens(path: &Path) {
    let mut file = [20_240_520i32, 1, 0].map(i32::to_le_bytes).concat();
    file.resize(1024, 0);
    fs::write(path, file).unwrap();
}

#[test]
fn empty_files_have_no_windows() {
    let folder = bare(&[]);
    ["a.bin", "b.bin"].iter().for_each(|name| without_tokens(&folder.path().join(name)));
    let tokens = Tokens::open(folder.path().join("*.bin")).unwrap();
    assert!(tokens.is_empty() && tokens.largest().is_none());
    assert_eq!(tokens.windows(1, 1).len(), 0);
    let tokens = tokens.documents_end_with(0).unwrap();
    assert_eq!((tokens.documents(), tokens.packed(1).unwrap().len()), (Some(0), 0));
}

#[test]
#[should_panic(expected = "window 2 of 2")]
fn an_index_behind_the_last_window_panics() {
    let folder = bare(&[("a.bin", &[1, 2])]);
    let windows = Tokens::open(folder.path().join("a.bin")).unwrap().windows(1, 1);
    let _ = windows.get(2);
}

#[test]
fn a_window_outlives_its_data_set_and_the_name_of_its_file() {
    let folder = bare(&[("a.bin", &[1, 2, 3])]);
    let path = folder.path().join("a.bin");
    let window = Tokens::open(&path).unwrap().windows(3, 3).get(0).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(window.iter().eq([1, 2, 3]));
}
