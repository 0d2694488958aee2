//! What the machine lacks is no fault of a sample: whatever the policy, its batch is an error, and the iterator goes on.

use crate::common::{Mischief, Numbers, builder, outcomes};
use burn::data::dataset::{Dataset, DatasetError};
use burn_pinned::{Augment, BadSamples, BoxError, Error, KeyedRng, fault::Quota};
use std::{
    io,
    sync::{Arc, Mutex},
};

const BAD: usize = 10;
const EMFILE: i32 = 24;
const ENFILE: i32 = 23;
const ENOMEM: i32 = 12;
const ENOSPC: i32 = 28;
const EIO: i32 = 5;

/// The numbers below 40, of which one fails.
struct Lacks<F>(F);

impl<F: Fn() -> DatasetError + Send + Sync> Dataset<usize> for Lacks<F> {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        if index == BAD { Err((self.0)()) } else { Ok(index) }
    }

    fn len(&self) -> usize {
        40
    }
}

#[derive(Debug, thiserror::Error)]
enum Wrapped {
    #[error("number 10")]
    Source(#[source] io::Error),
    #[error(transparent)]
    Transparent(io::Error),
    #[error("number 10")]
    Shared(#[source] Arc<io::Error>),
    #[error("number 10")]
    Boxed(#[source] Box<io::Error>),
    #[error("number 10")]
    Deep(#[source] Box<Wrapped>),
    #[error("number 10: {0}")]
    Text(String),
}

const POLICIES: [BadSamples; 3] =
    [BadSamples::Fail, BadSamples::Skip(Quota::Share(1.0)), BadSamples::Replace { tries: 5 }];

/// Checks that one batch of five is an error that names the sample, and the others are whole.
#[track_caller]
fn is_an_error(name: &str, dataset: impl Fn() -> Lacks<Box<dyn Fn() -> DatasetError + Send + Sync>>) {
    for policy in POLICIES {
        for workers in [1, 3] {
            let seen = Arc::new(Mutex::new(Vec::new()));
            let keep = Arc::clone(&seen);
            let on_fault = move |error: &Error| keep.lock().unwrap().push(error.to_string());
            let builder = builder().num_workers(workers).bad_samples(policy).on_fault(on_fault);
            let loader = builder.build(dataset()).unwrap();
            let outcomes = outcomes(&*loader);
            assert_eq!(outcomes.len(), 5, "{name}, {policy:?}");
            for (at, outcome) in outcomes.iter().enumerate() {
                let all: Vec<i64> = (0..8).map(|row| 8 * at as i64 + row).collect();
                match outcome {
                    Ok(numbers) => assert!(at != 1 && *numbers == all, "{name}, {policy:?}: {outcomes:?}"),
                    Err(error) => assert!(at == 1 && error.contains("sample 10"), "{name}, {policy:?}: {error}"),
                }
            }
            let stats = loader.stats();
            assert_eq!((stats.skipped, stats.replaced, stats.errors), (0, 0, 1), "{name}, {policy:?}");
            assert_eq!(seen.lock().unwrap().len(), 1, "{name}, {policy:?}: `on_fault` hears of it");
        }
    }
}

fn error_of(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

#[test]
fn a_lack_of_files_or_memory_is_no_bad_sample() {
    type Wrap = fn(io::Error) -> DatasetError;
    let wraps: [(&str, Wrap); 13] = [
        ("itself", |error| DatasetError::new(error)),
        ("a source", |error| DatasetError::new(Wrapped::Source(error))),
        ("transparent", |error| DatasetError::new(Wrapped::Transparent(error))),
        ("shared", |error| DatasetError::new(Wrapped::Shared(Arc::new(error)))),
        ("boxed", |error| DatasetError::new(Wrapped::Boxed(Box::new(error)))),
        ("deep", |error| DatasetError::new(Wrapped::Deep(Box::new(Wrapped::Source(error))))),
        ("in an `io::Error`", |error| DatasetError::new(io::Error::other(io::Error::other(error)))),
        ("text", |error| DatasetError::new(Wrapped::Text(format!("cannot open it: {error}")))),
        ("deep and transparent", |error| {
            DatasetError::new(Wrapped::Deep(Box::new(Wrapped::Deep(Box::new(Wrapped::Transparent(error))))))
        }),
        ("deep text", |error| DatasetError::new(Wrapped::Deep(Box::new(Wrapped::Text(error.to_string()))))),
        ("deep in an `io::Error`", |error| DatasetError::new(io::Error::other(Wrapped::Source(error)))),
        ("deep and transparent in an `io::Error`", |error| {
            DatasetError::new(io::Error::other(Wrapped::Deep(Box::new(Wrapped::Transparent(error)))))
        }),
        ("of the crate image", |error| DatasetError::new(image::ImageError::IoError(error))),
    ];
    for code in [EMFILE, ENFILE, ENOMEM, ENOSPC] {
        for (name, wrap) in wraps {
            is_an_error(&format!("{code}, {name}"), || Lacks(Box::new(move || wrap(error_of(code)))));
        }
    }
    let kind = || io::Error::new(io::ErrorKind::OutOfMemory, "the arena is full");
    is_an_error("a kind", || Lacks(Box::new(move || DatasetError::new(Wrapped::Source(kind())))));
}

#[test]
fn a_panic_for_want_of_files_is_no_bad_sample() {
    let refuse = |code| -> io::Result<DatasetError> { Err(error_of(code)) };
    for code in [EMFILE, ENOMEM] {
        is_an_error("unwrap", || Lacks(Box::new(move || refuse(code).unwrap())));
        is_an_error("a message", || Lacks(Box::new(move || panic!("cannot open it: {}", error_of(code)))));
    }
}

struct Lacking;

impl Augment<usize> for Lacking {
    fn apply(&self, number: usize, _: &mut KeyedRng) -> Result<usize, BoxError> {
        if number == BAD { Err(Wrapped::Source(error_of(EMFILE)).into()) } else { Ok(number) }
    }
}

#[test]
fn an_augmentation_may_lack_files_too() {
    for policy in POLICIES {
        let loader = builder().augment(Lacking).bad_samples(policy).build(Numbers::new(40)).unwrap();
        let outcomes = outcomes(&*loader);
        let good: Vec<usize> = (0..5).filter(|at| outcomes[*at].is_ok()).collect();
        assert_eq!(good, [0, 2, 3, 4], "{policy:?}: {outcomes:?}");
    }
}

/// A sample is bad, and the one that would replace it cannot be opened now.
#[test]
fn a_replacement_that_lacks_files_is_an_error() {
    struct Both(Numbers);
    impl Dataset<usize> for Both {
        fn get(&self, index: usize) -> Result<usize, DatasetError> {
            if index == BAD { Err(DatasetError::new(error_of(EMFILE))) } else { self.0.get(index) }
        }
        fn len(&self) -> usize {
            40
        }
    }
    for workers in [1, 3] {
        let data = Both(Numbers::new(40).with(BAD - 1, Mischief::Error));
        let loader = builder().num_workers(workers).bad_samples(BadSamples::Replace { tries: 5 }).build(data).unwrap();
        let outcomes = outcomes(&*loader);
        let message = outcomes[1].as_ref().unwrap_err();
        assert!(message.contains("sample 10") && message.contains("os error 24"), "{message}");
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 4, "{outcomes:?}");
    }
}

/// A disk that cannot read a file says so of that file.
#[test]
fn other_errors_of_the_system_are_the_policys() {
    let missing = || io::Error::from(io::ErrorKind::NotFound);
    let errors: [fn() -> io::Error; 2] = [|| error_of(EIO), || io::Error::other("os error 24 is what it is not")];
    for error in errors.into_iter().chain([missing as fn() -> io::Error]) {
        for wrap in [|error| DatasetError::new(error), |error| DatasetError::new(Wrapped::Source(error))] {
            let build =
                |policy| builder().bad_samples(policy).build(Lacks(move || -> DatasetError { wrap(error()) })).unwrap();
            let skipped: Vec<i64> =
                outcomes(&*build(BadSamples::Skip(Quota::Count(1)))).into_iter().flat_map(Result::unwrap).collect();
            assert_eq!(skipped, (0..40).filter(|at| *at != BAD as i64).collect::<Vec<_>>());
            let replaced: Vec<i64> =
                outcomes(&*build(BadSamples::Replace { tries: 1 })).into_iter().flat_map(Result::unwrap).collect();
            assert_eq!(replaced[BAD], 11);
        }
    }
}
