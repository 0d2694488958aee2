//! A test in a process of its own, for what belongs to a process: its memory, its environment.

use std::{env, process::Command};

/// Runs an ignored test of this program by its whole name, with these settings in the environment.
pub fn apart(test: &str, settings: &[(&str, &str)]) {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]).envs(settings.iter().copied());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
