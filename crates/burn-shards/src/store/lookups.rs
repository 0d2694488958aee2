//! Looks up names of hosts on threads of their own: a lookup has no time limit, and cannot be stopped.

use crate::system::locks::Mutex;
use std::{
    io,
    net::{IpAddr, ToSocketAddrs},
    sync::{Arc, LazyLock},
    thread,
};

/// The most lookups at once, including abandoned ones.
const LOOKUPS_AT_ONCE: usize = 4;

/// The addresses of a host, or why there are none.
pub(super) type Addresses = Result<Vec<IpAddr>, Arc<io::Error>>;

static SYSTEM: LazyLock<Arc<Lookups>> =
    LazyLock::new(|| Lookups::new(|host| Ok((host, 0).to_socket_addrs()?.map(|address| address.ip()).collect())));

/// Looks up a host, and passes its addresses to `tell` on another thread. The threads end when there is nothing to look up.
pub(super) fn look_up(host: &str, tell: impl FnOnce(Addresses) + Send + 'static) {
    SYSTEM.look_up(host, Box::new(tell));
}

/// Looks up hosts, each by one thread at a time.
struct Lookups {
    /// The hosts that are being looked up, each by a thread, and those that are waiting.
    hosts: Mutex<Vec<AskedHost>>,
    /// Asks the system for the addresses of a host.
    ask: Box<dyn Fn(&str) -> Addresses + Send + Sync>,
}

/// A host that is being looked up, or waiting.
struct AskedHost {
    name: String,
    /// Whether a thread is looking it up.
    is_begun: bool,
    /// Pass the addresses to the waiting threads and tasks.
    tell: Vec<Box<dyn FnOnce(Addresses) + Send>>,
}

impl Lookups {
    fn new(ask: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { hosts: Mutex::default(), ask: Box::new(move |host| ask(host).map_err(Arc::new)) })
    }

    fn look_up(self: &Arc<Self>, name: &str, tell: Box<dyn FnOnce(Addresses) + Send>) {
        let mut hosts = self.hosts.lock();
        if let Some(host) = hosts.iter_mut().find(|host| host.name == name) {
            return host.tell.push(tell);
        }
        let threads = hosts.iter().filter(|host| host.is_begun).count();
        let start = || {
            let (lookups, first) = (Arc::clone(self), name.to_owned());
            thread::Builder::new().name("bp-names".into()).spawn(move || lookups.look_up_all(first))
        };
        let is_begun = match (threads < LOOKUPS_AT_ONCE).then(start) {
            Some(Err(error)) if threads == 0 => {
                drop(hosts);
                return tell(Err(Arc::new(error)));
            }
            started => started.is_some_and(|thread| thread.is_ok()),
        };
        hosts.push(AskedHost { name: name.into(), is_begun, tell: vec![tell] });
    }

    /// Looks up a host, and then waiting ones.
    fn look_up_all(&self, first: String) {
        let mut next = Some(first);
        while let Some(name) = next {
            let found = (self.ask)(&name);
            let mut hosts = self.hosts.lock();
            let place = hosts.iter().position(|host| host.name == name);
            let tell = place.map_or_else(Vec::new, |place| hosts.swap_remove(place).tell);
            next = hosts.iter_mut().find(|host| !host.is_begun).map(|host| {
                host.is_begun = true;
                host.name.clone()
            });
            drop(hosts);
            tell.into_iter().for_each(|tell| tell(found.clone()));
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
        let threads = names.hosts.lock().iter().filter(|host| host.is_begun).count();
        assert_eq!((begun.load(SeqCst), threads), (LOOKUPS_AT_ONCE, LOOKUPS_AT_ONCE));
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
