//! COCO's annotations: boxes, masks and keypoints, and the measure of found boxes. The golden values are pycocotools'.

use burn::data::dataset::Dataset;
use burn_augment::{Augment, BoxError, KeyedRng, augment::WithOthers, images::*};
use image::{Rgb, RgbImage};
use rand::RngExt;
use serde_json::{Value, json};
use std::fs;

/// A data set of one image of 7 x 5 pixels and one without objects, with these annotations.
fn open(annotations: Value) -> Result<(tempfile::TempDir, Coco), CocoError> {
    let folder = tempfile::tempdir().unwrap();
    RgbImage::from_fn(7, 5, |x, y| Rgb([x as u8, y as u8, 0])).save(folder.path().join("1.png")).unwrap();
    let file = json!({
        "info": {"year": 2017},
        "images": [{"id": 9, "file_name": "none.png", "width": 2, "height": 2},
            {"id": 4, "file_name": "1.png", "width": 7, "height": 5, "license": 3}],
        "categories": [{"id": 18, "name": "dog"}, {"id": 1, "name": "person", "supercategory": "person"}],
        "annotations": annotations,
    });
    let json = folder.path().join("a.json");
    fs::write(&json, file.to_string()).unwrap();
    Coco::open(json, folder.path()).map(|coco| (folder, coco))
}

fn object(id: i64, category: i64, bbox: [f32; 4], segmentation: Value) -> Value {
    json!({"id": id, "image_id": 4, "category_id": category, "bbox": bbox, "area": 6, "segmentation": segmentation})
}

fn pixels(mask: &Mask) -> String {
    let numbers = mask.to_numbers().unwrap();
    let row = |row: &[u16]| row.iter().map(|number| number.to_string()).collect::<String>();
    numbers.as_raw().chunks(numbers.width() as usize).map(row).collect::<Vec<_>>().join(" ")
}

fn mask_of(segmentation: Value) -> Result<String, BoxError> {
    let (_folder, coco) = open(json!([object(1, 1, [0.0, 0.0, 7.0, 5.0], segmentation)]))?;
    Ok(pixels(&coco.object_masks().get(1)?.masks[0]))
}

#[test]
fn masks_are_those_of_pycocotools() -> Result<(), BoxError> {
    for (segmentation, right) in [
        (json!([[1, 1, 5, 1, 5, 4, 1, 4]]), "0000000 0111100 0111100 0111100 0000000"),
        (json!([[0.3, 0.1, 6.7, 1.5, 2.5, 4.9]]), "0100000 0111110 0011110 0011000 0010000"),
        (json!([[-3, -4, 12.5, 2.5, 3, 9.7, 3.3, 1.1]]), "0001111 0001111 0001111 0001111 0001111"),
        (json!([[0, 0, 2, 0, 2, 5, 0, 5], [1, 2, 7, 2, 7, 3, 1, 3]]), "1100000 1100000 1111111 1100000 1100000"),
        (json!([[2, 2, 2, 2, 2, 2]]), "0000000 0000000 0000000 0000000 0000000"),
        (json!([]), "0000000 0000000 0000000 0000000 0000000"),
        (json!({"counts": [6, 3, 10, 16], "size": [5, 7]}), "0000111 0100111 0100111 0100111 0001111"),
        (json!({"counts": [0, 35], "size": [5, 7]}), "1111111 1111111 1111111 1111111 1111111"),
        (json!({"counts": "5242MO1O104", "size": [5, 7]}), "0100000 0111110 0011110 0011000 0010000"),
    ] {
        assert_eq!(mask_of(segmentation.clone())?, right, "{segmentation}");
    }
    Ok(())
}

#[test]
fn hostile_segmentations_are_errors_of_their_image() {
    for (segmentation, told) in [
        (json!([[1, 1, 5, 1, 5, 4, 1]]), "half a corner"),
        (json!({"counts": [6, 3], "size": [5, 7]}), "do not fill"),
        (json!({"counts": [4294967295u32, 4294967295u32, 4294967295u32], "size": [65535, 65535]}), "do not fill"),
        (json!({"counts": "6", "size": [5, 7]}), "do not fill"),
        (json!({"counts": "zzzzzzzzzzzzz", "size": [5, 7]}), "cannot be unpacked"),
        (json!({"counts": "o", "size": [5, 7]}), "cannot be unpacked"),
        (json!({"counts": "T", "size": [5, 7]}), "cannot be unpacked"),
        (json!({"counts": "é", "size": [5, 7]}), "cannot be unpacked"),
    ] {
        let error = mask_of(segmentation.clone()).unwrap_err().to_string();
        assert!([told, "1.png", "annotation 1 has"].iter().all(|part| error.contains(part)), "{error}");
    }
    let error = open(json!([object(1, 1, [0.0; 4], json!("polygon"))])).unwrap_err().to_string();
    assert!(error.contains("is a list of polygons") && error.contains("line 1 column"), "{error}");
    // Places far outside cost no time for each pixel.
    let far = mask_of(json!([[-1e300, -1e300, 1e300, 1e300, 1e300, -1e300], [-1e9, 0, 1e9, 0.2, 0, 1e9]])).unwrap();
    assert_eq!(far.len(), 39);
    let other = mask_of(json!({"counts": [12], "size": [3, 4]})).unwrap_err().to_string();
    assert!(other.contains("[3, 4]") && other.contains("[5, 7]"), "{other}");
}

#[test]
fn a_sample_has_its_objects_and_moves_whole() -> Result<(), BoxError> {
    let person = json!({"id": 12, "image_id": 4, "category_id": 1, "bbox": [4, 1, 3, 3.5], "area": 8.5, "iscrowd": 1,
        "segmentation": [[4, 1, 7, 1, 7, 4.5, 4, 4.5]], "keypoints": [5, 2, 2, 0, 0, 0, 6.5, 4, 1]});
    let small = object(11, 18, [0.0, 0.0, 0.5, 5.0], Value::Null);
    let dog = object(10, 18, [-1.0, 0.0, 4.0, 3.0], json!([[0, 0, 3, 0, 3, 3, 0, 3]]));
    let (_folder, coco) = open(json!([small, person, dog]))?;
    let names: Vec<_> = coco.classes().iter().map(|class| (class.id, class.name.as_str())).collect();
    assert_eq!(names, [(1, "person"), (18, "dog")]);
    assert_eq!((coco.len(), coco.objects(0).len(), coco.objects(1).len(), coco.id(1)), (2, 0, 3, 4));
    let error = coco.get(0).unwrap_err().to_string();
    assert!(error.contains("none.png"), "{error}");

    let coco = coco.annotated_only().object_masks();
    assert_eq!(coco.len(), 1);
    let sample = coco.get(0)?;
    assert!(!sample.image.is_decoded());
    // The small box is gone, the dog's is clipped, and each knows its object.
    assert_eq!((sample.id, sample.boxes.xyxy()), (4, &[[4.0, 1.0, 7.0, 4.5], [0.0, 0.0, 3.0, 3.0]][..]));
    assert_eq!((sample.boxes.labels(), sample.boxes.indices()), (&[0, 1][..], &[1, 2][..]));
    assert_eq!((sample.objects[1].id, sample.objects[1].area, sample.objects[1].is_crowd), (12, 8.5, true));
    assert_eq!((sample.objects[2].id, sample.objects[2].is_crowd, sample.objects[2].class), (10, false, 1));
    let seen: Vec<f32> = sample.objects[1].keypoints.iter().map(|point| point[2]).collect();
    assert_eq!((seen, sample.objects[1].category_id), (vec![2.0, 0.0, 1.0], 1));
    assert_eq!((sample.masks.len(), sample.keypoints.len(), sample.keypoints[0].xy().len()), (3, 3, 0));

    let sample = RandomHorizontalFlip::new(1.0)?.apply(sample, &mut KeyedRng::for_order(1, 0))?;
    assert_eq!(pixels(&sample.masks[2]), "0000111 0000111 0000111 0000000 0000000");
    assert_eq!(sample.keypoints[1].within((7, 5)), [true, false, false]);
    assert_eq!((sample.keypoints[1].xy()[0], sample.keypoints[1].xy()[2]), ([1.0, 2.0], [-0.5, 4.0]));
    let left = CenterCrop::new([5, 3])?.apply(sample, &mut KeyedRng::for_order(1, 0))?;
    assert_eq!((left.boxes.indices(), left.masks[2].dimensions(), left.size), (&[1, 2][..], (3, 5), (7, 5)));
    Ok(())
}

#[test]
fn a_crowd_can_be_left_out() -> Result<(), BoxError> {
    let mut crowd = object(5, 1, [0.0, 0.0, 4.0, 4.0], Value::Null);
    crowd["iscrowd"] = json!(1.0);
    let (_folder, coco) = open(json!([crowd, object(6, 18, [0.0, 0.0, 3.0, 3.0], Value::Null)]))?;
    assert_eq!(coco.objects(1).len(), 2);
    let sample = coco.without_crowds().get(1)?;
    assert_eq!((sample.boxes.labels(), sample.objects.len(), sample.objects[0].id), (&[1][..], 1, 6));
    Ok(())
}

#[test]
fn what_tools_leave_out_is_not_needed() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("a.json");
    image::RgbImage::new(7, 5).save(folder.path().join("1.png"))?;
    let json = r#"{"images": [{"id": 4, "file_name": "1.png", "width": null, "height": null}],
        "categories": [{"id": 1, "name": "a", "keypoints": null}],
        "annotations": [{"id": null, "image_id": 4, "category_id": 1, "bbox": [0, 0, 3, 3], "iscrowd": false}]}"#;
    fs::write(&path, json)?;
    assert_eq!(Coco::open(&path, folder.path())?.get(0)?.boxes.xyxy(), [[0.0, 0.0, 3.0, 3.0]]);
    fs::write(&path, json.replace("false", "\"no\""))?;
    assert!(Coco::open(&path, folder.path()).unwrap_err().to_string().contains("`iscrowd` is 0 or 1"));
    Ok(())
}

#[test]
fn a_class_mask_has_the_class_of_each_pixel() -> Result<(), BoxError> {
    let person = object(12, 1, [4.0, 1.0, 3.0, 3.0], json!([[4, 1, 7, 1, 7, 4, 4, 4]]));
    let dog = object(10, 18, [0.0, 0.0, 5.0, 2.0], json!([[0, 0, 5, 0, 5, 2, 0, 2]]));
    let (_folder, coco) = open(json!([person, dog]))?;
    let sample = coco.class_mask().get(1)?;
    assert!(sample.masks.is_empty());
    assert_eq!(pixels(&sample.class_mask.unwrap()), "2222200 222225511 0000111 0000111 0000000");
    Ok(())
}

#[test]
fn files_that_do_not_fit_are_errors() {
    let unknown = |key: &str, value| {
        let mut wrong = object(5, 1, [0.0; 4], Value::Null);
        wrong[key] = value;
        open(json!([wrong])).unwrap_err().to_string()
    };
    let error = unknown("image_id", json!(77));
    assert!(error.contains("annotation 5") && error.contains("id 77") && error.contains("`images`"), "{error}");
    let error = unknown("category_id", json!(2));
    assert!(error.contains("id 2") && error.contains("`categories`"), "{error}");
    let error = unknown("keypoints", json!([1, 2]));
    assert!(error.contains("three numbers") && error.contains("line 1 column"), "{error}");
    let error = unknown("bbox", json!([1, 2, 3]));
    assert!(error.contains("line 1 column"), "{error}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    assert!(matches!(Coco::open(&path, folder.path()), Err(CocoError::Read { .. })));
    let image = |size: u32| json!({"id": 4, "file_name": "1.png", "width": size, "height": 5});
    fs::write(&path, json!({"images": [image(7), image(7)]}).to_string()).unwrap();
    assert!(matches!(Coco::open(&path, folder.path()), Err(CocoError::TwiceAnId { list: "images", id: 4, .. })));
    fs::write(&path, r#"{"images": [], "categories": [{"id": 1"#).unwrap();
    let error = Coco::open(&path, folder.path()).unwrap_err().to_string();
    assert!(error.contains("EOF") && error.contains("line 1"), "{error}");
    // An image of another size, and a box of negative width.
    RgbImage::new(7, 5).save(folder.path().join("1.png")).unwrap();
    fs::write(&path, json!({"images": [image(8)]}).to_string()).unwrap();
    let error = Coco::open(&path, folder.path()).unwrap().get(0).unwrap_err().to_string();
    assert!(error.contains("(8, 5)") && error.contains("(7, 5)") && error.contains("1.png"), "{error}");
    let (_folder, coco) = open(json!([object(1, 1, [3.0, 0.0, -2.0, 1.0], Value::Null)])).unwrap();
    let error = coco.get(1).unwrap_err().to_string();
    assert!(error.contains("1.png") && error.contains("edges of box 0"), "{error}");
    // Without annotations there are images, and none is left if they must have some.
    fs::write(&path, json!({"images": [image(7)]}).to_string()).unwrap();
    let coco = Coco::open(&path, folder.path()).unwrap();
    assert!(coco.get(0).unwrap().boxes.is_empty() && coco.classes().is_empty());
    assert_eq!((coco.len(), coco.annotated_only().len()), (1, 0));
}

/// The boxes of an image, all found twice but not exactly, and whether each is a crowd.
fn scene(index: usize) -> [(Boxes, Vec<f32>, Vec<bool>); 2] {
    let mut rng = KeyedRng::for_order(3, index);
    let mut sides = |from: [f32; 4], by: i32| from.map(|edge| edge + rng.random_range(-by..=by) as f32);
    let count = index % 7;
    let truth: Vec<[f32; 4]> = (0..count).map(|_| sides([60.0, 60.0, 40.0, 40.0], 30)).collect();
    let found: Vec<[f32; 4]> = truth.iter().chain(&truth).map(|edges| sides(*edges, 4)).collect();
    let labels = |count: usize| (0..count).map(|n| ((n * 5 + index) % 3) as i32).collect::<Vec<_>>();
    let crowds = (0..count).map(|n| (n + index).is_multiple_of(4)).collect();
    let scores = (0..found.len()).map(|n| ((n * 37 + index * 11) % 16) as f32 / 16.0).collect();
    let found_labels: Vec<i32> = labels(count).into_iter().chain(labels(count)).collect();
    [
        (Boxes::new(truth, labels(count), BoxFormat::Xywh).unwrap(), Vec::new(), crowds),
        (Boxes::new(found, found_labels, BoxFormat::Xywh).unwrap(), scores, Vec::new()),
    ]
}

#[test]
fn found_boxes_are_measured_as_by_pycocotools() {
    let mut precision = AveragePrecision::default();
    for index in 0..40 {
        let [(truth, _, crowds), (found, scores, _)] = scene(index);
        precision.add((&found, &scores), (&truth, &crowds)).unwrap();
    }
    let means: Vec<f64> = precision.by_class().values().map(|ious| ious.iter().sum::<f64>() / 10.0).collect();
    let near = |one: f64, other: f64| (one - other).abs() < 1e-12;
    let right = [0.45804295691660724, 0.4294599992908826, 0.40730348954219836];
    assert!(means.len() == 3 && means.iter().zip(right).all(|(mean, right)| near(*mean, right)), "{means:?}");
    assert!(near(precision.mean().unwrap(), 0.4316021485832294), "{:?}", precision.mean());
}

#[test]
fn what_cannot_be_measured_is_an_error_or_nothing() {
    let mut precision = AveragePrecision::default();
    assert_eq!(precision.mean(), None);
    let (none, one) = (Boxes::default(), Boxes::new([[0.0, 0.0, 4.0, 4.0]], [3], BoxFormat::Xyxy).unwrap());
    assert!(precision.add((&one, &[]), (&none, &[])).is_err());
    assert!(precision.add((&one, &[f32::NAN]), (&none, &[])).is_err());
    assert!(precision.add((&one, &[0.5]), (&one, &[true, false])).is_err());
    precision.add((&one, &[0.5]), (&none, &[])).unwrap();
    assert_eq!(precision.mean(), None); // a class without objects does not count
    precision.add((&none, &[]), (&one, &[])).unwrap();
    precision.add((&one, &[0.7]), (&one, &[])).unwrap();
    // One of two is found first, and then a wrong one.
    assert!((precision.mean().unwrap() - 51.0 / 101.0).abs() < 1e-12);
    // Of an image the best 100 of a class count: the right one comes after them.
    let many = Boxes::new(
        vec![[50.0, 50.0, 60.0, 60.0]; 100].into_iter().chain([[0.0, 0.0, 4.0, 4.0]]),
        [3; 101],
        BoxFormat::Xyxy,
    );
    let mut late = AveragePrecision::default();
    let scores: Vec<f32> = (0..101).map(|n| 1.0 - n as f32 / 200.0).collect();
    late.add((&many.unwrap(), &scores), (&one, &[])).unwrap();
    assert_eq!(late.mean(), Some(0.0));
}

#[test]
fn left_and_right_keypoints_change_places() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    image::RgbImage::new(10, 4).save(folder.path().join("1.png"))?;
    let names = ["left_eye", "left_eye", "right_eye", "left_tail"];
    let json = json!({
        "categories": [{"id": 1, "name": "person", "keypoints": names}],
        "images": [{"id": 1, "file_name": "1.png", "width": 10, "height": 4}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 4],
            "keypoints": [5, 1, 2, 7, 1, 2, 3, 1, 2, 8, 3, 1]}],
    });
    fs::write(folder.path().join("all.json"), json.to_string())?;
    let coco = Coco::open(folder.path().join("all.json"), folder.path())?;
    let sample = RandomHorizontalFlip::new(1.0)?.apply(coco.get(0)?, &mut KeyedRng::for_order(1, 0))?;
    // The first of two with one name has the pair.
    assert_eq!(sample.keypoints[0].xy(), [[6.0, 1.0], [2.0, 1.0], [4.0, 1.0], [1.0, 3.0]]);
    assert_eq!(sample.keypoints[0].order(), [2, 1, 0, 3]);
    // Samples of unlike numbers of objects are combined too.
    let mosaic = WithOthers::new(coco.clone(), Mosaic::new(20)?)?;
    let made = mosaic.clone().apply(coco.get(0)?, &mut KeyedRng::for_order(1, 0))?;
    assert_eq!((made.keypoints.len(), made.boxes.indices()), (4, &[0, 1, 2, 3][..]));
    assert_eq!(made.objects.iter().map(|object| object.keypoints.len()).collect::<Vec<_>>(), [4; 4]);
    Ok(())
}

/// What other tools write: `null`, flags that are no numbers, objects without a box, polygons without an area.
#[test]
fn unusual_annotations_are_read() -> Result<(), BoxError> {
    let full = |id, extra: Value| {
        let mut object = json!({"id": id, "image_id": 4, "category_id": 1});
        object.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        object
    };
    let (_folder, coco) = open(json!([
        full(1, json!({"iscrowd": true, "area": null, "keypoints": null, "bbox": [0, 0, 4, 4], "segmentation": null})),
        full(2, json!({"iscrowd": null, "bbox": [], "segmentation": [[0, 0, 3, 3], [1, 1, 6, 1, 6, 4, 1, 4]]})),
        full(3, json!({"iscrowd": false, "bbox": null})),
        full(4, json!({})),
    ]))?;
    let sample = coco.clone().object_masks().get(1)?;
    assert_eq!((sample.boxes.indices(), sample.masks.len()), (&[0][..], 4));
    assert_eq!(sample.objects.iter().map(|object| object.is_crowd).collect::<Vec<_>>(), [true, false, false, false]);
    assert_eq!(pixels(&sample.masks[1]), "0000000 0111110 0111110 0111110 0000000");
    assert!(open(json!([full(1, json!({"bbox": [1, 2, 3]}))])).is_err());

    let few = Limits { bytes: 2 * 7 * 5 * 4 - 1, ..Limits::default() };
    let error = coco.limits(few).object_masks().get(1).unwrap_err().to_string();
    assert!(error.contains("4 objects"), "{error}");
    Ok(())
}
