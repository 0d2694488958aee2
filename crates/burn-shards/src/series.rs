//! Windows over series of numbers, as a data set.

use crate::{
    error::DataError,
    source::{cell::Array, starts::Starts},
};
use burn::data::dataset::{Dataset, DatasetError};
use std::sync::Arc;

/// Windows of equal length over one or several series: a Burn data set for forecasts.
///
/// A series is an [`Array`] whose first dimension is time; its steps are numbers or arrays of them, such as channels.
///
/// ```
/// use burn_shards::{Array, SeriesWindow, SeriesWindows};
///
/// let hours = Array::new([10, 2], (0..20).map(|n| n as f32).collect())?; // 10 steps of two channels
/// let windows = SeriesWindows::new([hours], 4)?.with_horizon(2)?.with_stride(3)?;
/// assert_eq!(windows.len(), 2);
///
/// let SeriesWindow { inputs, targets, series, start } = windows.window(1);
/// assert_eq!((series, start), (0, 3));
/// assert_eq!((inputs.shape(), targets.shape()), (&[4, 2][..], &[2, 2][..])); // steps 3 to 6, and 7 and 8
/// assert_eq!((inputs.data()[0], targets.data()), (6.0, &[14.0, 15.0, 16.0, 17.0][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Window `i` of a series starts at step `i * stride`. No window crosses from one series to the next, with its targets. A series that is
/// too short has no windows, and the steps after the last window are in no sample.
///
/// The data set makes any type of samples that has `From<SeriesWindow<T>>`, and so a `SeriesWindow` too. Making a window copies and reads
/// no numbers, on any thread: it is a view of its series.
///
/// # Parts of the time
///
/// To test on a later time, cut each series before: with [`series.rows(0..end)`](Array::rows) no window and no target is from `end` on. A
/// part that starts at `end - length` has its first target at `end`, after inputs that the model has seen.
#[derive(Debug, Clone)]
pub struct SeriesWindows<T> {
    series: Arc<[Array<T>]>,
    /// The first window of each series.
    starts: Starts,
    /// The steps of a window.
    length: usize,
    stride: usize,
    /// The steps of its targets.
    horizon: usize,
}

/// One window of a series, with the steps after it.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesWindow<T> {
    /// The steps of the window: `[length, ..]`.
    pub inputs: Array<T>,
    /// The steps after it: `[horizon, ..]`.
    pub targets: Array<T>,
    /// The number of its series, from 0.
    pub series: usize,
    /// The step of the series where it starts, from 0.
    pub start: usize,
}

impl<T> SeriesWindows<T> {
    /// Windows of `length` steps, each starting one step after the one before, without targets.
    ///
    /// # Errors
    /// [`DataError::Option`] if `length` is 0, if no series has enough steps, or if the series have steps of unlike shapes.
    pub fn new(series: impl IntoIterator<Item = Array<T>>, length: usize) -> Result<Self, DataError> {
        Self::cut(series.into_iter().collect(), length, 1, 0)
    }

    /// Each window starts `stride` steps after the one before. Default: 1.
    ///
    /// # Errors
    /// [`DataError::Option`] if `stride` is 0.
    pub fn with_stride(self, stride: usize) -> Result<Self, DataError> {
        Self::cut(self.series, self.length, stride, self.horizon)
    }

    /// The `horizon` steps after a window are its targets. Default: 0.
    ///
    /// # Errors
    /// [`DataError::Option`] if no series has enough steps for a window and its targets.
    pub fn with_horizon(self, horizon: usize) -> Result<Self, DataError> {
        Self::cut(self.series, self.length, self.stride, horizon)
    }

    fn cut(series: Arc<[Array<T>]>, length: usize, stride: usize, horizon: usize) -> Result<Self, DataError> {
        for (option, value) in [("length", length), ("stride", stride)] {
            if value == 0 {
                return Err(DataError::option(option, "it is 0", "give at least one step"));
            }
        }
        let (span, mut starts) = (length.saturating_add(horizon), Starts::new());
        for (number, array) in series.iter().enumerate() {
            let (shape, first) = (array.shape(), series[0].shape());
            if shape.get(1..) != first.get(1..) {
                let problem =
                    format!("the steps of series {number}, of {shape:?}, are unlike those of series 0, of {first:?}");
                return Err(DataError::option("series", problem, "make windows of each kind apart"));
            }
            let steps = shape.first().copied().unwrap_or_default();
            let windows = steps.checked_sub(span).map_or(0, |last| last / stride + 1);
            starts.add(windows, &format!("series {number}"))?;
        }
        if starts.rows() == 0 {
            let problem = format!("no series has {length} steps and the {horizon} steps of the horizon");
            return Err(DataError::option("length", problem, "lower it, or give longer series"));
        }
        Ok(Self { series, starts, length, stride, horizon })
    }

    /// The window at an index.
    ///
    /// # Panics
    /// If the index is not below [`len`](Self::len).
    pub fn window(&self, index: usize) -> SeriesWindow<T> {
        assert!(index < self.len(), "window {index} of {}", self.len());
        let (series, nth) = self.starts.find(index);
        let (array, start) = (&self.series[series], nth * self.stride);
        let end = start + self.length;
        SeriesWindow { inputs: array.rows(start..end), targets: array.rows(end..end + self.horizon), series, start }
    }

    /// The number of windows, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "there is always a window")]
    pub fn len(&self) -> usize {
        self.starts.rows()
    }
}

/// `get` panics if the index is not below `len`, as Burn's data sets do, and never returns an error.
impl<T, I: From<SeriesWindow<T>> + Send + Sync> Dataset<I> for SeriesWindows<T> {
    fn get(&self, index: usize) -> Result<I, DatasetError> {
        Ok(self.window(index).into())
    }

    fn len(&self) -> usize {
        self.len()
    }
}
