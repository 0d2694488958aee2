//! Several samples in one.

use super::rng;
use burn::data::dataset::{Dataset, InMemDataset};
use burn_augment::{
    Augment, BoxError, KeyedRng,
    augment::{RandomApply, WithOthers},
    images::*,
};
use image::{GrayImage, Luma, Rgb, RgbImage};

struct Street {
    image: Image,
    mask: Mask,
    boxes: Boxes,
    points: Points,
}

impl HasImage for Street {
    type Image = Image;

    fn image_mut(&mut self) -> &mut Image {
        &mut self.image
    }

    fn parts_mut(&mut self) -> Vec<Part<'_>> {
        vec![Part::Mask(&mut self.mask), Part::Boxes(&mut self.boxes), Part::Points(&mut self.points)]
    }
}

/// Streets of one colour each, which is also the number of the mask and the label of the box.
struct Streets(usize);

impl Streets {
    fn street(index: usize) -> Street {
        let (width, height) = [(60, 40), (40, 60), (33, 33), (90, 10), (8, 8)][index % 5];
        let colour = 10 + index as u8;
        Street {
            image: RgbImage::from_pixel(width, height, Rgb([colour; 3])).into(),
            mask: GrayImage::from_pixel(width, height, Luma([colour])).into(),
            boxes: Boxes::new([[0.0, 0.0, width as f32, height as f32]], [colour.into()], BoxFormat::Xyxy).unwrap(),
            points: Points::new([[0.5, 0.5], [width as f32 - 0.5, height as f32 - 0.5]]).unwrap(),
        }
    }
}

impl Dataset<Street> for Streets {
    fn get(&self, index: usize) -> Result<Street, burn::data::dataset::DatasetError> {
        Ok(Self::street(index))
    }

    fn len(&self) -> usize {
        self.0
    }
}

#[test]
fn parts_stay_with_their_image_in_a_mosaic() {
    let mosaic = WithOthers::new(Streets(50), Mosaic::new(64).unwrap()).unwrap();
    let mut cut = 0;
    for nth in 0..100 {
        let street = mosaic.apply(Streets::street(nth), &mut rng(nth)).unwrap();
        let (pixels, numbers) = (street.image.to_rgb().unwrap(), street.mask.to_numbers().unwrap());
        assert_eq!((pixels.dimensions(), numbers.dimensions()), ((64, 64), (64, 64)));
        for (x, y, pixel) in pixels.enumerate_pixels() {
            let number = numbers.get_pixel(x, y).0[0];
            let (colour, boxes) = (pixel.0[0], street.boxes.xyxy().iter().zip(street.boxes.labels()));
            assert_eq!(u16::from(colour), if number == 255 { 114 } else { number }, "{nth}: {x} {y}");
            let (x, y) = (x as f32 + 0.5, y as f32 + 0.5);
            let around: Vec<_> = boxes
                .filter(|([a, b, c, d], _)| *a < x && x < *c && *b < y && y < *d)
                .map(|(_, label)| *label)
                .collect();
            assert!(if number == 255 { around.is_empty() } else { around == [i32::from(number)] }, "{nth}: {around:?}");
        }
        let points = street.points.xy();
        assert_eq!(points.len(), 8);
        for point in points {
            let [x, y] = *point;
            if x.max(y) < 0.0 {
                cut += 1;
            } else {
                assert_ne!(numbers.get_pixel(x as u32, y as u32).0[0], 255, "{nth}: {point:?}");
            }
        }
    }
    assert!((50..600).contains(&cut), "{cut}");
}

#[test]
fn a_mosaic_meets_at_its_point() {
    let corner = Mosaic::new(10).unwrap().center_range(0.5, 0.5).unwrap().fill([1, 2, 3]);
    let black = |_| RgbImage::new(20, 10);
    let dataset = InMemDataset::new((0..3).map(black).collect());
    let image = WithOthers::new(dataset, corner).unwrap().apply(black(0), &mut rng(0)).unwrap();
    // Halves of 5 x 5 with images of 5 x 3 (2.5, rounded to even: 2), which touch the middle.
    let rows: Vec<bool> = (0..10).map(|y| image.get_pixel(0, y).0 == [0; 3]).collect();
    let height = rows.iter().filter(|is_black| **is_black).count();
    assert!((4..=6).contains(&height) && rows[4] && rows[5] && !rows[0] && !rows[9], "{rows:?}");
    assert_eq!(image.get_pixel(0, 0).0, [1, 2, 3]);
}

#[test]
fn a_mix_has_the_boxes_of_both() {
    let other = (
        RgbImage::from_pixel(40, 20, Rgb([200; 3])),
        Boxes::new([[4.0, 4.0, 24.0, 16.0]], [8], BoxFormat::Xyxy).unwrap(),
    );
    let mix = WithOthers::new(InMemDataset::new(vec![other]), MixUpBoxes::new(32.0).unwrap()).unwrap();
    let sample = (RgbImage::new(20, 20), Boxes::new([[1.0, 1.0, 5.0, 5.0]], [7], BoxFormat::Xyxy).unwrap());
    let (image, boxes) = mix.apply(sample, &mut rng(0)).unwrap();
    assert_eq!((boxes.labels(), boxes.xyxy()[1]), (&[7, 8][..], [2.0, 2.0, 12.0, 8.0])); // half as large
    let (above, below) = (image.get_pixel(3, 3).0[0], image.get_pixel(3, 15).0[0]);
    assert!((60..140).contains(&above) && (30..90).contains(&below) && below < above, "{above} {below}");
    let masked = (RgbImage::new(9, 9), Mask::from(GrayImage::new(9, 9)));
    let mix = WithOthers::new(InMemDataset::new(vec![masked.clone()]), MixUpBoxes::new(1.0).unwrap()).unwrap();
    assert!(mix.apply(masked, &mut rng(0)).unwrap_err().to_string().contains("masks"));
}

#[test]
fn no_change_brings_hidden_points_back() {
    let street = Street { points: Points::new([[-50.0, 3.0], [3.0, 3.0]]).unwrap(), ..Streets::street(2) };
    let mosaic = WithOthers::new(Streets(5), Mosaic::new(64).unwrap()).unwrap().apply(street, &mut rng(0)).unwrap();
    let hidden = |street: &Street| street.points.xy().iter().filter(|[x, _]| *x < -1e5).count();
    let before = hidden(&mosaic);
    assert!(before > 0);
    let bend = RandomPerspective::new(1.0, 1.0).unwrap();
    for seed in 0..20 {
        let street = Street {
            image: RgbImage::new(64, 64).into(),
            mask: mosaic.mask.clone(),
            boxes: mosaic.boxes.clone(),
            points: mosaic.points.clone(),
        };
        assert_eq!(hidden(&bend.apply(street, &mut rng(seed)).unwrap()), before, "{seed}");
    }
}

#[test]
fn what_is_missing_or_too_much_is_named() {
    let error = |result: Result<(RgbImage, Boxes), BoxError>| result.unwrap_err().to_string();
    let sample = || (RgbImage::new(8, 8), Boxes::new([[0.0, 0.0, 4.0, 4.0]], [1], BoxFormat::Xyxy).unwrap());
    let paste = WithOthers::new(InMemDataset::new(vec![sample()]), CopyPaste::new(1.0).unwrap()).unwrap();
    assert!(error(paste.apply(sample(), &mut rng(0))).contains("`object_masks`"));
    // The numbers of one mask of all classes are not objects.
    let classes = || (sample().0, Mask::from(GrayImage::from_pixel(8, 8, Luma([1]))), sample().1);
    let paste = WithOthers::new(InMemDataset::new(vec![classes()]), CopyPaste::new(1.0).unwrap()).unwrap();
    let error_of_classes = paste.apply(classes(), &mut rng(0)).unwrap_err().to_string();
    assert!(error_of_classes.contains("are 0 for 1 boxes"), "{error_of_classes}");
    let none = WithOthers::new(InMemDataset::new(vec![]), Mosaic::new(8).unwrap()).unwrap();
    assert!(error(none.apply(sample(), &mut rng(0))).contains("without samples"));
    let bad = InMemDataset::new(vec![(RgbImage::new(0, 0), Boxes::default())]);
    let wrong = WithOthers::new(bad, Mosaic::new(8).unwrap()).unwrap().changed(Grayscale);
    assert!(error(wrong.apply(sample(), &mut rng(0))).contains("the other samples [0]"));
    assert!(
        WithOthers::new(InMemDataset::new(vec![0]), (65, |sample: i32, _: Vec<i32>, _: &mut KeyedRng| Ok(sample)))
            .is_err()
    );
    let masked = |mask| (RgbImage::new(8, 8), Boxes::default(), mask);
    let uneven = WithOthers::new(InMemDataset::new(vec![masked(None)]), Mosaic::new(8).unwrap()).unwrap();
    let full = masked(Some(Mask::from(GrayImage::new(8, 8))));
    let unlike = uneven.apply(full, &mut rng(0)).unwrap_err().to_string();
    assert!(unlike.contains("the other samples [0, 0, 0]") && unlike.contains("are 2 and 1"), "{unlike}");
    let mix = WithOthers::new(InMemDataset::new(vec![sample()]), MixUpBoxes::new(1.0).unwrap()).unwrap();
    assert!(error(mix.apply((RgbImage::new(0, 0), Boxes::default()), &mut rng(0))).contains("without pixels"));
    // As many parts, of other kinds.
    let kinds = |mask: bool| Kinds {
        image: RgbImage::new(8, 8),
        mask: mask.then(|| GrayImage::new(8, 8).into()),
        points: (!mask).then(|| Points::new([[1.0; 2]]).unwrap()),
    };
    let mosaic = WithOthers::new(InMemDataset::new(vec![kinds(true)]), Mosaic::new(8).unwrap()).unwrap();
    let unlike = mosaic.apply(kinds(false), &mut rng(0)).err().unwrap().to_string();
    assert!(unlike.contains("of other kinds"), "{unlike}");
    // More masks than boxes: those of the other sample would be taken for others.
    let mut uneven = crowd(&[50, 60]);
    uneven.boxes = Boxes::new([[0.0, 0.0, 9.0, 9.0]], [1], BoxFormat::Xyxy).unwrap();
    let mosaic = WithOthers::new(InMemDataset::new(vec![uneven]), Mosaic::new(8).unwrap()).unwrap();
    let unlike = mosaic.apply(crowd(&[10]), &mut rng(0)).err().unwrap().to_string();
    assert!(unlike.contains("lists of 1 and 2, and 1 and 1 boxes"), "{unlike}");
    // No masks, beside masks for each box of the other.
    let mut bare = crowd(&[10]);
    bare.masks.clear();
    let mosaic = WithOthers::new(InMemDataset::new(vec![crowd(&[50])]), Mosaic::new(8).unwrap()).unwrap();
    let unlike = mosaic.apply(bare, &mut rng(0)).err().unwrap().to_string();
    assert!(unlike.contains("lists of 0 and 1"), "{unlike}");
    assert!(Mosaic::new(3).is_err() && MixUpBoxes::new(0.0).is_err() && CopyPaste::new(1.5).is_err());
    assert!(Mosaic::new(8).unwrap().center_range(0.0, 2.0).is_err());
}

#[test]
fn others_are_drawn_uniformly_and_by_the_generator_alone() {
    let draw = (4, |_: Vec<usize>, others: Vec<Vec<usize>>, _: &mut KeyedRng| Ok(others.concat()));
    let dataset = InMemDataset::new((0..10).map(|index| vec![index]).collect());
    let others = WithOthers::new(dataset, draw).unwrap();
    let drawn = |seed| others.apply(vec![], &mut KeyedRng::for_sample(seed, 0, 3)).unwrap();
    let mut counts = [0; 10];
    (0..1000).flat_map(drawn).for_each(|index| counts[index] += 1);
    assert!(counts.iter().all(|count| (320..480).contains(count)), "{counts:?}");
    assert_eq!(drawn(7), drawn(7));
    let maybe = RandomApply::new(0.0, others).unwrap();
    assert_eq!(maybe.apply(vec![5], &mut rng(0)).unwrap(), [5]);
}

#[derive(Clone)]
struct Kinds {
    image: RgbImage,
    mask: Option<Mask>,
    points: Option<Points>,
}

impl HasImage for Kinds {
    type Image = RgbImage;

    fn image_mut(&mut self) -> &mut RgbImage {
        &mut self.image
    }

    fn parts_mut(&mut self) -> Vec<Part<'_>> {
        let points = self.points.iter_mut().map(Part::Points);
        self.mask.iter_mut().map(Part::Mask).chain(points).collect()
    }
}

#[derive(Clone)]
pub(super) struct Crowd {
    pub(super) image: RgbImage,
    pub(super) boxes: Boxes,
    pub(super) masks: Vec<Mask>,
    pub(super) points: Vec<Points>,
}

impl HasImage for Crowd {
    type Image = RgbImage;

    fn image_mut(&mut self) -> &mut RgbImage {
        &mut self.image
    }

    fn parts_mut(&mut self) -> Vec<Part<'_>> {
        vec![Part::Boxes(&mut self.boxes), Part::Masks(&mut self.masks), Part::PointSets(&mut self.points)]
    }
}

/// Squares that do not overlap, with a mask of 1 and a point in the middle each. The label is the colour.
pub(super) fn crowd(colours: &[u8]) -> Crowd {
    let edges = |at: usize| [4.0, 4.0 + 8.0 * at as f32, 12.0, 10.0 + 8.0 * at as f32];
    let is_in = |at, x: u32, y: u32| {
        let [left, top, right, bottom] = edges(at);
        (left..right).contains(&(x as f32)) && (top..bottom).contains(&(y as f32))
    };
    let all = || 0..colours.len();
    let colour = |x, y| all().find(|at| is_in(*at, x, y)).map_or(0, |at| colours[at]);
    let mask = |at| Mask::from(GrayImage::from_fn(32, 32, |x, y| Luma([is_in(at, x, y).into()]))).fill(0);
    let labels: Vec<i32> = colours.iter().map(|colour| i32::from(*colour)).collect();
    Crowd {
        image: RgbImage::from_fn(32, 32, |x, y| Rgb([colour(x, y); 3])),
        boxes: Boxes::new(all().map(edges), labels, BoxFormat::Xyxy).unwrap(),
        masks: all().map(mask).collect(),
        points: all().map(|at| Points::new([[8.0, edges(at)[1] + 3.0]]).unwrap()).collect(),
    }
}

/// Each box that is left has the mask and the points at its index, and they are where its colour is.
#[track_caller]
fn belongs(crowd: &Crowd) {
    assert_eq!(crowd.masks.len(), crowd.points.len());
    for ((edges, label), index) in crowd.boxes.xyxy().iter().zip(crowd.boxes.labels()).zip(crowd.boxes.indices()) {
        let numbers = crowd.masks[*index].to_numbers().unwrap();
        let inside = numbers.enumerate_pixels().filter(|(.., number)| number.0[0] == 1);
        let seen: Vec<_> = inside.map(|(x, y, _)| (x, y)).collect();
        assert!(!seen.is_empty());
        assert!(seen.iter().all(|(x, y)| i32::from(crowd.image.get_pixel(*x, *y).0[0]) == *label), "{edges:?}");
        let around = |(x, y): &(u32, u32)| {
            let (x, y) = (*x as f32, *y as f32);
            edges[0] <= x + 1.0 && x <= edges[2] && edges[1] <= y + 1.0 && y <= edges[3]
        };
        assert!(seen.iter().all(around), "{edges:?}");
        let [x, y] = crowd.points[*index].xy()[0];
        assert!(x < 0.0 || i32::from(crowd.image.get_pixel(x as u32, y as u32).0[0]) == *label, "{x} {y}");
    }
}

#[test]
fn masks_and_points_of_objects_follow_their_boxes() {
    let dataset = || InMemDataset::new(vec![crowd(&[50, 60]), crowd(&[]), crowd(&[70]), crowd(&[80, 90, 100])]);
    // The images have the size of a cell, so nothing is mixed by scaling.
    let mosaic = WithOthers::new(dataset(), Mosaic::new(64).unwrap()).unwrap();
    let paste = WithOthers::new(dataset(), CopyPaste::new(0.6).unwrap()).unwrap();
    let (mut most, mut pasted) = (0, 0);
    for nth in 0..60 {
        let made = mosaic.apply(crowd(&[10, 20]), &mut rng(nth)).unwrap();
        belongs(&made);
        most = most.max(made.boxes.len());
        let made = paste.apply(crowd(&[30]), &mut rng(nth)).unwrap();
        belongs(&made);
        pasted += usize::from(made.boxes.labels().iter().any(|label| *label != 30));
    }
    assert!(most > 5 && (20..60).contains(&pasted), "{most} {pasted}");
}

/// Points that cannot be seen do not come back beside other images, whatever follows.
#[test]
fn hidden_points_stay_hidden() {
    let crowd = || {
        let mut crowd = crowd(&[50, 60]);
        crowd.points[0] = Points::new([[-20.0, 5.0], [500.0, 3.0], [40.0, 500.0], [8.0, 7.0]]).unwrap();
        crowd
    };
    let dataset = || InMemDataset::new(vec![crowd()]);
    let mosaic = || WithOthers::new(dataset(), Mosaic::new(64).unwrap()).unwrap();
    let twice = (WithOthers::new(dataset(), Mosaic::new(80).unwrap()).unwrap().changed(mosaic()), Pad::new(30));
    let paste = (WithOthers::new(dataset(), CopyPaste::new(0.5).unwrap()).unwrap(), Pad::new(30));
    let unmasked = || Crowd { masks: Vec::new(), ..crowd() };
    let mix =
        (WithOthers::new(InMemDataset::new(vec![unmasked()]), MixUpBoxes::new(1.0).unwrap()).unwrap(), Pad::new(30));
    let seen =
        |crowd: &Crowd| crowd.points.iter().flat_map(|set| set.within(crowd.image.dimensions())).collect::<Vec<_>>();
    let grey = |crowd: &Crowd| {
        let inside = crowd.points.iter().flat_map(|set| set.xy().iter().zip(set.within(crowd.image.dimensions())));
        inside
            .filter(|(_, within)| *within)
            .any(|([x, y], _)| crowd.image.get_pixel(*x as u32, *y as u32).0 == [114; 3])
    };
    for nth in 0..30 {
        let made = twice.apply(mosaic().apply(crowd(), &mut rng(nth)).unwrap(), &mut rng(nth)).unwrap();
        assert!(seen(&made).len() == 16 * 5 && !grey(&made), "{nth}");
        let made = paste.apply(crowd(), &mut rng(nth)).unwrap();
        assert_eq!(seen(&made).len(), 10);
        assert_eq!(mix.apply(unmasked(), &mut rng(nth)).unwrap().points.len(), 4);
    }
}
