//! The standard output of a command, as a reader.

use crate::system::ends::{LOOK, STOPPED_WAIT, thread_ends};
#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process_group};
#[cfg(unix)]
use std::os::unix::process::CommandExt;
use std::{
    ffi::OsStr,
    io::{self, BufRead, BufReader, Cursor, Read},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread,
    time::Duration,
};

/// The bytes of a chunk, and the most chunks that wait to be read.
const CHUNK: usize = 64 << 10;
const CHUNKS: usize = 16;
/// The most bytes of the standard error that are kept.
const LAST_BYTES: usize = 1 << 10;
/// How long a failed command's standard error is waited for. A process that the command left behind may hold it open.
const LAST_LINE_WAIT: Duration = Duration::from_secs(1);

/// Runs a command, and reads its standard output: `curl .. |` of a shell.
///
/// ```
/// use burn_shards::{Pipe, Rows};
///
/// #[derive(serde::Deserialize)]
/// struct Row {
///     label: u8,
/// }
///
/// # #[cfg(unix)]
/// # fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let pipe = Pipe::new(r#"echo '{"label": 7}'"#)?; // or `curl -sf https://example.org/train.jsonl.zst`
/// let rows = Rows::<Row>::jsonl("the labels").stream_from(pipe)?;
/// let labels: Vec<u8> = rows.map(|row| row.map(|row| row.label)).collect::<Result<_, _>>()?;
/// assert_eq!(labels, [7]);
/// # Ok(())
/// # }
/// # #[cfg(unix)]
/// # run()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// `sh -c` runs the command (on Windows `cmd /C`), in a process group of its own. It has no standard input. Two threads, `bp-pipe`, read
/// its output and its standard error. At most 1 MiB waits to be read; then the command waits.
///
/// [`read`](Read::read) blocks until there are bytes. Where a loader's thread reads, the end of its epoch ends that wait. Dropping the
/// pipe kills the command and the processes of its group, and does not wait for more output. On Windows only the shell itself is killed.
///
/// # Errors
/// If the command fails, its output does not just end: after its last bytes, `read` returns an error that has a [`PipeError`]. Of commands
/// that are connected by `|`, a shell reports only the last one. So leave the decompression to the stream.
#[derive(derive_more::Debug)]
#[debug("Pipe {{ process: {} }}", child.id())] // the command may have a password
pub struct Pipe {
    child: Child,
    chunk: Cursor<Vec<u8>>,
    chunks: Receiver<io::Result<Vec<u8>>>,
    last_line: Receiver<String>,
}

/// A command of a [`Pipe`] has failed. It is the inner error of an [`io::Error`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the command has failed ({status}); its standard error ends with `{last_line}`")]
#[non_exhaustive]
pub struct PipeError {
    /// How it ended.
    pub status: ExitStatus,
    /// The last line that it wrote to its standard error, at most 1 KiB of it.
    pub last_line: String,
}

impl Pipe {
    /// Starts a command.
    ///
    /// # Errors
    /// If the shell or a thread cannot be started. A command that does not exist is an error of `read`.
    pub fn new(command: impl AsRef<OsStr>) -> io::Result<Self> {
        let (shell, option) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
        let mut shell = Command::new(shell);
        #[cfg(unix)]
        shell.process_group(0);
        shell.arg(option).arg(command).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let ((to, chunks), (said, last_line)) = (sync_channel(CHUNKS), sync_channel(1));
        let mut pipe = Self { child: shell.spawn()?, chunk: Cursor::default(), chunks, last_line };
        let (output, errors) = (pipe.child.stdout.take(), pipe.child.stderr.take());
        let thread = || thread::Builder::new().name("bp-pipe".into());
        thread().spawn(move || output.into_iter().for_each(|output| send_chunks(output, &to)))?;
        thread().spawn(move || errors.into_iter().for_each(|errors| drop(said.send(last_line_of(errors)))))?;
        Ok(pipe)
    }
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.chunk.position() == self.chunk.get_ref().len() as u64 {
            match self.chunks.recv_timeout(LOOK) {
                Ok(chunk) => self.chunk = Cursor::new(chunk?),
                Err(RecvTimeoutError::Timeout) if thread_ends() => return Err(io::Error::other(STOPPED_WAIT)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => match self.child.try_wait()? {
                    Some(status) if status.success() => return Ok(0),
                    Some(status) => {
                        let last_line = self.last_line.recv_timeout(LAST_LINE_WAIT).unwrap_or_default();
                        return Err(io::Error::other(PipeError { status, last_line }));
                    }
                    None if thread_ends() => return Err(io::Error::other(STOPPED_WAIT)),
                    None => thread::sleep(LOOK / 20), // it has closed its output, and is about to end
                },
            }
        }
        self.chunk.read(into)
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            // Its number is still its own, since it was not waited for.
            #[cfg(unix)]
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Sends the output on until it ends, or until nobody reads it.
fn send_chunks(output: impl Read, to: &SyncSender<io::Result<Vec<u8>>>) {
    let mut output = BufReader::with_capacity(CHUNK, output);
    loop {
        let chunk = output.fill_buf().map(<[u8]>::to_vec);
        let bytes = chunk.as_ref().map_or(0, Vec::len);
        let is_end = bytes == 0 && chunk.is_ok();
        if is_end || to.send(chunk).is_err() || bytes == 0 {
            return;
        }
        output.consume(bytes);
    }
}

/// Reads to the end, and returns the last line.
fn last_line_of(mut errors: impl Read) -> String {
    let (mut last, mut some) = (Vec::new(), [0; LAST_BYTES]);
    while let Ok(bytes @ 1..) = errors.read(&mut some) {
        last.extend_from_slice(&some[..bytes]);
        last.drain(..last.len().saturating_sub(LAST_BYTES));
    }
    let line = last.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    String::from_utf8_lossy(line).into_owned()
}
