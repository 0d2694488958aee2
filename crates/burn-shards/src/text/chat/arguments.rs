//! The arguments of filters and methods: by their places or names, and what they are by default.

use minijinja::{
    Error, ErrorKind, Value as Jinja,
    value::{Kwargs, from_args},
};

/// The arguments of a call by their names. Those that are not given are undefined.
pub(super) fn named<const N: usize>(given: &[Jinja], names: [&str; N]) -> Result<[Jinja; N], Error> {
    let (given, options): (&[Jinja], Kwargs) = from_args(given)?;
    if given.len() > N {
        return Err(ErrorKind::TooManyArguments.into());
    }
    let mut all = [const { Jinja::UNDEFINED }; N];
    for (at, name) in names.iter().enumerate() {
        match (given.get(at), options.has(name)) {
            (Some(_), true) => return Err(ErrorKind::TooManyArguments.into()),
            (Some(value), false) => all[at] = value.clone(),
            (None, true) => all[at] = options.get(name)?,
            (None, false) => {}
        }
    }
    options.assert_all_used()?;
    Ok(all)
}

/// What a template asks for: at most as much as minijinja repeats of a text.
pub(super) fn repeated(letter: char, count: usize) -> Result<String, Error> {
    const MOST: usize = 100_000_000;
    match letter.len_utf8().checked_mul(count) {
        Some(bytes) if bytes <= MOST => Ok(std::iter::repeat_n(letter, count).collect()),
        _ => Err(Error::new(ErrorKind::InvalidOperation, "the text would be too large")),
    }
}

/// An argument, or what it is by default.
pub(super) fn or<T: TryFrom<Jinja, Error = Error>>(given: &Jinja, default: T) -> Result<T, Error> {
    if given.is_undefined() { Ok(default) } else { given.clone().try_into() }
}
