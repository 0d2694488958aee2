//! Any bytes as JSON lines, compared with what `serde_json` makes of each line.
#![no_main]

#[path = "../../tests/differential/exact.rs"]
mod exact;

use burn_pinned::data::Rows;
use burn_pinned_fuzz::{as_file, begin, read, run};
use exact::Exact;
use libfuzzer_sys::fuzz_target;
use std::collections::HashMap;

type Row = HashMap<String, Exact>;

/// Whether a key comes twice in an object. Readers differ in what they make of it.
fn repeats(value: &Exact) -> bool {
    match value {
        Exact::List(list) => list.iter().any(repeats),
        Exact::Struct(fields) => {
            let twice = |at: usize| fields[..at].iter().any(|(name, _)| *name == fields[at].0);
            (0..fields.len()).any(|at| twice(at) || repeats(&fields[at].1))
        }
        _ => false,
    }
}

fn compare(data: &[u8]) {
    let read = as_file("a.jsonl", &[data], |path| {
        Rows::<Row>::jsonl(path).open().map(|rows| read(&rows)).map_err(|error| error.to_string())
    });
    let Ok(read) = read else { return }; // `open` may refuse for its first row
    let data = data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data);
    let lines = data.split(|byte| *byte == b'\n').filter(|line| !line.iter().all(|byte| b" \t\r\n".contains(byte)));
    for (row, (line, read)) in lines.zip(read).enumerate() {
        let told = serde_json::from_slice(line).ok().filter(|told| !repeats(told));
        match (told, read) {
            (Some(told @ Exact::Struct(_)), Ok(read)) => {
                assert_eq!(told, Exact::Struct(read.into_iter().collect()), "row {row}");
            }
            (Some(told @ Exact::Struct(_)), Err(error)) => panic!("row {row}, {told:?}: {error}"),
            (Some(told), Ok(read)) => panic!("row {row}: {told:?} is no object, but {read:?} was read"),
            (None | Some(_), _) => {}
        }
    }
}

fuzz_target!(
    init: begin(|| {
        vec![
            b"{\"a\": 1, \"b\": [1.5, -2e300, null]}\n{\"a\": -9223372036854775808, \"b\": []}\n".to_vec(),
            b"\xef\xbb\xbf{\"text\": \"\\u00e9\\ud83d\\ude00\"}\r\n\r\n{\"text\": \"\"}".to_vec(),
            b"{\"x\": NaN}\n{\"x\": -Infinity}\n{\"x\": 122.416294033786585}\n{\"y\": {\"z\": true}}".to_vec(),
        ]
    }),
    |data: &[u8]| run(|| compare(data))
);
