//! What is modelled, one case per test.

use super::*;

#[test]
fn model_two_workers_bring_an_epoch() {
    explore_epoch("an epoch, two workers", 2, Shape { batches: 3, ..SHAPE }, |model| {
        vec![model.worker(0), model.worker(1)]
    });
}

/// One of two workers rests.
#[test]
fn model_a_worker_rests() {
    explore_epoch(
        "an epoch, one of two workers at work",
        2,
        Shape { batches: 3, permits: 2, at_work: 1, ..SHAPE },
        |model| vec![model.worker(0), model.worker(1)],
    );
}

/// The number of workers at work changes during an epoch. In the first case, the only worker is the one that rests.
#[test]
fn model_workers_are_called_and_sent_to_rest() {
    for (name, from, to, all) in [("called", 1, 2, false), ("sent to rest", 2, 1, true)] {
        let counters = Arc::<Counters>::default();
        explore(&format!("a worker is {name}"), 2, move || {
            let model = Model::new(Shape { permits: 2, at_work: from, ..SHAPE }, &counters);
            let mut threads = vec![model.worker(1)];
            threads.extend(all.then(|| model.worker(0)));
            let id = model.start();
            threads.push(model.beside(move |pipeline| {
                pipeline.crew.flow.now.set_workers(to);
                pipeline.crew.recall();
            }));
            assert_eq!(take(&model.pipeline, id), (2, false));
            model.pipeline.end(id);
            close(&model.pipeline);
            model.end(threads);
        });
    }
}

/// The only worker at work hangs in an epoch that ends. The other has begun the next epoch, as all do, and rests.
#[test]
fn model_who_hangs_is_replaced_by_one_who_rests() {
    let counters = Arc::<Counters>::default();
    explore("one who rests replaces one who hangs", 2, move || {
        let model = Model::new(Shape { permits: 4, at_work: 1, ..SHAPE }, &counters);
        let first = model.start();
        let (batch, task) = model.open_one();
        end_task(&model.pipeline, batch, task);
        let (batch, task) = model.open_one();
        let resting = model.worker(1);
        let second = model.start();
        let comes = || model.pipeline.next(second, Instant::now()).is_some_and(|delivery| delivery.ready.is_ok());
        assert!(comes());
        model.pipeline.end(first);
        assert!(comes() && !comes());
        end_task(&model.pipeline, batch, task);
        model.pipeline.end(second);
        close(&model.pipeline);
        model.end([resting]);
    });
}

#[test]
fn model_a_batch_goes_through_all_stages() {
    explore_epoch(
        "an epoch through pin and transfer",
        2,
        Shape { permits: 2, transfers: 1, pins: true, ..SHAPE },
        |model| vec![model.worker(0), model.pin(), model.transfer()],
    );
}

/// A batch that waits for the pin stage behind one that fails.
#[test]
fn model_a_failed_batch_lets_the_next_through() {
    let counters = Arc::<Counters>::default();
    explore("a failed batch", 1, move || {
        let model = Model::new(Shape { permits: 2, transfers: 1, pins: true, bad: Some(0), ..SHAPE }, &counters);
        let id = model.start();
        let tasks = [model.open_one(), model.open_one()];
        let ends = tasks.map(|(batch, task)| model.beside(move |pipeline| end_task(pipeline, batch, task)));
        let threads = [model.pin(), model.transfer()];
        assert_eq!(take(&model.pipeline, id), (2, false));
        model.pipeline.end(id);
        close(&model.pipeline);
        model.end(ends.into_iter().chain(threads));
    });
}

/// Batches that may not be opened, or not be sent, before the consumer has taken some.
#[test]
fn model_a_delivery_lets_the_next_go_on() {
    explore_epoch("nothing ahead", 2, Shape { batches: 2, prefetch: 0, ..SHAPE }, |model| vec![model.worker(0)]);
    explore_epoch(
        "more batches than may be sent",
        2,
        Shape { batches: 3, permits: 3, prefetch: 0, transfers: 1, ..SHAPE },
        |model| vec![model.worker(0), model.transfer()],
    );
}

/// One epoch is dropped during its work; the next one is whole.
#[test]
fn model_an_epoch_after_one_that_was_dropped() {
    let counters = Arc::<Counters>::default();
    explore("an epoch after a dropped one", 2, move || {
        let model = Model::new(SHAPE, &counters);
        let workers = [model.worker(0), model.worker(1)];
        let first = model.start();
        model.pipeline.end(first);
        let second = model.start();
        assert_eq!(take(&model.pipeline, second), (2, false));
        close(&model.pipeline);
        model.end(workers);
    });
}

#[test]
fn model_two_consumers_share_the_permits() {
    let counters = Arc::<Counters>::default();
    explore("two consumers", 2, move || {
        let model = Model::new(SHAPE, &counters);
        let worker = model.worker(0);
        let (first, second) = (model.start(), model.start());
        let other = model.beside(move |pipeline| {
            assert_eq!(take(pipeline, first), (2, false));
            pipeline.end(first);
        });
        assert_eq!(take(&model.pipeline, second), (2, false));
        model.pipeline.end(second);
        other.join().unwrap();
        close(&model.pipeline);
        model.end([worker]);
    });
}

/// An epoch that nobody reads has the only permit, or is about to get it.
#[test]
fn model_an_epoch_that_nobody_reads_gives_way() {
    let counters = Arc::<Counters>::default();
    explore("an epoch that nobody reads", 2, move || {
        let model = Model::new(SHAPE, &counters);
        let worker = model.worker(0);
        let (unread, read) = (model.start(), model.start());
        assert_eq!(take(&model.pipeline, read), (2, false));
        model.pipeline.end(read);
        model.pipeline.end(unread);
        close(&model.pipeline);
        model.end([worker]);
    });
}

/// The only worker at work hangs in a batch that is awaited. The next epoch gets its permit late, and one who rests
/// begins it.
#[test]
fn model_a_late_permit_calls_who_rests() {
    let counters = Arc::<Counters>::default();
    explore("a permit that comes late", 2, move || {
        let model = Model::new(Shape { batches: 1, at_work: 1, ..SHAPE }, &counters);
        let first = model.start();
        let (batch, task) = model.open_one();
        let resting = model.worker(1);
        let second = model.start();
        let ends = model.beside(move |pipeline| end_task(pipeline, batch, task));
        assert_eq!(take(&model.pipeline, second), (1, false));
        model.pipeline.end(second);
        model.pipeline.end(first);
        close(&model.pipeline);
        model.end([resting, ends]);
    });
}

#[test]
fn model_a_close_ends_worker_and_consumer() {
    let counters = Arc::<Counters>::default();
    explore("closed amid an epoch", 3, move || {
        let model = Model::new(SHAPE, &counters);
        let worker = model.worker(0);
        let id = model.start();
        let closer = model.beside(close);
        let (taken, closed) = take(&model.pipeline, id);
        assert!(closed || taken == 2, "{taken} batches and no error");
        model.pipeline.end(id);
        model.end([worker, closer]);
    });
}

#[test]
fn model_a_close_ends_pin_and_transfer() {
    let counters = Arc::<Counters>::default();
    explore("closed amid pin and transfer", 2, move || {
        let model = Model::new(Shape { batches: 1, transfers: 1, pins: true, ..SHAPE }, &counters);
        let threads = [model.worker(0), model.pin(), model.transfer()];
        let id = model.start();
        close(&model.pipeline);
        model.pipeline.end(id); // what is ready stays there until its consumer has gone
        model.end(threads);
    });
}

#[test]
fn model_a_close_ends_everything() {
    let counters = Arc::<Counters>::default();
    explore("closed with a consumer amid pin and transfer", 1, move || {
        let model = Model::new(Shape { batches: 1, transfers: 1, pins: true, ..SHAPE }, &counters);
        let threads = [model.worker(0), model.pin(), model.transfer()];
        let id = model.start();
        let closer = model.beside(close);
        let (taken, closed) = take(&model.pipeline, id);
        assert!(closed || taken == 1, "{taken} batches and no error");
        model.pipeline.end(id);
        model.end(threads.into_iter().chain([closer]));
    });
}

/// Copies of a loader share a worker. The consumer of one takes nothing, and its only permit is used up. The other gets
/// its epoch.
#[test]
fn model_an_idle_copy_does_not_hold_up_another() {
    let counters = Arc::<Counters>::default();
    explore("an idle copy beside another", 2, move || {
        let idle = Model::new(SHAPE, &counters);
        let model = Model::with(&idle.pipeline.crew, SHAPE, &counters);
        let worker = model.worker(0);
        let (first, second) = (idle.start(), model.start());
        assert_eq!(take(&model.pipeline, second), (2, false));
        idle.pipeline.end(first);
        model.pipeline.end(second);
        idle.pipeline.close();
        close(&model.pipeline);
        model.end([worker]);
        idle.end([]);
    });
}

/// One copy is dropped amid its epoch. The other goes on.
#[test]
fn model_a_copy_that_is_dropped_leaves_the_others() {
    let counters = Arc::<Counters>::default();
    explore("a copy is dropped", 2, move || {
        let gone = Model::new(SHAPE, &counters);
        let model = Model::with(&gone.pipeline.crew, SHAPE, &counters);
        let worker = model.worker(0);
        let (first, second) = (gone.start(), model.start());
        gone.pipeline.end(first);
        gone.pipeline.close();
        assert_eq!(take(&model.pipeline, second), (2, false));
        model.pipeline.end(second);
        close(&model.pipeline);
        model.end([worker]);
        gone.end([]);
    });
}
