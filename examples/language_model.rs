//! A small transformer learns to write, from files of tokens.
//!
//!     cargo run --release --example language_model
//!     cargo run --release --example language_model -- --data 'tokens/*.bin'  # nanoGPT, llm.c, Megatron
//!     cargo run --release --example language_model -- --data novel.txt  # the bytes of a text
//!     cargo run --release --features cuda --example language_model  # on an NVIDIA GPU
//!
//! Without `--data` it learns from the pages of this repository. The files are mapped into memory. Each window of tokens is copied
//! once, into the batch, and crosses the link as it is in the file. For rows of text, and documents that must not see each other,
//! docs/text.md has other loaders.

use burn::data::dataset::Dataset;
use burn::grad_clipping::GradientClippingConfig;
use burn::nn::attention::generate_autoregressive_mask;
use burn::nn::transformer::{TransformerEncoder, TransformerEncoderConfig, TransformerEncoderInput};
use burn::nn::{
    Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig, loss::CrossEntropyLossConfig,
};
use burn::optim::{AdamWConfig, GradientsParams};
use burn::{prelude::*, tensor::activation::softmax};
use burn_pinned::data::{TokenType, TokenWindow, Tokens};
use burn_pinned::{BoxError, Field, PinnedDataLoaderBuilder, collate};
use clap::Parser;
use std::{fs, path::Path};

/// Trains a small transformer on files of tokens
#[derive(Parser)]
struct Args {
    /// Files of tokens, such as 'tokens/*.bin', or a .txt file, each byte of which is a token
    #[arg(long)]
    data: Option<String>,
    #[arg(long, default_value_t = 600)]
    steps: usize,
    #[arg(long, default_value_t = 8)]
    batch_size: usize,
    /// Tokens that the model sees at once
    #[arg(long, default_value_t = 128)]
    context: usize,
    /// Tokens to write at the end
    #[arg(long, default_value_t = 300)]
    write: usize,
}

/// Writes the pages of this repository as one text.
fn pages(to: &Path) -> Result<(), BoxError> {
    let mut texts = Vec::new();
    for page in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs"))? {
        let path = page?.path();
        if path.extension().is_some_and(|ending| ending == "md") {
            texts.push(fs::read_to_string(path)?);
        }
    }
    texts.sort(); // a folder has no order
    Ok(fs::write(to, texts.concat())?)
}

#[derive(Module, Debug)]
struct Transformer {
    tokens: Embedding,
    positions: Embedding,
    layers: TransformerEncoder,
    norm: LayerNorm,
    head: Linear,
    context: usize,
}

impl Transformer {
    fn new(vocabulary: usize, context: usize, device: &Device) -> Self {
        let small = nn::Initializer::Normal { mean: 0.0, std: 0.02 };
        let embedding = |count| EmbeddingConfig::new(count, 128).with_initializer(small.clone()).init(device);
        let layers = TransformerEncoderConfig::new(128, 512, 4, 3).with_norm_first(true).with_dropout(0.0);
        let (layers, norm) = (layers.init(device), LayerNormConfig::new(128).init(device));
        let (tokens, positions) = (embedding(vocabulary), embedding(context));
        let head = LinearConfig::new(128, vocabulary).with_initializer(small).init(device);
        Self { tokens, positions, layers, norm, head, context }
    }

    /// The logits of the token behind each: `[batch, length, vocabulary]`.
    fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let ([batch, length], device) = (tokens.dims(), tokens.device());
        let positions = Tensor::<1, Int>::arange(0..length as i64, &device).unsqueeze();
        let x = self.tokens.forward(tokens) + self.positions.forward(positions);
        let mask = generate_autoregressive_mask(batch, length, &device);
        self.head.forward(self.norm.forward(self.layers.forward(TransformerEncoderInput::new(x).mask_attn(mask))))
    }

    /// Of inputs, and for each the token that follows it: both are `[batch, length]`.
    fn loss(&self, (inputs, targets): (Tensor<2, Int>, Tensor<2, Int>)) -> Tensor<1> {
        let (logits, targets) = (self.forward(inputs).flatten(0, 1), targets.flatten(0, 1));
        CrossEntropyLossConfig::new().init(&targets.device()).forward(logits, targets)
    }

    /// Goes on with some tokens, drawn from what the model expects.
    fn generate(&self, mut tokens: Vec<i64>, count: usize, device: &Device) -> Vec<i64> {
        for _ in 0..count {
            let seen = &tokens[tokens.len().saturating_sub(self.context)..];
            let logits = self.forward(Tensor::<1, Int>::from_ints(seen, device).unsqueeze());
            let last = logits.slice([0..1, seen.len() - 1..seen.len()]);
            tokens.push(softmax(last / 0.7, 2).categorical(1).into_scalar::<i64>()); // less than 1 takes fewer risks
        }
        tokens
    }
}

fn main() -> Result<(), BoxError> {
    burn_pinned::prepare()?;
    let Args { data, steps, batch_size, context, write } = Args::parse();
    let device = Device::default().autodiff();
    device.seed(42);
    let folder = tempfile::tempdir()?;
    let own = folder.path().join("pages.txt");
    let tokens = match &data {
        Some(text) if text.ends_with(".txt") => Tokens::open_raw(text.as_str(), TokenType::U8)?,
        Some(files) => Tokens::open(files.as_str())?,
        None => pages(&own).and_then(|()| Ok(Tokens::open_raw(own, TokenType::U8)?))?,
    };
    let kind = tokens.kind();
    let next_token = collate(
        [Field::new("tokens", kind.dtype(), [context + 1])],
        move |window: &TokenWindow, row| {
            match kind {
                TokenType::U8 => window.copy_to(row.slice_mut::<u8>("tokens")?)?,
                TokenType::U16 => window.copy_to(row.slice_mut::<u16>("tokens")?)?,
                TokenType::U32 => window.copy_to(row.slice_mut::<u32>("tokens")?)?,
                TokenType::I32 => window.copy_to(row.slice_mut::<i32>("tokens")?)?,
                other => return Err(format!("this example takes no tokens of {other}").into()),
            }
            Ok(())
        },
        move |mut batch| {
            let (rows, tokens) = (batch.len(), batch.take_int::<2>("tokens")?); // as they are in the file until here
            Ok((tokens.clone().slice([0..rows, 0..context]), tokens.slice([0..rows, 1..context + 1])))
        },
    );
    let windows = tokens.windows(context + 1, context); // each begins with the last token of the one before
    let first = windows.get(0)?.iter().take(1).collect();
    let builder = PinnedDataLoaderBuilder::new(next_token).batch_size(batch_size).shuffle(42);
    let loader = builder.set_device(device.clone()).build(windows)?;
    let vocabulary = usize::try_from(tokens.largest().unwrap_or(0))? + 1; // all tokens are read for it
    let mut model = Transformer::new(vocabulary, context, &device);
    println!("{} tokens of {kind}, of a vocabulary of {vocabulary}; {} parameters", tokens.len(), model.num_params());

    let mut optim = AdamWConfig::new().with_grad_clipping(Some(GradientClippingConfig::Norm(1.0))).init();
    let mut step = 0;
    while step < steps {
        for batch in loader.iter().take(steps - step) {
            let loss = model.loss(batch?);
            let grads = GradientsParams::from_grads(loss.backward(), &model);
            // The rate rises in the first steps, and then falls to 0.
            let rate = 2e-3 * ((step + 1) as f64 / 20.0).min(1.0) * (1.0 - step as f64 / steps as f64);
            model = optim.step(rate, model, grads);
            step += 1;
            if step.is_multiple_of(20) || step == steps {
                println!("step {step:>5}/{steps}   loss {:.3}", loss.into_scalar::<f64>()); // waits for the device
            }
        }
    }
    println!("\nthe loader: {}\n", loader.stats().verdict());
    let written = model.valid().generate(first, write, &device.inner());
    if kind == TokenType::U8 {
        let bytes = written.into_iter().map(u8::try_from).collect::<Result<Vec<_>, _>>()?;
        println!("{}", String::from_utf8_lossy(&bytes));
    } else {
        println!("{written:?}");
    }
    Ok(())
}
