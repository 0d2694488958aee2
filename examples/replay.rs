//! Prioritised replay: a network learns the way through a maze from the steps of its own walks. The steps that it was most wrong about are
//! drawn most often (T. Schaul et al., "Prioritized Experience Replay", ICLR 2016).
//!
//!     cargo run --release --example replay

use burn::data::dataset::{Dataset, DatasetError};
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::{prelude::*, tensor::activation::relu};
use burn_pinned::{BoxError, KeyedRng, PinnedDataLoaderBuilder, Sample, order::LiveWeights};
use rand::RngExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// `G` is the goal, with a reward of 1. `o` is a hole, with a reward of -1. A walk ends in both.
const MAZE: &[u8] = b"###########\
                      #...#.....#\
                      #.#...#.o.#\
                      #..o#.##..#\
                      ##..o.#..##\
                      #...#...#G#\
                      #.o...#...#\
                      ###########";
const CELLS: usize = MAZE.len();
const MOVES: [(char, isize); 4] = [('←', -1), ('→', 1), ('↑', -11), ('↓', 11)];
/// How many steps are kept.
const CAPACITY: usize = 2000;

/// A step of a walk. In a batch, `place` is a `Vec<usize>`, and the other fields are tensors.
#[derive(Clone, Default, Sample)]
struct Step {
    from: usize,
    action: usize,
    to: usize,
    reward: f32,
    #[sample(column)]
    place: usize,
}

/// The last steps. The walks write to it while the loader reads.
#[derive(Clone, Default)]
struct Ring(Arc<Mutex<Vec<Step>>>);

impl Ring {
    fn steps(&self) -> MutexGuard<'_, Vec<Step>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dataset<Step> for Ring {
    fn get(&self, place: usize) -> Result<Step, DatasetError> {
        Ok(self.steps()[place].clone())
    }
    fn len(&self) -> usize {
        CAPACITY
    }
}

fn go(from: usize, action: usize) -> usize {
    let to = from.wrapping_add_signed(MOVES[action].1);
    if MAZE[to] == b'#' { from } else { to }
}

/// What each action is worth in each of these cells.
fn values([first, last]: &[Linear; 2], cells: Tensor<1, Int>) -> Tensor<2> {
    last.forward(relu(first.forward(cells.one_hot::<2>(CELLS).float())))
}

fn main() -> Result<(), BoxError> {
    burn_pinned::prepare()?;
    let device = Device::default().autodiff();
    device.seed(1);
    let ring = Ring::default();
    ring.steps().resize(CAPACITY, Step::default());
    let weights = LiveWeights::new([0.0; CAPACITY], 42)?; // no place has a step yet, so none is drawn
    let builder = PinnedDataLoaderBuilder::new(Step::collate()).batch_size(64).set_device(device.clone());
    let loader = builder.order(weights.clone().with_size(40 * 64)).build(ring.clone())?;

    let layer = |(from, to)| LinearConfig::new(from, to).init(&device);
    let (mut net, mut optim) = ([(CELLS, 64), (64, 4)].map(layer), AdamConfig::new().init());
    let free: Vec<usize> = (0..CELLS).filter(|cell| MAZE[*cell] == b'.').collect();
    let (mut policy, mut cell, mut right) = (vec![0; CELLS], free[0], 0);
    for round in 0..50 {
        for step in 60 * round..60 * (round + 1) {
            let (mut rng, place, from) = (KeyedRng::for_order(7, step), step % CAPACITY, cell);
            let action = if rng.random_bool(0.6) { rng.random_range(0..4) } else { policy[from] };
            let to = go(from, action);
            let reward = f32::from(MAZE[to] == b'G') - f32::from(MAZE[to] == b'o');
            ring.steps()[place] = Step { from, action, to, reward, place };
            weights.set(place, 1.0)?; // a new step is drawn soon
            cell = if reward != 0.0 || rng.random_bool(0.02) { free[rng.random_range(0..free.len())] } else { to };
        }
        let older = net.clone();
        for batch in loader.iter() {
            let StepBatch { from, action, to, reward, place } = batch?;
            let goes_on = reward.clone().equal_elem(0.0).float();
            let aim = (reward + values(&older, to).max_dim(1).squeeze_dim::<1>(1) * goes_on * 0.9).detach();
            let errors = aim - values(&net, from).gather(1, action.unsqueeze_dim(1)).squeeze_dim::<1>(1);
            // A step that is drawn more often counts less.
            let scales = place.iter().filter_map(|at| Some(weights.get(*at)?.powf(-0.5) as f32)).collect::<Vec<_>>();
            let most = scales.iter().copied().fold(0.0, f32::max);
            let loss = (errors.clone().square() * Tensor::<1>::from_floats(scales.as_slice(), &device) / most).mean();
            net = optim.step(2e-3, net.clone(), GradientsParams::from_grads(loss.backward(), &net));
            let errors = errors.into_data().try_to_vec::<f32>()?;
            weights.set_many(place.into_iter().zip(errors.iter().map(|error| (error.abs() + 0.01).powf(0.6))))?;
        }
        let best = values(&net, Tensor::arange(0..CELLS as i64, &device)).argmax(1);
        policy = best.into_data().iter::<i64>().map(|action| action as usize).collect();
        let end = |start| (0..CELLS).fold(start, |at, _| if MAZE[at] == b'.' { go(at, policy[at]) } else { at });
        right = free.iter().filter(|start| MAZE[end(**start)] == b'G').count();
        if round % 7 == 0 {
            println!("{:>4} steps: the network finds the goal from {right} of {} places", 60 * (round + 1), free.len());
        }
    }
    let shown = |cell: usize| if MAZE[cell] == b'.' { MOVES[policy[cell]].0 } else { MAZE[cell].into() };
    for row in (0..CELLS).step_by(11) {
        println!("    {}", (row..row + 11).map(shown).collect::<String>());
    }
    if right * 10 >= free.len() * 9 { Ok(()) } else { Err("the network has not learned the way".into()) }
}
