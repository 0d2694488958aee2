//! COCO's annotations: each pixel of each mask, and the measure of found boxes.

use crate::manifest::Entry;
use burn::data::dataset::Dataset;
use burn_pinned::vision::{AveragePrecision, BoxFormat, Boxes, Coco};
use serde::Deserialize;
use std::fs;

#[derive(Deserialize)]
struct Measured {
    found: Vec<Found>,
    mean: f64,
}

#[derive(Deserialize)]
struct Found {
    image_id: i64,
    category_id: i64,
    bbox: [f32; 4],
    score: f32,
}

pub(crate) fn check(entry: &Entry) -> Result<(), String> {
    let mut right = &*fs::read(entry.right.as_ref().expect("masks")).expect("masks");
    let measured: Measured = serde_json::from_slice(&fs::read(&entry.paths[2]).expect("boxes")).expect("boxes");
    let coco = Coco::open(&entry.paths[0], &entry.paths[1]).map_err(|error| error.to_string())?.object_masks();
    let class_of = |id| coco.classes().iter().position(|class| class.id == id).expect("a category") as i32;
    let mut precision = AveragePrecision::default();
    for index in 0..coco.len() {
        let sample = coco.get(index).map_err(|error| error.to_string())?;
        for (object, mask) in sample.objects.iter().zip(&sample.masks) {
            let numbers = mask.to_numbers().map_err(|error| error.to_string())?;
            let (own, rest) = right.split_at(numbers.len());
            right = rest;
            if let Some(at) = numbers.iter().zip(own).position(|(is, right)| *is != u16::from(*right)) {
                return Err(format!("pixel {at} of object {} is {}, not {}", object.id, numbers.as_raw()[at], own[at]));
            }
        }
        let found: Vec<&Found> = measured.found.iter().filter(|found| found.image_id == sample.id).collect();
        let labels: Vec<i32> = found.iter().map(|found| class_of(found.category_id)).collect();
        let scores: Vec<f32> = found.iter().map(|found| found.score).collect();
        let boxes = Boxes::new(found.iter().map(|found| found.bbox), labels, BoxFormat::Xywh);
        let crowds: Vec<bool> = sample.boxes.indices().iter().map(|at| sample.objects[*at].is_crowd).collect();
        let added = precision.add((&boxes.map_err(|error| error.to_string())?, &scores), (&sample.boxes, &crowds));
        added.map_err(|error| error.to_string())?;
    }
    assert!(right.is_empty(), "more masks than objects");
    let mean = precision.mean().unwrap_or(-1.0);
    // Without found boxes pycocotools measures nothing.
    if measured.found.is_empty() || (mean - measured.mean).abs() < 1e-12 {
        return Ok(());
    }
    Err(format!("the mean average precision is {mean}, not {}", measured.mean))
}
