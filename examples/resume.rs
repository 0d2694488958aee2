//! A training that is killed twice, and ends with the same model as one that was not, bit for bit.
//!
//!     cargo run --release --example resume
//!
//! It draws images, trains on them in one go, and then once more in processes that save a checkpoint every few steps. The first
//! two are killed (SIGKILL) in the middle of an epoch; the next goes on, with another number of workers.

#[path = "../tools/src/bin/image_bench/augment.rs"]
mod augment;
#[path = "resume/batches.rs"]
mod batches;
#[path = "replicas/checkpoint.rs"]
mod checkpoint;
#[path = "../tools/src/bin/image_bench/collate.rs"]
mod collate;
#[path = "../tools/src/bin/image_bench/model.rs"]
mod model;
#[path = "../tools/src/bin/image_bench/norm.rs"]
mod norm;
#[path = "../tools/src/bin/image_bench/shapes.rs"]
mod shapes;
#[path = "resume/train.rs"]
mod train;

use burn_pinned::BoxError;
use std::{
    env,
    ffi::OsStr,
    fs,
    io::{self, BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, ExitCode, Stdio},
};
use train::{EPOCHS, EVERY, Step, Told, train};

/// Images of each of the six classes.
const PER_CLASS: usize = 200;
/// The first argument of the processes that this one starts.
const CONTINUE: &str = "continue";

/// What was seen of one training.
#[derive(Default)]
struct Run {
    /// Steps that were done before it, by its checkpoint.
    from: usize,
    steps: Vec<Step>,
    /// The hash of the final weights; `None` if it was killed before.
    weights: Option<u64>,
}

impl Run {
    fn hear(&mut self, told: Told) {
        match told {
            Told::Start { step } => self.from = step,
            Told::Step(step) => self.steps.push(step),
            Told::End { weights } => self.weights = Some(weights),
        }
    }

    /// The step that it came to.
    fn to(&self) -> usize {
        self.from + self.steps.len()
    }

    /// Whether it saw the same batches, byte for byte, with the same losses and weights, as far as it came.
    fn agrees(&self, whole: &Run) -> bool {
        whole.steps.get(self.from..self.to()) == Some(&self.steps)
            && self.weights.is_none_or(|weights| whole.weights == Some(weights))
    }

    fn print(&self, name: &str, workers: usize, verdict: &str) {
        let ended = if self.weights.is_some() { "done at" } else { "killed at" };
        let loss = self.steps.last().map_or(f32::NAN, |step| step.loss);
        let weights = self.weights.map_or_else(|| "-".into(), |weights| format!("{weights:016x}"));
        println!(
            "{name:<10} {workers:>7}  {:>4}  {ended:>9} {:<4}  {loss:<8.6}  {weights:<16}  {verdict}",
            self.from,
            self.to()
        );
    }
}

/// The same training in a process of its own, which is killed once it has told of a step.
fn in_a_process(images: &Path, checkpoints: &Path, workers: usize, kill_at: Option<usize>) -> Result<Run, BoxError> {
    let mut child = Command::new(env::current_exe()?)
        .args([OsStr::new(CONTINUE), images.as_os_str(), checkpoints.as_os_str(), workers.to_string().as_ref()])
        .stdout(Stdio::piped())
        .spawn()?;
    let heard = listen(&mut child, kill_at);
    if heard.is_err() {
        child.kill()?; // whatever went wrong, leave no process behind
    }
    let status = child.wait()?;
    let run = heard?;
    if run.weights.is_none() && kill_at.is_none_or(|step| run.to() < step) {
        return Err(format!("the process with {workers} workers ended by itself at step {}: {status}", run.to()).into());
    }
    Ok(run)
}

fn listen(child: &mut Child, kill_at: Option<usize>) -> Result<Run, BoxError> {
    let mut run = Run::default();
    let out = child.stdout.take().ok_or("the process has no output to read")?;
    for line in BufReader::new(out).lines() {
        run.hear(serde_json::from_str(&line?)?);
        if kill_at.is_some_and(|step| run.to() == step) && !run.steps.is_empty() {
            child.kill()?; // SIGKILL: it cannot tidy up. What it told until then is still read.
        }
    }
    Ok(run)
}

/// What [`in_a_process`] starts: tells on its standard output, line by line.
fn continue_training(images: &Path, checkpoints: &Path, workers: &str) -> Result<(), BoxError> {
    train(images, Some(checkpoints), workers.parse()?, |told| {
        let line = serde_json::to_string(&told)? + "\n";
        Ok(io::stdout().write_all(line.as_bytes())?) // at its end, a line is flushed
    })
}

/// Whether the interrupted training was the same as the whole one.
fn compare() -> Result<bool, BoxError> {
    let folder = tempfile::tempdir()?;
    let (images, checkpoints) = (folder.path().join("images"), folder.path().join("checkpoints"));
    println!("{} images, {EPOCHS} epochs, a checkpoint every {EVERY} steps\n", 6 * PER_CLASS);
    shapes::generate(&images, PER_CLASS, 1)?;
    fs::create_dir(&checkpoints)?;

    println!("run        workers  from        ended       loss      weights           batches, losses, weights");
    let mut whole = Run::default();
    train(&images, None, 2, |told| {
        whole.hear(told);
        Ok(())
    })?;
    whole.print("in one go", 2, "-");

    let steps = whole.steps.len();
    let (mut same, mut done, mut again) = (true, 0, 0);
    let processes = [(1, Some(steps * 3 / 8)), (4, Some(steps * 5 / 7)), (3, None)];
    for (number, (workers, kill_at)) in (1..).zip(processes) {
        let run = in_a_process(&images, &checkpoints, workers, kill_at)?;
        let agrees = run.agrees(&whole) && run.from <= done;
        run.print(&format!("process {number}"), workers, if agrees { "the same" } else { "DIFFERENT" });
        again += done.saturating_sub(run.from);
        (done, same) = (run.to(), same && agrees);
    }
    same &= done == steps;
    println!("\n{again} steps were done twice: by a killed process after its checkpoint, and by the next process.");
    println!("The model is {}the same, bit for bit, as after the training in one go.", if same { "" } else { "NOT " });
    Ok(same)
}

fn main() -> ExitCode {
    let args: Vec<_> = env::args_os().skip(1).collect();
    let result = burn_pinned::prepare().map_err(Into::into).and_then(|()| match args.as_slice() {
        [] => compare(),
        [word, images, checkpoints, workers] if word == CONTINUE => {
            continue_training(images.as_ref(), checkpoints.as_ref(), &workers.to_string_lossy()).map(|()| true)
        }
        _ => Err("this example takes no arguments".into()),
    });
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
