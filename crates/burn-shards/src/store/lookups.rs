//! Looks up names of hosts on threads of their own: a lookup has no limit of time, and cannot be stopped.

use crate::system::locks::Mutex;
use std::{
    io,
    net::{IpAddr, ToSocketAddrs},
    sync::{Arc, LazyLock},
    thread,
};

/// Asks the system for the addresses of a host.
type LookUp = Box<dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync>;

/// The most lookups that are made at once. Lookups that nobody waits for any more count too.
const LOOKUPS_AT_ONCE: usize = 4;

/// The addresses of a host, or why there are none.
pub(super) type Addresses = Result<Vec<IpAddr>, Arc<io::Error>>;
/// Gives the addresses to a thread or a task that waits for them.
type Waiter = Box<dyn FnOnce(Addresses) + Send>;

static SYSTEM: LazyLock<Arc<Lookups>> =
    LazyLock::new(|| Lookups::new(|host| Ok((host, 0).to_socket_addrs()?.map(|address| address.ip()).collect())));

/// Looks up a host, and tells its addresses on another thread. The threads end when there is nothing to look up.
pub(super) fn look_up(host: &str, tell: impl FnOnce(Addresses) + Send + 'static) {
    SYSTEM.look_up(host, Box::new(tell));
}

struct Lookups {
    state: Mutex<LookupState>,
    look: LookUp,
}

#[derive(Default)]
struct LookupState {
    asked: Vec<Lookup>,
    threads: usize,
}

/// A host that is looked up or will be, and the waits for its addresses.
struct Lookup {
    host: String,
    is_begun: bool,
    tell: Vec<Waiter>,
}

impl Lookups {
    fn new(look: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), look: Box::new(look) })
    }

    fn look_up(self: &Arc<Self>, host: &str, tell: Waiter) {
        let mut state = self.state.lock();
        if let Some(asked) = state.asked.iter_mut().find(|asked| asked.host == host) {
            return asked.tell.push(tell);
        }
        state.asked.push(Lookup { host: host.into(), is_begun: false, tell: vec![tell] });
        if state.threads == LOOKUPS_AT_ONCE {
            return;
        }
        let names = Arc::clone(self);
        match thread::Builder::new().name("bp-names".into()).spawn(move || names.look_up_all()) {
            Ok(_) => state.threads += 1,
            Err(error) if state.threads == 0 => {
                let (error, asked) = (Arc::new(error), std::mem::take(&mut state.asked));
                drop(state);
                asked.into_iter().flat_map(|asked| asked.tell).for_each(|tell| tell(Err(Arc::clone(&error))));
            }
            Err(_) => {}
        }
    }

    fn look_up_all(&self) {
        while let Some(host) = self.next_host() {
            let found = (self.look)(&host).map_err(Arc::new);
            let mut state = self.state.lock();
            let place = state.asked.iter().position(|asked| asked.host == host);
            let tell = place.map_or_else(Vec::new, |place| state.asked.swap_remove(place).tell);
            drop(state);
            tell.into_iter().for_each(|tell| tell(found.clone()));
        }
    }

    /// A host that no thread looks up yet.
    fn next_host(&self) -> Option<String> {
        let mut state = self.state.lock();
        match state.asked.iter_mut().find(|asked| !asked.is_begun) {
            Some(asked) => {
                asked.is_begun = true;
                Some(asked.host.clone())
            }
            None => {
                state.threads -= 1;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        net::Ipv4Addr,
        sync::{
            atomic::{AtomicUsize, Ordering::SeqCst},
            mpsc,
        },
        time::Duration,
    };

    #[test]
    fn four_lookups_at_most_are_left_behind() {
        let (release, held) = mpsc::channel::<()>();
        let (held, begun) = (Mutex::new(held), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&begun);
        let names = Lookups::new(move |_| {
            counted.fetch_add(1, SeqCst);
            _ = held.lock().recv();
            Ok(vec![Ipv4Addr::LOCALHOST.into()])
        });
        let (tell, told) = mpsc::channel();
        for host in 0..10 {
            for _ in 0..3 {
                let tell = tell.clone();
                names.look_up(&format!("host-{host}"), Box::new(move |found| _ = tell.send((host, found.is_ok()))));
            }
        }
        thread::sleep(Duration::from_millis(50));
        // One waits for the channel, and the others for the lock of it.
        assert_eq!((begun.load(SeqCst), names.state.lock().threads), (LOOKUPS_AT_ONCE, LOOKUPS_AT_ONCE));
        assert!(told.try_recv().is_err());
        drop(release);
        let mut all: Vec<(usize, bool)> =
            (0..30).map(|_| told.recv_timeout(Duration::from_secs(10)).unwrap()).collect();
        all.sort_unstable();
        assert!(all.iter().enumerate().all(|(at, told)| *told == (at / 3, true)), "{all:?}");
        assert_eq!(begun.load(SeqCst), 10, "those that wait for one host share its lookup");
    }

    #[test]
    fn a_host_is_found_or_not() {
        let (tell, told) = mpsc::channel();
        let also = tell.clone();
        look_up("localhost", move |found| _ = tell.send(found.is_ok_and(|all| !all.is_empty())));
        assert!(told.recv_timeout(Duration::from_secs(30)).unwrap());
        let none = Lookups::new(|_| Err(io::Error::other("no such host")));
        none.look_up(
            "h",
            Box::new(move |found| _ = also.send(found.is_err_and(|error| error.to_string() == "no such host"))),
        );
        assert!(told.recv_timeout(Duration::from_secs(30)).unwrap());
    }
}
