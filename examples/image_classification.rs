//! Burn's learner on image files: a small network classifies the shape in an image. A batch that fails ends the program.
//!
//!     cargo run --release --features metrics,vision --example image_classification
//!     cargo run --release --features metrics,vision --example image_classification -- --data DIR   # DIR/cat/1.jpg, DIR/dog/2.png, ..
//!     cargo run --release --features metrics,vision --example image_classification -- --checkpoint-epoch 2   # resumes after epoch 2 of the last run
//!     cargo run --release --features cuda,metrics,vision --example image_classification   # on an NVIDIA GPU, which decodes JPEGs too

use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig, PaddingConfig2d, loss::CrossEntropyLossConfig};
use burn::train::checkpoint::FileCheckpointer;
use burn::train::metric::{AccuracyMetric, LossMetric};
use burn::train::{
    ClassificationOutput, InferenceStep, Learner, LearnerSummary, SupervisedTraining, TrainOutput, TrainStep,
};
use burn::{optim::AdamConfig, prelude::*, tensor::DType, tensor::activation::relu};
use burn_pinned::{BoxError, Field, KeyedRng, LoaderCheckpointer, PinnedDataLoaderBuilder, collate, vision::*};
use clap::Parser;
use image::{Rgb, RgbImage};
use rand::RngExt;
use std::{fs, path::Path, path::PathBuf, process::ExitCode, sync::Arc, sync::OnceLock};

#[derive(Parser)]
struct Args {
    /// A folder with a folder of images for each class. Without it, shapes are drawn
    #[arg(long)]
    data: Option<PathBuf>,
    /// How often the training sees each image
    #[arg(long, default_value_t = 10)]
    epochs: usize,
    /// How many images of each shape are drawn
    #[arg(long, default_value_t = 500)]
    per_class: usize,
    /// Images are cropped and resized to this many pixels on a side
    #[arg(long, default_value_t = 32)]
    side: u32,
    /// Resumes after this epoch of the last run, which must have had the same options
    #[arg(long, default_value_t = 0)]
    checkpoint_epoch: usize,
}

/// Draws a folder of PNGs and JPEGs for each shape.
fn draw(root: &Path, per_class: usize) -> Result<PathBuf, BoxError> {
    for (class, shape) in ["cross", "disc", "ring", "square"].into_iter().enumerate() {
        fs::create_dir_all(root.join(shape))?;
        for n in 0..per_class {
            let mut rng = KeyedRng::for_order(class as u64, n);
            let (ground, ink) = ([0; 3].map(|_| rng.random_range(0..110)), [0; 3].map(|_| rng.random_range(140..=255)));
            let [x, y, r] = [18.0..30.0, 18.0..30.0, 9.0..16.0f32].map(|range| rng.random_range(range));
            let picture = RgbImage::from_fn(48, 48, |at_x, at_y| {
                let (x, y) = ((at_x as f32 - x) / r, (at_y as f32 - y) / r);
                let (square, circle) = (x.abs().max(y.abs()), x.hypot(y));
                let inside = match shape {
                    "cross" => square <= 1.0 && x.abs().min(y.abs()) <= 0.3,
                    "disc" => circle <= 1.0,
                    "ring" => circle <= 1.0 && circle > 0.6,
                    _ => square <= 0.8,
                };
                Rgb(if inside { ink } else { ground })
            });
            picture.save(root.join(shape).join(format!("{n}.{}", ["png", "jpg"][n % 2])))?;
        }
    }
    Ok(root.into())
}

type Batch = (Tensor<4>, Tensor<1, Int>);
#[derive(Module, Debug)]
struct Model {
    convs: Vec<(Conv2d, BatchNorm)>,
    head: Linear,
}

impl Model {
    fn new(classes: usize, device: &Device) -> Self {
        let conv = |width: &[usize]| {
            let conv = Conv2dConfig::new([width[0], width[1]], [3, 3]).with_stride([2, 2]);
            let conv = conv.with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1)).init(device);
            (conv, BatchNormConfig::new(width[1]).init(device))
        };
        let convs = [3, 24, 48, 64].windows(2).map(conv).collect();
        Self { convs, head: LinearConfig::new(64, classes).init(device) }
    }
}

impl InferenceStep for Model {
    type Input = Batch;
    type Output = ClassificationOutput;
    fn step(&self, (images, targets): Batch) -> ClassificationOutput {
        let x = self.convs.iter().fold(images, |x, (conv, norm)| relu(norm.forward(conv.forward(x))));
        let output = self.head.forward(x.mean_dims(&[2, 3]).flatten(1, 3));
        let loss = CrossEntropyLossConfig::new().init(&output.device()).forward(output.clone(), targets.clone());
        ClassificationOutput { loss, output, targets }
    }
}

impl TrainStep for Model {
    type Input = Batch;
    type Output = ClassificationOutput;
    fn step(&self, batch: Batch) -> TrainOutput<ClassificationOutput> {
        let item = InferenceStep::step(self, batch);
        TrainOutput::new(self, item.loss.backward(), item)
    }
}

fn main() -> ExitCode {
    let Err(error) = train() else { return ExitCode::SUCCESS };
    eprintln!("error: {error}");
    ExitCode::FAILURE
}

fn train() -> Result<(), BoxError> {
    burn_pinned::prepare()?;
    let Args { data, epochs, per_class, side, checkpoint_epoch: start } = Args::parse();
    let drawn = tempfile::tempdir()?;
    let (train, valid) = ImageFolder::open(data.map_or_else(|| draw(drawn.path(), per_class), Ok)?)?.split(0.2, 42)?;
    let classes = train.classes().to_vec();
    let (images, others) = (train.labels().len(), valid.labels().len());
    println!("{images} images to train, {others} to validate, of {}, at {side} x {side} pixels", classes.join(", "));
    let pixels = Field::image("image", side).with_dtype(DType::F32);
    let pictures = collate(
        [pixels.normalize([0.5; 3], [0.5; 3]), Field::new("label", DType::I32, [])],
        |(image, label): &(Image, usize), row| {
            row.image("image", image)?;
            Ok(row.put("label", i32::try_from(*label)?)?)
        },
        |mut batch| Ok((batch.take::<4, Float>("image")?, batch.take_int::<1>("label")?)),
    );
    Device::default().seed(42);
    let first = Arc::<OnceLock<String>>::default(); // the first error, because Burn's dashboard removes it from the learner's result
    let builder = || {
        let first = Arc::clone(&first);
        let builder = PinnedDataLoaderBuilder::new(pictures.clone()).batch_size(64);
        builder.on_fault(move |error| drop(first.set(error.to_string())))
    };
    let changes = (RandomResizedCrop::new(side)?.scale(0.6, 1.0)?, RandomHorizontalFlip::default());
    let train = builder().shuffle(42).augment(changes).build(train)?;
    let valid = builder().augment((Resize::shorter_side(side)?, CenterCrop::new(side)?)).build(valid)?;
    let folder = std::env::temp_dir().join("burn-pinned-image-classification");
    if start == 0 {
        _ = fs::remove_dir_all(&folder); // removes the last run, or its epochs would be in the summary
    } else if start >= epochs || !folder.join(format!("checkpoint/model-{start}.bpk")).is_file() {
        return Err(format!("no epoch to go on from: {start} of {epochs}, in {}", folder.display()).into());
    }
    let learner =
        Learner::new(Model::new(classes.len(), &Device::default().autodiff()), AdamConfig::new().init(), 2e-3);
    let (fed, checkpoints) = (Arc::clone(&train), folder.join("checkpoint"));
    let file = |name| FileCheckpointer::new(&checkpoints, name);
    let model = LoaderCheckpointer::new(file("model"), &train, &checkpoints); // with the loader's position
    let mut training = SupervisedTraining::new(&folder, train, valid)
        .metrics((AccuracyMetric::new(), LossMetric::new()))
        .num_epochs(epochs)
        .with_custom_checkpointers(model, file("optim"), file("scheduler"))
        .with_application_logger(None); // on a GPU its file grows by gigabytes
    if start > 0 {
        training = training.checkpoint(start);
    }
    let result = training.launch(learner);
    drop(result.renderer); // the dashboard releases the terminal
    let stats = fed.stats();
    if let Some(error) = first.get().cloned().or_else(|| result.error.map(|error| error.to_string())) {
        return Err(error.into());
    }
    println!("{}\n{}", LearnerSummary::new(&folder, &["Accuracy", "Loss"])?, stats.verdict());
    println!("the model of each epoch, until the next run: {}", checkpoints.display());
    Ok(())
}
