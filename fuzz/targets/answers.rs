//! Any bytes as the answers of a server, one behind the other: heads, redirects, parts, and lists of the hub. What is asked
//! for goes to a server of this process, wherever an answer leads: it is the proxy too.
#![no_main]

use burn::data::dataset::Dataset;
use burn_pinned::data::Rows;
use burn_pinned_fuzz::{BETWEEN, as_files, begin, cut, run};
use burn_shards::for_loader::end_waits_by;
use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;
use std::{
    collections::{HashMap, VecDeque},
    env, fs,
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    process,
    sync::{
        Arc, LazyLock, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

/// A token that only the hub may get, and that no error may show.
const TOKEN: &str = "hf_topsecret";

/// The answers that are left of an input, when the last one was given, and what ends the input's waits.
struct Left {
    answers: VecDeque<Vec<u8>>,
    given: Option<Instant>,
    end: Arc<AtomicBool>,
}

/// An input that asks for nothing for so long waits before it asks again. Such waits are ended: they take longer than all else.
const PATIENCE: Duration = Duration::from_millis(8);

/// A server that gives each connection the next answer of the newest input.
struct Server {
    port: u16,
    left: Arc<Mutex<Left>>,
}

static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("a port").port();
    let left = Arc::new(Mutex::new(Left { answers: VecDeque::new(), given: None, end: Arc::default() }));
    let [of_server, of_watch] = [&left, &left].map(Arc::clone);
    thread::spawn(move || listener.incoming().flatten().for_each(|stream| answer(stream, &of_server)));
    thread::spawn(move || {
        loop {
            thread::sleep(PATIENCE / 4);
            let left = of_watch.lock().unwrap_or_else(PoisonError::into_inner);
            left.end.fetch_or(left.given.is_some_and(|given| given.elapsed() > PATIENCE), Relaxed);
        }
    });
    Server { port, left }
});

fn answer(mut stream: TcpStream, left: &Mutex<Left>) {
    _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
    let mut head: Vec<u8> = Vec::new();
    let mut some = [0; 4096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut some) {
            Ok(0) | Err(_) => return,
            Ok(bytes) => head.extend(&some[..bytes]),
        }
    }
    let bytes = left.lock().unwrap_or_else(PoisonError::into_inner).answers.pop_front();
    let none = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    _ = stream.write_all(bytes.as_deref().unwrap_or(none));
    _ = stream.shutdown(Shutdown::Both);
    left.lock().unwrap_or_else(PoisonError::into_inner).given = Some(Instant::now());
}

fn open(data: &[u8]) {
    let Some((way, data)) = data.split_first() else { return };
    let end = Arc::<AtomicBool>::default();
    let answers = cut(data).into_iter().map(<[u8]>::to_vec).collect();
    *SERVER.left.lock().unwrap_or_else(PoisonError::into_inner) = Left { answers, given: None, end: Arc::clone(&end) };
    end_waits_by(end);
    let port = SERVER.port;
    let path = match way % 3 {
        0 => format!("http://127.0.0.1:{port}/a.jsonl"),
        1 => "http://user:word@else.where/a.jsonl?sig=x".into(), // through the proxy
        _ => "hf://datasets/o/n/*.jsonl".into(),
    };
    as_files(&[], |folder| {
        let rows = Rows::<HashMap<String, IgnoredAny>>::jsonl(path).index_dir(folder).read_ahead(0).requests(1);
        let read = rows.longest_wait(Duration::ZERO).largest_sample(1 << 20).open().map(|rows| {
            (0..rows.len().min(8)).filter_map(|row| rows.get(row).err()).map(|error| error.to_string()).collect()
        });
        let errors = read.unwrap_or_else(|error| vec![error.to_string()]);
        let shown = errors.iter().find(|error| error.contains(TOKEN) || error.contains("user:word"));
        assert!(shown.is_none() || data.windows(TOKEN.len()).any(|some| some == TOKEN.as_bytes()), "{shown:?}");
    });
}

/// An answer with these lines of headers.
fn of(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len()).into_bytes()
}

fn input(way: u8, answers: &[Vec<u8>]) -> Vec<u8> {
    [vec![way], answers.join(BETWEEN)].concat()
}

fuzz_target!(
    init: {
        let port = SERVER.port;
        let proxy = format!("http://127.0.0.1:{port}");
        let set = [
            ("http_proxy", &*proxy),
            ("https_proxy", &proxy),
            ("HF_ENDPOINT", &proxy),
            ("HF_TOKEN", TOKEN),
            ("HF_HOME", "/nonexistent"),
        ];
        // One authority is enough: to read all of the system's takes longer than an input.
        let pem = env::temp_dir().join(format!("burn-pinned-fuzz-{}.pem", process::id()));
        let all = fs::read_to_string("/etc/ssl/certs/ca-certificates.crt").unwrap_or_default();
        let one = all.split_inclusive("-----END CERTIFICATE-----").next().map(|one| fs::write(&pem, one));
        let certificate = one.and_then(Result::ok).filter(|()| !all.is_empty()).map(|()| ("SSL_CERT_FILE", &*pem));
        // SAFETY: as below.
        certificate.into_iter().for_each(|(name, value)| unsafe { env::set_var(name, value) });
        // SAFETY: no other thread of this process looks at its environment yet.
        set.into_iter().for_each(|(name, value)| unsafe { env::set_var(name, value) });
        begin(|| {
            let text = "{\"a\": 1}\n{\"a\": [2]}\n";
            let range = |part: &str| format!("Content-Range: bytes {part}/{}\r\nETag: \"x\"\r\n", text.len());
            let first = of("206 Partial Content", &range("0-0"), "{");
            let all = of("206 Partial Content", &range(&format!("0-{}", text.len() - 1)), text);
            let none = of("404 Not Found", "", "");
            let moved = of("302 Found", "Location: /b.jsonl?sig=1\r\n", "");
            let busy = of("429 Too Many Requests", "Retry-After: 5\r\nRateLimit: \"a\";r=0;t=5\r\n", "");
            let commit = of("200 OK", "", "{\"sha\":\"0123456789abcdef0123456789abcdef01234567\"}");
            let entry = |name: &str| format!("{{\"type\":\"file\",\"oid\":\"1\",\"size\":{},\"path\":\"{name}\"}}", text.len());
            let link = "Link: </api/next?cursor=1>; rel=\"next\"\r\n";
            let list = of("200 OK", link, &format!("[{}]", entry("a.jsonl")));
            let last = of("200 OK", "", &format!("[{}]", entry("b.jsonl")));
            vec![
                input(0, &[first.clone(), none.clone(), all.clone(), all.clone(), all.clone()]),
                input(1, &[moved.clone(), first.clone(), none.clone(), all.clone(), all.clone()]),
                input(2, &[commit, list, last, moved, first.clone(), none, all.clone(), all]),
                input(0, &[busy, first]),
            ]
        });
    },
    |data: &[u8]| run(|| open(data))
);
