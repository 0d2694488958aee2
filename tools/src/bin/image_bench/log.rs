//! The log file of a training.

use burn::train::ApplicationLoggerInstaller;
use std::{
    fs::{OpenOptions, create_dir_all},
    path::PathBuf,
    sync::Mutex,
};
use tracing_subscriber::filter::LevelFilter;

/// Writes warnings to `experiment.log` in a folder. Burn's own file takes level info too. There CubeCL prints each kernel
/// that it compiles, after each pass of its compiler: a gigabyte in the first minutes on a GPU.
pub(crate) struct Warnings(pub(crate) PathBuf);

impl ApplicationLoggerInstaller for Warnings {
    fn install(&self) -> Result<(), String> {
        let append = || OpenOptions::new().create(true).append(true).open(self.0.join("experiment.log"));
        let file = create_dir_all(&self.0).and_then(|()| append());
        let file = file.map_err(|error| format!("{}: {error}", self.0.display()))?;
        let log = tracing_subscriber::fmt().with_ansi(false).with_max_level(LevelFilter::WARN);
        log.with_writer(Mutex::new(file)).try_init().map_err(|error| error.to_string())
    }
}
