//! A web server for tests. It gives parts of objects in memory, keeps connections, and fails as it is told.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

/// A password that no log and no error may show.
pub const SECRET: &str = "very-secret";

/// Objects by their paths, which begin with `/`.
pub type Files = BTreeMap<String, Vec<u8>>;
/// What the server does to a request.
type Choice = Box<dyn Fn(&Request) -> Fault + Send + Sync>;

/// A request, as it came.
#[derive(Debug, Clone)]
pub struct Request {
    /// From 0.
    pub number: usize,
    pub connection: usize,
    /// Whether it asks for the head of an answer alone.
    pub is_head: bool,
    /// Path and query.
    pub target: String,
    /// Names are in lower case.
    pub headers: HashMap<String, String>,
}

#[derive(Debug, Clone)]
pub enum Fault {
    None,
    /// It is not about a file: this answer, with lines of headers.
    Answer(u16, String, String),
    /// An answer with lines of headers, and this number of bytes, which come one by one.
    Trickle(u16, String, usize),
    /// The answer comes later.
    Late(Duration),
    /// The same, and its bytes come evenly within the second time.
    Paced(Duration, Duration),
    /// This number of bytes, and the connection ends.
    Cut(usize),
    /// The connection ends without an answer.
    Reset,
    /// Some bytes, and nothing more for this time.
    Stall(Duration),
    /// `Content-Length` is more than there is.
    WrongLength,
    /// The bytes behind those that were asked for.
    WrongRange,
    /// All of the object, whatever was asked for.
    Whole,
    /// An object of another version, which is as long.
    Changed,
    /// The same, from a server that does not look at conditions.
    Swapped,
    /// An object that is longer.
    Longer,
}

pub struct Server {
    scheme: &'static str,
    address: SocketAddr,
    shared: Arc<Shared>,
    accept: Option<thread::JoinHandle<()>>,
}

struct Shared {
    files: Files,
    fault: Choice,
    /// Whether an answer has an `ETag`.
    is_marked: bool,
    tls: Option<Arc<rustls::ServerConfig>>,
    seen: Mutex<Vec<Request>>,
    open: Mutex<Vec<TcpStream>>,
    end: AtomicBool,
}

/// The files of a folder.
pub fn folder(path: &Path) -> Files {
    let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    files.map(|file| (format!("/{}", file.file_name().unwrap().to_str().unwrap()), fs::read(&file).unwrap())).collect()
}

/// A server that ends each handshake of TLS with an alert, until the tests end.
pub fn alerting(alert: u8) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // What was not read would take the alert with it.
            if stream.read(&mut [0; 1 << 14]).is_ok() {
                _ = stream.write_all(&[21, 3, 3, 0, 2, 2, alert]);
            }
        }
    });
    address
}

impl Server {
    pub fn new(files: Files, fault: impl Fn(&Request) -> Fault + Send + Sync + 'static) -> Self {
        Self::with(files, Box::new(fault), true, None)
    }

    /// A server that says nothing of versions.
    pub fn unmarked(files: Files, fault: impl Fn(&Request) -> Fault + Send + Sync + 'static) -> Self {
        Self::with(files, Box::new(fault), false, None)
    }

    pub fn tls(
        files: Files,
        tls: rustls::ServerConfig,
        fault: impl Fn(&Request) -> Fault + Send + Sync + 'static,
    ) -> Self {
        Self::with(files, Box::new(fault), true, Some(Arc::new(tls)))
    }

    fn with(files: Files, fault: Choice, is_marked: bool, tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, scheme) = (listener.local_addr().unwrap(), if tls.is_some() { "https" } else { "http" });
        let (seen, open, end) = (Mutex::default(), Mutex::default(), AtomicBool::new(false));
        let shared = Arc::new(Shared { files, fault, is_marked, tls, seen, open, end });
        let serving = Arc::clone(&shared);
        let accept = thread::spawn(move || {
            for (connection, stream) in listener.incoming().enumerate() {
                if serving.end.load(SeqCst) {
                    return;
                }
                let (Ok(stream), shared) = (stream, Arc::clone(&serving)) else { continue };
                shared.open.lock().unwrap().push(stream.try_clone().unwrap());
                thread::spawn(move || shared.connection(connection, stream));
            }
        });
        Self { scheme, address, shared, accept: Some(accept) }
    }

    pub fn url(&self, path: &str) -> String {
        let host = if self.scheme == "https" { "localhost".into() } else { self.address.ip().to_string() };
        format!("{}://{host}:{}{path}", self.scheme, self.address.port())
    }

    pub fn seen(&self) -> Vec<Request> {
        self.shared.seen.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.end.store(true, SeqCst);
        _ = TcpStream::connect(self.address);
        self.accept.take().into_iter().for_each(|accept| accept.join().unwrap());
        self.shared.open.lock().unwrap().iter().for_each(|stream| _ = stream.shutdown(Shutdown::Both));
    }
}

impl Shared {
    fn connection(&self, number: usize, stream: TcpStream) {
        stream.set_nodelay(true).unwrap();
        let end = stream.try_clone().unwrap();
        _ = match &self.tls {
            None => self.serve(number, BufReader::new(stream)),
            Some(config) => {
                let tls = rustls::ServerConnection::new(Arc::clone(config)).unwrap();
                self.serve(number, BufReader::new(rustls::StreamOwned::new(tls, stream)))
            }
        };
        _ = end.shutdown(Shutdown::Both);
    }

    fn serve<S: Read + Write>(&self, connection: usize, mut stream: BufReader<S>) -> io::Result<()> {
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
            let is_head = line.starts_with("HEAD ");
            assert!(is_head || line.starts_with("GET "), "{line}");
            let mut headers = HashMap::new();
            loop {
                let mut line = String::new();
                stream.read_line(&mut line)?;
                let Some((name, value)) = line.trim().split_once(':') else { break };
                headers.insert(name.to_lowercase(), value.trim().to_owned());
            }
            let request = {
                let mut seen = self.seen.lock().unwrap();
                let request = Request { number: seen.len(), connection, is_head, target, headers };
                seen.push(request.clone());
                request
            };
            self.answer(&request, stream.get_mut())?;
        }
    }

    fn answer(&self, request: &Request, to: &mut impl Write) -> io::Result<()> {
        let broken = Err(io::ErrorKind::ConnectionAborted.into());
        let fault = (self.fault)(request);
        match &fault {
            Fault::Answer(status, lines, body) => {
                let (length, body) = (body.len(), if request.is_head { "" } else { body.as_str() });
                return write!(to, "HTTP/1.1 {status} Told\r\nContent-Length: {length}\r\n{lines}\r\n{body}");
            }
            Fault::Trickle(status, lines, length) => {
                write!(to, "HTTP/1.1 {status} Told\r\nContent-Length: {length}\r\n{lines}\r\n")?;
                for _ in 0..*length {
                    to.write_all(b"x").and_then(|()| to.flush())?;
                    thread::sleep(Duration::from_millis(20));
                }
                return Ok(());
            }
            Fault::Late(time) | Fault::Paced(time, _) => thread::sleep(*time),
            Fault::Reset => return broken,
            _ => {}
        }
        let path = request.target.split('?').next().unwrap();
        let Some(bytes) = self.files.get(path) else {
            return write!(to, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        };
        let mut bytes = bytes.clone();
        match fault {
            Fault::Changed | Fault::Swapped => bytes.iter_mut().for_each(|byte| *byte ^= 1),
            Fault::Longer => bytes.push(0),
            _ => {}
        }
        let mut hash = DefaultHasher::new();
        bytes.hash(&mut hash);
        let mark = format!("\"{:x}\"", hash.finish());
        let is_blind = matches!(fault, Fault::Swapped);
        if self.is_marked && !is_blind && request.headers.get("if-match").is_some_and(|wanted| *wanted != mark) {
            return write!(to, "HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n");
        }
        let size = bytes.len();
        let range = request.headers.get("range").filter(|_| !matches!(fault, Fault::Whole)).map(|text| {
            let (start, last) = text.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
            (start.parse::<usize>().unwrap(), last.parse::<usize>().unwrap())
        });
        let (status, line, part) = match range {
            Some((start, _)) if start >= size => (416, format!("Content-Range: bytes */{size}\r\n"), 0..0),
            Some((start, last)) => {
                let shift = usize::from(matches!(fault, Fault::WrongRange));
                let part = start + shift..(last + 1 + shift).min(size);
                (206, format!("Content-Range: bytes {}-{}/{size}\r\n", part.start, part.end - 1), part)
            }
            None => (200, String::new(), 0..size),
        };
        let part = &bytes[part];
        let more = if matches!(fault, Fault::WrongLength) { 10 } else { 0 };
        let time = "Last-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n";
        let mark = if self.is_marked { format!("ETag: {mark}\r\n{time}") } else { String::new() };
        write!(to, "HTTP/1.1 {status} Told\r\nContent-Length: {}\r\n{line}{mark}\r\n", part.len() + more)?;
        if request.is_head {
            return to.flush();
        }
        match fault {
            Fault::Cut(at) => to.write_all(&part[..at.min(part.len())]).and(to.flush()).and(broken),
            Fault::Stall(time) => {
                to.write_all(&part[..part.len() / 2])?;
                to.flush()?;
                thread::sleep(time);
                broken
            }
            Fault::Paced(_, time) => part.chunks(1 << 14).try_for_each(|some| {
                thread::sleep(time.mul_f64(some.len() as f64 / part.len() as f64));
                to.write_all(some).and_then(|()| to.flush())
            }),
            Fault::WrongLength => to.write_all(part).and(to.flush()).and(broken),
            _ => to.write_all(part).and_then(|()| to.flush()),
        }
    }
}
