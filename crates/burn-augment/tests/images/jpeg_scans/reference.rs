//! The pixels that libjpeg-turbo makes of the values of components, in plain arithmetic.

use super::encoder::Plane;

/// The value of a component at a pixel. Where the picture has twice as many columns or rows, neighbours are mixed, three
/// parts to one, unless the component has one or two columns; else values are repeated (libjpeg-turbo's `jdsample.c`).
fn value(plane: &Plane, (wide, high): (usize, usize), x: usize, y: usize) -> f64 {
    let (wide, high) = (wide / plane.across, high / plane.down);
    let mixed = matches!((wide, high), (2, 1 | 2)) && plane.columns > 2 || (wide, high) == (1, 2);
    let near_and_far = |at: usize, by: usize, count: usize| {
        let near = at / by;
        let far = if at.is_multiple_of(2) { near.saturating_sub(1) } else { (near + 1).min(count - 1) };
        if mixed && by == 2 { [(near, 0.75), (far, 0.25)] } else { [(near, 1.0), (near, 0.0)] }
    };
    let mut sum = 0.0;
    for (row, down) in near_and_far(y, high, plane.rows) {
        for (column, across) in near_and_far(x, wide, plane.columns) {
            sum += across * down * plane.values[row * plane.stride + column];
        }
    }
    sum
}

/// The pixel at a place: of one component grey, of three that are Y, Cb and Cr.
pub(super) fn pixel(planes: &[Plane], x: usize, y: usize) -> [f64; 3] {
    let most = |factor: fn(&Plane) -> usize| planes.iter().map(factor).max().unwrap();
    let factors = (most(|plane| plane.across), most(|plane| plane.down));
    let value = |nth: usize| value(&planes[nth], factors, x, y);
    if planes.len() == 1 {
        return [value(0); 3];
    }
    let (luma, blue, red) = (value(0), value(1) - 128.0, value(2) - 128.0);
    [luma + 1.402 * red, luma - 0.344_136 * blue - 0.714_136 * red, luma + 1.772 * blue].map(|v| v.clamp(0.0, 255.0))
}
