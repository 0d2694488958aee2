//! Rows as tokens: their lengths, which are saved, and token files of them.

#[cfg(feature = "tokenizers")]
mod chats;
mod files;
#[cfg(feature = "tokenizers")]
mod special;
mod stale;

use crate::write::jsonl;
use burn::data::dataset::{Dataset, DatasetError, InMemDataset};
use burn_shards::{DataError, Rows, TextError, TokenLengths, TokenRow, Tokenized, tokenizer};
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

type Doc = (String,);

/// Lines with a text of some letters each, and a title of one more.
fn lines(folder: &Path, lengths: impl IntoIterator<Item = usize>) -> PathBuf {
    let line = |length| format!("{{\"text\": \"{}\", \"title\": \"{}\"}}", "a".repeat(length), "b".repeat(length + 1));
    let lines: Vec<String> = lengths.into_iter().map(line).collect();
    jsonl(folder, &lines.iter().map(String::as_str).collect::<Vec<_>>())
}

fn open(path: &Path, column: &str) -> Rows<Doc> {
    Rows::<Doc>::jsonl(path).columns([column.to_string()]).open().unwrap()
}

/// Rows with a token for each byte, and how many rows were tokenised.
fn counted(rows: Rows<Doc>, name: &str) -> (Tokenized, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&count);
    let bytes = tokenizer(name, move |(text,): &Doc, out: &mut TokenRow| {
        counts.fetch_add(1, Relaxed);
        if text.contains("!!") {
            return Err("it shouts".into());
        }
        out.extend(text.bytes().map(u32::from));
        Ok(())
    });
    (rows.tokenized(bytes), count)
}

/// The lengths, and how many rows were tokenised for them.
fn lengths(rows: Rows<Doc>, name: &str) -> (TokenLengths, usize) {
    let (rows, count) = counted(rows, name);
    let lengths = rows.lengths().unwrap();
    (lengths, count.load(Relaxed))
}

/// The most rows of one text that are compared with saved lengths: five, and one that has a text.
const COMPARED: usize = 6;

#[test]
fn lengths_are_made_once_and_belong_to_tokeniser_column_and_part() {
    let folder = tempfile::tempdir().unwrap();
    let counts: Vec<usize> = (0..3000).map(|n| n * 7 % 50).collect();
    let path = lines(folder.path(), counts.iter().copied());
    let right: Vec<u32> = counts.iter().map(|count| *count as u32).collect();
    let (made, tokenised) = lengths(open(&path, "text"), "v1");
    assert!(made.as_ref() == right && tokenised == 3000, "{tokenised} rows");
    let (again, tokenised) = lengths(open(&path, "text"), "v1");
    assert!(again.as_ref() == right && tokenised <= COMPARED, "{tokenised} rows");
    assert_eq!(again.path(), made.path());
    assert_eq!(again.path().unwrap().parent(), path.parent());

    assert_eq!(lengths(open(&path, "text"), "v2").1, 3000, "another tokeniser");
    let (titles, tokenised) = lengths(open(&path, "title"), "v1");
    assert_eq!((titles.as_ref()[1], tokenised), (right[1] + 1, 3000), "another column");
    let (rest, part) = open(&path, "text").split(0.1, 1).unwrap();
    let (of_part, tokenised) = lengths(part.clone(), "v1");
    assert_eq!((of_part.as_ref().len(), tokenised), (300, 300), "a part");
    assert!((0..300).all(|row| of_part.as_ref()[row] as usize == part.get(row).unwrap().0.len()));
    assert_eq!(lengths(rest, "v1").1, 2700, "the other part");
    let again = [lengths(part, "v1").1, lengths(open(&path, "text"), "v1").1];
    assert!(again.iter().all(|tokenised| *tokenised <= COMPARED), "{again:?}: all are kept");

    let all = TokenLengths::concat([&made, &of_part]);
    assert_eq!((all.as_ref().len(), all.as_ref()[2999], all.path()), (3300, right[2999], None));
}

#[test]
fn lengths_of_data_that_have_changed_are_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = lines(folder.path(), [3, 4, 5]);
    assert_eq!(lengths(open(&path, "text"), "v1").0.as_ref(), [3, 4, 5]);
    lines(folder.path(), [3, 4, 6]);
    let (made, tokenised) = lengths(open(&path, "text"), "v1");
    assert_eq!((made.as_ref(), tokenised), (&[3, 4, 6][..], 3), "another size");
    // A file of the same size and time, in the place of the first.
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    lines(folder.path(), [6, 4, 3]);
    File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    let (made, tokenised) = lengths(open(&path, "text"), "v1");
    assert_eq!(made.as_ref(), [6, 4, 3]);
    assert!(tokenised > 3, "some rows were compared first: {tokenised}");
    // A copy of the same file in its place: a few rows are compared, and the lengths hold.
    let copy = folder.path().join("copy");
    fs::copy(&path, &copy).unwrap();
    fs::rename(&copy, &path).unwrap();
    File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    let (made, tokenised) = lengths(open(&path, "text"), "v1");
    assert!(
        made.as_ref() == [6, 4, 3] && (2..=3).contains(&tokenised),
        "the first, the last, and the other if it is drawn: {tokenised}"
    );
}

#[test]
fn lengths_that_are_damaged_are_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = lines(folder.path(), [3, 4, 5]);
    let made = lengths(open(&path, "text"), "v1").0;
    let file = fs::read(made.path().unwrap()).unwrap();
    for (at, cut) in [(0, 0), (7, 0), (8, 0), (15, 0), (0, 1), (0, 4), (0, file.len() - 3)] {
        let mut bad = file[..file.len() - cut].to_vec();
        if cut == 0 {
            bad[at] ^= 1;
        }
        fs::write(made.path().unwrap(), bad).unwrap();
        let (again, tokenised) = lengths(open(&path, "text"), "v1");
        assert_eq!((again.as_ref(), tokenised), (&[3, 4, 5][..], 3), "at {at}, {cut} bytes cut");
    }
}

#[test]
fn a_bad_row_is_an_error_with_its_file_or_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path =
        jsonl(folder.path(), &["{\"text\": \"ab\"}", "{\"text\": \"!!\"}", "{\"text\": 5}", "{\"text\": \"c\"}"]);
    let (rows, _) = counted(open(&path, "text"), "v1");
    let error = rows.lengths().unwrap_err();
    assert!(matches!(&error, TextError::Rows(DataError::Map { row: 1, .. })), "{error}");
    assert!(error.to_string().contains("it shouts"), "{error}");
    let good = rows.leave_out_bad_rows();
    assert_eq!(good.lengths().unwrap().as_ref(), [2, 0, 0, 1]);
    assert!(good.get(1).is_err() && good.get(3).is_ok());
    // Lengths with holes are no others.
    assert!(counted(open(&path, "text"), "v1").0.lengths().is_err());
}

#[test]
fn saved_lengths_hold_where_a_row_that_is_compared_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = jsonl(folder.path(), &[&["{\"text\": \"!!\"}"], &["{\"text\": \"ab\"}"; 20][..]].concat());
    let (rows, count) = counted(open(&path, "text"), "v1");
    let rows = rows.leave_out_bad_rows();
    let right = [&[0], &[2; 20][..]].concat();
    assert_eq!((rows.lengths().unwrap().as_ref(), count.load(Relaxed)), (&right[..], 21));
    assert_eq!(rows.lengths().unwrap().as_ref(), right);
    assert!(count.load(Relaxed) <= 21 + COMPARED);
}

#[test]
fn an_error_of_a_row_that_had_no_tokens_is_no_proof_of_saved_lengths() {
    let folder = tempfile::tempdir().unwrap();
    let path = lines(folder.path(), [0, 2, 0]);
    let refuses = |refuses: bool| {
        let one = move |_: &Doc, _: &mut TokenRow| if refuses { Err("it is refused".into()) } else { Ok(()) };
        open(&path, "text").tokenized(tokenizer("none", one))
    };
    assert_eq!(refuses(false).lengths().unwrap().as_ref(), [0, 0, 0]);
    assert!(refuses(true).lengths().is_err());
}

#[test]
fn rows_of_any_data_set_have_lengths_that_are_not_saved() {
    let texts = InMemDataset::new((0..2000).map(|n| "x".repeat(n % 9)).collect());
    let bytes = tokenizer("bytes", |text: &String, out: &mut TokenRow| match text.len() {
        8 => Err("too long".into()),
        _ => {
            out.extend(text.bytes().map(u32::from));
            Ok(())
        }
    });
    let rows = Tokenized::new(texts, bytes);
    assert_eq!((rows.len(), rows.get(3).unwrap().len(), rows.blocks().unwrap().samples()), (2000, 3, 2000));
    let error = rows.lengths().unwrap_err();
    assert!(format!("{error:?}").contains("row: 8") && format!("{error:?}").contains("too long"), "{error:?}");
    let lengths = rows.leave_out_bad_rows().lengths().unwrap();
    assert_eq!((&lengths.as_ref()[7..10], lengths.path()), (&[7, 0, 0][..], None));
}

/// Numbers that are read many at once alone.
struct Many;

impl Dataset<u32> for Many {
    fn get(&self, index: usize) -> Result<u32, DatasetError> {
        Err(DatasetError::new(std::io::Error::other(format!("{index} was read alone"))))
    }

    fn get_many(&self, indexes: Vec<usize>) -> Result<Vec<u32>, DatasetError> {
        Ok(indexes.into_iter().map(|index| index as u32).collect())
    }

    fn len(&self) -> usize {
        9
    }
}

#[test]
fn a_data_set_that_reads_many_rows_at_once_does_so_for_tokens() {
    let odd = tokenizer("odd", |number: &u32, out: &mut TokenRow| {
        out.push(*number);
        if !number.is_multiple_of(2) { Ok(()) } else { Err("it is even".into()) }
    });
    let rows = Tokenized::new(Many, odd);
    assert_eq!(rows.get_many(vec![7, 3]).unwrap(), [vec![7].into(), vec![3].into()] as [TokenRow; 2]);
    let error = format!("{:?}", rows.get_many(vec![5, 8]).unwrap_err());
    assert!(error.contains("row: 8") && error.contains("it is even"), "{error}");
    assert!(format!("{:?}", rows.get(1).unwrap_err()).contains("1 was read alone"));
}

#[test]
fn lengths_that_cannot_be_saved_are_there_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (path, not_a_folder) = (lines(folder.path(), [3, 4]), folder.path().join("file"));
    fs::write(&not_a_folder, "").unwrap();
    let rows = Rows::<Doc>::jsonl(&path).columns(["text"]).index_dir(&not_a_folder).open().unwrap();
    let made = lengths(rows, "v1").0;
    assert_eq!((made.as_ref(), made.path()), (&[3, 4][..], None));
    let rows = Rows::<Doc>::jsonl(&path).columns(["text"]).index_dir(folder.path().join("own")).open().unwrap();
    assert_eq!(lengths(rows, "v1").0.path().unwrap().parent(), Some(&*folder.path().join("own")));
}
