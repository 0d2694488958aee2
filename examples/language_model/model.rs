//! A small transformer that predicts the next token.

use super::collate::{Documents, NextTokens};
use burn::nn::{
    Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig,
    attention::generate_autoregressive_mask,
    transformer::{TransformerEncoder, TransformerEncoderConfig, TransformerEncoderInput},
};
use burn::{
    prelude::*,
    tensor::activation::{log_softmax, softmax},
};

/// How large a model is.
#[derive(Config, Debug)]
pub(crate) struct TransformerConfig {
    /// Different tokens.
    vocabulary: usize,
    /// Tokens that the model sees at once.
    context: usize,
    #[config(default = 128)]
    width: usize,
    #[config(default = 4)]
    heads: usize,
    #[config(default = 3)]
    layers: usize,
}

#[derive(Module, Debug)]
pub(crate) struct Transformer {
    tokens: Embedding,
    positions: Embedding,
    layers: TransformerEncoder,
    norm: LayerNorm,
    head: Linear,
    context: usize,
}

impl TransformerConfig {
    pub(crate) fn init(&self, device: &Device) -> Transformer {
        let small = nn::Initializer::Normal { mean: 0.0, std: 0.02 };
        let embedding = |count| EmbeddingConfig::new(count, self.width).with_initializer(small.clone()).init(device);
        let layers = TransformerEncoderConfig::new(self.width, 4 * self.width, self.heads, self.layers)
            .with_norm_first(true)
            .with_dropout(0.0)
            .init(device);
        Transformer {
            tokens: embedding(self.vocabulary),
            positions: embedding(self.context),
            layers,
            norm: LayerNormConfig::new(self.width).init(device),
            head: LinearConfig::new(self.width, self.vocabulary).with_bias(false).with_initializer(small).init(device),
            context: self.context,
        }
    }
}

impl Transformer {
    /// The logits of the token behind each: `[batch, length, vocabulary]` of `[batch, length]`.
    pub(crate) fn forward(&self, tokens: Tensor<2, Int>, documents: Option<&Documents>) -> Tensor<3> {
        let ([batch, length], device) = (tokens.dims(), tokens.device());
        let (positions, mask) = match documents {
            Some(documents) => (documents.positions.clone(), documents.mask.clone()),
            None => {
                let positions = Tensor::<1, Int>::arange(0..length as i64, &device).unsqueeze();
                (positions, generate_autoregressive_mask(batch, length, &device))
            }
        };
        let x = self.tokens.forward(tokens) + self.positions.forward(positions);
        let x = self.layers.forward(TransformerEncoderInput::new(x).mask_attn(mask));
        self.head.forward(self.norm.forward(x))
    }

    /// The mean of the losses of all targets, in nats.
    pub(crate) fn loss(&self, batch: NextTokens) -> Tensor<1> {
        let logits = self.forward(batch.inputs, batch.documents.as_ref());
        let losses = log_softmax(logits, 2).gather(2, batch.targets.unsqueeze_dim(2)).neg().squeeze_dim::<2>(2);
        match batch.documents {
            None => losses.mean(),
            Some(Documents { counted, .. }) => {
                let counted = counted.float();
                (losses * counted.clone()).sum() / counted.sum().clamp_min(1.0)
            }
        }
    }

    /// Goes on with some tokens, drawn from what the model expects. A lower temperature takes fewer risks.
    pub(crate) fn generate(&self, start: &[i64], count: usize, temperature: f64, device: &Device) -> Vec<i64> {
        let mut tokens = start.to_vec();
        for _ in 0..count {
            let seen = &tokens[tokens.len().saturating_sub(self.context)..];
            let input = Tensor::<1, Int>::from_ints(seen, device).unsqueeze();
            let logits = self.forward(input, None).slice([0..1, seen.len() - 1..seen.len()]);
            let next = softmax(logits / temperature, 2).categorical(1);
            tokens.push(next.into_scalar::<i64>());
        }
        tokens
    }
}
