use super::*;
use crate::audio::mel::MelSpectrogram;

/// Noise, as the lines of Python that printed the numbers below drew it, too.
fn sound() -> Audio {
    let draw = |n: u32| {
        let mixed = n.wrapping_mul(2_654_435_761);
        let mixed = (mixed ^ mixed >> 15).wrapping_mul(2_246_822_519);
        (f64::from(mixed ^ mixed >> 13) / 4_294_967_296.0 - 0.5) as f32
    };
    Audio::new((0..4000).map(draw).collect(), 1, 16_000).unwrap()
}

#[test]
fn spectrograms_are_those_of_torchaudio() {
    type Case<'a> = ([usize; 3], [usize; 2], &'a [f32], &'a [f32]);
    let cases: [Case<'_>; 3] = [
        (
            [400, 200, 128],
            [21, 128],
            &[16.71618, 0.7440753, 11.81316, 0.0, 4.475472, 5.044713, 0.7898684, 10.60185, 47.0874, 34.16087],
            &[12.2314, -1.28383, 10.7237, -100.0, 6.50839, 7.02836, -1.02445, 10.2538, 16.729, 15.3353],
        ),
        (
            [400, 160, 80],
            [26, 80],
            &[2.378265, 122.8773, 41.13672, 33.18454, 18.66879, 22.36275, 7.347827, 2.01776, 32.53459],
            &[3.7626, 20.8947, 16.1423, 15.2094, 12.7112, 13.4953, 8.66159, 3.04869, 15.1235],
        ),
        (
            [511, 100, 40],
            [40, 40],
            &[43.64572, 91.56036, 366.2385, 40.22802, 206.6305, 9.390942, 58.55094, 69.42911, 72.96115, 144.0606],
            &[16.3994, 19.6171, 25.6376, 16.0453, 23.1519, 9.72709, 17.6753, 18.4154, 18.6309, 21.5855],
        ),
    ];
    for ([n_fft, hop, bands], shape, power, decibels) in cases {
        let mel = MelSpectrogram::new(16_000, n_fft, hop, bands).unwrap();
        let made = [mel.power(&sound()).unwrap(), mel.decibels(&sound()).unwrap()];
        for (made, right) in made.iter().zip([power, decibels]) {
            assert_eq!(made.shape(), shape);
            let places: Vec<f32> = made.data().iter().skip(5).step_by(shape[0] * shape[1] / 9).copied().collect();
            assert_eq!(places.len(), right.len());
            let is_near = |(is, right): (&f32, &f32)| (is - right).abs() <= 1e-3 * right.abs().max(1.0);
            assert!(places.iter().zip(right).all(is_near), "{n_fft}: {places:?}, not {right:?}");
        }
    }
}

#[test]
fn what_has_no_spectrogram_is_an_error() {
    for (rate, n_fft, hop, bands) in
        [(0, 400, 200, 8), (8000, 1, 1, 8), (8000, 400, 0, 8), (8000, 400, 1, 0), (8000, 400, 1, 2000)]
    {
        assert!(MelSpectrogram::new(rate, n_fft, hop, bands).is_err(), "{rate}, {n_fft}, {hop}, {bands}");
    }
    let mel = MelSpectrogram::new(16_000, 400, 200, 8).unwrap();
    let least = Audio::new(vec![0.5; 201], 1, 16_000).unwrap();
    assert_eq!(mel.power(&least).unwrap().shape(), [2, 8]);
    let two = Audio::new(vec![0.5; 800], 2, 16_000).unwrap();
    for audio in [least.clone().crop(0..200), two, Audio::new(vec![0.5; 800], 1, 8000).unwrap()] {
        assert!(mel.power(&audio).unwrap_err().to_string().contains("one channel at 16000 Hz"));
    }
}

#[test]
fn batches_have_the_numbers_of_single_sounds() {
    use burn::tensor::{Device, Tensor, TensorData};

    let device = Device::flex();
    for [n_fft, hop, bands] in [[400, 200, 128], [400, 160, 80], [511, 100, 40], [64, 100, 1]] {
        let mel = MelSpectrogram::new(16_000, n_fft, hop, bands).unwrap();
        let on_device = mel.to_device(&device);
        let sounds = [sound().crop(0..3000), sound().crop(1000..4000)];
        let data = sounds.iter().flat_map(|sound| sound.samples().unwrap().into_owned()).collect();
        let wave = Tensor::<2>::from_data(TensorData::new(data, [2, 3000]), &device);
        for (batch, single) in [
            (on_device.power(wave.clone()).unwrap(), sounds.each_ref().map(|sound| mel.power(sound).unwrap())),
            (on_device.decibels(wave).unwrap(), sounds.each_ref().map(|sound| mel.decibels(sound).unwrap())),
        ] {
            assert_eq!(batch.dims(), [2, single[0].shape()[0], bands]);
            let numbers = batch.into_data().try_to_vec::<f32>().unwrap();
            assert!(numbers.iter().any(|number| number.abs() > 1.0));
            for (is, right) in numbers.iter().zip(single.iter().flat_map(|single| single.data())) {
                assert!((is - right).abs() <= 1e-3 * right.abs().max(1.0), "{n_fft}: {is}, not {right}");
            }
        }
    }
    let mel = MelSpectrogram::new(16_000, 400, 200, 8).unwrap().to_device(&device);
    assert!(mel.power(Tensor::zeros([1, 200], &device)).unwrap_err().to_string().contains("more than 200 frames"));
    let silence = mel.decibels(Tensor::zeros([1, 201], &device)).unwrap();
    assert!((silence.max().into_scalar::<f32>() + 100.0).abs() < 1e-3);
}

#[test]
fn what_is_no_number_stays_none_and_is_no_silence() {
    let mel = MelSpectrogram::new(16_000, 400, 200, 8).unwrap();
    let decibels = |sample| mel.decibels(&Audio::new(vec![sample; 800], 1, 16_000).unwrap()).unwrap();
    assert!(decibels(f32::NAN).data().iter().all(|value| value.is_nan()));
    assert!(decibels(0.0).data().iter().all(|value| *value == -100.0));
}
