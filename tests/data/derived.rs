//! `#[derive(Sample)]` of what files in rows are decoded to.

use burn::{data::dataset::InMemDataset, prelude::*, tensor::DType};
use burn_pinned::{
    PinnedDataLoaderBuilder, Sample,
    data::{Array, Audio},
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
