//! Each field is wrong, and the compiler says so of all of them at once.

use burn_pinned_derive::Sample;

type Alias = Vec<f32>;

#[derive(Sample)]
struct Row {
    alias: Alias,
    tokens: Vec<i64>,
    #[sample(shape = [3], fill = 0)]
    fixed: Vec<u8>,
    #[sample(shape = [3])]
    number: f32,
    stars: Option<u8>,
    names: Option<Vec<u8>>,
    #[sample(padded = [9], jagged = [9])]
    both: Vec<u8>,
    #[sample(padded = 9)]
    scalar: Vec<u8>,
    #[sample(mean = 0.5)]
    half: f32,
    #[sample(mean = 0.5, std = 0.2, dtype = i64)]
    normal: f32,
    #[sample(dtype = f8)]
    dtype: f32,
    #[sample(mask, mask)]
    twice: [u8; 2],
    #[sample(colum)]
    typo: String,
    #[sample(column, fill = 1)]
    column: String,
    #[sample(jagged = [9], mask)]
    jagged: Vec<f32>,
    #[sample(padded = [9], rows)]
    padded: Vec<f32>,
    image: Image,
    #[sample(shape = [3, 8, 8], mask)]
    masked: Image,
    #[sample(padded = [9, 4])]
    boxes: Boxes,
}

fn main() {}
