//! Token files: those of other programs, windows at all borders, and files that are damaged.

mod damaged;
mod windows;

use crate::shards::bare;
use burn_shards::{Paths, TokenFileError, TokenType, Tokens, TokensError};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Files that a NumPy script wrote in the layouts of these programs; the programs themselves did not write them.
pub(crate) fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/golden/tokens").join(name)
}

/// All tokens of a data set that is at least one token long.
fn all(tokens: &Tokens) -> Vec<i64> {
    use burn::data::dataset::Dataset;
    let windows = tokens.windows(1, 1);
    (0..windows.len()).map(|index| windows.get(index).unwrap().get(0).unwrap()).collect()
}

fn refused(paths: impl Into<Paths>) -> TokenFileError {
    match Tokens::open(paths) {
        Err(TokensError::File { source, .. }) => source,
        other => panic!("{other:?}"),
    }
}

#[test]
fn golden_files_of_three_formats_have_the_same_tokens() {
    let facts: serde_json::Value = serde_json::from_slice(&fs::read(golden("vocab.json")).unwrap()).unwrap();
    let count = facts["tokens"].as_u64().unwrap() as usize;
    let bytes = fs::read(golden("nanogpt.bin")).unwrap();
    let known: Vec<i64> = bytes.as_chunks().0.iter().map(|token| u16::from_le_bytes(*token).into()).collect();
    let first: Vec<i64> = serde_json::from_value(facts["first"].clone()).unwrap();
    assert_eq!((known.len(), &known[..16]), (count, &*first));

    let formats = [("nanogpt.bin", TokenType::U16), ("llmc.bin", TokenType::U16), ("megatron.bin", TokenType::I32)];
    for (name, kind) in formats {
        let tokens = Tokens::open(golden(name)).unwrap();
        assert_eq!((tokens.kind(), tokens.len()), (kind, count), "{name}");
        assert!(all(&tokens) == known, "other tokens in {name}");
        assert_eq!(tokens.largest(), known.iter().copied().max());

        // Where documents end is known from Megatron's index, and from the tokens.
        let from_index = tokens.documents();
        assert_eq!(from_index, (name == "megatron.bin").then_some(9));
        let tokens = tokens.documents_end_with(50256).unwrap();
        assert_eq!(tokens.documents(), Some(9), "{name}");
    }
}

#[test]
fn an_index_tells_documents_as_the_end_token_does() {
    use burn::data::dataset::Dataset;
    let by_index = Tokens::open(golden("megatron.idx")).unwrap().packed(1000).unwrap();
    let by_token = Tokens::open(golden("llmc.bin")).unwrap().documents_end_with(50256).unwrap().packed(1000).unwrap();
    assert_eq!((by_index.len(), by_token.len()), (4, 4));
    for window in 0..4 {
        let (a, b) = (by_index.get(window).unwrap(), by_token.get(window).unwrap());
        assert_eq!(a.documents().collect::<Vec<_>>(), b.documents().collect::<Vec<_>>());
        assert!(a.iter().eq(b.iter()));
    }
    assert_eq!(by_index.get(0).unwrap().documents().collect::<Vec<_>>(), [0..501, 501..1000]);
}

#[test]
fn files_come_in_the_order_of_a_list_or_of_their_names() {
    let folder = bare(&[("b.bin", &[3, 4]), ("a.bin", &[1, 2]), ("c.bin", &[5])]);
    let (a, b) = (folder.path().join("a.bin"), folder.path().join("b.bin"));
    let tokens = Tokens::open(folder.path().join("*.bin")).unwrap();
    assert_eq!(all(&tokens), [1, 2, 3, 4, 5]);
    let files: Vec<_> =
        tokens.files().map(|(path, tokens)| (path.file_name().unwrap().to_str().unwrap(), tokens)).collect();
    assert_eq!(files, [("a.bin", 2), ("b.bin", 2), ("c.bin", 1)]);
    assert_eq!(all(&Tokens::open([b, a]).unwrap()), [3, 4, 1, 2]);
}

#[test]
fn what_is_not_there_or_unknown_is_named() {
    let folder = bare(&[("a.bin", &[1]), ("text.txt", &[1])]);
    let none = folder.path().join("*.tok");
    assert!(matches!(Tokens::open(none), Err(TokensError::Paths(_))));
    assert!(matches!(refused(folder.path().join("missing.bin")), TokenFileError::Io(_)));
    assert!(matches!(refused(folder.path()), TokenFileError::Io(_)), "a folder");
    assert!(matches!(refused(folder.path().join("text.txt")), TokenFileError::UnknownFormat));
    let error = Tokens::open(folder.path().join("text.txt")).unwrap_err().to_string();
    assert!(error.contains("text.txt") && error.contains("open_raw"), "{error}");
}

#[test]
fn files_of_two_types_are_refused_together() {
    let error = Tokens::open([golden("nanogpt.bin"), golden("megatron.bin")]).unwrap_err();
    assert!(matches!(error, TokensError::Types { there: TokenType::I32, first: TokenType::U16, .. }), "{error}");
    let tokens = Tokens::open([golden("nanogpt.bin"), golden("llmc.bin")]).unwrap();
    assert_eq!(tokens.len(), 2 * 4509);
}

#[test]
fn bare_tokens_have_the_type_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("llama.bin");
    fs::write(&path, [1u32, 128_000, 7].map(u32::to_le_bytes).concat()).unwrap();
    let tokens = Tokens::open_raw(&path, TokenType::U32).unwrap();
    assert_eq!(all(&tokens), [1, 128_000, 7]);
    assert_eq!(all(&Tokens::open(&path).unwrap()), [1, 0, 62_464, 1, 7, 0], "bare tokens are u16 unless told");
    match Tokens::open_raw(&path, TokenType::I64) {
        Err(TokensError::File { source: TokenFileError::Odd { bytes: 12, size: 8 }, .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_header_is_checked_against_the_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shard.bin");
    let write = |numbers: [i32; 3], bytes: usize| {
        let mut file = numbers.map(i32::to_le_bytes).concat();
        file.resize(bytes, 0);
        fs::write(&path, file).unwrap();
        Tokens::open(&path)
    };
    let source = |opened: Result<Tokens, TokensError>| match opened {
        Err(TokensError::File { source, .. }) => source,
        other => panic!("{other:?}"),
    };
    assert_eq!(write([20_240_520, 1, 5], 1034).unwrap().len(), 5);
    let llama = write([20_240_801, 7, 5], 1044).unwrap();
    assert_eq!((llama.kind(), llama.len()), (TokenType::U32, 5));
    for (claimed, bytes) in [(6, 1034), (4, 1034), (-5, 1034), (i32::MAX, 1034), (5, 1035), (1, 1024)] {
        let error = source(write([20_240_520, 1, claimed], bytes));
        assert!(matches!(error, TokenFileError::Count { .. }), "{claimed}, {bytes}: {error}");
    }
    assert!(matches!(source(write([20_240_520, 7, 5], 1034)), TokenFileError::Version { version: 7, known: 1 }));
    assert!(matches!(source(write([20_240_801, 1, 5], 1044)), TokenFileError::Version { version: 1, known: 7 }));
    assert!(matches!(source(write([20_240_520, 1, 5], 1022)), TokenFileError::Header { bytes: 1022 }));
}

#[test]
fn an_index_of_another_program_is_refused() {
    let folder = bare(&[("a.bin", &[1, 2])]);
    let path = folder.path().join("a.bin");
    fs::write(folder.path().join("a.idx"), "v1.2 1\n").unwrap();
    assert!(matches!(refused(&path), TokenFileError::NoIndex));
    assert_eq!(all(&Tokens::open_raw(&path, TokenType::U16).unwrap()), [1, 2]);
    let index = folder.path().join("a.idx"); // of raw tokens it is a file as any other: "v1", ".2", " 1", and a line's end
    fs::write(&index, "v1.2 1\n\n").unwrap();
    assert_eq!(Tokens::open_raw(&index, TokenType::U16).unwrap().len(), 4);
    fs::copy(golden("megatron.idx"), folder.path().join("a.idx")).unwrap();
    assert!(matches!(refused(&path), TokenFileError::Sequence { sequence: 0, bytes: 4, .. }), "another file's index");
}
