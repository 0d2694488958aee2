//! Connections whose waits end when they are no longer needed.

use crate::store::stop::{LOOK, STOPPED_WAIT, Stop};
use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};
use ureq::{
    Error, Timeout,
    unversioned::transport::{Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport},
};

/// Connects to servers.
#[derive(Debug)]
pub(super) struct Sockets(pub(super) Stop);

impl<In: Transport> Connector<In> for Sockets {
    type Out = Either<In, Socket>;

    /// The addresses of a host are tried one after another. Each has half of the time that is left, and the last one all of it.
    fn connect(&self, details: &ConnectionDetails<'_>, chained: Option<In>) -> Result<Option<Self::Out>, Error> {
        if let Some(tunnel) = chained {
            return Ok(Some(Either::A(tunnel)));
        }
        let (begun, time) = (Instant::now(), *details.timeout.after);
        let mut last = Error::HostNotFound;
        for (at, address) in details.addrs.iter().enumerate() {
            let left = time.saturating_sub(begun.elapsed());
            let share = if at + 1 == details.addrs.len() { left } else { left / 2 };
            match connect(address, share, &self.0) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(LOOK))?;
                    stream.set_write_timeout(Some(LOOK))?;
                    let buffers =
                        LazyBuffers::new(details.config.input_buffer_size(), details.config.output_buffer_size());
                    return Ok(Some(Either::B(Socket { stream, buffers, stop: self.0.clone() })));
                }
                Err(error) if self.0.is_set() => return Err(error.into()),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => last = Error::Timeout(Timeout::Connect),
                Err(error) => last = error.into(),
            }
        }
        Err(last)
    }
}

fn stopped() -> io::Error {
    io::Error::other(STOPPED_WAIT)
}

#[cfg(unix)]
fn connect(to: &SocketAddr, time: Duration, stop: &Stop) -> io::Result<TcpStream> {
    use rustix::{
        event::{PollFd, PollFlags, Timespec, poll},
        io::{Errno, FdFlags, fcntl_setfd, ioctl_fionbio},
        net::{AddressFamily, SocketType, connect, socket},
    };
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let stream = socket(family, SocketType::STREAM, None)?;
    fcntl_setfd(&stream, FdFlags::CLOEXEC)?;
    ioctl_fionbio(&stream, true)?;
    let begun = Instant::now();
    match connect(&stream, to) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let look = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
    loop {
        match poll(&mut [PollFd::new(&stream, PollFlags::OUT)], Some(&look)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => break,
            Err(error) => return Err(error.into()),
        }
        if stop.is_set() {
            return Err(stopped());
        }
        if begun.elapsed() >= time {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    let stream = TcpStream::from(stream);
    match stream.take_error()? {
        Some(error) => Err(error),
        None => stream.set_nonblocking(false).map(|()| stream),
    }
}

/// On this system a stop waits until the connection is made or has failed.
#[cfg(not(unix))]
fn connect(to: &SocketAddr, time: Duration, stop: &Stop) -> io::Result<TcpStream> {
    if stop.is_set() { Err(stopped()) } else { TcpStream::connect_timeout(to, time.max(LOOK)) }
}

/// A connection. The timeouts of its socket are [`LOOK`].
#[derive(derive_more::Debug)]
#[debug("Socket")]
pub(super) struct Socket {
    stream: TcpStream,
    buffers: LazyBuffers,
    stop: Stop,
}

/// Repeats `act` until it succeeds, fails or takes too long, or until it is no longer needed.
fn within<T>(time: NextTimeout, stop: &Stop, mut act: impl FnMut() -> io::Result<T>) -> Result<T, Error> {
    let begun = Instant::now();
    loop {
        if stop.is_set() {
            return Err(stopped().into());
        }
        match act() {
            Err(error) if is_of_time(&error) => {
                if begun.elapsed() >= *time.after {
                    return Err(Error::Timeout(time.reason));
                }
            }
            done => return Ok(done?),
        }
    }
}

fn is_of_time(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    [Interrupted, TimedOut, WouldBlock].contains(&error.kind())
}

impl Transport for Socket {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let mut left = &self.buffers.output()[..amount];
        while !left.is_empty() {
            let sent = within(timeout.for_write(), &self.stop, || (&self.stream).write(left))?;
            if sent == 0 {
                return Err(io::Error::from(io::ErrorKind::WriteZero).into());
            }
            left = &left[sent..];
        }
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let into = self.buffers.input_append_buf();
        let came = within(timeout.for_read(), &self.stop, || (&self.stream).read(into))?;
        self.buffers.input_appended(came);
        Ok(came > 0)
    }

    /// A connection that has ended, or has unrequested bytes, is useless.
    fn is_open(&mut self) -> bool {
        let probe = || {
            self.stream.set_nonblocking(true)?;
            let read = (&self.stream).read(&mut [0]);
            self.stream.set_nonblocking(false)?;
            read
        };
        probe().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{net::TcpListener, thread};

    /// How long a wait lasts that is stopped after 100 ms.
    fn stopped_after<T>(act: impl FnOnce(&Stop) -> Result<T, Error>) -> Duration {
        let stop = Stop::default();
        let stopper = stop.clone();
        let stopping = thread::spawn(move || {
            thread::sleep(Duration::from_millis(100));
            stopper.stop();
        });
        let begun = Instant::now();
        let error = act(&stop).err().map(|error| error.to_string());
        stopping.join().unwrap();
        assert!(error.is_some_and(|error| error.contains(STOPPED_WAIT)));
        begun.elapsed()
    }

    const STALLED: Duration = Duration::from_secs(30);

    #[test]
    fn a_stop_ends_a_wait_for_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let timeout = NextTimeout { after: STALLED.into(), ..NextTimeout::default() };
        let socket = |stop: &Stop| {
            let stream = connect(&address, STALLED, stop).unwrap();
            stream.set_read_timeout(Some(LOOK)).unwrap();
            stream.set_write_timeout(Some(LOOK)).unwrap();
            Socket { stream, buffers: LazyBuffers::new(1 << 10, 1 << 20), stop: stop.clone() }
        };
        let read = stopped_after(|stop| socket(stop).await_input(timeout));
        // The buffers of the system fill up.
        let written = stopped_after(|stop| -> Result<(), Error> {
            let mut socket = socket(stop);
            loop {
                socket.transmit_output(1 << 20, timeout)?;
            }
        });
        assert!(read.max(written) < Duration::from_millis(300), "{read:?} {written:?}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_stop_ends_a_wait_for_a_connection() {
        use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
        let listener = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&listener, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        listen(&listener, 0).unwrap();
        let address = SocketAddr::try_from(getsockname(&listener).unwrap()).unwrap();
        // Nobody accepts, and the queue holds one or two.
        let queued = || connect(&address, Duration::from_millis(200), &Stop::default());
        let mut held = Vec::new();
        let full = loop {
            match queued() {
                Ok(stream) => held.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::TimedOut);
        let waited = stopped_after(|stop| Ok(connect(&address, STALLED, stop)?));
        assert!(waited < Duration::from_millis(300), "{waited:?}");
    }
}
