//! MNIST as the Hugging Face hub has it: each picture and label of the Parquet file beside those that it was written from.

use crate::golden::golden;
use burn::data::dataset::Dataset;
use burn_pinned::{data::Rows, vision::Image};
use std::{
    env, fs,
    path::{Path, PathBuf},
};

const SIDE: u32 = 28;

/// The grey values of a picture, and its label.
fn grey((image, label): (Image, usize)) -> (Vec<u8>, usize) {
    let rgb = image.into_rgb().unwrap();
    assert_eq!(rgb.dimensions(), (SIDE, SIDE));
    assert!(rgb.pixels().all(|pixel| pixel.0 == [pixel.0[0]; 3]));
    (rgb.pixels().map(|pixel| pixel.0[0]).collect(), label)
}

/// Reads all pictures, before and after an index is made. It is a file if there is something to note.
fn check(file: &Path, count: usize, indices: usize, is_right: impl Fn(usize, &(Vec<u8>, usize)) -> bool) {
    let index = tempfile::tempdir().unwrap();
    let open =
        || Rows::<(Image, usize)>::parquet(file).columns(["image", "label"]).index_dir(index.path()).open().unwrap();
    let read = |rows: &Rows<(Image, usize)>| {
        assert_eq!(rows.len(), count);
        let wrong = (0..count).filter(|at| !is_right(*at, &grey(rows.get(*at).unwrap()))).count();
        assert_eq!(wrong, 0, "pictures of {count} that differ");
    };
    let rows = open();
    let classes: Vec<String> = (0..10).map(|class| class.to_string()).collect();
    assert_eq!(rows.classes("label"), Some(classes));
    read(&rows);
    assert_eq!(fs::read_dir(index.path()).unwrap().count(), 0);
    rows.index().unwrap();
    assert_eq!(fs::read_dir(index.path()).unwrap().count(), indices);
    read(&open());
}

#[test]
fn the_first_pictures_are_what_was_written() {
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(golden("mnist/manifest.json")).unwrap()).unwrap();
    let list = |name: &str| -> Vec<u64> {
        manifest[name].as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).collect()
    };
    let (labels, sums) = (list("labels"), list("crc32_of_pixels"));
    // Columns as small as these are decoded as a whole.
    check(&golden("mnist/first.parquet"), labels.len(), 0, |at, (pixels, label)| {
        (u64::from(crc32fast::hash(pixels)), *label as u64) == (sums[at], labels[at])
    });
}

/// The items of an IDX file, behind a head that this reader passes over.
fn idx(file: PathBuf, head: usize) -> Vec<u8> {
    fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display())).split_off(head)
}

/// `MNIST` names the folder of `golden/make_mnist.py`.
#[test]
#[ignore = "needs all of MNIST: see golden/make_mnist.py"]
fn all_of_mnist_is_what_was_written() {
    let folder = PathBuf::from(env::var_os("MNIST").expect("MNIST names the folder of golden/make_mnist.py"));
    for (name, part, count) in [("train", "train", 60_000), ("test", "t10k", 10_000)] {
        let pixels = idx(folder.join(format!("{part}-images-idx3-ubyte")), 16);
        let labels = idx(folder.join(format!("{part}-labels-idx1-ubyte")), 8);
        let pixels: Vec<&[u8]> = pixels.chunks((SIDE * SIDE) as usize).collect();
        assert_eq!((pixels.len(), labels.len()), (count, count));
        check(&folder.join(format!("{name}.parquet")), count, 1, |at, (grey, label)| {
            grey == pixels[at] && *label == usize::from(labels[at])
        });
        println!("{name}: {count} pictures, 0 differ, before and after the index is made");
    }
}
