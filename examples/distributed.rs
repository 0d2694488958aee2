//! Several processes share the samples of each epoch. One is killed, and a different number of processes resumes.
//!
//!     cargo run --release --example distributed
//!
//! The first process starts the others with the variables that torchrun sets, as any launcher would. Instead of gradients the processes
//! exchange the numbers of their samples, to show who trained on what: together they see each sample once, in the order of a single
//! process.

use burn::{
    data::dataset::InMemDataset,
    tensor::{DType, Device},
};
use burn_pinned::{
    BoxError, Collate, Distributed, Field, LoaderState, PinnedDataLoader, PinnedDataLoaderBuilder, RawBatch, RowMut,
};
use std::{
    env,
    io::{self, BufRead, BufReader, Lines, Write},
    process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio},
    sync::Arc,
};

const SAMPLES: usize = 1200;
/// Samples of one process in one step.
const BATCH: usize = 8;
/// The variable with the state that the processes resume from.
const STATE: &str = "LOADER_STATE";

/// A sample is just its number, and so is a row.
struct Numbers;

impl Collate<i32> for Numbers {
    type Batch = Vec<i32>;

    fn layout(&self) -> Vec<Field> {
        vec![Field::new("number", DType::I32, [])]
    }
    fn write(&self, number: &i32, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        Ok(row.put("number", *number)?)
    }
    fn finish(&self, mut batch: RawBatch) -> Result<Vec<i32>, BoxError> {
        Ok(batch.take_int::<1>("number")?.into_data().convert::<i32>().try_to_vec()?)
    }
}

fn loader(share: Option<Distributed>, state: Option<LoaderState>) -> Result<Arc<PinnedDataLoader<Vec<i32>>>, BoxError> {
    // With one GPU per process this would be `Device::cuda(local_rank)`.
    let mut builder = PinnedDataLoaderBuilder::new(Numbers)
        .batch_size(BATCH)
        .shuffle(42)
        .num_workers(2)
        .set_device(Device::default());
    if let Some(share) = share {
        builder = builder.distributed(share);
    }
    if let Some(state) = state {
        builder = builder.resume(state);
    }
    Ok(builder.build(InMemDataset::new((0..SAMPLES as i32).collect()))?)
}

/// One process of several: takes a step for each line that it reads, and writes its samples and the state of its loader.
fn worker() -> Result<(), BoxError> {
    let here = Distributed::from_env()?;
    let state = env::var(STATE).ok().map(|json| serde_json::from_str(&json)).transpose()?;
    let started = format!("  started: {here}\n");
    io::stderr().write_all(started.as_bytes())?; // in one piece, because other processes write too
    let loader = loader(Some(here.distributed), state)?;
    let mut batches = loader.iter();
    for line in io::stdin().lines() {
        line?;
        let batch = batches.next().transpose()?;
        println!("{}", serde_json::to_string(&(batch, loader.state()))?);
    }
    Ok(())
}

/// The processes that train together.
struct Group(Vec<(Child, ChildStdin, Lines<BufReader<ChildStdout>>)>);

/// What a process reports for a step: its samples, if the epoch has any left, and the state of its loader.
type Told = (Option<Vec<i32>>, LoaderState);

impl Group {
    fn start(processes: usize, state: Option<&LoaderState>) -> Result<Self, BoxError> {
        let mut group = Self(Vec::new());
        for rank in 0..processes {
            let mut command = Command::new(env::current_exe()?);
            command.env("RANK", rank.to_string()).env("LOCAL_RANK", rank.to_string());
            command.env("WORLD_SIZE", processes.to_string()).env("LOCAL_WORLD_SIZE", processes.to_string());
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            match state {
                Some(state) => command.env(STATE, serde_json::to_string(state)?),
                None => command.env_remove(STATE),
            };
            let mut child = command.spawn()?;
            let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else { continue };
            group.0.push((child, stdin, BufReader::new(stdout).lines()));
        }
        Ok(group)
    }

    /// Lets all processes take a step. Returns `None` if one of them is gone: a collective operation would hang then.
    fn step(&mut self) -> Result<Option<Vec<Told>>, BoxError> {
        let asked = self.0.iter_mut().all(|(_, stdin, _)| writeln!(stdin).is_ok());
        let told = self.0.iter_mut().map(|(.., lines)| lines.next().transpose().ok().flatten());
        let told: Option<Vec<String>> = told.collect();
        let Some(told) = told.filter(|_| asked) else { return Ok(None) };
        Ok(Some(told.iter().map(|line| serde_json::from_str(line)).collect::<Result<_, _>>()?))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for (child, ..) in &mut self.0 {
            let _ = child.kill(); // it may be dead already
            let _ = child.wait();
        }
    }
}

fn main() -> Result<ExitCode, BoxError> {
    burn_pinned::prepare()?;
    if env::var_os("RANK").is_some() {
        return worker().map(|()| ExitCode::SUCCESS);
    }
    let alone = loader(None, None)?;
    let order: Vec<i32> = alone.iter().collect::<Result<Vec<_>, _>>()?.concat();
    let (mut seen, mut state) = (Vec::new(), None);
    // The number of processes, and the step before which one of them is killed.
    for (processes, killed) in [(3, Some(17)), (5, Some(9)), (2, None)] {
        println!("{processes} processes, from sample {}", seen.len());
        let mut group = Group::start(processes, state.as_ref())?;
        for step in 1.. {
            if killed == Some(step) {
                group.0[1].0.kill()?;
                println!("  rank 1 is killed before step {step}");
            }
            let Some(told) = group.step()? else {
                println!(
                    "  step {step} fails: a process is gone. {} samples are done, in {} steps",
                    seen.len(),
                    step - 1
                );
                break;
            };
            let (batches, states): (Vec<_>, Vec<_>) = told.into_iter().unzip();
            let batches: Option<Vec<Vec<i32>>> = batches.into_iter().collect();
            let Some(batches) = batches else {
                println!("  the epoch ends after {} steps", step - 1);
                break;
            };
            // The global order deals the samples to the ranks in turn.
            let rows = batches.iter().map(Vec::len).max().unwrap_or(0);
            seen.extend((0..rows).flat_map(|row| batches.iter().filter_map(move |batch| batch.get(row).copied())));
            state = states.into_iter().next(); // all states are the same
        }
    }
    let same = seen.iter().zip(&order).take_while(|(a, b)| a == b).count();
    let again = seen.len() - order.len().min(seen.len());
    println!(
        "\n{same} of {SAMPLES} samples came in the order of one process alone, and {again} once more to fill the last step"
    );
    Ok(if same == SAMPLES { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
