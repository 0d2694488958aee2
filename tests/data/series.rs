//! Windows over series through the loader, as derived samples.

use burn::prelude::*;
use burn_pinned::{
    PinnedDataLoader, PinnedDataLoaderBuilder, Sample,
    data::{Array, SeriesWindow, SeriesWindows},
};

#[derive(Clone, Sample)]
struct Forecast {
    #[sample(shape = [4, 2])]
    inputs: Array<f32>,
    #[sample(shape = [3, 2])]
    targets: Array<f32>,
    series: usize,
    start: usize,
}

impl From<SeriesWindow<f32>> for Forecast {
    fn from(SeriesWindow { inputs, targets, series, start }: SeriesWindow<f32>) -> Self {
        Self { inputs, targets, series, start }
    }
}

/// The value of a channel of a step of a series.
fn value(series: usize, step: usize, channel: usize) -> f32 {
    (1000 * series + 10 * step + channel) as f32
}

fn windows() -> SeriesWindows<f32> {
    let array = |(series, steps): (usize, usize)| {
        let values = (0..steps).flat_map(|step| [value(series, step, 0), value(series, step, 1)]);
        Array::new([steps, 2], values.collect()).unwrap()
    };
    let series = [30, 3, 7, 0, 19].into_iter().enumerate().map(array);
    SeriesWindows::new(series, 4).unwrap().with_horizon(3).unwrap().with_stride(2).unwrap()
}

fn loader(workers: usize) -> PinnedDataLoaderBuilder<Forecast, ForecastBatch> {
    PinnedDataLoaderBuilder::new(Forecast::collate())
        .batch_size(4)
        .shuffle(7)
        .num_workers(workers)
        .set_device(Device::flex())
}

/// The window of each row, after its values were compared with those of its series.
fn places(batch: ForecastBatch) -> Vec<(usize, usize)> {
    let ints = |tensor: Tensor<1, Int>| tensor.into_data().iter::<i64>().map(|n| n as usize).collect::<Vec<_>>();
    let places: Vec<_> = ints(batch.series).into_iter().zip(ints(batch.start)).collect();
    let values = |steps: std::ops::Range<usize>| {
        let of = |(series, start): &(usize, usize)| {
            let (series, start) = (*series, *start);
            steps.clone().flat_map(move |step| [0, 1].map(|channel| value(series, start + step, channel)))
        };
        places.iter().flat_map(of).collect::<Vec<f32>>()
    };
    assert_eq!(batch.inputs.dims(), [places.len(), 4, 2]);
    assert_eq!(batch.inputs.into_data().try_to_vec::<f32>().unwrap(), values(0..4));
    assert_eq!(batch.targets.into_data().try_to_vec::<f32>().unwrap(), values(4..7));
    places
}

#[test]
fn each_window_comes_once_with_its_own_numbers() {
    let all = |loader: &PinnedDataLoader<ForecastBatch>| -> Vec<_> {
        loader.iter().flat_map(|batch| places(batch.unwrap())).collect()
    };
    let one = all(&loader(1).build(windows()).unwrap());
    let mut sorted = one.clone();
    sorted.sort_unstable();
    let expected: Vec<_> =
        (0..windows().len()).map(|index| windows().window(index)).map(|it| (it.series, it.start)).collect();
    assert_eq!(sorted, expected);
    assert_eq!(expected.iter().filter(|(series, _)| *series == 2).count(), 1);

    let first = loader(3).build(windows()).unwrap();
    let mut given: Vec<_> = first.iter().take(2).flat_map(|batch| places(batch.unwrap())).collect();
    given.extend(all(&loader(2).resume(first.state()).build(windows()).unwrap()));
    assert_eq!(given, one);
}
