//! What a data set on a store does on many nodes, computed with the loader's own decisions. No bytes move, and time is simulated.

mod args;
mod cache;
mod data;
mod orders;
mod picture;
mod rank;
mod report;
mod store;
#[cfg(all(test, feature = "http"))]
mod tests;
mod training;
mod world;

pub(crate) use args::Args;

use burn_pinned::{BoxError, Distributed, order::samples_of};
use data::SimulatedData;
use orders::{SimulatedOrder, orders, plan};
use report::{LostNode, OrderReport, Report};
use world::{Run, World};

pub(crate) fn run(args: &Args) -> Result<(), BoxError> {
    let data = args.data()?;
    let mut reports = Vec::new();
    for order in orders(&data.blocks, args.cluster.world(), args.streams, args.seed) {
        match simulate(args, &data, &order) {
            Ok(of_order) => reports.push(of_order),
            Err(error) => eprintln!("{}: {error}", order.name),
        }
    }
    Report::new(args, &data).write(&reports)
}

/// Simulates one order: its epochs, and then an epoch that loses a node at its half.
fn simulate(args: &Args, data: &SimulatedData, order: &SimulatedOrder) -> Result<OrderReport, BoxError> {
    let (cluster, sampler) = (args.cluster, &order.sampler);
    sampler.check(data.rows)?;
    let all = sampler.len(data.rows).div_ceil(cluster.world()).div_ceil(cluster.batch_size);
    let steps = all.min(args.steps);
    let plan =
        plan(|| Ok(samples_of(sampler, data.rows, cluster.batch_size, Distributed::new(0, cluster.world())?, 0, 0)?))?;
    let mut world = World::new(cluster, args.limits, data, args.seed);
    let whole = |epoch| Run { epoch, given: 0, steps };
    let mut epochs = Vec::new();
    for epoch in 0..args.epochs.saturating_sub(1) {
        epochs.push(world.run(sampler, whole(epoch))?);
    }
    let last = args.epochs.max(1) - 1;
    let mut loses = world.clone();
    epochs.push(world.run(sampler, whole(last))?);
    let lost = (cluster.nodes > 1 && steps > 1).then(|| {
        let half = loses.run(sampler, Run { steps: steps / 2, ..whole(last) })?;
        let given = steps / 2 * cluster.batch_size * cluster.world();
        loses.lose_node();
        let left = (steps - steps / 2) * cluster.world();
        let rest = loses.run(sampler, Run { epoch: last, given, steps: left.div_ceil(loses.cluster.world()) })?;
        Ok::<_, BoxError>(LostNode::new(epochs.last(), &half, rest))
    });
    Ok(OrderReport { name: order.name.clone(), steps: (steps, all), plan, epochs, lost: lost.transpose()? })
}
