//! Images: files good and bad, and the transforms.

#[cfg(feature = "annotations")]
mod annotations;
mod coco;
#[cfg(feature = "turbo")]
mod decoders;
#[path = "../../../../tests/common/exif.rs"]
mod exif;
mod golden;
mod hostile_files;
mod jpeg_scans;
mod parts;
#[path = "../../../../tests/common/photo.rs"]
mod photo;
#[cfg(feature = "turbo")]
#[path = "../../../../tests/common/scenes.rs"]
mod scenes;
mod vision;
