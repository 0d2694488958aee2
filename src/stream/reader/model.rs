//! Models of a reader's desk: in any order of the threads' steps each item is read once, and every wait ends.

use super::*;
use crate::sync::explore;
use loom::thread::spawn;

/// Counts up to an end.
struct Numbers(usize, usize);

impl Produce for Numbers {
    type Item = usize;
    type Mark = usize;

    fn produce(&mut self, stop: &AtomicBool, _: usize) -> Option<Result<usize, Box<Error>>> {
        let goes_on = self.0 < self.1 && !stop.load(Relaxed);
        self.0 += usize::from(goes_on);
        goes_on.then(|| Ok(self.0 - 1))
    }

    fn mark(&mut self) -> usize {
        self.0
    }
}

/// It reads ahead as many lots as take this time.
fn reader(items: usize, ahead: Duration) -> (Arc<Desk<Numbers>>, loom::thread::JoinHandle<()>) {
    let desk = Arc::new(Desk::new(ahead));
    let here = Arc::clone(&desk);
    let thread = spawn(move || {
        let _end = EndNote(&*here);
        here.serve(Numbers(0, items));
    });
    (desk, thread)
}

fn read_to_its_end(name: &'static str, ahead: Duration) {
    explore(name, 2, move || {
        let ((desk, thread), never) = (reader(3, ahead), AtomicBool::new(false));
        let mut all = Vec::new();
        for (asked, mark, ends) in [(2, 2, false), (2, 3, true)] {
            desk.ask(asked);
            let lot = desk.take(&never).unwrap();
            assert_eq!((lot.mark, lot.ended), (Some(mark), ends));
            all.extend(lot.items.take());
        }
        assert_eq!(all, [0, 1, 2]);
        desk.ask(1); // after the end there is nothing, and no wait
        assert!(desk.take(&never).unwrap().ended);
        assert!(desk.close(Duration::MAX));
        thread.join().unwrap();
    });
}

#[test]
fn model_a_stream_is_read_to_its_end() {
    read_to_its_end("a stream is read to its end", Duration::ZERO);
}

#[test]
fn model_a_stream_that_is_read_ahead_is_read_to_its_end() {
    read_to_its_end("a stream that is read ahead is read to its end", Duration::MAX);
}

#[test]
fn model_a_reader_ends_whatever_it_does() {
    explore("a reader ends whatever it does", 2, || {
        let (desk, thread) = reader(3, Duration::ZERO);
        let other = {
            let desk = Arc::clone(&desk);
            spawn(move || {
                desk.ask(2);
                desk.take(&AtomicBool::new(false)).map(|lot| lot.items.len())
            })
        };
        assert!(desk.close(Duration::MAX));
        thread.join().unwrap();
        assert!(other.join().unwrap().is_some_and(|items| items <= 2));
    });
}
