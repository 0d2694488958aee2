//! Images: files good and bad, the transforms of `vision`, a folder through the loader.

#[cfg(feature = "annotations")]
mod annotations;
mod any_size;
#[cfg(feature = "turbo")]
mod decoders;
#[path = "../common/exif.rs"]
mod exif;
mod hostile_files;
mod image_folder;
mod jpeg_scans;
mod parts;
#[cfg(feature = "turbo")]
#[path = "../common/scenes.rs"]
mod scenes;
mod sixteen_bits;
mod vision;
