//! The made images.

use super::shapes;
use burn::data::dataset::Dataset;
use burn_pinned::vision::ImageFolder;
use std::collections::HashSet;

#[test]
fn generated_shapes_are_whole_and_split_without_overlap() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("shapes");
    shapes::generate(&root, 10, 1).unwrap();
    shapes::generate(&root, 10, 1).unwrap(); // once is enough
    let folder = ImageFolder::open(&root).unwrap();
    assert_eq!((folder.classes().len(), folder.len()), (6, 60));
    let pixels = |folder: &ImageFolder| -> HashSet<Vec<u8>> {
        (0..folder.len()).map(|at| folder.get(at).unwrap().0.into_rgb().unwrap().into_raw()).collect()
    };
    let all = pixels(&folder);
    let (train, valid) = folder.split(0.2, 3).unwrap();
    assert_eq!((train.len(), valid.len()), (48, 12));
    let (train, valid) = (pixels(&train), pixels(&valid));
    assert!(train.is_disjoint(&valid));
    assert_eq!(train.union(&valid).cloned().collect::<HashSet<_>>(), all);
}
