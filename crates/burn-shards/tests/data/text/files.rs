//! Token files of rows.

use super::{counted, lines, open};
use crate::write::jsonl;
use burn::data::dataset::{Dataset, InMemDataset};
use burn_shards::{DataError, TextError, TokenRow, TokenType, Tokenized, Tokens, TokensError, tokenizer};
use std::fs;

#[test]
fn a_token_file_has_the_rows_in_their_order_as_documents() {
    let folder = tempfile::tempdir().unwrap();
    let texts: Vec<Vec<u32>> = (0..5000u32).map(|n| (0..n % 11).map(|place| n * 3 + place).collect()).collect();
    let numbers = tokenizer("numbers", |tokens: &Vec<u32>, out: &mut TokenRow| {
        out.extend(tokens.iter().copied());
        Ok(())
    });
    let rows = Tokenized::new(InMemDataset::new(texts.clone()), numbers);
    for kind in [TokenType::U16, TokenType::I32, TokenType::I64] {
        let path = folder.path().join(format!("{kind}.bin"));
        let documents = texts.iter().filter(|text| !text.is_empty()).count();
        let tokens: Vec<i64> = texts.iter().flatten().map(|token| i64::from(*token)).collect();
        assert_eq!(rows.write(&path, kind).unwrap(), (documents, tokens.len() as u64));
        let read = Tokens::open(&path).unwrap();
        assert_eq!((read.kind(), read.documents()), (kind, Some(documents)));
        let whole = read.packed(tokens.len()).unwrap().get(0).unwrap();
        assert!(whole.iter().eq(tokens));
        let lengths: Vec<usize> = texts.iter().map(Vec::len).filter(|length| *length > 0).collect();
        assert!(whole.documents().map(|document| document.len()).eq(lengths));
    }
}

#[test]
fn a_token_that_does_not_fit_is_named_with_its_row_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = lines(folder.path(), [1, 2, 3]);
    let large = tokenizer("large", |(text,): &(String,), out: &mut TokenRow| {
        out.extend([if text.len() == 3 { 65_536 } else { 65_535 }]);
        Ok(())
    });
    let rows = open(&path, "text").tokenized(large);
    let out = folder.path().join("out.bin");
    let error = rows.write(&out, TokenType::U16).unwrap_err();
    let TextError::Rows(DataError::Map { row: 2, source, .. }) = &error else { panic!("{error}") };
    let no_such = source.downcast_ref::<TokensError>();
    assert!(matches!(no_such, Some(TokensError::NoSuchToken { token: 65_536, kind: TokenType::U16 })), "{source}");
    assert!(error.to_string().contains("rows.jsonl"), "{error}");
    let left = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(left.into_iter().all(|name| !name.contains("out")), "a half-written file is left");
    assert_eq!(rows.write(&out, TokenType::I32).unwrap(), (3, 3));
}

#[test]
fn what_is_there_is_not_replaced_and_names_and_types_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = jsonl(folder.path(), &["{\"text\": \"ab\"}", "{\"text\": \"!!\"}", "{\"text\": \"c\"}"]);
    let (rows, _) = counted(open(&path, "text"), "v1");
    let out = folder.path().join("out.bin");
    assert!(matches!(rows.write(&out, TokenType::U8), Err(TextError::Rows(_))), "a bad row");
    let rows = rows.leave_out_bad_rows();
    assert_eq!(rows.write(&out, TokenType::U8).unwrap(), (2, 3));
    for there in [&out, &folder.path().join("out.idx")] {
        let error = rows.write(&out, TokenType::U8).unwrap_err();
        assert!(matches!(error, TextError::Write { .. }), "{error}");
        fs::remove_file(there).unwrap();
    }
    assert!(matches!(rows.write(&out, TokenType::U32), Err(TextError::Type(TokenType::U32))));
    assert!(matches!(rows.write(folder.path().join("out.idx"), TokenType::U8), Err(TextError::Name(_))));
    assert!(matches!(rows.write(folder.path().join("no/out.bin"), TokenType::U8), Err(TextError::Write { .. })));
}
