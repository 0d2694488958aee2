use super::*;

/// An index of sequences, as `(length, pointer)`.
fn index(kind: u8, sequences: &[(i32, i64)], borders: &[i64]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(1u64.to_le_bytes());
    bytes.push(kind);
    bytes.extend((sequences.len() as u64).to_le_bytes());
    bytes.extend((borders.len() as u64).to_le_bytes());
    sequences.iter().for_each(|(length, _)| bytes.extend(length.to_le_bytes()));
    sequences.iter().for_each(|(_, pointer)| bytes.extend(pointer.to_le_bytes()));
    borders.iter().for_each(|border| bytes.extend(border.to_le_bytes()));
    bytes
}

#[test]
fn neighbouring_sequences_are_one_run() {
    let content = content(&index(8, &[(3, 0), (2, 6), (4, 10)], &[0, 2, 3]), 18).unwrap();
    assert_eq!(content.kind, TokenType::U16);
    assert_eq!(content.runs, [Range { start: 0, end: 18 }]);
    assert_eq!(content.documents.unwrap(), [0, 5]);
}

#[test]
fn sequences_come_in_the_order_of_the_index_not_of_the_file() {
    let content = content(&index(4, &[(2, 8), (2, 0), (1, 8)], &[0, 1, 2, 3]), 16).unwrap();
    assert_eq!(content.runs, [8..16, 0..12], "the third sequence follows the second");
    assert_eq!(content.documents.unwrap(), [0, 2, 4]);
}

#[test]
fn a_sequence_outside_the_file_is_an_error() {
    let refused = |sequence: (i32, i64)| {
        let error = content(&index(8, &[(1, 0), sequence], &[0, 2]), 18).unwrap_err();
        assert!(matches!(error, TokenFileError::Sequence { sequence: 1, bytes: 18, .. }), "{error}");
    };
    [(-1, 2), (9, 2), (1, -2), (1, i64::MAX), (i32::MAX, 2), (1, 18), (1, 3)].into_iter().for_each(refused);
    assert!(content(&index(8, &[(1, 0), (8, 2)], &[0, 2]), 18).is_ok());
}

#[test]
fn borders_ascend_from_0() {
    for (borders, wrong) in [(vec![1, 2], 0), (vec![0, 3], 1), (vec![0, 2, 1], 2), (vec![0, -1], 1)] {
        match content(&index(8, &[(1, 0), (1, 2)], &borders), 4) {
            Err(TokenFileError::Border { border, sequences: 2, .. }) => assert_eq!(border, wrong),
            other => panic!("{borders:?}: {other:?}"),
        }
    }
}

#[test]
fn counts_that_do_not_fit_the_index_reserve_no_memory() {
    let mut bytes = index(8, &[(1, 0)], &[0, 1]);
    bytes[18..26].copy_from_slice(&u64::MAX.to_le_bytes());
    let error = content(&bytes, 2).unwrap_err();
    assert!(matches!(error, TokenFileError::IndexSize { sequences: u64::MAX, borders: 2, .. }), "{error}");
    bytes[18..26].copy_from_slice(&1u64.to_le_bytes());
    assert!(content(&bytes, 2).is_ok());
    bytes.push(0);
    assert!(content(&bytes, 2).is_ok(), "a mode of each sequence");
    bytes.push(0);
    assert!(matches!(content(&bytes, 2), Err(TokenFileError::IndexSize { .. })));
}

#[test]
fn floats_unknown_types_and_versions_are_refused() {
    assert!(matches!(content(&index(6, &[], &[0]), 0), Err(TokenFileError::Floats("f64"))));
    assert!(matches!(content(&index(7, &[], &[0]), 0), Err(TokenFileError::Floats("f32"))));
    assert!(matches!(content(&index(9, &[], &[0]), 0), Err(TokenFileError::TypeNumber(9))));
    let mut bytes = index(8, &[], &[0]);
    assert!(content(&bytes, 0).unwrap().runs.is_empty());
    bytes[9] = 2;
    assert!(matches!(content(&bytes, 0), Err(TokenFileError::IndexVersion(2))));
    bytes[0] = b'm';
    assert!(matches!(content(&bytes, 0), Err(TokenFileError::NoIndex)));
}
