//! Mean and deviation of values, in one pass.

use crate::{error::DataError, system::parallel::in_parallel};
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
/// assert_eq!(again, stats);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct MeanStd {
    /// The number of values of each channel.
    pub count: u64,
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
    /// on the number of threads, and has the same bits on every machine. A NaN makes the result of its channel NaN.
    ///
    /// # Errors
    /// If a sample cannot be read; if its number of values is not a multiple of `channels`; or if there are no values.
    pub fn of<I, D, V>(data: &D, channels: usize, values: impl Fn(I) -> V + Sync) -> Result<Self, DatasetError>
    where
        D: Dataset<I> + ?Sized,
        V: IntoIterator<Item: Into<f64>>,
    {
        let runs: Vec<Range<usize>> =
            (0..data.len()).step_by(RUN).map(|start| start..(start + RUN).min(data.len())).collect();
        let read = in_parallel(&runs, |run| {
            let (mut moments, mut buffer) = (vec![Moments::default(); channels], Vec::new());
            for index in run.clone() {
                buffer.clear();
                buffer.extend(values(data.get(index)?).into_iter().map(Into::into));
                if channels == 0 || !buffer.len().is_multiple_of(channels) {
                    let problem = format!("sample {index} has {} values for {channels} channels", buffer.len());
                    return Err(unusable(problem, "give the values of all channels by turns"));
                }
                for (channel, moments) in moments.iter_mut().enumerate() {
                    *moments = moments.with(Moments::of(buffer.iter().skip(channel).step_by(channels)));
                }
            }
            Ok(moments)
        })?;
        let all = read.into_iter().fold(vec![Moments::default(); channels], |all, run| {
            all.into_iter().zip(run).map(|(all, run)| all.with(run)).collect()
        });
        let count = all.first().map_or(0, |moments| moments.count);
        if count == 0 {
            return Err(unusable("there are no values", "check where the data set reads from"));
        }
        let std = |moments: &Moments| (moments.squares / moments.count as f64).sqrt();
        Ok(Self { count, mean: all.iter().map(|moments| moments.mean).collect(), std: all.iter().map(std).collect() })
    }
}

fn unusable(problem: impl Into<String>, advice: &str) -> DatasetError {
    DatasetError::new(DataError::option("MeanStd::of", problem, advice))
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
        let mean = values.clone().sum::<f64>() / count.max(1) as f64;
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
            assert_eq!(stats.count, shifted.len() as u64);
        }
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
