//! What the derives are not for.

use burn_pinned_derive::{HasImage, MapTensors, Sample};

#[derive(Sample)]
struct Tuple(f32);

#[derive(Sample)]
enum Either {
    One(f32),
}

#[derive(Sample)]
struct Generic<T> {
    value: T,
}

#[derive(Sample)]
#[sample(name = Batch)]
struct Option {
    value: f32,
}

#[derive(Sample)]
struct Nothing {
    #[sample(skip)]
    value: f32,
}

#[derive(MapTensors)]
union Union {
    value: f32,
}

#[derive(MapTensors)]
struct Skipped {
    #[map_tensors(skipped)]
    value: f32,
}

#[derive(HasImage)]
struct Views {
    first: Image,
    second: (Image, u8),
}

#[derive(HasImage)]
struct Several {
    image: Image,
    others: Vec<[Image; 2]>,
}

#[derive(HasImage)]
struct Deep {
    image: Image,
    lanes: Vec<Vec<Mask>>,
}

#[derive(HasImage)]
struct Label {
    label: u8,
}

fn main() {}
