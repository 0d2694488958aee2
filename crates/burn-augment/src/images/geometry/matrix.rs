//! Places of an image that move: by shifts, scales, turns, shears, and changes of perspective.

/// Maps a place `(x, y)` to `((a x + b y + c) / w, (d x + e y + f) / w)` with `w = g x + h y + i`: its rows are `a b
/// c`, `d e f` and `g h i`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(unnameable_types, reason = "only the sealed half of `Picture` takes it")]
pub struct Matrix(pub(crate) [[f64; 3]; 3]);

impl Matrix {
    /// A matrix without perspective, of its first two rows.
    pub(crate) fn affine([x, y]: [[f64; 3]; 2]) -> Self {
        Self([x, y, [0.0, 0.0, 1.0]])
    }

    /// Multiplies a place, and then shifts it.
    pub(crate) fn scale_shift([across, down]: [f64; 2], [right, below]: [f64; 2]) -> Self {
        Self::affine([[across, 0.0, right], [0.0, down, below]])
    }

    /// Whether it maps at all: two corners of a perspective may meet.
    pub(crate) fn is_finite(self) -> bool {
        self.0.as_flattened().iter().all(|entry| entry.is_finite())
    }

    /// Maps by this matrix first, and then by the next.
    pub(crate) fn then(self, next: Self) -> Self {
        let entry = |row: usize, column: usize| (0..3).map(|n| next.0[row][n] * self.0[n][column]).sum();
        Self(std::array::from_fn(|row| std::array::from_fn(|column| entry(row, column))))
    }

    /// Maps back. The entries of a matrix that has no inverse are not finite.
    pub(crate) fn inverse(self) -> Self {
        let of = |row: usize, column: usize| self.0[row % 3][column % 3];
        // Indices that go round give the cofactors their signs.
        let cofactor = |row: usize, column: usize| {
            of(row + 1, column + 1) * of(row + 2, column + 2) - of(row + 1, column + 2) * of(row + 2, column + 1)
        };
        let determinant: f64 = (0..3).map(|column| of(0, column) * cofactor(0, column)).sum();
        Self(std::array::from_fn(|row| std::array::from_fn(|column| cofactor(column, row) / determinant)))
    }

    /// Maps a place of an image. What a perspective moves beyond all floats stays a number, far outside.
    pub(crate) fn map_place(self, place: [f32; 2]) -> [f32; 2] {
        let finite = |number: f64| if number.is_nan() { 0.0 } else { number.clamp(f32::MIN.into(), f32::MAX.into()) };
        self.apply(place.map(f64::from)).map(|number| finite(number) as f32)
    }

    /// Maps a place.
    pub(crate) fn apply(self, [x, y]: [f64; 2]) -> [f64; 2] {
        let [across, down, by] = self.0.map(|[a, b, c]| a * x + b * y + c);
        [across / by, down / by]
    }

    /// Maps the corners of the square from (0, 0) to (1, 1) to these corners: those at (0, 0), (1, 0), (1, 1) and (0,
    /// 1).
    ///
    /// Heckbert, "Fundamentals of Texture Mapping and Image Warping", 1989, section 2.2.3.
    pub(crate) fn square_to([a, b, c, d]: [[f64; 2]; 4]) -> Self {
        let sum = |n: usize| a[n] - b[n] + c[n] - d[n];
        let (right, below) = ([b[0] - c[0], b[1] - c[1]], [d[0] - c[0], d[1] - c[1]]);
        let determinant = right[0] * below[1] - below[0] * right[1];
        let g = (sum(0) * below[1] - below[0] * sum(1)) / determinant;
        let h = (right[0] * sum(1) - sum(0) * right[1]) / determinant;
        let row = |n: usize| [b[n] - a[n] + g * b[n], d[n] - a[n] + h * d[n], a[n]];
        Self([row(0), row(1), [g, h, 1.0]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: [f64; 2], b: [f64; 2]) {
        assert!((a[0] - b[0]).abs() < 1e-9 && (a[1] - b[1]).abs() < 1e-9, "{a:?} {b:?}");
    }

    #[test]
    fn corners_of_a_square_are_where_they_should_be() {
        let corners = [[3.0, 2.0], [90.0, 7.0], [80.0, 60.0], [1.0, 70.0]];
        let matrix = Matrix::square_to(corners);
        for (from, to) in [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]].into_iter().zip(corners) {
            close(matrix.apply(from), to);
            close(matrix.inverse().apply(to), from);
        }
    }

    #[test]
    fn matrices_map_one_after_the_other() {
        let both = Matrix::scale_shift([2.0, 3.0], [1.0, -1.0]).then(Matrix::scale_shift([1.0, 0.5], [4.0, 0.0]));
        close(both.apply([5.0, 7.0]), [15.0, 10.0]);
    }
}
