//! A model of reading ahead. In any order of the threads' steps, a read gets the answer to what its own epoch has asked for.

use super::*;
use crate::system::explore;
use loom::thread::spawn;
use std::io::Cursor;

/// An object whose byte at `n` is `n as u8`. A request waits until it may go on.
#[derive(derive_more::Debug)]
#[debug("Held")]
struct Held {
    requests: Mutex<usize>,
    made: Condvar,
    may: Mutex<usize>,
    allowed: Condvar,
}

impl Held {
    fn new() -> Self {
        Self { requests: Mutex::new(0), made: Condvar::new(), may: Mutex::new(0), allowed: Condvar::new() }
    }

    fn wait_for(&self, requests: usize) {
        let mut made = self.requests.lock();
        while *made < requests {
            made = self.made.wait(made);
        }
    }

    fn allow(&self, requests: usize) {
        *self.may.lock() = requests;
        self.allowed.notify_all();
    }
}

impl Store for Held {
    fn open(&self, _: usize, part: Range<u64>) -> io::Result<Box<dyn Read + Send + '_>> {
        let number = {
            let mut made = self.requests.lock();
            *made += 1;
            *made
        };
        self.made.notify_all();
        let mut may = self.may.lock();
        while *may < number {
            may = self.allowed.wait(may);
        }
        Ok(Box::new(Cursor::new(part.map(|at| at as u8).collect::<Vec<u8>>())))
    }
}

fn plan() -> Plan {
    Box::new([Some(PlannedRow { row: 0, parts: vec![(0, 0..2)] })].into_iter())
}

/// An epoch ends while its request is on its way, and the next one needs the same part.
#[test]
fn model_a_lost_answer_is_none_of_the_next_epoch() {
    explore("a lost answer", 2, || {
        let store = Arc::new(Held::new());
        let ahead = ReadAhead::new(Arc::clone(&store) as _, Stop::default(), 100, 0);
        let threads = [(); 2].map(|()| {
            let shared = Arc::clone(&ahead.shared);
            spawn(move || shared.work())
        });
        let first = ahead.begin(plan(), true);
        store.wait_for(1);
        drop(first);
        store.allow(1);
        let second = ahead.begin(plan(), true);
        store.wait_for(2);
        store.allow(usize::MAX);
        assert_eq!(ahead.read(0, 0..2).unwrap(), [0, 1]);
        ahead.row_read(0);
        drop(second);
        ahead.shared.close();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(ahead.shared.state.lock().held, 0);
    });
}
