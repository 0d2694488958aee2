//! Values of the user's whose `drop` panics. Where several of them are dropped at once, that ended the process.

use crate::write::jsonl;
use burn::data::dataset::{Dataset, DatasetError};
use burn_shards::{Rows, TokenRow, Tokenized, tokenizer};
use serde::{Deserialize, Deserializer};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A number whose `drop` panics, unless it is small.
#[derive(Debug)]
struct Bomb(u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(self.0 < 100, "dropped {}", self.0);
    }
}

impl<'de> Deserialize<'de> for Bomb {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        u32::deserialize(from).inspect(|number| assert_ne!(*number, 1000, "no number")).map(Self)
    }
}

#[test]
fn a_column_that_is_not_taken_ends_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let mut lines: Vec<String> = (0..300).map(|n| format!("{{\"x\": {n}}}")).collect();
    lines[250] = "{\"x\": \"text\"}".into();
    let open = |lines: &[String]| {
        let path = jsonl(folder.path(), &lines.iter().map(String::as_str).collect::<Vec<_>>());
        Rows::<(Option<u8>,)>::jsonl(path).columns(["y"]).optional(["y"]).open().unwrap()
    };
    let error = open(&lines).column::<Bomb>("x").unwrap_err().to_string();
    assert!(error.contains("row 250") && error.contains("column `x`"), "{error}");
    // A panic while a value is made is one of the caller, and no second one joins it.
    lines[250] = "{\"x\": 1000}".into();
    let rows = open(&lines);
    let panicked = catch_unwind(AssertUnwindSafe(|| rows.column::<Bomb>("x"))).unwrap_err();
    assert!(panicked.downcast_ref::<String>().is_some_and(|text| text.contains("no number")));
}

/// Gives `more` rows more than it is asked for.
struct Many {
    more: usize,
}

impl Dataset<Bomb> for Many {
    fn get(&self, index: usize) -> Result<Bomb, DatasetError> {
        Ok(Bomb(index as u32))
    }

    fn get_many(&self, indexes: Vec<usize>) -> Result<Vec<Bomb>, DatasetError> {
        Ok((0..indexes.len() + self.more - 1).map(|n| Bomb(n as u32 + 100)).collect())
    }

    fn len(&self) -> usize {
        9
    }
}

#[test]
fn rows_that_were_read_at_once_end_no_process() {
    let numbers = || {
        tokenizer("numbers", |number: &Bomb, out: &mut TokenRow| {
            out.push(number.0);
            if number.0 == 102 { Err("it is 102".into()) } else { Ok(()) }
        })
    };
    let tokens = |more| Tokenized::new(Many { more }, numbers());
    let rows = |tokens: [u32; 2]| tokens.map(|token| TokenRow::from(vec![token]));
    assert_eq!(tokens(1).get_many(vec![7, 3]).unwrap(), rows([100, 101]));
    // Of too few or too many, nobody knows which they are.
    assert_eq!(tokens(0).get_many(vec![7, 3]).unwrap(), rows([7, 3]));
    assert_eq!(tokens(2).get_many(vec![7, 3]).unwrap(), rows([7, 3]));
    assert!(format!("{:?}", tokens(1).get_many(vec![7, 3, 5, 6]).unwrap_err()).contains("it is 102"));
}
