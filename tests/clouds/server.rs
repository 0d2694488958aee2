//! A server that speaks S3, of the files of a folder.

use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
};
use s3s::{auth::SimpleAuth, service::S3ServiceBuilder};
use s3s_fs::FileSystem;
use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    thread::{self, JoinHandle},
};
use tempfile::TempDir;
use tokio::{net::TcpListener, runtime, sync::oneshot};

pub(crate) const KEY: &str = "AKIAWRITTENBYNOBODY";
pub(crate) const SECRET: &str = "very/secret+indeed";

pub(crate) struct Server {
    /// Each folder in it is a bucket.
    root: TempDir,
    address: SocketAddr,
    open: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let root = tempfile::tempdir().unwrap();
        let mut service = S3ServiceBuilder::new(FileSystem::new(root.path()).unwrap());
        service.set_auth(SimpleAuth::from_single(KEY, SECRET));
        let service = service.build();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (open, mut ended) = oneshot::channel();
        let serve = async move {
            let listener = TcpListener::from_std(listener).unwrap();
            loop {
                let connection = tokio::select! {
                    _ = &mut ended => return,
                    accepted = listener.accept() => accepted.unwrap().0,
                };
                let service = service.clone();
                tokio::spawn(async move {
                    let http = Builder::new(TokioExecutor::new());
                    _ = http.serve_connection(TokioIo::new(connection), service).await;
                });
            }
        };
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let thread = Some(thread::spawn(move || runtime.block_on(serve)));
        Self { root, address, open: Some(open), thread }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn bucket(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Puts the files of a folder, and of folders in it, into a bucket.
    pub(crate) fn put(&self, bucket: &str, folder: &Path) {
        let mut folders = vec![folder.to_owned()];
        while let Some(next) = folders.pop() {
            let to = self.bucket(bucket).join(next.strip_prefix(folder).unwrap());
            fs::create_dir_all(&to).unwrap();
            for entry in fs::read_dir(&next).unwrap().map(|entry| entry.unwrap().path()) {
                match entry.is_dir() {
                    true => folders.push(entry),
                    false => _ = fs::copy(&entry, to.join(entry.file_name().unwrap())).unwrap(),
                }
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.open = None;
        self.thread.take().into_iter().for_each(|thread| thread.join().unwrap());
    }
}
