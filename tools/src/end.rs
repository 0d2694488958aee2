//! How a program ends.

use burn_pinned::BoxError;
use std::{error::Error, iter::successors, process::ExitCode};

/// Prints an error with all that caused it.
pub fn end(result: Result<(), BoxError>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    eprintln!("{}", with_causes(&*error));
    ExitCode::FAILURE
}

/// The text of an error, with those of its causes that it does not name itself.
fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = format!("error: {error}");
    for cause in successors(error.source(), |cause| (*cause).source()).map(ToString::to_string) {
        if !text.contains(&cause) {
            text += &format!("\n  caused by: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::with_causes;
    use burn::data::dataset::DatasetError;

    #[test]
    fn causes_are_named_once() {
        let inner = DatasetError::new(std::fmt::Error);
        let row = inner.to_string();
        assert_eq!(with_causes(&inner), format!("error: {row}"));
        assert_eq!(with_causes(&Outer(inner)), format!("error: the training stopped\n  caused by: {row}"));
    }

    #[derive(Debug)]
    struct Outer(DatasetError);

    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("the training stopped")
        }
    }

    impl std::error::Error for Outer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }
}
