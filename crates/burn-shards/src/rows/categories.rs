//! Names as numbers.

use super::stats::{in_runs, unusable};
use crate::{error::DataError, row::nearest};
use burn::data::dataset::{Dataset, DatasetError};
use serde::{Deserialize, Deserializer, de::Error};
use std::collections::BTreeSet;

/// A number for each name of a column, from 0 in the order of the names: for texts, classes, and lists of tags.
///
/// ```
/// use burn::data::dataset::InMemDataset;
/// use burn_shards::Categories;
///
/// let train = InMemDataset::new(vec![("pop", vec!["loud"]), ("jazz", vec!["slow", "live"])]);
/// let genres = Categories::of(&train, |(genre, _)| [genre])?;
/// assert_eq!((genres.names(), genres.number("pop")?), (&["jazz".to_string(), "pop".to_string()][..], 1));
/// assert!(genres.number("rock").is_err());
/// assert_eq!(genres.with_unknown().number("rock")?, 2);
///
/// let tags = Categories::of(&train, |(_, tags)| tags)?;
/// assert_eq!(tags.multi_hot(["slow", "live"])?, [1.0, 0.0, 1.0]); // live, loud, slow
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It learns from the data that it is given: give it the part for training, and save it as JSON beside the model, as
/// [`MeanStd`](crate::MeanStd).
#[doc(alias = "OrdinalEncoder")]
#[doc(alias = "LabelEncoder")]
#[doc(alias = "OneHotEncoder")]
#[doc(alias = "MultiLabelBinarizer")]
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Categories {
    #[serde(deserialize_with = "sorted")]
    names: Vec<String>,
    has_unknown: bool,
}

/// Names are found by their order.
fn sorted<'de, D: Deserializer<'de>>(saved: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(saved)?;
    let problem = || D::Error::custom("the names are not sorted, or a name is there twice: learn them again");
    if names.is_sorted_by(|one, next| one < next) { Ok(names) } else { Err(problem()) }
}

impl Categories {
    /// Reads all samples of a data set once, on all threads of the machine. `names` returns the names of a sample: `[name]` for one, or a
    /// list. The names are kept in memory, each once.
    ///
    /// # Errors
    /// If a sample cannot be read, or if there are no names.
    pub fn of<I, D, N>(data: &D, names: impl Fn(I) -> N + Sync) -> Result<Self, DatasetError>
    where
        D: Dataset<I> + ?Sized,
        N: IntoIterator<Item: Into<String>>,
    {
        let mut all = BTreeSet::<String>::new();
        let add = |run: &mut BTreeSet<_>, _, sample| {
            run.extend(names(sample).into_iter().map(Into::into));
            Ok(())
        };
        in_runs(data, BTreeSet::new(), add, |run| all.extend(run))?;
        if all.is_empty() {
            return Err(unusable("Categories::of", "there are no names", "check where the data set reads from"));
        }
        Ok(Self { names: all.into_iter().collect(), has_unknown: false })
    }

    /// Adds a last number, for all names that were not learnt. Without it, such a name is an error.
    pub fn with_unknown(self) -> Self {
        Self { has_unknown: true, ..self }
    }

    /// The names. The number of a name is its place here.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// How many numbers there are, with that of unknown names: the rows of an embedding, or the length of [`multi_hot`](Self::multi_hot).
    pub fn count(&self) -> usize {
        self.names.len() + usize::from(self.has_unknown)
    }

    /// Returns the number of a name.
    ///
    /// # Errors
    /// If the name was not learnt, and there is no number for [unknown](Self::with_unknown) names.
    pub fn number(&self, name: &str) -> Result<usize, DataError> {
        match self.names.binary_search_by(|known| known.as_str().cmp(name)) {
            Ok(number) => Ok(number),
            Err(_) if self.has_unknown => Ok(self.names.len()),
            Err(_) => {
                let problem = format!("the name `{name}`{} was not learnt", nearest(name, &self.names));
                Err(DataError::option("Categories", problem, "learn from rows with it, or write `with_unknown`"))
            }
        }
    }

    /// Returns a vector with 1 at the numbers of these names, and 0 elsewhere.
    ///
    /// # Errors
    /// As [`number`](Self::number).
    pub fn multi_hot(&self, names: impl IntoIterator<Item: AsRef<str>>) -> Result<Vec<f32>, DataError> {
        let mut row = vec![0.0; self.count()];
        for name in names {
            row[self.number(name.as_ref())?] = 1.0;
        }
        Ok(row)
    }
}
