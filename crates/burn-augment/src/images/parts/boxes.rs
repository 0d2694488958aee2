//! Boxes around objects of an image.

use super::moves::turned;
use crate::images::{error::VisionError, geometry::Walk};
use image::metadata::Orientation;

/// The meaning of the four numbers of a box, in pixels. Pixel n lies from n to n + 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoxFormat {
    /// Left, top, right, bottom: Pascal VOC's.
    Xyxy,
    /// Left, top, width, height: COCO's.
    Xywh,
    /// Centre x, centre y, width, height: YOLO's, whose numbers are [shares of the image](Boxes::of_shares).
    Cxcywh,
}

impl BoxFormat {
    fn to_xyxy(self, [a, b, c, d]: [f32; 4]) -> [f32; 4] {
        match self {
            Self::Xyxy => [a, b, c, d],
            Self::Xywh => [a, b, a + c, b + d],
            Self::Cxcywh => [a - c / 2.0, b - d / 2.0, a + c / 2.0, b + d / 2.0],
        }
    }

    fn of_xyxy(self, [left, top, right, bottom]: [f32; 4]) -> [f32; 4] {
        let (width, height) = (right - left, bottom - top);
        match self {
            Self::Xyxy => [left, top, right, bottom],
            Self::Xywh => [left, top, width, height],
            Self::Cxcywh => [left + width / 2.0, top + height / 2.0, width, height],
        }
    }
}

/// Boxes around objects of an image, with a label for each: torchvision's `BoundingBoxes`.
///
/// ```
/// use burn_augment::{Augment, KeyedRng, images::{BoxFormat, Boxes, CenterCrop}};
///
/// let boxes = Boxes::new([[50.0, 40.0, 40.0, 30.0], [0.0, 0.0, 15.0, 9.0]], [7, 8], BoxFormat::Xywh)?;
/// let sample = (image::RgbImage::new(100, 80), boxes.least_visible(0.3)?);
/// let (_, boxes) = CenterCrop::new(60)?.apply(sample, &mut KeyedRng::for_order(1, 0))?;
/// assert_eq!(boxes.values(BoxFormat::Xywh), [30.0, 30.0, 30.0, 30.0]); // the other box is outside
/// assert_eq!(boxes.labels(), [7]);
/// # Ok::<(), burn_augment::BoxError>(())
/// ```
///
/// After a change, a box is the smallest around its four moved corners, clipped at the border of the image: see
/// `torchvision.transforms.v2.functional.crop_bounding_boxes`, `affine_bounding_boxes` and `clamp_bounding_boxes`. With
/// the option `expand` of a rotation it fits the image; torchvision's is up to a pixel off. Each transform then removes
/// boxes that are too small, with their labels, as torchvision's `SanitizeBoundingBoxes` does: even if the transform
/// draws no change, but not if a `RandomApply` skips it.
///
/// For a row of burn-pinned: `Field::padded("boxes", [100, 4], 0f32)` and `Field::padded("labels", [100], -1i32)` take
/// up to 100 boxes, written by `row.write("boxes", &boxes.values(BoxFormat::Xyxy))` and `row.write("labels",
/// boxes.labels())`.
#[derive(Debug, Clone, PartialEq)]
pub struct Boxes {
    xyxy: Vec<[f32; 4]>,
    labels: Vec<i32>,
    /// The place of each box among those that `new` got, and how many these were.
    indices: Vec<usize>,
    given: usize,
    /// The share of each box that is left after all clipping.
    visible: Vec<f32>,
    least_side: f32,
    least_area: f32,
    least_visible: f32,
}

impl Default for Boxes {
    /// No boxes.
    fn default() -> Self {
        let (xyxy, labels, indices, visible) = Default::default();
        Self { xyxy, labels, indices, given: 0, visible, least_side: 1.0, least_area: 1.0, least_visible: 0.0 }
    }
}

impl Boxes {
    /// Takes boxes, and a label for each, such as its class.
    ///
    /// # Errors
    /// If there are more or fewer labels than boxes, a number is not finite, or a right or bottom edge lies before its
    /// left or top edge.
    pub fn new(
        boxes: impl IntoIterator<Item = [f32; 4]>,
        labels: impl Into<Vec<i32>>,
        format: BoxFormat,
    ) -> Result<Self, VisionError> {
        let xyxy: Vec<_> = boxes.into_iter().map(|numbers| format.to_xyxy(numbers)).collect();
        let (labels, indices, visible) = (labels.into(), (0..xyxy.len()).collect(), vec![1.0; xyxy.len()]);
        if labels.len() != xyxy.len() {
            let problem = format!("are {}, and have {} labels", xyxy.len(), labels.len());
            return Err(VisionError::of_part("boxes", problem, "give each box its label"));
        }
        let is_box = |[left, top, right, bottom]: &[f32; 4]| {
            left <= right && top <= bottom && [left, top, right, bottom].iter().all(|edge| edge.is_finite())
        };
        match xyxy.iter().position(|edges| !is_box(edges)) {
            None => Ok(Self { given: xyxy.len(), xyxy, labels, indices, visible, ..Self::default() }),
            Some(at) => Err(VisionError::of_part(
                "boxes",
                format!("have {:?} as the edges of box {at}", xyxy[at]),
                "left and top come first, and all are numbers: check the format (`BoxFormat`), or leave the box out",
            )),
        }
    }

    /// Takes boxes in shares of an image of this width and height, from 0 to 1, as YOLO and albumentations have them. The
    /// image is that of the sample, rotated for viewing: `image.dimensions()`.
    ///
    /// ```
    /// use burn_augment::images::{BoxFormat, Boxes};
    ///
    /// let boxes = Boxes::of_shares([[0.5, 0.5, 0.25, 0.5]], [3], BoxFormat::Cxcywh, (640, 480))?;
    /// assert_eq!(boxes.xyxy(), [[240.0, 120.0, 400.0, 360.0]]);
    /// assert_eq!(boxes.shares(BoxFormat::Cxcywh, (640, 480)), [0.5, 0.5, 0.25, 0.5]);
    /// # Ok::<(), burn_augment::images::VisionError>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn of_shares(
        boxes: impl IntoIterator<Item = [f32; 4]>,
        labels: impl Into<Vec<i32>>,
        format: BoxFormat,
        (width, height): (u32, u32),
    ) -> Result<Self, VisionError> {
        let (width, height) = (width as f32, height as f32);
        let pixels = |[a, b, c, d]: [f32; 4]| [a * width, b * height, c * width, d * height];
        Self::new(boxes.into_iter().map(pixels), labels, format)
    }

    /// Reads the text of a YOLO label file: in each line, a class and the centre x, centre y, width and height of a
    /// box, in shares of an image of this width and height.
    ///
    /// ```
    /// use burn_augment::images::Boxes;
    ///
    /// let boxes = Boxes::from_yolo("3 0.5 0.5 0.25 0.5\n0 0.1 0.2 0.2 0.1\n", (640, 480))?;
    /// assert_eq!((boxes.labels(), boxes.xyxy()[0]), (&[3, 0][..], [240.0, 120.0, 400.0, 360.0]));
    /// assert!(Boxes::from_yolo("3 0.5 0.5 0.25", (640, 480)).unwrap_err().to_string().contains("line 1"));
    /// # Ok::<(), burn_augment::images::VisionError>(())
    /// ```
    ///
    /// # Errors
    /// With the number of the line, if it has anything else, such as a polygon. Otherwise the errors of
    /// [`new`](Self::new).
    pub fn from_yolo(text: &str, size: (u32, u32)) -> Result<Self, VisionError> {
        let (mut boxes, mut labels) = (Vec::new(), Vec::new());
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let mut words = line.split_whitespace();
            let class = words.next().and_then(|word| word.parse::<f32>().ok()); // some write `3.0`
            let label = class.filter(|class| class.fract() == 0.0).map(|class| class as i32);
            let numbers: Option<Vec<f32>> = words.map(|word| word.parse().ok()).collect();
            let (Some(label), Some(&[a, b, c, d])) = (label, numbers.as_deref()) else {
                let problem = format!("have no class with four numbers in line {}", at + 1);
                return Err(VisionError::of_part("boxes", problem, "write `class center_x center_y width height`"));
            };
            labels.push(label);
            boxes.push([a, b, c, d]);
        }
        Self::of_shares(boxes, labels, BoxFormat::Cxcywh, size)
    }

    /// Sets the least width and the least height of a box, in pixels of the image after each transform. Boxes with a
    /// shorter side are removed, such as slivers at the border. Default: 1.
    ///
    /// # Errors
    /// If it is negative or no number.
    pub fn least_side(self, pixels: f32) -> Result<Self, VisionError> {
        Ok(Self { least_side: limit("least_side", pixels, f32::MAX)?, ..self })
    }

    /// Sets the least area of a box, in pixels of the image after each transform. Smaller boxes are removed. Default:
    /// 1.
    ///
    /// # Errors
    /// If it is negative or no number.
    pub fn least_area(self, pixels: f32) -> Result<Self, VisionError> {
        Ok(Self { least_area: limit("least_area", pixels, f32::MAX)?, ..self })
    }

    /// Sets the least share of a box that must be left, from 0 to 1. A box is removed when less of it is in the image.
    /// Default: 0.
    ///
    /// Shares are multiplied: after two crops that each keep half of a box, its share is a quarter.
    ///
    /// # Errors
    /// If it is not from 0 to 1.
    pub fn least_visible(self, share: f32) -> Result<Self, VisionError> {
        Ok(Self { least_visible: limit("least_visible", share, 1.0)?, ..self })
    }

    /// Clips boxes at the border of an image of this width and height. Boxes that are too small then are removed.
    pub fn clip(mut self, size: (u32, u32)) -> Self {
        self.cut_off(size);
        self
    }

    /// The boxes, each as left, top, right, bottom.
    pub fn xyxy(&self) -> &[[f32; 4]] {
        &self.xyxy
    }

    /// The boxes one after another, four numbers each.
    pub fn values(&self, format: BoxFormat) -> Vec<f32> {
        self.xyxy.iter().flat_map(|edges| format.of_xyxy(*edges)).collect()
    }

    /// The boxes one after another, four numbers each, in shares of an image of this width and height, both above 0.
    pub fn shares(&self, format: BoxFormat, (width, height): (u32, u32)) -> Vec<f32> {
        let sides = [width, height].map(|side| side as f32);
        self.values(format).iter().zip(sides.iter().cycle()).map(|(value, side)| value / side).collect()
    }

    /// The label of each box.
    pub fn labels(&self) -> &[i32] {
        &self.labels
    }

    /// The place of each box among those that [`new`](Self::new) got: for what else you know of them, such as masks. If samples are combined,
    /// those of the other samples come after them.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }

    /// The number of boxes.
    pub fn len(&self) -> usize {
        self.xyxy.len()
    }

    /// Whether there are no boxes.
    pub fn is_empty(&self) -> bool {
        self.xyxy.is_empty()
    }

    /// Keeps the boxes that `keep` is true for, with their labels.
    pub(crate) fn retain(&mut self, keep: impl Fn(&[f32; 4], f32) -> bool) {
        let kept: Vec<bool> = self.xyxy.iter().zip(&self.visible).map(|(edges, share)| keep(edges, *share)).collect();
        fn sift<T>(list: &mut Vec<T>, kept: &[bool]) {
            let mut kept = kept.iter();
            list.retain(|_| kept.next().is_some_and(|kept| *kept));
        }
        sift(&mut self.xyxy, &kept);
        sift(&mut self.labels, &kept);
        sift(&mut self.indices, &kept);
        sift(&mut self.visible, &kept);
    }

    /// Cuts the boxes off at these edges.
    pub(crate) fn shrink(&mut self, edges: impl IntoIterator<Item = [f32; 4]>) {
        for ([left, top, right, bottom], [a, b, c, d]) in self.xyxy.iter_mut().zip(edges) {
            (*left, *top, *right, *bottom) = (left.max(a), top.max(b), right.min(c), bottom.min(d));
        }
    }

    /// Multiplies the visible share of each box by these, and keeps the boxes that are visible enough.
    pub(crate) fn keep_visible(&mut self, shares: Vec<f32>) {
        self.visible.iter_mut().zip(shares).for_each(|(visible, share)| *visible *= share);
        let least = self.least_visible;
        self.retain(|_, visible| visible > 0.0 && visible >= least);
    }

    /// How many boxes there were, before any was removed.
    pub(crate) fn given(&self) -> usize {
        self.given
    }

    /// Takes the boxes of another image too.
    pub(super) fn append(&mut self, other: &mut Self) {
        self.xyxy.append(&mut other.xyxy);
        self.labels.append(&mut other.labels);
        self.indices.extend(other.indices.drain(..).map(|index| self.given + index));
        self.visible.append(&mut other.visible);
        self.given += other.given;
    }

    /// Moves the boxes, to places of an image of this size.
    pub(super) fn map_within(&mut self, place: impl Fn([f32; 2]) -> [f32; 2], size: (u32, u32)) {
        for edges in &mut self.xyxy {
            let [left, top, right, bottom] = *edges;
            let corners = [[left, top], [right, top], [right, bottom], [left, bottom]].map(&place);
            let ends = |axis: usize, better: fn(f32, f32) -> f32| {
                corners.iter().map(|corner| corner[axis]).reduce(better).unwrap_or_default()
            };
            *edges = [ends(0, f32::min), ends(1, f32::min), ends(0, f32::max), ends(1, f32::max)];
        }
        self.cut_off(size);
    }

    /// Clips boxes at the border of an image of this size, and removes those that are too small.
    pub(super) fn cut_off(&mut self, (width, height): (u32, u32)) {
        for (edges, share) in self.xyxy.iter_mut().zip(&mut self.visible) {
            let [left, top, right, bottom] = *edges;
            let across = |edge: f32| edge.clamp(0.0, width as f32);
            let down = |edge: f32| edge.clamp(0.0, height as f32);
            let seen = [across(left), down(top), across(right), down(bottom)];
            if seen != *edges {
                *share *= area(&seen) / area(edges).max(f32::MIN_POSITIVE);
                *edges = seen;
            }
        }
        let Self { least_side, least_area, least_visible, .. } = *self;
        self.retain(|edges, share| {
            let [left, top, right, bottom] = *edges;
            let shorter = (right - left).min(bottom - top);
            shorter >= least_side && area(edges) >= least_area && share >= least_visible
        });
    }

    pub(super) fn check(&self, (width, height): (u32, u32)) -> Result<(), VisionError> {
        // Annotations are rounded.
        const SLACK: f32 = 1.0;
        let within = |[left, top, right, bottom]: &[f32; 4]| {
            left.min(*top) >= -SLACK && *right <= width as f32 + SLACK && *bottom <= height as f32 + SLACK
        };
        match self.xyxy.iter().find(|edges| !within(edges)) {
            None => Ok(()),
            Some(edges) => Err(VisionError::of_part(
                "boxes",
                format!(
                    "have one from left, top to right, bottom of {edges:?}, outside its image of {width} x {height}"
                ),
                "give the boxes in pixels of this image, or cut them off by `Boxes::clip`",
            )),
        }
    }

    pub(super) fn turn(&mut self, by: Orientation, size: (u32, u32)) {
        // Pixels have one more edge than there are pixels.
        let matrix = turned(by, (size.0 + 1, size.1 + 1));
        self.map_within(|place| matrix.map_place(place), Walk::new(by, size).size);
    }
}

fn limit(name: &str, value: f32, most: f32) -> Result<f32, VisionError> {
    let problem = || format!("cannot have {value} as `{name}`");
    let cure = "give pixels of 0 or more, or a share from 0 to 1";
    if (0.0..=most).contains(&value) { Ok(value) } else { Err(VisionError::of_part("boxes", problem(), cure)) }
}

fn area([left, top, right, bottom]: &[f32; 4]) -> f32 {
    (right - left) * (bottom - top)
}
