//! Lists of arrays have one number in brackets, or that and the lengths of their type.

use burn_pinned_derive::Sample;

type Point = [f32; 3];

#[derive(Sample)]
struct Row {
    #[sample(padded = [6, 3])]
    deep: Vec<[[f32; 3]; 2]>,
    #[sample(padded = [6, 3, 1])]
    long: Vec<[f32; 3]>,
    #[sample(padded = [6])]
    aliases: Vec<Point>,
    #[sample(padded = [6])]
    lists: Vec<Vec<f32>>,
    #[sample(padded = [6])]
    tuples: Vec<(f32, f32)>,
    #[sample(padded = [6])]
    deque: VecDeque<[f32; 3]>,
    #[sample(padded = [6])]
    lacking: Option<Vec<[f32; 3]>>,
    #[sample(padded = [6])]
    whole: [f32; 3],
    #[sample(jagged = [6], mask)]
    masked: Vec<[f32; 3]>,
}

fn main() {}
