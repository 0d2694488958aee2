//! COCO's measure of found boxes.

use super::{error::VisionError, parts::Boxes};
use std::{
    array,
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

/// The IoUs from which a found box is right, as numpy's `linspace(0.5, 0.95, 10)` has them.
const IOUS: [f64; 10] = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.8999999999999999, 0.95];
/// More boxes of an image and a class do not count.
const MOST: usize = 100;

/// The mean average precision (mAP) of found boxes, by COCO's rule: that of pycocotools' `COCOeval`.
///
/// ```
/// use burn_augment::images::{AveragePrecision, BoxFormat, Boxes};
///
/// let truth = Boxes::new([[10.0, 10.0, 30.0, 30.0], [40.0, 0.0, 60.0, 10.0]], [0, 0], BoxFormat::Xyxy)?;
/// let found = Boxes::new([[10.0, 10.0, 30.0, 28.0], [0.0, 0.0, 5.0, 5.0]], [0, 0], BoxFormat::Xyxy)?;
/// let mut precision = AveragePrecision::default();
/// precision.add((&found, &[0.9, 0.2]), (&truth, &[]))?; // once for each image
/// let at_ious = &precision.by_class()[&0]; // at the IoUs 0.5, 0.55, .. 0.95
/// assert!((at_ious[0] - 51.0 / 101.0).abs() < 1e-9 && at_ious[9] == 0.0); // half of the objects are found
/// assert!((precision.mean().unwrap_or(0.0) - 0.9 * 51.0 / 101.0).abs() < 1e-9);
/// # Ok::<(), burn_augment::images::VisionError>(())
/// ```
///
/// The precision is taken at 101 recalls, and of an image the 100 best boxes of each class count. Objects of all sizes
/// count. Boxes that are found in a region with a crowd are neither right nor wrong. It keeps 16 bytes for each found
/// box.
///
/// Of equal scores, those of the images that were added first come first. pycocotools adds images by rising ids.
///
/// The objects of a [`Coco`](super::Coco) are those of the file, without reading images: the boxes of a sample are clipped and sifted.
///
/// ```
/// # use burn_augment::images::{BoxFormat, Boxes, Coco};
/// fn truth(coco: &Coco, index: usize) -> Result<(Boxes, Vec<bool>), burn_augment::images::VisionError> {
///     let objects = coco.objects(index);
///     let labels: Vec<i32> = objects.iter().map(|object| object.class).collect();
///     let boxes = Boxes::new(objects.iter().map(|object| object.bbox), labels, BoxFormat::Xywh)?;
///     Ok((boxes, objects.iter().map(|object| object.is_crowd).collect()))
/// }
/// ```
#[derive(Debug, Clone, Default)]
pub struct AveragePrecision {
    /// For each class the number of objects, without crowds, and the found boxes.
    classes: BTreeMap<i32, (usize, Vec<FoundBox>)>,
}

/// A found box: its score, and for each IoU whether it is right. `None` is on a crowd.
type FoundBox = (f32, [Option<bool>; IOUS.len()]);

impl AveragePrecision {
    /// Adds an image: the found boxes with their scores, and the boxes of its objects, with whether each is a region
    /// with a crowd. `&[]` says that none is.
    ///
    /// # Errors
    /// If there is not a score for each found box, or it is NaN; or if only some objects have a word on crowds.
    pub fn add(&mut self, found: (&Boxes, &[f32]), truth: (&Boxes, &[bool])) -> Result<(), VisionError> {
        let ((found, scores), (truth, crowds)) = (found, truth);
        let is_crowd = |object: &usize| crowds.get(*object).is_some_and(|crowd| *crowd);
        let flags_fit = crowds.is_empty() || crowds.len() == truth.len();
        if !flags_fit || scores.len() != found.len() || scores.iter().any(|score| score.is_nan()) {
            let [found, objects] = [(found.len(), scores.len()), (truth.len(), crowds.len())];
            let problem =
                format!("are {} with {} scores, and {} with {} flags", found.0, found.1, objects.0, objects.1);
            let cure = "give each found box a score that is no NaN, and each object a flag, or none";
            return Err(VisionError::of_part("boxes", problem, cure));
        }
        for class in found.labels().iter().chain(truth.labels()).copied().collect::<BTreeSet<i32>>() {
            let of_class = |boxes: &Boxes| (0..boxes.len()).filter(|at| boxes.labels()[*at] == class).collect();
            let (mut best, mut objects): (Vec<usize>, Vec<usize>) = (of_class(found), of_class(truth));
            best.sort_by(|one, two| falling(scores[*one], scores[*two]));
            best.truncate(MOST);
            objects.sort_by_key(is_crowd);
            let crowds: Vec<bool> = objects.iter().map(is_crowd).collect();
            let (count, boxes) = self.classes.entry(class).or_default();
            *count += crowds.iter().filter(|crowd| !**crowd).count();
            let mut is_taken = vec![[false; IOUS.len()]; objects.len()];
            for at in best {
                let iou = |(object, crowd): (&usize, &bool)| overlap(found.xyxy()[at], truth.xyxy()[*object], *crowd);
                let ious: Vec<f64> = objects.iter().zip(&crowds).map(iou).collect();
                let mut is_right = [Some(false); IOUS.len()];
                for (n, is_right) in is_right.iter_mut().enumerate() {
                    if let Some(object) = object_of(&ious, &crowds, |object| is_taken[object][n], IOUS[n]) {
                        is_taken[object][n] = true;
                        *is_right = (!crowds[object]).then_some(true);
                    }
                }
                boxes.push((scores[at], is_right));
            }
        }
        Ok(())
    }

    /// The average precision of each class, at the IoUs 0.5, 0.55 and so on to 0.95. Classes without objects have none.
    pub fn by_class(&self) -> BTreeMap<i32, [f64; 10]> {
        let of_class = |(class, (objects, found)): (&i32, &(usize, Vec<FoundBox>))| {
            let mut found = found.clone();
            found.sort_by(|one, two| falling(one.0, two.0));
            let at_iou = |n: usize| precision(found.iter().filter_map(|found| found.1[n]), *objects as f64);
            (*objects > 0).then(|| (*class, array::from_fn(at_iou)))
        };
        self.classes.iter().filter_map(of_class).collect()
    }

    /// The mean over all classes and IoUs: COCO's AP. `None` if there are no objects.
    pub fn mean(&self) -> Option<f64> {
        let classes = self.by_class();
        let sum: f64 = classes.values().flatten().sum();
        (!classes.is_empty()).then(|| sum / (classes.len() * IOUS.len()) as f64)
    }
}

fn falling(one: f32, two: f32) -> Ordering {
    two.partial_cmp(&one).unwrap_or(Ordering::Equal)
}

/// The share of both boxes that they share, or of the found box, if the other is around a crowd.
fn overlap(found: [f32; 4], object: [f32; 4], is_crowd: bool) -> f64 {
    let ([left, top, right, bottom], [a, b, c, d]) = (found.map(f64::from), object.map(f64::from));
    let both = (right.min(c) - left.max(a)).max(0.0) * (bottom.min(d) - top.max(b)).max(0.0);
    let area = (right - left) * (bottom - top);
    let whole = if is_crowd { area } else { area + (c - a) * (d - b) - both };
    if both == 0.0 { 0.0 } else { both / whole }
}

/// The object with the largest overlap that is not taken, if it is at least `least`. Crowds come last, and only if no
/// object is found.
fn object_of(ious: &[f64], crowds: &[bool], is_taken: impl Fn(usize) -> bool, least: f64) -> Option<usize> {
    let (mut best, mut object) = (least, None);
    for at in 0..ious.len() {
        if crowds[at] && object.is_some_and(|object: usize| !crowds[object]) {
            break;
        }
        if (crowds[at] || !is_taken(at)) && ious[at] >= best {
            (best, object) = (ious[at], Some(at));
        }
    }
    object
}

/// The mean precision at 101 recalls, of whether each found box is right, from the best on.
fn precision(found: impl Iterator<Item = bool>, objects: f64) -> f64 {
    let mut right = 0.0;
    let point = |(before, is_right)| {
        right += f64::from(u8::from(is_right));
        (right / objects, right / (before as f64 + 1.0 + f64::EPSILON))
    };
    let mut curve: Vec<(f64, f64)> = found.enumerate().map(point).collect();
    let mut most = 0.0f64;
    for (_, precision) in curve.iter_mut().rev() {
        most = most.max(*precision);
        *precision = most;
    }
    let at_recall = |recall: u8| {
        let recall = f64::from(recall) * 0.01;
        curve.get(curve.partition_point(|(reached, _)| *reached < recall)).map_or(0.0, |(_, precision)| *precision)
    };
    (0..=100).map(at_recall).sum::<f64>() / 101.0
}
