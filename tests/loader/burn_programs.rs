//! The loaders of Burn's example programs, in words of this crate. Each program has Burn's loader and this one, with the
//! changes that docs/from-burn.md shows, and no import of Burn's trait `DataLoader`. Their batches are equal, value by value.

use burn::data::dataloader::{DataLoaderBuilder, batcher::Batcher};
use burn::data::dataset::{
    Dataset, InMemDataset,
    transform::{Mapper, MapperDataset},
};
use burn::prelude::*;
use burn::tensor::{kind::Basic, s};
use burn_pinned::{MapTensors, PinnedDataLoaderBuilder, TensorMapper};
use std::{collections::HashMap, fmt::Debug, path::PathBuf, sync::Arc};

/// The trait object that Burn's programs pass around, without an import of the trait's name.
type Loader<O> = Arc<dyn burn::data::dataloader::DataLoader<O>>;

/// Collects the values of a batch.
#[derive(Default)]
struct Values(Vec<TensorData>);

impl TensorMapper for Values {
    fn map<const D: usize, K: Basic + 'static>(&mut self, tensor: Tensor<D, K>) -> Tensor<D, K> {
        self.0.push(tensor.to_data());
        tensor
    }
}

fn values<O: MapTensors>(batches: impl Iterator<Item = Result<O, impl Debug>>) -> Vec<Vec<TensorData>> {
    let of = |batch: Result<O, _>| {
        let mut values = Values::default();
        batch.unwrap().map_tensors(&mut values);
        values.0
    };
    batches.map(of).collect()
}

/// Checks that both have the same batches, with workers and without.
fn same<I, O, B, D>(batcher: B, batch_size: usize, dataset: impl Fn() -> D)
where
    I: Clone + Debug + Send + Sync + 'static,
    O: MapTensors + Clone + Debug + Send + Sync + 'static,
    B: Batcher<I, O> + Clone + 'static,
    D: Dataset<I> + 'static,
{
    let burn = DataLoaderBuilder::new(batcher.clone()).batch_size(batch_size).set_device(Device::flex());
    let burn: Vec<_> = values(burn.build(dataset()).iter());
    assert!(burn.len() > 1);
    for workers in [1, 3] {
        let ours = PinnedDataLoaderBuilder::from_batcher(batcher.clone()).batch_size(batch_size).num_workers(workers);
        let ours = ours.set_device(Device::flex()).build(dataset()).unwrap();
        assert_eq!(values(ours.iter()), burn, "{workers} workers");
    }
}

/// `mnist` and `custom-renderer`: pictures of one channel and their digits; several named loaders for the tests.
mod mnist {
    use super::*;

    #[derive(Clone, Debug)]
    pub(super) struct Digit {
        pub(super) image: [[f32; 28]; 28],
        pub(super) label: u8,
    }

    #[derive(Clone, Debug, MapTensors)]
    pub(super) struct DigitBatch {
        pub(super) images: Tensor<3>,
        pub(super) targets: Tensor<1, Int>,
    }

    #[derive(Clone, Default)]
    pub(super) struct DigitBatcher;

    impl Batcher<Digit, DigitBatch> for DigitBatcher {
        fn batch(&self, items: Vec<Digit>, device: &Device) -> DigitBatch {
            let image = |item: &Digit| Tensor::<2>::from_data(item.image, device).reshape([1, 28, 28]);
            let images = items.iter().map(image).map(|image| (image / 255 - 0.1307) / 0.3081).collect();
            let target = |item: &Digit| Tensor::<1, Int>::from_data([i64::from(item.label)], device);
            let targets = items.iter().map(target).collect();
            DigitBatch { images: Tensor::cat(images, 0), targets: Tensor::cat(targets, 0) }
        }
    }

    pub(super) fn digits(count: usize) -> InMemDataset<Digit> {
        let digit = |n: usize| Digit { image: [[n as f32; 28]; 28], label: (n % 10) as u8 };
        InMemDataset::new((0..count).map(digit).collect())
    }

    #[test]
    fn named_loaders_stand_in_one_list() {
        same(DigitBatcher, 8, || digits(21));
        let loader = |count| {
            let builder = PinnedDataLoaderBuilder::from_batcher(DigitBatcher).batch_size(8).set_device(Device::flex());
            builder.build_dyn(digits(count)).expect("options that fit")
        };
        let tests: Vec<(&str, Loader<DigitBatch>)> = vec![("plain", loader(16)), ("turned", loader(9))];
        let items: usize = tests.iter().map(|(_, loader)| loader.num_items()).sum();
        assert_eq!(items, 25);
    }
}

/// `guide`: what takes Burn's trait object gets it, by reference and by value.
mod guide {
    use super::{mnist::*, *};

    fn run(train: Loader<DigitBatch>, valid: &Loader<DigitBatch>) -> usize {
        train.num_items() + valid.num_items()
    }

    #[test]
    fn a_loader_goes_where_the_trait_object_goes() {
        let builder = || {
            let builder = PinnedDataLoaderBuilder::from_batcher(DigitBatcher).batch_size(8).shuffle(42).num_workers(2);
            builder.set_device(Device::flex())
        };
        let train = builder().build(digits(20)).expect("options that fit");
        let valid = builder().build_dyn(digits(10)).expect("options that fit");
        // Methods of Burn's trait, without the trait.
        assert_eq!(train.to_device(&Device::flex()).num_items(), 20);
        assert_eq!(train.slice(5, 9).iter().map(|batch| batch.unwrap().targets.dims()[0]).sum::<usize>(), 4);
        assert_eq!(run(train, &valid), 30);
    }
}

/// `custom-training-loop`: two loops over the same loaders, in `fn main()` without a result.
mod custom_training_loop {
    use super::{mnist::*, *};

    #[test]
    fn a_loop_of_ones_own_counts_its_batches() {
        let builder = PinnedDataLoaderBuilder::from_batcher(DigitBatcher).batch_size(8).num_workers(2);
        let train = builder.set_device(Device::flex()).build(digits(20)).expect("options that fit");
        for epoch in 1..=2 {
            let mut correct = 0;
            for (iteration, batch) in train.iter().enumerate() {
                let batch = batch.expect("a batch");
                let guess = batch.images.slice(s![.., 0, 0]).reshape([-1]) * 0.3081 + 0.1307;
                let guess = (guess * 255).round().int().remainder_scalar(10);
                correct += guess.equal(batch.targets.cast(guess_dtype())).int().sum().into_scalar::<i64>();
                assert!(iteration < 3, "epoch {epoch}");
            }
            assert_eq!(correct, 20);
        }
    }

    fn guess_dtype() -> burn::tensor::IntDType {
        Device::flex().settings().int_dtype
    }
}

/// `text-classification` and `text-generation`: tokens padded to the longest of a batch, with a mask; any data set of texts.
mod text_classification {
    use super::*;

    trait Texts: Dataset<Text> + 'static {
        fn classes() -> usize;
    }

    #[derive(Clone, Debug)]
    struct Text {
        text: String,
        label: usize,
    }

    #[derive(Clone, Debug, MapTensors)]
    struct TextBatch {
        tokens: Tensor<2, Int>,
        labels: Tensor<1, Int>,
        mask_pad: Tensor<2, Bool>,
    }

    #[derive(Clone)]
    struct TextBatcher {
        max: usize,
    }

    impl Batcher<Text, TextBatch> for TextBatcher {
        fn batch(&self, items: Vec<Text>, device: &Device) -> TextBatch {
            let tokens: Vec<Vec<i64>> =
                items.iter().map(|item| item.text.bytes().take(self.max).map(i64::from).collect()).collect();
            let longest = tokens.iter().map(Vec::len).max().unwrap_or(0);
            let padded = tokens.iter().flat_map(|row| (0..longest).map(|at| row.get(at).copied().unwrap_or(0)));
            let padded = TensorData::new(padded.collect::<Vec<i64>>(), [items.len(), longest]);
            let tokens = Tensor::<2, Int>::from_data(padded, device);
            let labels: Vec<i64> = items.iter().map(|item| item.label as i64).collect();
            let labels = Tensor::from_data(TensorData::new(labels, [items.len()]), device);
            TextBatch { mask_pad: tokens.clone().equal_elem(0), tokens, labels }
        }
    }

    struct News;

    impl Dataset<Text> for News {
        fn get(&self, index: usize) -> Result<Text, burn::data::dataset::DatasetError> {
            Ok(Text { text: "news ".repeat(index % 5 + 1), label: index % Self::classes() })
        }
        fn len(&self) -> usize {
            23
        }
    }

    impl Texts for News {
        fn classes() -> usize {
            4
        }
    }

    fn train<D: Texts>(dataset: D) -> usize {
        let loader = PinnedDataLoaderBuilder::from_batcher(TextBatcher { max: 12 }).batch_size(6).num_workers(1);
        let loader = loader.set_device(Device::flex()).build(dataset).expect("options that fit");
        loader.iter().map(|batch| batch.unwrap().mask_pad.dims()[0]).sum()
    }

    #[test]
    fn padded_tokens_and_their_mask_are_equal() {
        same(TextBatcher { max: 12 }, 6, || News);
        assert_eq!(train(News), 23);
    }
}

/// `modern-lstm`: sequences of numbers; the mean loss is by `num_items`.
mod modern_lstm {
    use super::*;

    #[derive(Clone, Debug)]
    struct Sequence {
        numbers: Vec<f32>,
        next: f32,
    }

    #[derive(Clone, Debug, MapTensors)]
    struct SequenceBatch {
        sequences: Tensor<3>,
        targets: Tensor<2>,
    }

    #[derive(Clone, Default)]
    struct SequenceBatcher;

    impl Batcher<Sequence, SequenceBatch> for SequenceBatcher {
        fn batch(&self, items: Vec<Sequence>, device: &Device) -> SequenceBatch {
            let sequence = |item: &Sequence| Tensor::<1>::from_floats(&*item.numbers, device).unsqueeze_dim::<2>(1);
            let sequences = Tensor::stack(items.iter().map(sequence).collect(), 0);
            let target = |item: &Sequence| Tensor::<1>::from_floats([item.next], device);
            SequenceBatch { sequences, targets: Tensor::stack(items.iter().map(target).collect(), 0) }
        }
    }

    fn sequences() -> InMemDataset<Sequence> {
        let sequence = |n: usize| Sequence { numbers: (n..n + 5).map(|x| x as f32).collect(), next: (n + 5) as f32 };
        InMemDataset::new((0..17).map(sequence).collect())
    }

    #[test]
    fn the_mean_of_a_loss_is_by_the_number_of_items() {
        same(SequenceBatcher, 4, sequences);
        let loader = PinnedDataLoaderBuilder::from_batcher(SequenceBatcher).batch_size(4).num_workers(1);
        let valid = loader.set_device(Device::flex()).build(sequences()).expect("options that fit");
        let loss: f32 = valid.iter().map(|batch| batch.unwrap().targets.sum().into_scalar::<f32>()).sum();
        assert_eq!(loss / valid.num_items() as f32, 13.0);
    }
}

/// `wgan` and `custom-image-dataset`: a tuple struct of one tensor.
mod wgan {
    use super::{mnist::*, *};

    #[derive(Clone, Debug, MapTensors)]
    struct Pictures(Tensor<4>);

    #[derive(Clone)]
    struct PictureBatcher;

    impl Batcher<Digit, Pictures> for PictureBatcher {
        fn batch(&self, items: Vec<Digit>, device: &Device) -> Pictures {
            let picture = |item: &Digit| Tensor::<2>::from_data(item.image, device).reshape([1, 1, 28, 28]) / 127.5 - 1;
            Pictures(Tensor::cat(items.iter().map(picture).collect(), 0))
        }
    }

    #[test]
    fn pictures_without_labels_are_equal() {
        same(PictureBatcher, 5, || digits(12));
    }
}

/// `simple-regression`: a data set that is mapped, and rows of numbers.
mod simple_regression {
    use super::*;

    #[derive(Clone, Debug)]
    struct House {
        numbers: [f32; 8],
        value: f32,
    }

    #[derive(Clone, Debug, MapTensors)]
    struct HouseBatch {
        inputs: Tensor<2>,
        targets: Tensor<1>,
    }

    #[derive(Clone)]
    struct HouseBatcher {
        least: [f32; 8],
        most: [f32; 8],
    }

    impl Batcher<House, HouseBatch> for HouseBatcher {
        fn batch(&self, items: Vec<House>, device: &Device) -> HouseBatch {
            let row = |numbers: [f32; 8]| Tensor::<1>::from_floats(numbers, device).unsqueeze::<2>();
            let (least, most) = (row(self.least), row(self.most));
            let inputs = Tensor::cat(items.iter().map(|item| row(item.numbers)).collect(), 0);
            let targets = items.iter().map(|item| Tensor::<1>::from_floats([item.value], device)).collect();
            HouseBatch { inputs: (inputs - least.clone()) / (most - least), targets: Tensor::cat(targets, 0) }
        }
    }

    struct Doubled;

    impl Mapper<usize, House> for Doubled {
        fn map(&self, n: &usize) -> House {
            House { numbers: [*n as f32; 8], value: 2.0 * *n as f32 }
        }
    }

    #[test]
    fn a_mapped_data_set_gives_equal_rows() {
        let batcher = HouseBatcher { least: [0.0; 8], most: [30.0; 8] };
        same(batcher, 7, || MapperDataset::new(InMemDataset::new((0..30usize).collect::<Vec<_>>()), Doubled));
    }
}

/// Batches of other forms: with parameters, enums, fields of types without tensors.
mod forms {
    use super::*;

    /// No tensors, and not of this crate.
    #[derive(Clone, Debug, PartialEq)]
    enum Split {
        Train,
    }

    #[derive(Clone, Debug, MapTensors)]
    struct Named<const D: usize, T, K: Basic = Float> {
        values: Tensor<D, K>,
        by_name: HashMap<String, Tensor<1, Int>>,
        more: T,
        path: PathBuf,
        #[map_tensors(skip)]
        split: Split,
    }

    #[derive(Clone, Debug, MapTensors)]
    enum Either {
        Named(Named<2, Option<Tensor<1, Bool>>>),
        Plain { values: [Tensor<1>; 2] },
    }

    #[derive(Clone)]
    struct EitherBatcher;

    impl Batcher<usize, Either> for EitherBatcher {
        fn batch(&self, items: Vec<usize>, device: &Device) -> Either {
            let first = items[0];
            let values = Tensor::<1>::from_floats(&*items.iter().map(|n| *n as f32).collect::<Vec<_>>(), device);
            if first % 2 == 1 {
                return Either::Plain { values: [values.clone(), values + 1] };
            }
            let name = |n: usize| (format!("name {n}"), Tensor::from_data([n as i64], device));
            let more = Some(values.clone().greater_elem(3.0));
            let by_name = items.iter().copied().map(name).collect();
            let path = PathBuf::from(format!("{first}.png"));
            Either::Named(Named { values: values.unsqueeze(), by_name, more, path, split: Split::Train })
        }
    }

    #[test]
    fn other_forms_of_batches_are_equal() {
        same(EitherBatcher, 5, || InMemDataset::new((0..20usize).collect::<Vec<_>>()));
        let loader = PinnedDataLoaderBuilder::from_batcher(EitherBatcher).batch_size(5).num_workers(1);
        let loader =
            loader.set_device(Device::flex()).build(InMemDataset::new((0..5usize).collect::<Vec<_>>())).unwrap();
        let Either::Named(batch) = loader.iter().next().unwrap().unwrap() else { panic!() };
        assert_eq!((batch.path.to_str(), batch.split), (Some("0.png"), Split::Train));
        for (name, number) in batch.by_name {
            assert_eq!(name, format!("name {}", number.into_scalar::<i64>()));
        }
    }

    /// Values go out and come back in the order of the keys, whatever the order of the map is.
    #[test]
    fn a_map_of_tensors_keeps_its_names() {
        let device = Device::flex();
        let map: HashMap<String, Tensor<1>> =
            (0..50).map(|n| (format!("{n:02}"), Tensor::full([1], n as f32, &device))).collect();
        for _ in 0..3 {
            let mut seen = Values::default();
            let map = map.clone().map_tensors(&mut seen);
            let order: Vec<f32> = seen.0.iter().map(|data| data.as_slice::<f32>().unwrap()[0]).collect();
            assert_eq!(order, (0..50).map(|n| n as f32).collect::<Vec<_>>());
            assert_eq!(map["07"].to_data().as_slice::<f32>().unwrap(), [7.0]);
        }
    }
}
