use super::*;
use crate::{row::value::Value, source::cell::Array};
use burn::tensor::{bf16, f16};
use serde::{Deserialize, de::DeserializeOwned};

fn read<T: DeserializeOwned + Send + Sync + 'static>(file: &[u8]) -> Result<Array<T>, String> {
    let read = super::read(file.into()).and_then(|array| Array::deserialize(Value(array)));
    read.map_err(|error| error.to_string())
}

fn array<T: Send + Sync + 'static>(shape: &[usize], data: Vec<T>) -> Array<T> {
    Array::new(shape, data).unwrap()
}

fn file(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
    let length = (header.len() as u32).to_le_bytes();
    let length = if version == 1 { &length[..2] } else { &length[..] };
    [MAGIC, &[version, 0], length, header.as_bytes(), data].concat()
}

fn header(descr: &str, order: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}   \n")
}

#[test]
fn each_version_order_and_endianness_is_read() {
    let little: Vec<u8> = [1_i16, 2, 3, 4, 5, 6].iter().flat_map(|number| number.to_le_bytes()).collect();
    let big: Vec<u8> = [1_i16, 4, 2, 5, 3, 6].iter().flat_map(|number| number.to_be_bytes()).collect();
    let right = || array(&[2, 3], vec![1_i64, 2, 3, 4, 5, 6]);
    for version in 1..=3 {
        assert_eq!(read(&file(version, &header("<i2", "False", "(2, 3)"), &little)).unwrap(), right());
        assert_eq!(read(&file(version, &header(">i2", "True", "(2L, 3L)"), &big)).unwrap(), right());
    }
    let cube: Vec<u8> = (0..24).collect();
    let moved = read::<u8>(&file(1, &header("|u1", "True", "(2, 3, 4)"), &cube)).unwrap().data().to_vec();
    let at = |i: usize, j: usize, k: usize| moved[(i * 3 + j) * 4 + k];
    assert!((0..24).all(|n| at(n % 2, n / 2 % 3, n / 6) == n as u8), "{moved:?}");
    let one = file(1, &header("<f8", "False", "()"), &2.5_f64.to_le_bytes());
    assert_eq!(read(&one).unwrap(), array(&[], vec![2.5_f32]));
    let flags = read(&file(1, &header("|b1", "False", "(3,)"), &[0, 1, 2])).unwrap();
    assert_eq!(flags, array(&[3], vec![false, true, true]));
    let none = read(&file(1, &header("<f4", "False", "(9223372036854775807, 0, 8)"), &[])).unwrap();
    assert_eq!(none, array::<f32>(&[i64::MAX as usize, 0, 8], Vec::new()));
    let other = r#"{"shape": (1,), "fortran_order": False, "descr": "<u2"}"#;
    assert_eq!(read(&file(2, other, &[1, 1])).unwrap(), array(&[1], vec![257_u16]));
}

#[test]
fn each_type_of_numbers_is_read() {
    let integers = |descr: &str, data: &[u8]| {
        read::<i64>(&file(1, &header(descr, "False", "(2,)"), data)).unwrap().data().to_vec()
    };
    for (code, size) in [("u1", 1), ("i1", 1), ("u2", 2), ("i2", 2), ("u4", 4), ("i4", 4), ("u8", 8), ("i8", 8)] {
        let little = [&[7][..], &vec![0; size - 1], &[9], &vec![0; size - 1]].concat();
        let big = [&vec![0; size - 1], &[7][..], &vec![0; size - 1], &[9]].concat();
        assert_eq!(integers(&format!("<{code}"), &little), [7, 9], "{code}");
        assert_eq!(integers(&format!(">{code}"), &big), [7, 9], "{code}");
    }
    let reals = |descr: &str, data: &[u8]| {
        read::<f32>(&file(1, &header(descr, "False", "(2,)"), data)).unwrap().data().to_vec()
    };
    assert_eq!(reals("<f2", &[0, 0x3c, 0, 0xc1]), [1.0_f32, -2.5]);
    assert_eq!(reals(">f4", &[1.5_f32.to_be_bytes(), (-0.5_f32).to_be_bytes()].concat()), [1.5_f32, -0.5]);
    assert_eq!(reals("<f8", &[0.1_f64.to_le_bytes(), (-0.2_f64).to_le_bytes()].concat()), [0.1_f32, -0.2]);
}

#[test]
fn a_shape_that_is_not_that_of_the_bytes_is_an_error_and_takes_no_memory() {
    for shape in ["(3,)", "(1,)", "(9223372036854775807, 8)", "(4294967296, 4294967296, 4294967296)", "()"] {
        let error = read::<f32>(&file(1, &header("<f4", "False", shape), &[0; 8])).unwrap_err();
        let cure = if ["(1,)", "()"].contains(&shape) { "nothing behind it" } else { "cut off" };
        assert!(error.contains("is not that of its 8 bytes") && error.contains(cure), "{error}");
    }
    let sides = vec!["1"; 65].join(", ");
    assert!(read::<u8>(&file(1, &header("|u1", "False", &format!("({sides})")), &[0])).is_err());
}

/// Numbers become halves by their value, never by their bits.
#[test]
fn halves_are_numbers_too() {
    let halves = [1.5_f32, -2.0].map(f16::from_f32);
    let file_of = |descr: &str, data: &[u8]| file(1, &header(descr, "False", "(2,)"), data);
    let (two, four) = (
        file_of("<f2", &halves.map(f16::to_le_bytes).concat()),
        file_of("<f4", &[1.5_f32, -2.0].map(f32::to_le_bytes).concat()),
    );
    let eight = file_of(">f8", &[1.5_f64, -2.0].map(f64::to_be_bytes).concat());
    for file in [two, four, eight] {
        assert_eq!(read::<f16>(&file).unwrap().data(), halves);
        assert_eq!(read::<bf16>(&file).unwrap().data(), [1.5_f32, -2.0].map(bf16::from_f32));
    }
    let error = read::<f16>(&file_of("|u1", &[1, 2])).unwrap_err();
    assert!(error.contains("integer"), "{error}");
}

#[test]
fn the_sample_of_a_column_is_an_array() {
    assert_eq!(read::<u8>(&crate::source::sample::npy()).unwrap(), array(&[0], Vec::new()));
}

#[test]
fn what_is_no_array_of_numbers_names_the_cure() {
    for (descr, cure) in [
        ("|O", "pickle"),
        ("<U5", ".txt"),
        ("<c8", "x.view(\"f4\")"),
        ("<c16", "x.view(\"f8\")"),
        ("<V2", "bfloat16"),
        ("<M8[ns]", "int64"),
        ("<f16", "astype"),
        ("=f4", "order of its bytes: save `x.astype(\"<f4\")`"),
        ("=i8", "save `x.astype(\"<i8\")`"),
        ("f4", "not supported"),
        ("", "not supported"),
        ("|i2", "order of its bytes"),
    ] {
        let error = read::<f32>(&file(1, &header(descr, "False", "(0,)"), &[])).unwrap_err();
        assert!(error.contains(cure), "{descr}: {error}");
    }
    let fields = "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (0,), }";
    assert!(read::<f32>(&file(1, fields, &[])).unwrap_err().contains("each field"));
    let two = [file(1, &header("<f4", "False", "(2,)"), &[0; 8]), file(1, &header("<f4", "False", "(2,)"), &[0; 8])];
    assert!(read::<f32>(&two.concat()).unwrap_err().contains("save one array in a file"));
    let npz = b"PK\x03\x04\x2d\0\0\0\0\0\0\0\x21\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x09\0\0\0arr_0.npy";
    for (other, cure) in [(&npz[..], "numpy.load(path)[name]"), (b"\x80\x04\x95\x0b\0\0\0\0\0\0\0]\x94", "pickle")] {
        let error = read::<f32>(other).unwrap_err();
        assert!(error.contains(cure), "{error}");
    }
    let good = file(1, &header("<f4", "False", "(2,)"), &[0; 8]);
    assert!((0..good.len()).all(|end| read::<f32>(&good[..end]).is_err()));
    let long = [MAGIC, &[2, 0, 255, 255, 255, 255]].concat();
    assert!(read::<f32>(&long).unwrap_err().contains("4294967295 bytes"));
    for text in ["", "{}", "{'descr': '<f4'}", "{'shape': (1,) 'descr': '<f4'}", "{'descr': 5}"] {
        assert!(read::<f32>(&file(1, text, &[])).is_err(), "{text}");
    }
}
