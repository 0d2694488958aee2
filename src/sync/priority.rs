//! Lowers the priority of a thread. Only Linux has a priority for each thread.

/// Lowers the priority of the calling thread to this value of `nice`. Then others get a core at once, even where all cores
/// are busy.
pub(crate) fn step_back(nice: i32) {
    // On Linux no process names the calling thread. A thread needs no right to be less important, and a refusal changes
    // nothing.
    let _ = rustix::process::setpriority_process(None, nice);
}
