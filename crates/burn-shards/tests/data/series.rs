//! Series of numbers: `.npy` files in memory, views of their rows, and windows over them.

use burn::{
    data::dataset::Dataset,
    tensor::{Element, f16},
};
use burn_shards::{Array, DataError, SeriesWindow, SeriesWindows};
use bytemuck::Pod;
use proptest::prelude::*;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

/// Writes a file as NumPy does: the numbers start at a multiple of 64 bytes, and `off` bytes after it.
fn npy(folder: &Path, descr: &str, fortran: bool, shape: &str, off: usize, data: &[u8]) -> PathBuf {
    let order = if fortran { "True" } else { "False" };
    let text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    let header = format!("{text:<width$}\n", width = 117 + off);
    let path = folder.join("series.npy");
    let length = (header.len() as u16).to_le_bytes();
    std::fs::write(&path, [b"\x93NUMPY\x01\0", &length[..], header.as_bytes(), data].concat()).unwrap();
    path
}

fn read<T: Element + Pod + PartialEq + std::fmt::Debug>(descr: &str, numbers: &[T]) {
    for off in 0..9 {
        let folder = tempfile::tempdir().unwrap();
        let path = npy(folder.path(), descr, false, "(3, 2)", off, bytemuck::cast_slice(numbers));
        let array = Array::<T>::open(path).unwrap();
        assert_eq!((array.shape(), array.data()), (&[3, 2][..], numbers), "{descr} {off}");
    }
}

#[test]
#[cfg(target_endian = "little")]
fn a_file_of_each_type_is_opened() {
    read("<f4", &[0.5f32, -1.0, 2.0, 3.0, f32::MAX, 5.0]);
    read("<f8", &[0.1f64, -1.0, 2.0, 3.0, f64::MAX, 5.0]);
    read("<f2", &[0.5f32, -1.0, 2.0, 3.0, 4.0, 5.0].map(f16::from_f32));
    read("<i8", &[i64::MIN, 1, 2, 3, 4, i64::MAX]);
    read("<i4", &[i32::MIN, 1, 2, 3, 4, i32::MAX]);
    read("<u2", &[0u16, 1, 2, 3, 4, u16::MAX]);
    read("|u1", &[0u8, 1, 2, 3, 4, 255]);
    read(">i1", &[-128i8, 1, 2, 3, 4, 127]); // one byte has no order
}

/// An array of one dimension is the same in each order, and an array without numbers too.
#[test]
#[cfg(target_endian = "little")]
fn orders_that_are_the_same_are_opened() {
    let folder = tempfile::tempdir().unwrap();
    let line = npy(folder.path(), "<f4", true, "(2,)", 0, &[0; 8]);
    assert_eq!(Array::<f32>::open(line).unwrap(), Array::new([2], vec![0.0; 2]).unwrap());
    let none = npy(folder.path(), "<f4", true, "(9223372036854775807, 0, 8)", 0, &[]);
    let none = Array::<f32>::open(none).unwrap();
    assert_eq!(none.rows(5..7).shape(), [2, 0, 8]);
    assert!(none.rows(5..7).data().is_empty());
    let one = Array::<f32>::open(npy(folder.path(), "<f4", false, "()", 0, &1.5f32.to_le_bytes())).unwrap();
    assert_eq!((one.shape(), one.data()), (&[][..], &[1.5][..]));
}

#[test]
fn a_file_that_is_no_such_array_is_a_typed_error() {
    let folder = tempfile::tempdir().unwrap();
    let error = |descr: &str, fortran: bool, shape: &str, data: &[u8]| {
        Array::<f32>::open(npy(folder.path(), descr, fortran, shape, 0, data)).unwrap_err()
    };
    for descr in ["<f8", "<i4", "|b1", "<f2", "|u1"] {
        let bytes = [0; 48];
        let size = descr[2..].parse::<usize>().unwrap();
        let shape = format!("({}, 1)", bytes.len() / size);
        let error = error(descr, false, &shape, &bytes);
        assert!(matches!(&error, DataError::Schema { there_is, .. } if there_is[0].1 == descr), "{error}");
        assert!(error.to_string().contains("its numbers are not f32"), "{error}");
    }
    assert!(
        matches!(error(">f4", false, "(2,)", &[0; 8]), DataError::Unsupported { what, .. } if what.contains("bytes"))
    );
    assert!(
        matches!(error("<f4", true, "(2, 1)", &[0; 8]), DataError::Unsupported { what, .. } if what.contains("Fort"))
    );
    for shape in ["(3,)", "(1,)", "()", "(4294967296, 4294967296, 4294967296)", "(-1,)", "(2.5,)", "2", "(1, 1, 0)"] {
        assert!(matches!(error("<f4", false, shape, &[0; 8]), DataError::Damaged { .. }), "{shape}");
    }
    for descr in ["|O", "<U8", "<c8", "<M8[s]", "", "<f16", "=f4"] {
        assert!(matches!(error(descr, false, "(2,)", &[0; 8]), DataError::Damaged { .. }), "{descr}");
    }
    let path = npy(folder.path(), "<f4", false, "(2,)", 0, &[0; 8]);
    let whole = std::fs::read(&path).unwrap();
    for end in 0..whole.len() {
        std::fs::write(&path, &whole[..end]).unwrap();
        let error = Array::<f32>::open(&path).unwrap_err();
        assert!(matches!(error, DataError::Damaged { .. }), "{end}: {error}");
    }
    std::fs::write(&path, b"\x89PNG\r\n\x1a\n and more").unwrap();
    assert!(matches!(Array::<f32>::open(&path).unwrap_err(), DataError::Format { .. }));
    assert!(matches!(Array::<f32>::open(folder.path()).unwrap_err(), DataError::Open { .. }));
    assert!(matches!(Array::<f32>::open(folder.path().join("none")).unwrap_err(), DataError::Open { .. }));
}

/// A view has the numbers of its array at their place in memory, also if the array is a file, and after the array is dropped.
#[test]
#[cfg(target_endian = "little")]
fn nothing_is_copied_before_the_batch() {
    let folder = tempfile::tempdir().unwrap();
    let numbers: Vec<f32> = (0..40).map(|n| n as f32).collect();
    let path = npy(folder.path(), "<f4", false, "(20, 2)", 0, bytemuck::cast_slice(&numbers));
    let in_memory = Array::new([20, 2], numbers).unwrap();
    for array in [in_memory, Array::open(path).unwrap()] {
        let start = array.data().as_ptr();
        let windows = SeriesWindows::new([array], 3).unwrap().with_horizon(2).unwrap();
        for index in 0..windows.len() {
            let window = windows.clone().window(index);
            let places = [&window.inputs, &window.targets].map(|part| part.data().as_ptr());
            assert_eq!(places, [start.wrapping_add(2 * index), start.wrapping_add(2 * index + 6)]);
        }
        let last = windows.window(15);
        drop(windows);
        assert_eq!(last.targets.data(), [36.0, 37.0, 38.0, 39.0]);
    }
}

#[test]
fn a_shape_has_as_many_numbers_as_there_are() {
    for shape in [vec![3], vec![2, 2], vec![], vec![usize::MAX, 4], vec![0]] {
        let error = Array::new(shape.clone(), vec![1u8, 2]).unwrap_err();
        assert!(matches!(error, DataError::Option { option: "shape", .. }), "{error}");
        let row = format!(r#"{{"shape": {shape:?}, "data": [1, 2]}}"#);
        assert!(serde_json::from_str::<Array<u8>>(&row).unwrap_err().to_string().contains("is not that of 2 numbers"));
    }
    let array = Array::new([2, 3], vec![1u8, 2, 3, 4, 5, 6]).unwrap();
    assert_eq!(array.rows(1..2).rows(0..1), Array::new([1, 3], vec![4, 5, 6]).unwrap());
    assert_eq!(array.rows(2..2), Array::new([0, 3], Vec::new()).unwrap());
    let wrong = [1..3, 3..3, 0..usize::MAX, std::ops::Range { start: 2, end: 1 }];
    for range in wrong {
        let rows = AssertUnwindSafe(|| array.rows(range.clone()));
        assert!(catch_unwind(rows).is_err(), "{range:?}");
    }
    assert!(catch_unwind(|| Array::new([], vec![1u8]).unwrap().rows(0..1)).is_err());
}

#[test]
fn windows_that_cannot_be_are_typed_errors() {
    let series = |steps: usize| Array::new([steps, 2], vec![0u8; 2 * steps]).unwrap();
    let option = |windows: Result<SeriesWindows<u8>, DataError>| match windows.unwrap_err() {
        DataError::Option { option, problem, .. } => (option, problem),
        other => panic!("{other}"),
    };
    assert_eq!(option(SeriesWindows::new([series(5)], 0)).0, "length");
    assert_eq!(option(SeriesWindows::new([series(5)], 2).unwrap().with_stride(0)).0, "stride");
    assert_eq!(option(SeriesWindows::new([series(5), series(0)], 6)).0, "length");
    assert_eq!(option(SeriesWindows::new([], 1)).0, "length");
    let far = option(SeriesWindows::new([series(5)], 2).unwrap().with_horizon(usize::MAX));
    assert!(far.1.contains("no series has 2 steps"), "{}", far.1);
    let flat = Array::new([10], vec![0u8; 10]).unwrap();
    let unlike = option(SeriesWindows::new([series(5), flat.clone()], 2));
    let problem = "the steps of series 1, of [10], are unlike those of series 0, of [5, 2]";
    assert_eq!(unlike, ("series", problem.into()));
    let number = Array::new([], vec![0u8]).unwrap();
    assert_eq!(option(SeriesWindows::new([flat, number.clone()], 2)).0, "series");
    assert_eq!(option(SeriesWindows::new([number], 1)).0, "length");
    assert!(SeriesWindows::new([series(0), series(5)], 5).unwrap().with_horizon(0).is_ok());
}

proptest! {
    #[test]
    fn windows_are_those_of_a_loop_over_the_steps(
        lengths in prop::collection::vec(0usize..30, 1..6),
        (length, stride, horizon, channels) in (1usize..8, 1usize..8, 0usize..5, 1usize..4),
    ) {
        let numbers = |series: usize, steps: std::ops::Range<usize>| -> Vec<u32> {
            steps.flat_map(|step| (0..channels).map(move |channel| (series * 1000 + step * 10 + channel) as u32)).collect()
        };
        let mut expected = Vec::new();
        for (series, steps) in lengths.iter().copied().enumerate() {
            let mut start = 0;
            while start + length + horizon <= steps {
                let end = start + length;
                expected.push((series, start, numbers(series, start..end), numbers(series, end..end + horizon)));
                start += stride;
            }
        }
        let arrays = lengths.iter().enumerate().map(|(series, steps)| {
            Array::new([*steps, channels], numbers(series, 0..*steps)).unwrap()
        });
        let windows = SeriesWindows::new(arrays, length)
            .and_then(|windows| windows.with_stride(stride))
            .and_then(|windows| windows.with_horizon(horizon));
        prop_assert_eq!(windows.is_ok(), !expected.is_empty());
        let Ok(windows) = windows else { return Ok(()) };
        let made: Vec<_> = Dataset::<SeriesWindow<u32>>::iter(&windows).map(Result::unwrap).collect();
        prop_assert_eq!(made.len(), windows.len());
        for window in &made {
            prop_assert_eq!(window.inputs.shape(), [length, channels]);
            prop_assert_eq!(window.targets.shape(), [horizon, channels]);
        }
        let made: Vec<_> = made
            .into_iter()
            .map(|it| (it.series, it.start, it.inputs.data().to_vec(), it.targets.data().to_vec()))
            .collect();
        prop_assert_eq!(made, expected);
    }

    /// No window and no target of the first part is in the second one.
    #[test]
    fn a_part_of_the_time_does_not_see_what_comes_later(
        steps in 1usize..60, share in 0usize..60, length in 1usize..6, horizon in 0usize..6,
    ) {
        let series = Array::new([steps], (0..steps).collect()).unwrap();
        let end = share.min(steps);
        let part = |range| SeriesWindows::new([series.rows(range)], length).and_then(|it| it.with_horizon(horizon));
        let seen = |windows: &SeriesWindows<usize>| -> Vec<usize> {
            let of = |index| windows.window(index);
            (0..windows.len()).flat_map(|index| [of(index).inputs, of(index).targets]).flat_map(|it| it.data().to_vec()).collect()
        };
        if let Ok(before) = part(0..end) {
            prop_assert!(seen(&before).iter().all(|step| *step < end));
        }
        if let Some(start) = end.checked_sub(length) && let Ok(after) = part(start..steps) {
            let first = after.window(0);
            prop_assert_eq!(first.targets, series.rows(end..end + horizon));
        }
    }
}
