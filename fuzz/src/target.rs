//! How a target begins, and how it ends at a fault.

use std::{
    cell::RefCell,
    env, fs,
    panic::{AssertUnwindSafe, catch_unwind, set_hook},
    path::PathBuf,
    process,
};

thread_local! {
    /// The last panic, for the report.
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Begins a target: it is called before libFuzzer reads its folders. First inputs go to the folder that `FUZZ_SEEDS` names,
/// if it is set.
///
/// libFuzzer's hook for panics, which ends the process, is replaced. Decoders of other crates may panic, and the crate makes an
/// error of that.
///
/// # Panics
/// If the first inputs cannot be written.
pub fn begin(inputs: impl FnOnce() -> Vec<Vec<u8>>) {
    set_hook(Box::new(|info| LAST.with(|last| *last.borrow_mut() = info.to_string())));
    let Some(folder) = env::var_os("FUZZ_SEEDS").map(PathBuf::from) else { return };
    fs::create_dir_all(&folder).expect("a folder for the first inputs");
    for (number, input) in inputs().iter().enumerate() {
        fs::write(folder.join(format!("seed-{number}")), input).expect("a first input");
    }
}

/// Runs one input. A panic that nobody caught ends the process, and libFuzzer then saves the input.
pub fn run(input: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(input)).is_err() {
        LAST.with(|last| eprintln!("{}", last.borrow()));
        process::abort();
    }
}
