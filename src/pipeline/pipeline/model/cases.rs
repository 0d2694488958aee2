//! What is modelled, one case per test.

use super::*;

#[test]
fn model_two_workers_bring_an_epoch() {
    explore_epoch("an epoch, two workers", 1, Shape { batches: 3, ..SHAPE }, |model| {
        vec![model.worker(0), model.worker(1)]
    });
}

/// A worker ends while it may have been woken for work, and comes back.
#[test]
fn model_a_worker_ends_and_leaves_its_work_to_another() {
    let counters = Arc::<Counters>::default();
    explore("fewer workers amid an epoch", 1, move || {
        let model = Model::new(SHAPE, &counters);
        let workers = [model.worker(0), model.worker(1)];
        let id = model.begin();
        let fewer = model.beside(|pipeline| {
            pipeline.lock().set_workers(1);
            pipeline.for_workers.notify_all();
        });
        assert_eq!(take(&model.pipeline, id), (2, false));
        model.pipeline.end(id);
        model.pipeline.close();
        model.end(workers.into_iter().chain([fewer]));
    });
}

#[test]
fn model_a_batch_goes_through_all_stages() {
    explore_epoch(
        "an epoch through pin and transfer",
        1,
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
        let id = model.begin();
        let tasks = [model.open_one(), model.open_one()];
        let ends = tasks.map(|task| model.beside(move |pipeline| end_task(pipeline, task)));
        let threads = [model.pin(), model.transfer()];
        assert_eq!(take(&model.pipeline, id), (2, false));
        model.pipeline.end(id);
        model.pipeline.close();
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
        let first = model.begin();
        model.pipeline.end(first);
        let second = model.begin();
        assert_eq!(take(&model.pipeline, second), (2, false));
        model.pipeline.close();
        model.end(workers);
    });
}

#[test]
fn model_two_consumers_share_the_permits() {
    let counters = Arc::<Counters>::default();
    explore("two consumers", 1, move || {
        let model = Model::new(SHAPE, &counters);
        let worker = model.worker(0);
        let (first, second) = (model.begin(), model.begin());
        let other = model.beside(move |pipeline| {
            assert_eq!(take(pipeline, first), (2, false));
            pipeline.end(first);
        });
        assert_eq!(take(&model.pipeline, second), (2, false));
        model.pipeline.end(second);
        other.join().unwrap();
        model.pipeline.close();
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
        let (unread, read) = (model.begin(), model.begin());
        assert_eq!(take(&model.pipeline, read), (2, false));
        model.pipeline.end(read);
        model.pipeline.end(unread);
        model.pipeline.close();
        model.end([worker]);
    });
}

/// An epoch has the only permit, in a call that hangs. It ends, and the next one gets the permit when the call returns.
#[test]
fn model_an_epoch_that_ends_gives_its_permit_to_the_next() {
    let counters = Arc::<Counters>::default();
    explore("an epoch ends in a call", 2, move || {
        let model = Model::new(SHAPE, &counters);
        let hangs = model.begin();
        let task = model.open_one();
        let next = model.begin();
        let worker = model.worker(0);
        let returns = model.beside(move |pipeline| end_task(pipeline, task));
        model.pipeline.end(hangs);
        assert_eq!(take(&model.pipeline, next), (2, false));
        model.pipeline.end(next);
        model.pipeline.close();
        model.end([worker, returns]);
    });
}

#[test]
fn model_a_close_ends_worker_and_consumer() {
    let counters = Arc::<Counters>::default();
    explore("closed amid an epoch", 2, move || {
        let model = Model::new(SHAPE, &counters);
        let worker = model.worker(0);
        let id = model.begin();
        let closer = model.beside(Pipeline::close);
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
        let id = model.begin();
        model.pipeline.close();
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
        let id = model.begin();
        let closer = model.beside(Pipeline::close);
        let (taken, closed) = take(&model.pipeline, id);
        assert!(closed || taken == 1, "{taken} batches and no error");
        model.pipeline.end(id);
        model.end(threads.into_iter().chain([closer]));
    });
}
