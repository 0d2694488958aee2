//! What is read of a file of annotations.

use super::shape::Shape;
use serde::Deserialize;

/// The file.
#[derive(Deserialize)]
pub(super) struct CocoFile {
    pub(super) images: Vec<ImageEntry>,
    #[serde(default)]
    pub(super) annotations: Vec<ObjectEntry>,
    #[serde(default)]
    pub(super) categories: Vec<CategoryEntry>,
}

#[derive(Deserialize)]
pub(super) struct ImageEntry {
    pub(super) id: i64,
    pub(super) file_name: String,
    pub(super) width: u32,
    pub(super) height: u32,
}

#[derive(Deserialize)]
pub(super) struct CategoryEntry {
    pub(super) id: i64,
    pub(super) name: String,
}

#[derive(Deserialize)]
pub(super) struct ObjectEntry {
    #[serde(default)]
    pub(super) id: i64,
    pub(super) image_id: i64,
    pub(super) category_id: i64,
    pub(super) bbox: [f32; 4],
    #[serde(default)]
    pub(super) area: f32,
    #[serde(default)]
    pub(super) iscrowd: u8,
    #[serde(default)]
    pub(super) segmentation: Option<Shape>,
    #[serde(default)]
    pub(super) keypoints: Keypoints,
}

/// For each keypoint x, y, and whether it can be seen.
#[derive(Deserialize, Default)]
#[serde(try_from = "Vec<f32>")]
pub(super) struct Keypoints(pub(super) Vec<[f32; 3]>);

impl TryFrom<Vec<f32>> for Keypoints {
    type Error = &'static str;

    fn try_from(numbers: Vec<f32>) -> Result<Self, Self::Error> {
        match numbers.as_chunks() {
            (points, []) => Ok(Self(points.to_vec())),
            _ => Err("keypoints have three numbers each"),
        }
    }
}
