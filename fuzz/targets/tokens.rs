//! Any bytes as a token file: bare, llm.c's, or with Megatron's index beside it.
#![no_main]

use burn::data::dataset::Dataset;
use burn_pinned::data::{TokenType, Tokens};
use burn_pinned_fuzz::{BETWEEN, as_files, begin, cut, run};
use libfuzzer_sys::fuzz_target;

fn look(tokens: &Tokens) {
    let all = tokens.windows(1, 1);
    assert!(all.len() <= tokens.len(), "more windows than tokens");
    for (len, stride) in [(1, 1), (5, 3), (4, 4)] {
        let windows = tokens.windows(len, stride);
        for window in (0..windows.len().min(64)).filter_map(|at| windows.get(at).ok()) {
            assert_eq!(window.len(), len);
            let numbers: Vec<i64> = window.iter().collect();
            let one_by_one: Vec<i64> = (0..len).filter_map(|at| window.get(at)).collect();
            assert_eq!(one_by_one, numbers, "two ways to read a window differ");
            if window.kind() == TokenType::U16 {
                let mut copied = vec![0u16; len];
                window.copy_to(&mut copied).expect("the type of the file");
                assert!(copied.iter().map(|token| i64::from(*token)).eq(numbers), "its copy differs");
            }
            let documents: usize = window.documents().map(|document| document.len()).sum();
            assert!(documents <= len, "documents of more tokens than there are");
        }
    }
    _ = tokens.packed(4).map(|windows| (0..windows.len().min(64)).for_each(|at| drop(windows.get(at))));
    _ = tokens.largest();
}

fn open(data: &[u8]) {
    let files = cut(data);
    let index = files.get(1).map(|index| ("a.idx", *index));
    let named: Vec<_> = [("a.bin", files[0])].into_iter().chain(index).collect();
    as_files(&named, |folder| {
        let path = folder.join("a.bin");
        let opened = Tokens::open(&path);
        let raw = [TokenType::U8, TokenType::I64].map(|kind| Tokens::open_raw(&path, kind));
        opened.iter().chain(raw.iter().flatten()).for_each(look);
        if let Ok(tokens) = opened {
            _ = tokens.documents_end_with(7).map(|tokens| look(&tokens));
        }
    });
}

/// Megatron's index of documents of these numbers of tokens of 16 bits.
fn index(lengths: &[i32]) -> Vec<u8> {
    let count = lengths.len() as u64;
    let mut file = b"MMIDIDX\0\0".to_vec();
    file.extend(1u64.to_le_bytes());
    file.push(8);
    [count, count + 1].iter().for_each(|number| file.extend(number.to_le_bytes()));
    lengths.iter().for_each(|length| file.extend(length.to_le_bytes()));
    let mut at = 0i64;
    for length in lengths {
        file.extend(at.to_le_bytes());
        at += i64::from(*length) * 2;
    }
    (0..=count).for_each(|border| file.extend(border.to_le_bytes()));
    file
}

fuzz_target!(
    init: begin(|| {
        let tokens: Vec<u8> = (0..40u16).flat_map(|token| (token * 7 % 50).to_le_bytes()).collect();
        let mut llm_c = [20_240_520i32, 1, 40].iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
        llm_c.resize(1024, 0);
        vec![
            tokens.clone(),
            [&llm_c[..], &tokens].concat(),
            [&tokens[..], BETWEEN, &index(&[10, 0, 25, 5])].concat(),
        ]
    }),
    |data: &[u8]| run(|| open(data))
);
