//! The loop: steps over epoch after epoch, and what it prints.

use super::{Args, collate::NextTokens, model::Transformer};
use burn::{
    grad_clipping::GradientClippingConfig,
    optim::{AdamWConfig, GradientsParams},
};
use burn_pinned::{BoxError, PinnedDataLoader, Stats};
use std::{f64::consts::PI, time::Instant};

/// Steps in which the learning rate rises: at first gradients are large and say little.
const RISE: f64 = 20.0;
/// Lines to print.
const LINES: usize = 20;

/// The learning rate of a step: it rises, and then falls to 0 along half a wave.
fn rate(args: &Args, step: usize) -> f64 {
    let (rise, done) = ((step + 1) as f64 / RISE, step as f64 / args.steps as f64);
    args.learning_rate * rise.min(1.0) * (1.0 + (PI * done).cos()) / 2.0
}

/// What was done since the last line.
struct Progress {
    begun: Instant,
    tokens: usize,
    stats: Stats,
}

impl Progress {
    fn print(&self, args: &Args, step: usize, loss: f64, now: &Stats) {
        let speed = self.tokens as f64 / self.begun.elapsed().as_secs_f64();
        let waited = 100.0 * now.since(&self.stats).wait_share();
        println!(
            "step {step:>5}/{}   loss {loss:.3}   {speed:>8.0} tokens/s   {waited:.1} % waiting for data",
            args.steps
        );
    }
}

/// Trains for as many steps as are wanted, over as many epochs as that takes.
pub(crate) fn train<B: Into<NextTokens> + Send + 'static>(
    args: &Args,
    mut model: Transformer,
    loader: &PinnedDataLoader<B>,
) -> Result<Transformer, BoxError> {
    let clip = GradientClippingConfig::Norm(1.0);
    let mut optim = AdamWConfig::new().with_weight_decay(0.01).with_grad_clipping(Some(clip)).init();
    let mut progress = Progress { begun: Instant::now(), tokens: 0, stats: loader.stats() };
    let mut step = 0;
    while step < args.steps {
        for batch in loader.iter().take(args.steps - step) {
            let batch: NextTokens = batch?.into();
            progress.tokens += batch.inputs.shape().num_elements();
            let loss = model.loss(batch);
            let grads = GradientsParams::from_grads(loss.backward(), &model);
            model = optim.step(rate(args, step), model, grads);
            step += 1;
            if step.is_multiple_of((args.steps / LINES).max(1)) || step == args.steps {
                let loss = loss.into_scalar::<f64>(); // waits for the device
                let stats = loader.stats();
                progress.print(args, step, loss, &stats);
                progress = Progress { begun: Instant::now(), tokens: 0, stats };
            }
        }
    }
    Ok(model)
}

/// The mean loss over a data set.
pub(crate) fn evaluate<B: Into<NextTokens> + Send + 'static>(
    model: &Transformer,
    loader: &PinnedDataLoader<B>,
) -> Result<f64, BoxError> {
    let (mut sum, mut rows) = (0.0, 0);
    for batch in loader.iter() {
        let batch: NextTokens = batch?.into();
        let here = batch.inputs.dims()[0];
        sum += model.loss(batch).into_scalar::<f64>() * here as f64;
        rows += here;
    }
    Ok(sum / rows as f64)
}
