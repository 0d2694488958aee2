//! Images: files good and bad, the transforms of `vision`, a folder through the loader.

#[cfg(feature = "annotations")]
mod annotations;
mod any_size;
#[path = "../common/exif.rs"]
mod exif;
mod hostile_files;
mod image_folder;
mod jpeg_scans;
mod parts;
mod sixteen_bits;
mod vision;
