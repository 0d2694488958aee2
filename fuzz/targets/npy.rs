//! Any bytes as a NumPy array, as a file and as a member of a tar.
#![no_main]

use burn::data::dataset::Dataset;
use burn_pinned::data::{Array, Rows};
use burn_pinned_fuzz::{as_file, begin, run};
use libfuzzer_sys::fuzz_target;
use serde::de::DeserializeOwned;

fn read<T: DeserializeOwned + Send + Sync + Clone + 'static>(tar: &[u8]) {
    as_file("a.tar", &[tar], |path| {
        let Ok(rows) = Rows::<(Array<T>,)>::tar(path).columns(["npy"]).largest_sample(1 << 20).open() else { return };
        if let Ok((array,)) = rows.get(0) {
            let rows = array.shape().first().copied().unwrap_or_default();
            assert!(rows == 0 || array.rows(0..rows).data().len() == array.data().len(), "a row is lost");
        }
    });
}

fn open(data: &[u8]) {
    as_file("a.npy", &[data], |path| {
        let floats = Array::<f32>::open(path).map_or(0, |array| size_of_val(array.data()));
        let bytes = Array::<u8>::open(path).map_or(0, |array| array.data().len());
        assert!(floats.max(bytes) < data.len().max(1), "more numbers than bytes behind a header");
    });
    let mut header = tar::Header::new_ustar();
    header.set_size(data.len() as u64);
    header.set_mode(0o644);
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_data(&mut header, "1.npy", data).expect("memory has no errors");
    let tar = tar.into_inner().expect("memory has no errors");
    read::<f64>(&tar);
    read::<i8>(&tar);
    read::<bool>(&tar);
}

fn file(version: u8, kind: &str, order: &str, shape: &str, bytes: usize) -> Vec<u8> {
    let text = format!("{{'descr': '{kind}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let length = match version {
        1 => (text.len() as u16).to_le_bytes().to_vec(),
        _ => (text.len() as u32).to_le_bytes().to_vec(),
    };
    [b"\x93NUMPY".to_vec(), vec![version, 0], length, text.into_bytes(), vec![1; bytes]].concat()
}

fuzz_target!(
    init: begin(|| {
        vec![
            file(1, "<f4", "False", "(2, 3)", 24),
            file(2, ">i8", "True", "(2, 2)", 32),
            file(3, "|b1", "False", "()", 1),
            file(1, "<f2", "False", "(0, 5)", 0),
            file(1, "|u1", "True", "(3L,)", 3),
        ]
    }),
    |data: &[u8]| run(|| open(data))
);
