use super::*;
use crate::{
    audio::{
        change::{AddGaussianNoise, Gain, Shift},
        mask::{FrequencyMasking, TimeMasking},
    },
    source::cell::Array,
};
use burn_augment::{Augment, KeyedRng};
use std::collections::BTreeSet;

fn rng(index: usize) -> KeyedRng {
    KeyedRng::for_sample(3, 1, index)
}

fn changed(change: &impl Augment<Audio>, samples: &[f32], channels: u16, index: usize) -> Vec<f32> {
    let audio = Audio::new(samples.to_vec(), channels, 8000).unwrap();
    let made = change.apply(audio, &mut rng(index)).unwrap();
    assert_eq!((made.channels(), made.rate(), made.samples().unwrap().len()), (channels, 8000, samples.len()));
    made.samples().unwrap().into_owned()
}

fn rms(samples: impl Iterator<Item = f32> + Clone) -> f64 {
    (samples.clone().map(|value| f64::from(value).powi(2)).sum::<f64>() / samples.count() as f64).sqrt()
}

#[test]
fn gains_are_uniform_in_decibels() {
    let gain = Gain::new(-12.0, 6.0).unwrap();
    let mut all = Vec::new();
    for index in 0..2000 {
        let made = changed(&gain, &[0.5, -0.25], 1, index);
        assert!((made[0] + 2.0 * made[1]).abs() < 1e-6, "both by one factor");
        all.push(20.0 * f64::from(made[0] / 0.5).log10());
    }
    assert!(all.iter().all(|gain| (-12.0001..=6.0001).contains(gain)));
    let mean = all.iter().sum::<f64>() / 2000.0;
    let deviation = (all.iter().map(|gain| (gain - mean).powi(2)).sum::<f64>() / 2000.0).sqrt();
    assert!((mean + 3.0).abs() < 0.5 && (deviation - 18.0 / 12f64.sqrt()).abs() < 0.2, "{mean}, {deviation}");
}

#[test]
fn noise_is_normal_and_as_loud_as_asked() {
    let sound: Vec<f32> = (0..40_001).map(|n| (n as f32 * 0.1).sin()).collect();
    let cases = [
        (AddGaussianNoise::new(0.01, 0.01).unwrap(), 0.01),
        (AddGaussianNoise::by_snr(20.0, 20.0).unwrap(), 0.1 * rms(sound.iter().copied())),
    ];
    for (noise, deviation) in cases {
        let made = changed(&noise, &sound, 1, 5);
        let added = made.iter().zip(&sound).map(|(made, sound)| made - sound);
        assert!((rms(added.clone()) / deviation - 1.0).abs() < 0.02, "{}", rms(added));
        let mean = added.clone().map(f64::from).sum::<f64>() / 40_001.0;
        assert!(mean.abs() < 4.0 * deviation / 200.0, "{mean}");
        for (within, share) in [(1.0, 0.6827), (2.0, 0.9545)] {
            let count = added.clone().filter(|noise| f64::from(noise.abs()) < within * deviation).count();
            assert!((count as f64 / 40_001.0 - share).abs() < 0.01, "{count} within {within}");
        }
        let by_lag =
            |lag: usize| added.clone().zip(added.clone().skip(lag)).map(|(a, b)| f64::from(a * b)).sum::<f64>();
        assert!(by_lag(1).abs() < 0.03 * by_lag(0), "neighbours are not alike");
        assert_ne!(changed(&noise, &sound, 1, 6), made);
    }
    let silence = AddGaussianNoise::by_snr(0.0, 0.0).unwrap();
    assert_eq!(changed(&silence, &[0.0; 9], 1, 0), [0.0; 9]);
}

#[test]
fn shifts_move_whole_frames() {
    let sound: Vec<f32> = (1..=20).map(|n| n as f32).collect(); // 10 frames of 2 channels
    let mut firsts = BTreeSet::new();
    for index in 0..500 {
        let made = changed(&Shift::new(-0.5, 0.2).unwrap(), &sound, 2, index);
        let mut back = made.clone();
        back.rotate_left(made.iter().position(|value| *value == 1.0).unwrap());
        assert_eq!(back, sound);
        firsts.insert(made[0] as i32);
    }
    assert_eq!(Vec::from_iter(firsts), [1, 3, 5, 7, 9, 11, 17, 19]); // 5 frames to the left, 2 to the right
    let by = |part: f64| changed(&Shift::new(part, part).unwrap(), &sound, 2, 0);
    assert_eq!((by(1.0), by(-2.0)), (sound.clone(), sound.clone()));
    assert_eq!(by(1.3), by(0.3));
}

#[test]
fn sounds_without_frames_stay_so_and_wrong_numbers_are_errors() {
    let all =
        (Gain::new(0.0, 0.0).unwrap(), AddGaussianNoise::by_snr(0.0, 1.0).unwrap(), Shift::new(-1.0, 1.0).unwrap());
    assert!(changed(&all, &[], 2, 0).is_empty());
    let damaged = Audio::from_bytes(flac(&noise(5000, 16), 1, 16)).unwrap().limit(4);
    assert!(all.apply(damaged, &mut rng(0)).unwrap_err().to_string().contains("limit"));
    for (min, max) in [(1.0, 0.0), (f64::NAN, 1.0), (0.0, f64::INFINITY), (f64::MIN, f64::MAX)] {
        assert!(Gain::new(min, max).is_err() && Shift::new(min, max).is_err(), "{min}, {max}");
        assert!(AddGaussianNoise::new(min, max).is_err() && AddGaussianNoise::by_snr(min, max).is_err());
    }
    assert!(TimeMasking::new(3).p(1.5).is_err() && TimeMasking::new(3).p(f64::NAN).is_err());
}

#[test]
fn masks_are_bands_of_time_and_of_frequency() {
    let spectrogram = || (Array::new([30, 8], vec![1f32; 240]).unwrap(), "label");
    let (mut lengths, mut starts) = ([BTreeSet::new(), BTreeSet::new()], [BTreeSet::new(), BTreeSet::new()]);
    for index in 0..3000 {
        let by_time = TimeMasking::new(10).value(-100.0).apply(spectrogram(), &mut rng(index)).unwrap().0;
        let by_band = FrequencyMasking::new(4).value(-100.0).apply(spectrogram(), &mut rng(index)).unwrap().0;
        for (axis, array) in [by_time, by_band].iter().enumerate() {
            assert_eq!(array.shape(), [30, 8]);
            let is_masked = |time: usize, band: usize| array.data()[time * 8 + band] == -100.0;
            let line = |at: usize| if axis == 0 { is_masked(at, 0) } else { is_masked(0, at) };
            let masked: Vec<usize> = (0..[30, 8][axis]).filter(|at| line(*at)).collect();
            assert!(masked.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{masked:?}");
            let is_right = |at: usize| is_masked(at / 8, at % 8) == line([at / 8, at % 8][axis]);
            assert!((0..240).all(is_right));
            lengths[axis].insert(masked.len());
            starts[axis].extend(masked.first());
        }
    }
    assert_eq!(lengths, [(0..10).collect(), (0..4).collect()]);
    assert_eq!(starts, [(0..29).collect(), (0..7).collect()]); // the last length is below 2, and the start is rounded down
    for index in 0..200 {
        let masked = TimeMasking::new(1000).p(0.1).unwrap().apply(spectrogram(), &mut rng(index)).unwrap().0;
        assert!(masked.data().iter().filter(|value| **value == 0.0).count() <= 2 * 8);
        let masked = FrequencyMasking::new(1000).apply(Array::new([0, 8], vec![]).unwrap(), &mut rng(index)).unwrap();
        assert_eq!(masked.shape(), [0, 8]);
        let masked = TimeMasking::new(1000).apply(Array::new([3, 0], vec![]).unwrap(), &mut rng(index)).unwrap();
        assert_eq!(masked.shape(), [3, 0]);
    }
    assert!(TimeMasking::new(1).apply(Array::new([3], vec![0.0; 3]).unwrap(), &mut rng(0)).is_err());
}

/// What a seed gives stays.
#[test]
fn draws_are_those_of_the_first_version() {
    let all =
        (Gain::new(-12.0, 12.0).unwrap(), AddGaussianNoise::new(0.1, 0.2).unwrap(), Shift::new(-0.5, 0.5).unwrap());
    let bits = changed(&all, &[0.5, -0.5, 0.25, 0.0], 1, 9).iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits, [3212005659, 1055898664, 3186040997, 1061342348]);
    let snr = AddGaussianNoise::by_snr(0.0, 20.0).unwrap();
    let bits = changed(&snr, &[0.5, -0.5, 0.25, 0.0], 1, 9).iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits, [1057281939, 3205105220, 1040189176, 3180719416]);
    // The first masked place, and how many follow.
    let runs = |change: &dyn Augment<Array<f32>>, step: usize| {
        let run = |index| {
            let made = change.apply(Array::new([100, 100], vec![1.0; 10_000]).unwrap(), &mut rng(index)).unwrap();
            let is_masked: Vec<bool> = made.data().iter().step_by(step).take(100).map(|value| *value == 0.0).collect();
            [is_masked.iter().position(|masked| *masked).unwrap(), is_masked.iter().filter(|masked| **masked).count()]
        };
        [9, 10, 11].map(run)
    };
    assert_eq!(runs(&TimeMasking::new(50), 100), [[8, 32], [61, 29], [12, 11]]);
    assert_eq!(runs(&FrequencyMasking::new(30), 1), [[9, 19], [71, 17], [12, 6]]);
}
