//! Mean, deviation and median of values.

use super::parts::SampleError;
use crate::{
    error::DataError,
    system::parallel::{cores, in_order},
};
use burn::data::dataset::{Dataset, DatasetError};
use std::ops::Range;

/// The number of samples whose values are added up by one thread. The last bits of the result depend on it.
const RUN: usize = 64;

/// Mean and standard deviation of each channel of a data set's values, to normalise them.
///
/// ```
/// use burn_shards::{MeanStd, Rows};
///
/// #[derive(serde::Deserialize)]
/// struct Row {
///     point: [f32; 2],
/// }
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("train.jsonl");
/// # std::fs::write(&path, "{\"point\": [1, 10]}\n{\"point\": [3, 10]}\n")?;
/// # let saved = folder.path().join("stats.json");
///
/// let train = Rows::<Row>::jsonl(path).open()?;
/// let stats = MeanStd::of(&train, 2, |row| row.point)?;
/// assert_eq!((stats.mean[0], stats.std[0], stats.mean[1], stats.std[1]), (2.0, 1.0, 10.0, 0.0));
///
/// // Save it beside the model: a prediction needs it too.
/// std::fs::write(&saved, serde_json::to_string(&stats)?)?;
/// let again: MeanStd = serde_json::from_str(&std::fs::read_to_string(&saved)?)?;
/// assert_eq!(again.normalise([5.0, f32::NAN])?, [3.0, 0.0]); // the second value is missing
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It learns from the data that it is given: give it the part for training, so that nothing of the validation is known.
#[doc(alias = "StandardScaler")]
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct MeanStd {
    /// The number of values of each channel.
    pub count: Vec<u64>,
    /// The mean of each channel.
    pub mean: Vec<f64>,
    /// The standard deviation of each channel. The sum of squares is divided by `count`, as is usual for images, not by `count - 1`.
    pub std: Vec<f64>,
}

impl MeanStd {
    /// Reads all samples of a data set once, on all threads of the machine. `values` returns the values of a sample with the channels
    /// interleaved: `r, g, b, r, g, b` for `channels` = 3. Use 1 for values of one kind.
    ///
    /// `data` is any Burn data set: [`Rows`](crate::Rows) or a part of them, images in a folder, data in memory. The result does not depend
    /// on the number of threads, and has the same bits on every machine. A NaN is a missing value, and is left out. A sample that a stage
    /// leaves out is an error: learn from the data set before its filter, or from `select`ed samples.
    ///
    /// # Errors
    /// If a sample cannot be read; if its number of values is not a multiple of `channels`; if a value is infinite; or if a channel has no
    /// values.
    pub fn of<I, D, V>(data: &D, channels: usize, values: impl Fn(I) -> V + Sync) -> Result<Self, DatasetError>
    where
        D: Dataset<I> + ?Sized,
        V: IntoIterator<Item: Into<f64>>,
    {
        let mut all = vec![Moments::default(); channels];
        let add = |moments: &mut Vec<Moments>, values: &[f64]| {
            for (channel, moments) in moments.iter_mut().enumerate() {
                let values = values.iter().skip(channel).step_by(channels).filter(|value| !value.is_nan());
                *moments = moments.with(Moments::of(values));
            }
        };
        in_values(data, channels, all.clone(), values, add, |run| {
            all.iter_mut().zip(run).for_each(|(all, run)| *all = all.with(run));
        })?;
        if channels == 0 || all.iter().any(|moments| moments.count == 0) {
            return Err(no_values());
        }
        if all.iter().any(|moments| !moments.squares.is_finite()) {
            return Err(unusable(
                "values",
                "a channel's values are too large for a deviation",
                "scale them, or leave out marks of missing ones",
            ));
        }
        let std = |moments: &Moments| (moments.squares / moments.count as f64).sqrt();
        let (count, mean) = all.iter().map(|moments| (moments.count, moments.mean)).unzip();
        Ok(Self { count, mean, std: all.iter().map(std).collect() })
    }

    /// Makes `(value - mean) / std` of each value, with the channels by turns as in [`of`](Self::of). A missing value, NaN, becomes 0, which
    /// is the mean. If a channel has the deviation 0, the values are not divided.
    ///
    /// # Errors
    /// If the number of values is not a multiple of the number of channels.
    pub fn normalise(&self, values: impl IntoIterator<Item: Into<f64>>) -> Result<Vec<f32>, DataError> {
        let pairs = self.mean.iter().zip(&self.std).cycle();
        let normal = |(value, (mean, std)): (f64, (&f64, &f64))| {
            let apart = (value - mean) / if *std == 0.0 { 1.0 } else { *std };
            if value.is_nan() { 0.0 } else { apart as f32 }
        };
        let all: Vec<f32> = values.into_iter().map(Into::into).zip(pairs).map(normal).collect();
        let channels = self.mean.len();
        if channels == 0 || channels != self.std.len() || !all.len().is_multiple_of(channels) {
            let problem =
                format!("there are {} values, for {channels} means and {} deviations", all.len(), self.std.len());
            return Err(DataError::option("normalise", problem, "give the values of all channels by turns"));
        }
        Ok(all)
    }
}

/// The median of each channel of a data set's values, to put in the place of missing ones. The arguments are those of [`MeanStd::of`].
///
/// ```
/// use burn::data::dataset::InMemDataset;
/// use burn_shards::medians;
///
/// let train = InMemDataset::new(vec![[Some(30.0), None], [Some(90.0), Some(1.0)], [Some(31.0), Some(2.0)]]);
/// let medians = medians(&train, 2, |row| row.map(|value: Option<f64>| value.unwrap_or(f64::NAN)))?;
/// assert_eq!(medians, [31.0, 1.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It keeps all values in memory, 8 to 16 bytes each, and twice those of a channel: it is for tables. Of an even number of values it is the
/// mean of the middle two.
///
/// # Errors
/// As [`MeanStd::of`].
#[doc(alias = "SimpleImputer")]
pub fn medians<I, D, V>(data: &D, channels: usize, values: impl Fn(I) -> V + Sync) -> Result<Vec<f64>, DatasetError>
where
    D: Dataset<I> + ?Sized,
    V: IntoIterator<Item: Into<f64>>,
{
    let mut all = Vec::new();
    let add = |run: &mut Vec<f64>, values: &[f64]| run.extend(values);
    in_values(data, channels, Vec::new(), values, add, |run| all.extend(run))?;
    let of_channel = |channel| {
        let values = all.iter().skip(channel).step_by(channels).copied();
        let mut sorted: Vec<f64> = values.filter(|value| !value.is_nan()).collect();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len().is_multiple_of(2) {
            true if sorted.is_empty() => Err(no_values()),
            true => Ok(f64::midpoint(sorted[middle - 1], sorted[middle])),
            false => Ok(sorted[middle]),
        }
    };
    (0..channels).map(of_channel).collect()
}

/// Reads all samples of a data set once, on all threads. `add` adds a sample to those of its run, and `take` gets each run, in order.
pub(super) fn in_runs<I, D: Dataset<I> + ?Sized, S: Clone + Send + Sync>(
    data: &D,
    empty: S,
    add: impl Fn(&mut S, usize, I) -> Result<(), DatasetError> + Sync,
    mut take: impl FnMut(S),
) -> Result<(), DatasetError> {
    let runs: Vec<Range<usize>> =
        (0..data.len()).step_by(RUN).map(|start| start..(start + RUN).min(data.len())).collect();
    let read = |run: &Range<usize>| {
        let mut all = empty.clone();
        let of = |index| move |source| DatasetError::new(SampleError { index, source });
        let sample = |index| data.get(index).map_err(Into::into).map_err(of(index));
        run.clone().try_for_each(|index| add(&mut all, index, sample(index)?)).map(|()| all)
    };
    in_order(cores(), &runs, read, |run| {
        take(run);
        Ok(())
    })
}

/// As [`in_runs`], of the values of each sample, which are checked.
fn in_values<I, D: Dataset<I> + ?Sized, S: Clone + Send + Sync, V: IntoIterator<Item: Into<f64>>>(
    data: &D,
    channels: usize,
    empty: S,
    values: impl Fn(I) -> V + Sync,
    add: impl Fn(&mut S, &[f64]) + Sync,
    take: impl FnMut(S),
) -> Result<(), DatasetError> {
    let advice = "give the values of all channels by turns, and NaN for those that are missing";
    let add = |all: &mut S, index, sample| {
        let values: Vec<f64> = values(sample).into_iter().map(Into::into).collect();
        if channels == 0 || !values.len().is_multiple_of(channels) {
            let problem = format!("sample {index} has {} values for {channels} channels", values.len());
            return Err(unusable("values", problem, advice));
        }
        if values.iter().any(|value| value.is_infinite()) {
            return Err(unusable("values", format!("sample {index} has an infinite value"), advice));
        }
        add(all, &values);
        Ok(())
    };
    in_runs(data, empty, add, take)
}

pub(super) fn unusable(option: &'static str, problem: impl Into<String>, advice: &str) -> DatasetError {
    DatasetError::new(DataError::option(option, problem, advice))
}

fn no_values() -> DatasetError {
    unusable("values", "a channel has no values", "check where the data set reads from")
}

/// The number of some values, their mean, and the sum of squared differences from the mean.
#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn of<'a>(values: impl Iterator<Item = &'a f64> + Clone) -> Self {
        let count = values.clone().count() as u64;
        // From the first value on, so that the deviation of a constant is 0.
        let first = values.clone().next().copied().unwrap_or(0.0);
        let mean = first + values.clone().map(|value| value - first).sum::<f64>() / count.max(1) as f64;
        Self { count, mean, squares: values.map(|value| value - mean).map(|apart| apart * apart).sum() }
    }

    /// These values and others, by the formula of Chan, Golub and LeVeque.
    fn with(self, other: Self) -> Self {
        if self.count == 0 || other.count == 0 {
            return if self.count == 0 { other } else { self };
        }
        let (count, apart) = (self.count + other.count, other.mean - self.mean);
        let share = other.count as f64 / count as f64;
        Self {
            count,
            mean: self.mean + apart * share,
            squares: self.squares + other.squares + apart * apart * self.count as f64 * share,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::data::dataset::InMemDataset;

    #[test]
    fn values_far_from_zero_keep_their_deviation() {
        let values =
            |n: usize| -> Vec<f64> { (0..n % 7).flat_map(|k| [1e9 + (n * 31 % 17) as f64, k as f64]).collect() };
        let data = InMemDataset::new((0..1000).map(values).collect());
        let stats = MeanStd::of(&data, 2, |row: Vec<f64>| row).unwrap();
        let all: Vec<f64> = (0..1000).flat_map(values).collect();
        for channel in 0..2 {
            let first = all[channel];
            let shifted: Vec<f64> = all.iter().skip(channel).step_by(2).map(|value| value - first).collect();
            let mean = shifted.iter().sum::<f64>() / shifted.len() as f64;
            let squares: f64 = shifted.iter().map(|value| (value - mean).powi(2)).sum();
            assert!((stats.mean[channel] - first - mean).abs() < 1e-6, "{stats:?}");
            assert!((stats.std[channel] - (squares / shifted.len() as f64).sqrt()).abs() < 1e-6, "{stats:?}");
            assert_eq!(stats.count[channel], shifted.len() as u64);
        }
        for constant in [0.1, 1_700_000_001.0, -3e-300, 1e300] {
            let stats = MeanStd::of(&data, 1, |_| vec![constant; 1000]).unwrap();
            assert_eq!((stats.mean[0], stats.std[0]), (constant, 0.0));
            assert_eq!(stats.normalise([constant]).unwrap(), [0.0]);
        }
        let mark = MeanStd::of(&data, 1, |row: Vec<f64>| [if row.is_empty() { f64::MAX } else { 1.0 }]).unwrap_err();
        assert!(format!("{mark:?}").contains("too large"), "{mark:?}");
        // The result has the same bits, whichever threads take the runs.
        (0..20).for_each(|_| assert_eq!(MeanStd::of(&data, 2, |row: Vec<f64>| row).unwrap(), stats));
    }

    #[test]
    fn values_that_do_not_fill_the_channels_are_an_error_that_names_the_sample() {
        let data = InMemDataset::new(vec![vec![1_u8, 2], vec![1, 2, 3]]);
        let error = MeanStd::of(&data, 2, |row: Vec<u8>| row).unwrap_err();
        assert!(format!("{error:?}").contains("sample 1 has 3 values for 2 channels"), "{error:?}");
        assert!(MeanStd::of(&data, 0, |row: Vec<u8>| row).is_err());
        assert!(MeanStd::of(&InMemDataset::new(vec![Vec::<u8>::new()]), 1, |row: Vec<u8>| row).is_err());
    }
}
