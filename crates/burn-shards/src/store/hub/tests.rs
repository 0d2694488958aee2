//! A small hub, which sends everybody to another server for bytes.

use super::*;
use crate::store::{
    Objects,
    http::tests::quick,
    server::{Fault, Files, Request, Server},
    steady::SteadyStore,
};
use std::{fs, sync::Arc};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const TOKEN: &str = "hf_topsecret";

/// Bytes of a file follow from its name.
fn bytes(name: &str) -> Vec<u8> {
    name.bytes().cycle().take(1000 + name.len()).collect()
}

const FILES: [&str; 7] = [
    "README.md",
    "data/train-0.tar",
    "data/train-1.tar",
    "data/train-1.idx",
    "data/old/train 2.tar",
    "default/train/0000.parquet",
    "default/train/0001.parquet",
];

fn entry(name: &str) -> String {
    let (size, hash) = (bytes(name).len(), name.len());
    format!(r#"{{"type":"file","oid":"{hash}","size":{size},"path":"{name}","lfs":{{"oid":"l{hash}","size":{size}}}}}"#)
}

/// Two servers: the hub, whose lists have one file a page, and the one that has the bytes, at signed places.
struct Fake {
    hub: Server,
    bytes: Server,
}

impl Fake {
    fn new(more: &'static [&'static str]) -> Self {
        let all = move || FILES.into_iter().chain(more.iter().copied());
        let files: Files = all().map(|name| (format!("/{}", name.replace(' ', "%20")), bytes(name))).collect();
        // A signature is good for a few requests.
        let server = Server::new(files, |request| {
            let signed = request.target.split_once("?sig=").map(|(_, number)| number.parse::<usize>().unwrap());
            match signed.is_some_and(|signed| request.number < signed + 4) {
                true => Fault::None,
                false => Fault::Answer(403, String::new(), "expired".into()),
            }
        });
        let (place, signed) = (server.url(""), std::sync::atomic::AtomicUsize::new(0));
        let hub = Server::new(Files::new(), move |request| {
            let json = |lines: String, body: String| Fault::Answer(200, lines, body);
            if request.headers.get("authorization").is_none_or(|sent| *sent != format!("Bearer {TOKEN}")) {
                return Fault::Answer(401, String::new(), "no".into());
            }
            let target = request.target.as_str();
            if ["main", "refs%2Fconvert%2Fparquet"]
                .iter()
                .any(|name| target == format!("/api/datasets/o/n/revision/{name}"))
            {
                return json(String::new(), format!(r#"{{"sha":"{COMMIT}","private":true}}"#));
            }
            if let Some(list) = target.strip_prefix(&format!("/api/datasets/o/n/tree/{COMMIT}")) {
                let (folder, query) = list.split_once('?').unwrap();
                let folder = folder.trim_start_matches('/').replace("%20", " ");
                let is_deep = query.contains("recursive=true");
                let page: usize = query.split_once("cursor=").map_or(0, |(_, page)| page.parse().unwrap());
                let inside: Vec<&str> = all()
                    .filter(|name| {
                        let rest =
                            if folder.is_empty() { Some(*name) } else { name.strip_prefix(&format!("{folder}/")) };
                        rest.is_some_and(|rest| is_deep || !rest.contains('/'))
                    })
                    .collect();
                let Some(name) = inside.get(page) else { return Fault::Answer(404, String::new(), String::new()) };
                let query = query.split("&cursor").next().unwrap();
                let path = list.split_once('?').unwrap().0;
                let next = format!("</api/datasets/o/n/tree/{COMMIT}{path}?{query}&cursor={}>; rel=\"next\"", page + 1);
                let link = if page + 1 < inside.len() { format!("Link: {next}\r\n") } else { String::new() };
                return json(
                    link,
                    format!(r#"[{{"type":"directory","oid":"0","size":0,"path":"x"}},{}]"#, entry(name)),
                );
            }
            match target.strip_prefix(&format!("/datasets/o/n/resolve/{COMMIT}/")) {
                Some(file) => {
                    let number = signed.fetch_add(1, std::sync::atomic::Ordering::SeqCst) * 4;
                    Fault::Answer(302, format!("Location: {place}/{file}?sig={number}\r\n"), "Found".into())
                }
                None => Fault::None,
            }
        });
        Self { hub, bytes: server }
    }

    fn home(&self, cache: &std::path::Path) -> Home {
        Home { endpoint: self.hub.url(""), token: Some(TOKEN.into()), cache: cache.into(), is_offline: false }
    }

    fn asked(&self) -> usize {
        self.hub.seen().len() + self.bytes.seen().len()
    }
}

fn api(home: &Home) -> Api {
    let (waits, patience) = quick();
    Api::new(home.clone(), waits, patience).unwrap()
}

fn objects(home: &Home, urls: &[String]) -> Result<Objects, DataError> {
    let api = api(home);
    let paths = paths(&api, urls)?;
    Ok(match downloaded(&api, &paths) {
        Some(files) => Objects::local(files)?.named(urls, None),
        None => {
            let (list, hub) = open(api, urls, &paths)?;
            Objects::of(list, Arc::new(SteadyStore::new(hub, quick().1, Arc::default())))
        }
    })
}

fn url(file: &str) -> String {
    format!("hf://datasets/o/n@{COMMIT}/{file}")
}

#[test]
fn files_are_listed_and_read_at_one_commit() {
    let (fake, cache) = (Fake::new(&[]), tempfile::tempdir().unwrap());
    let home = fake.home(cache.path());
    let list = |pattern: &str| expand(&api(&home), &format!("hf://datasets/o/n{pattern}"));
    assert_eq!(list("/data/train-*.tar").unwrap(), [url("data/train-0.tar"), url("data/train-1.tar")]);
    assert_eq!(list("/data/**/*.tar").unwrap().len(), 3);
    assert_eq!(list("/*").unwrap(), [url("README.md")]);
    assert!(matches!(list("/none/*.tar"), Err(DataError::NoFiles { .. })));

    let pinned = pin(&api(&home), vec!["hf://datasets/o/n/data/old/train 2.tar".into(), "local".into()]).unwrap();
    assert_eq!(pinned, [PathBuf::from(url("data/old/train 2.tar")), "local".into()]);
    let urls: Vec<String> = ["data/train-1.tar", "data/old/train 2.tar"].map(url).into();
    let objects = objects(&home, &urls).unwrap();
    for (object, name) in ["data/train-1.tar", "data/old/train 2.tar"].into_iter().enumerate() {
        assert_eq!((objects.name(object), objects.bytes(object)), (&*url(name), bytes(name).len() as u64));
        for start in 0..20 {
            assert!(
                objects.read(object, start..start + 500).unwrap() == bytes(name)[start as usize..][..500],
                "{name}"
            );
        }
    }
    assert!(objects.beside(0, "idx").unwrap().unwrap() == bytes("data/train-1.idx"));
    assert_eq!(objects.beside(1, "idx").unwrap(), None);

    // A signed place is asked until it is refused, and the token never goes there.
    let resolved = fake.hub.seen().iter().filter(|seen| seen.target.contains("/resolve/")).count();
    assert!((10..40).contains(&resolved), "{resolved}");
    assert!(fake.bytes.seen().iter().all(|seen: &Request| !seen.headers.contains_key("authorization")));
    assert!(!format!("{objects:?}").contains("secret") && !format!("{objects:?}").contains("sig="));
}

/// A hub whose lists go on with other pages than Fake's.
fn listed(page: impl Fn(&str) -> Fault + Send + Sync + 'static) -> Result<Vec<String>, DataError> {
    let server = Server::new(Files::new(), move |request| page(&request.target));
    let cache = tempfile::tempdir().unwrap();
    let home = Home { endpoint: server.url(""), token: None, cache: cache.path().into(), is_offline: false };
    expand(&api(&home), &url("data/*.tar"))
}

fn page(name: &str, next: &str) -> Fault {
    Fault::Answer(200, format!("Link: <{next}>; rel=\"next\"\r\n"), format!("[{}]", entry(name)))
}

#[test]
fn a_list_is_whole_or_an_error() {
    // A page that is gone.
    let gone = listed(|target| match target.contains("cursor=") {
        false => page("data/train-0.tar", "/more?cursor=1"),
        true => Fault::Answer(404, String::new(), String::new()),
    });
    let gone = gone.unwrap_err().to_string();
    assert!(gone.contains("(status 404, attempt 1)"), "{gone}");
    // Pages in a circle.
    let circle = listed(|target| match target.contains("cursor=1") {
        false => page("data/train-0.tar", "/more?cursor=1"),
        true => page("data/train-1.tar", "/more?cursor=2"),
    });
    let circle = circle.unwrap_err().to_string();
    assert!(circle.contains("the hub names a next page that makes no sense"), "{circle}");
}

#[test]
fn a_list_that_trickles_is_an_error() {
    let begun = std::time::Instant::now();
    let error = listed(|_| Fault::Trickle(200, String::new(), 60_000)).unwrap_err().to_string();
    assert!(error.contains("bytes a second came"), "{error}");
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn a_place_that_fails_is_asked_for_anew() {
    let file = "data/train-0.tar";
    let good = Server::new([("/good".into(), bytes(file))].into(), |_| Fault::None);
    let dying = Server::new([("/dying".into(), bytes(file))].into(), |request| match request.number {
        0 => Fault::None,
        _ => Fault::Reset,
    });
    let places = [dying.url("/dying"), good.url("/good")];
    let resolved = std::sync::atomic::AtomicUsize::new(0);
    let hub = Server::new(Files::new(), move |request| match request.target.contains("/resolve/") {
        true => {
            let number = resolved.fetch_add(1, std::sync::atomic::Ordering::SeqCst).min(1);
            Fault::Answer(302, format!("Location: {}\r\n", places[number]), String::new())
        }
        false => Fault::Answer(200, String::new(), format!("[{}]", entry(file))),
    });
    let cache = tempfile::tempdir().unwrap();
    let home = Home { endpoint: hub.url(""), token: None, cache: cache.path().into(), is_offline: false };
    let objects = objects(&home, &[url(file)]).unwrap();
    for _ in 0..2 {
        assert!(objects.read(0, 10..20).unwrap() == bytes(file)[10..20]);
    }
    assert_eq!((dying.seen().len(), good.seen().len()), (2, 1));
}

#[test]
fn without_a_token_the_error_says_what_to_do() {
    let (fake, cache) = (Fake::new(&[]), tempfile::tempdir().unwrap());
    for (token, problem) in [(None, "set `HF_TOKEN`"), (Some("hf_wrongsecret"), "the hub does not take the token")] {
        let home = Home { token: token.map(String::from), ..fake.home(cache.path()) };
        let pattern = "hf://datasets/o/n/data/*.tar";
        let listed = expand(&api(&home), pattern).unwrap_err().to_string();
        assert!(listed.contains(problem) && listed.contains("(status 401, attempt 1)"), "{listed}");
        assert!(listed.contains("hf://datasets/o/n@main/data/") && !listed.contains("secret"), "{listed}");
    }
}

#[test]
#[cfg(feature = "parquet")]
fn the_parquet_branch_is_found_by_its_split() {
    let cache = tempfile::tempdir().unwrap();
    let find = |fake: &Fake, split: &str| converted(&api(&fake.home(cache.path())), "o/n", split);
    let train = [url("default/train/0000.parquet"), url("default/train/0001.parquet")];
    let one = Fake::new(&["fr/test/0000.parquet"]);
    assert_eq!(find(&one, "train").unwrap(), train);
    assert_eq!(find(&one, "default/train").unwrap(), train);
    assert_eq!(find(&one, "test").unwrap(), [url("fr/test/0000.parquet")]);
    let missing = find(&one, "valid").unwrap_err().to_string();
    assert!(missing.contains("no split `valid`; write one of: default/train, fr/test"), "{missing}");
    let two = Fake::new(&["fr/test/0000.parquet", "de/test/0000.parquet"]);
    let several = find(&two, "test").unwrap_err().to_string();
    assert!(several.contains("several configurations") && several.contains("de/test, default/train"), "{several}");
}

#[test]
fn files_of_the_local_cache_are_not_asked_for() {
    let (fake, cache) = (Fake::new(&[]), tempfile::tempdir().unwrap());
    let folder = cache.path().join("datasets--o--n");
    let write = |place: String, bytes: &[u8]| {
        fs::create_dir_all(folder.join(&place).parent().unwrap()).unwrap();
        fs::write(folder.join(place), bytes).unwrap();
    };
    write("refs/main".into(), COMMIT.as_bytes());
    for name in ["data/train-0.tar", "data/train-1.tar"] {
        write(format!("snapshots/{COMMIT}/{name}"), &bytes(name));
    }
    let home = fake.home(cache.path());
    let both = |home: &Home, names: [&str; 2]| {
        let files = names.map(|name| format!("hf://datasets/o/n/{name}").into()).into();
        let urls = pin(&api(home), files)?.into_iter().map(|path| path.to_str().unwrap().to_owned());
        let objects = objects(home, &urls.collect::<Vec<_>>())?;
        for (object, name) in names.into_iter().enumerate() {
            assert_eq!(objects.name(object), url(name));
            assert!(objects.read(object, 3..900)? == bytes(name)[3..900], "{name}");
        }
        Ok::<_, DataError>(())
    };
    both(&home, ["data/train-0.tar", "data/train-1.tar"]).unwrap();
    assert_eq!(fake.asked(), 0);

    // Of a mixture, the bytes of one file alone are asked for.
    both(&home, ["data/train-0.tar", "README.md"]).unwrap();
    assert!(fake.bytes.seen().iter().all(|seen| seen.target.contains("README.md")) && !fake.bytes.seen().is_empty());

    let (asked, offline) = (fake.asked(), Home { is_offline: true, ..home });
    assert_eq!(expand(&api(&offline), "hf://datasets/o/n/data/*.tar").unwrap().len(), 2);
    both(&offline, ["data/train-1.tar", "data/train-0.tar"]).unwrap();
    let missing = both(&offline, ["data/train-0.tar", "README.md"]).unwrap_err().to_string();
    assert!(missing.contains("README.md: `HF_HUB_OFFLINE` is set"), "{missing}");
    assert_eq!(fake.asked(), asked);
}

#[test]
fn a_list_goes_on_with_the_page_that_was_refused() {
    let server = Server::new(Files::new(), |request| {
        if request.number.is_multiple_of(2) {
            return Fault::Answer(429, "RateLimit: \"api\";r=0;t=1\r\n".into(), String::new());
        }
        let page = request.target.split_once("cursor=").map_or(0, |(_, page)| page.parse::<usize>().unwrap());
        let next = format!("Link: </api/datasets/o/n/tree/{COMMIT}?cursor={}>; rel=\"next\"\r\n", page + 1);
        Fault::Answer(200, if page < 2 { next } else { String::new() }, format!("[{}]", entry(FILES[page])))
    });
    let (cache, since) = (tempfile::tempdir().unwrap(), std::time::Instant::now());
    let home = Home { endpoint: server.url(""), token: None, cache: cache.path().into(), is_offline: false };
    let path = HubPath::parse(&url("x")).unwrap();
    assert_eq!(api(&home).list_folder(&path, "", true).unwrap().len(), 3);
    let seen = server.seen();
    let targets: Vec<&str> = seen.iter().map(|request| request.target.as_str()).collect();
    assert!(targets.len() == 6 && targets.chunks(2).all(|twice| twice[0] == twice[1]), "{targets:?}");
    assert!(since.elapsed().as_secs() >= 3, "{:?}", since.elapsed());
}
