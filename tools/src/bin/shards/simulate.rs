//! What a data set on a store does on many nodes, computed with the loader's own decisions. No bytes move, and time is simulated.

mod args;
mod cache;
mod data;
mod orders;
mod picture;
mod report;
mod run;
mod store;
#[cfg(all(test, feature = "http"))]
mod tests;
mod training;

pub(crate) use args::Args;

use burn_pinned::BoxError;
use cache::NodeCache;
use report::{EpochLoad, LostNode, OrderReport};
use run::Run;
use serde_json::json;
use std::fs;
use training::Training;

pub(crate) fn run(args: &Args) -> Result<(), BoxError> {
    let data = args.data()?;
    let mut reports = Vec::new();
    for (order, sampler) in orders::orders(&data.blocks, &args.cluster) {
        let run = Run { cluster: args.cluster, data: &data, sampler: &sampler, epoch: 0, given: 0, steps: args.steps };
        match simulate(run, args.epochs, &order) {
            Ok(report) => reports.push(report),
            Err(error) => eprintln!("{order}: {error}"),
        }
    }
    let title = args.title(&data);
    if args.json {
        reports.iter().for_each(|report| println!("{}", json!(report)));
    } else {
        println!("{title}\n\n{}", report::HEADING);
        reports.iter().for_each(OrderReport::print);
    }
    if let Some(file) = &args.svg {
        fs::write(file, picture::picture(&title, &reports))?;
    }
    Ok(())
}

/// Simulates one order: its epochs, and then the last one with a node less from its half on.
fn simulate(mut run: Run<'_>, number: usize, order: &str) -> Result<OrderReport, BoxError> {
    let (cluster, (plan_s, plan_bytes)) = (run.cluster, orders::plan(&run)?);
    let steps_of_epoch = cluster.steps(run.data.rows);
    run.steps = run.steps.min(steps_of_epoch);
    let mut caches = vec![NodeCache::new(cluster.cache); cluster.nodes_in_detail()];
    let (mut before, mut epochs) = (caches.clone(), Vec::new());
    for epoch in 0..number {
        run.epoch = epoch;
        before.clone_from(&caches);
        epochs.push(Training::simulate(&run, &mut caches)?);
    }
    let lost_node = match epochs.last() {
        Some(whole) if cluster.nodes > 1 && run.steps > 1 => Some(lose_node(run, before, whole)?),
        _ => None,
    };
    Ok(OrderReport { order: order.into(), steps: run.steps, steps_of_epoch, plan_s, plan_bytes, epochs, lost_node })
}

/// Simulates a run that loses a node at its half. `whole` is the same run without that.
fn lose_node(run: Run<'_>, mut caches: Vec<NodeCache>, whole: &EpochLoad) -> Result<LostNode, BoxError> {
    let (mut cluster, steps) = (run.cluster, run.steps / 2);
    let half = Training::simulate(&Run { steps, ..run }, &mut caches)?;
    let (given, left) = (steps * cluster.batch_size * cluster.world(), (run.steps - steps) * cluster.world());
    cluster.nodes -= 1;
    let rest = Run { cluster, given, steps: left.div_ceil(cluster.world()), ..run };
    let rest = Training::simulate(&rest, &mut caches)?;
    let more_requests = half.requests + rest.requests - whole.requests;
    Ok(LostNode { more_requests, more_bytes: half.bytes + rest.bytes - whole.bytes, rest })
}
