//! Lists of arrays: the number in brackets counts arrays, and their type says the rest of the shape.

use super::{bools, epoch, floats, ints};
use burn::{data::dataset::InMemDataset, prelude::*, tensor::DType};
use burn_pinned::{PinnedDataLoaderBuilder, Sample, vision::Points};
use std::sync::Arc;

const MOST: usize = 6;
const AXES: usize = 3;

#[derive(Clone, Sample)]
struct Cloud {
    #[sample(padded = [6], mask)]
    points: Vec<[f32; 3]>,
    #[sample(padded = [MOST], fill = -1, mask)]
    pairs: Arc<[[i64; 2]]>,
    #[sample(padded = [6], mask)]
    deep: Vec<[[f32; 2]; AXES]>,
    #[sample(padded = [6, AXES], mask)]
    said_twice: Vec<[f32; 3]>,
    #[sample(jagged = [6])]
    edges: Box<[[u16; 2]]>,
    #[sample(shape = [2])]
    ends: Vec<[f32; 3]>,
    #[sample(padded = [6], mask)]
    marks: Vec<[bool; 2]>,
    #[sample(padded = [6], mask)]
    corners: Points,
    #[sample(jagged = [6], dtype = f16)]
    ways: Points,
}

/// A sample with this number of arrays in each list.
fn cloud(count: usize) -> Cloud {
    let points: Vec<[f32; 3]> = (0..count).map(|at| [at as f32, 0.5, 2.0 + at as f32]).collect();
    let flat = Points::new((0..count).map(|at| [at as f32, 7.0]).collect::<Vec<_>>()).unwrap();
    Cloud {
        pairs: vec![[3, 4]; count].into(),
        deep: vec![[[1.0, 2.0]; AXES]; count],
        said_twice: points.clone(),
        edges: vec![[8, 9]; count].into(),
        ends: vec![[1.0, 2.0, 3.0]; 2],
        marks: vec![[true, false]; count],
        corners: flat.clone(),
        ways: flat,
        points,
    }
}

fn builder() -> PinnedDataLoaderBuilder<Cloud, CloudBatch> {
    PinnedDataLoaderBuilder::new(Cloud::collate()).batch_size(2).set_device(Device::flex())
}

#[test]
fn the_number_in_brackets_counts_arrays() {
    let loader = builder().build(InMemDataset::new(vec![cloud(1), cloud(2)])).unwrap();
    let batch = epoch(&*loader).remove(0);
    assert_eq!((batch.points.dims(), batch.points_mask.dims()), ([2, 2, 3], [2, 2]));
    assert_eq!(floats(batch.points.clone()), [0.0, 0.5, 2.0, 0.0, 0.0, 0.0, 0.0, 0.5, 2.0, 1.0, 0.5, 3.0]);
    let mask = [true, false, true, true];
    assert_eq!(bools(batch.points_mask), mask);
    assert_eq!((floats(batch.said_twice), bools(batch.said_twice_mask)), (floats(batch.points), mask.to_vec()));
    assert_eq!((batch.pairs.dims(), ints(batch.pairs)), ([2, 2, 2], vec![3, 4, -1, -1, 3, 4, 3, 4]));
    assert_eq!((batch.deep.dims(), bools(batch.deep_mask)), ([2, 2, 3, 2], mask.to_vec()));
    assert_eq!((batch.edges.dims(), ints(batch.edges)), ([3, 2], vec![8, 9, 8, 9, 8, 9]));
    assert_eq!(ints(batch.edges_offsets), [0, 1, 3]);
    assert_eq!((batch.ends.dims(), floats(batch.ends)[..3].to_vec()), ([2, 2, 3], vec![1.0, 2.0, 3.0]));
    assert_eq!((batch.marks.dims(), batch.marks_mask.dims()), ([2, 2, 2], [2, 2]));
    assert_eq!((batch.corners.dims(), bools(batch.corners_mask)), ([2, 2, 2], mask.to_vec()));
    assert_eq!((batch.ways.dims(), batch.ways.dtype()), ([3, 2], DType::F16));
    assert_eq!((floats(batch.ways), ints(batch.ways_offsets)), (vec![0.0, 7.0, 0.0, 7.0, 1.0, 7.0], vec![0, 1, 3]));
}

#[test]
fn as_many_arrays_as_the_number_are_taken_and_no_more() {
    let fields: Vec<_> = Cloud::fields().iter().map(|field| field.shape().to_vec()).collect();
    let expected: [&[usize]; 9] = [&[6, 3], &[6, 2], &[6, 3, 2], &[6, 3], &[6, 2], &[2, 3], &[6, 2], &[6, 2], &[6, 2]];
    assert_eq!(fields, expected);
    let most = builder().build(InMemDataset::new(vec![cloud(MOST)])).unwrap();
    assert_eq!(epoch(&*most).remove(0).points.dims(), [1, 6, 3]);
    let more = builder().build(InMemDataset::new(vec![cloud(MOST + 1)])).unwrap();
    let error = more.iter().next().unwrap().map(drop).unwrap_err().to_string();
    assert!(error.contains("takes up to 6 steps of 3 values a row, not 7"), "{error}");
}
