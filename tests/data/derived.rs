//! `#[derive(Sample)]` of what files in rows are decoded to.

use burn::{data::dataset::InMemDataset, prelude::*, tensor::DType};
use burn_pinned::{
    Field, PinnedDataLoaderBuilder, Sample, collate,
    data::{AddGaussianNoise, Array, Audio, FrequencyMasking, Gain, MelSpectrogram, Shift, TimeMasking},
};

#[derive(Clone, Sample)]
struct Sound {
    #[sample(padded = [8], fill = 0.5, mask)]
    wav: Audio,
    #[sample(jagged = [4, 2])]
    npy: Array<i16>,
    #[sample(shape = [2, 3], mean = 1.0, std = 2.0)]
    matrix: Array<f32>,
}

fn sound(n: usize) -> Sound {
    Sound {
        wav: Audio::new(vec![n as f32; n], 1, 16_000).unwrap(),
        npy: Array::new([n, 2], (0..2 * n as i16).collect()).unwrap(),
        matrix: Array::new([2, 3], vec![n as f32; 6]).unwrap(),
    }
}

fn batch(sounds: Vec<Sound>) -> Result<SoundBatch, String> {
    let builder = PinnedDataLoaderBuilder::new(Sound::collate()).batch_size(2).set_device(Device::flex());
    let loader = builder.build(InMemDataset::new(sounds)).unwrap();
    let batch = loader.iter().next().unwrap();
    batch.map_err(|error| std::error::Error::source(&error).map_or(error.to_string(), ToString::to_string))
}

#[test]
fn arrays_and_sounds_are_fields_as_lists_are() {
    let batch = batch(vec![sound(1), sound(3)]).unwrap();
    assert_eq!(batch.wav.into_data().try_to_vec::<f32>().unwrap(), [1.0, 0.5, 0.5, 3.0, 3.0, 3.0]);
    let mask: Vec<bool> = batch.wav_mask.into_data().iter().collect();
    assert_eq!(mask, [true, false, false, true, true, true]);
    assert_eq!(batch.npy.dims(), [4, 2]);
    let numbers = batch.npy.into_data_dtype(DType::I64).try_to_vec::<i64>().unwrap();
    assert_eq!(numbers, [0, 1, 0, 1, 2, 3, 4, 5]);
    assert_eq!(batch.npy_offsets.into_data_dtype(DType::I64).try_to_vec::<i64>().unwrap(), [0, 1, 4]);
    assert_eq!(batch.matrix.dims(), [2, 2, 3]);
    assert_eq!(batch.matrix.into_data().try_to_vec::<f32>().unwrap()[5..7], [0.0, 1.0]);
}

#[test]
fn an_array_of_another_shape_is_an_error_of_its_sample() {
    let turned = Sound { matrix: Array::new([3, 2], vec![0.0; 6]).unwrap(), ..sound(1) };
    let error = batch(vec![sound(1), turned]).unwrap_err();
    assert!(error.contains("an array of [3, 2] for rows of [2, 3]"), "{error}");
    let wide = Sound { npy: Array::new([1, 4], vec![0; 4]).unwrap(), ..sound(1) };
    let error = batch(vec![wide]).unwrap_err();
    assert!(error.contains("an array of [1, 4] for rows of [4, 2]"), "{error}");
}

#[derive(Clone)]
struct Heard {
    sound: Audio,
    spectrogram: Array<f32>,
}

impl AsMut<Audio> for Heard {
    fn as_mut(&mut self) -> &mut Audio {
        &mut self.sound
    }
}

impl AsMut<Array<f32>> for Heard {
    fn as_mut(&mut self) -> &mut Array<f32> {
        &mut self.spectrogram
    }
}

/// Samples, spectrograms and spectrograms of the samples, of all batches of two epochs.
fn heard(workers: usize) -> Vec<[Vec<f32>; 3]> {
    let sound = |n: usize| Heard {
        sound: Audio::new((0..2000).map(|at| (at * (n + 1) % 200) as f32 / 100.0 - 1.0).collect(), 1, 16_000).unwrap(),
        spectrogram: Array::new([30, 8], vec![1.0; 240]).unwrap(),
    };
    let on_device = MelSpectrogram::new(16_000, 400, 160, 40).unwrap().to_device(&Device::flex());
    let batches = collate(
        [Field::new("wave", DType::F32, [2000]), Field::new("spectrogram", DType::F32, [30, 8])],
        |heard: &Heard, row| {
            row.write("wave", &heard.sound.samples()?)?;
            Ok(row.write("spectrogram", heard.spectrogram.data())?)
        },
        move |mut batch| {
            let wave = batch.take::<2, Float>("wave")?;
            Ok((wave.clone(), batch.take::<3, Float>("spectrogram")?, on_device.decibels(wave)?))
        },
    );
    let sounds =
        (Gain::new(-6.0, 6.0).unwrap(), AddGaussianNoise::by_snr(5.0, 40.0).unwrap(), Shift::new(-0.5, 0.5).unwrap());
    let masks = (TimeMasking::new(10), FrequencyMasking::new(4));
    let builder = PinnedDataLoaderBuilder::new(batches).batch_size(4).shuffle(5).num_workers(workers);
    let loader = builder.augment((sounds, masks)).set_device(Device::flex());
    let loader = loader.build(InMemDataset::new((0..12).map(sound).collect::<Vec<_>>())).unwrap();
    let numbers = |data: burn::tensor::TensorData| data.try_to_vec::<f32>().unwrap();
    let epochs = [loader.iter(), loader.iter()].into_iter().flatten();
    epochs
        .map(|batch| {
            let (wave, masked, mel) = batch.unwrap();
            [numbers(wave.into_data()), numbers(masked.into_data()), numbers(mel.into_data())]
        })
        .collect()
}

#[test]
fn sounds_and_spectrograms_change_the_same_way_for_any_number_of_workers() {
    let right = heard(1);
    assert_eq!(right.len(), 6);
    assert!([2, 5].into_iter().all(|workers| heard(workers) == right));
    let waves: Vec<&[f32]> = right.iter().flat_map(|[wave, ..]| wave.chunks(2000)).collect();
    assert!((1..24).all(|at| !waves[..at].contains(&waves[at])), "each sample of each epoch is another");
    let masked = right.iter().flat_map(|[_, masked, _]| masked).filter(|value| **value == 0.0).count();
    assert!((240..240 * 24 / 2).contains(&masked), "{masked}");
    let mel = MelSpectrogram::new(16_000, 400, 160, 40).unwrap();
    for [wave, _, batch] in &right {
        for (wave, batch) in wave.chunks(2000).zip(batch.chunks(batch.len() / 4)) {
            let single = mel.decibels(&Audio::new(wave.to_vec(), 1, 16_000).unwrap()).unwrap();
            let is_near = |(is, right): (&f32, &f32)| (is - right).abs() <= 1e-3 * right.abs().max(1.0);
            assert_eq!(single.data().len(), batch.len());
            assert!(single.data().iter().zip(batch).all(is_near));
        }
    }
}
