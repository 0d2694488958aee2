//! How a program ends.

use burn_pinned::BoxError;
use std::{error::Error, iter::successors, process::ExitCode};

/// Prints an error with all that caused it.
pub(crate) fn end(result: Result<(), BoxError>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    let first: &(dyn Error + 'static) = &*error;
    let mut text = format!("error: {first}");
    for cause in successors(first.source(), |cause| (*cause).source()).map(ToString::to_string) {
        if !text.contains(&cause) {
            text += &format!("\n  caused by: {cause}");
        }
    }
    eprintln!("{text}");
    ExitCode::FAILURE
}
