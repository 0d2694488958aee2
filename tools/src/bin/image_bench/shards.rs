//! Images in shards: Parquet as the Hugging Face hub has it, tars for WebDataset, MDS.

use super::{
    collate::Sample,
    data::{Data, Kind, VALID},
};
use burn::data::dataset::{Dataset, DatasetError};
use burn_pinned::{BoxError, data::Rows, vision::Image};
use rand::{SeedableRng, rngs::ChaCha8Rng, seq::SliceRandom};
use serde::{Deserialize, de::DeserializeOwned};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

/// What is read of a row. The other names are those of tars, where each file's end is a column.
#[derive(Deserialize)]
struct Row {
    #[serde(alias = "img", alias = "jpg", alias = "jpeg", alias = "png", alias = "webp", alias = "gif")]
    image: Image,
    #[serde(alias = "cls")]
    label: usize,
}

/// The same without the image, which is then not read.
#[derive(Deserialize)]
struct Label {
    #[serde(alias = "cls")]
    label: usize,
}

/// All these names. A data set has one for each field.
const NAMES: [&str; 9] = ["image", "img", "jpg", "jpeg", "png", "webp", "gif", "label", "cls"];

/// More classes than this are none.
const MOST_CLASSES: usize = 100_000;

/// Some of the rows.
struct Part {
    rows: Rows<Row>,
    chosen: Vec<usize>,
}

impl Dataset<Sample> for Part {
    fn get(&self, index: usize) -> Result<Sample, DatasetError> {
        let Row { image, label } = self.rows.get(self.chosen[index])?;
        Ok((image, label))
    }

    fn len(&self) -> usize {
        self.chosen.len()
    }
}

fn rows<T: DeserializeOwned>(paths: &[PathBuf]) -> Result<Rows<T>, BoxError> {
    let rows = match (Kind::of(paths), paths) {
        (Kind::Tar, _) => Rows::tar(paths),
        (Kind::Mds, [folder]) => Rows::mds(folder),
        #[cfg(feature = "parquet")]
        (Kind::Parquet, _) => Rows::parquet(paths),
        #[cfg(not(feature = "parquet"))]
        (Kind::Parquet, _) => return Err("Parquet needs a build with the feature `parquet`".into()),
        (Kind::Mds, _) => return Err("name one MDS folder".into()),
        (Kind::Folder, _) => return Err("--data names shards, so --valid must name shards too".into()),
    };
    Ok(rows.optional(NAMES).open()?)
}

/// The label of each row. A row whose label cannot be read has none: what is done about it is decided in the training.
fn labels(rows: &Rows<Label>) -> Vec<Option<usize>> {
    (0..rows.len()).map(|row| rows.get(row).ok().map(|row| row.label)).collect()
}

pub(crate) fn open(train: &[PathBuf], valid: &[PathBuf], seed: u64) -> Result<Data, BoxError> {
    let only_labels = rows::<Label>(train)?;
    let train_labels = labels(&only_labels);
    let train = rows(train)?;
    let (chosen, left, valid, valid_labels) = if valid.is_empty() {
        let (chosen, left) = split(&train_labels, VALID, seed);
        (chosen, left, train.clone(), Vec::new())
    } else {
        let valid_labels = labels(&rows(valid)?);
        let valid = rows::<Row>(valid)?;
        ((0..train.len()).collect(), (0..valid.len()).collect(), valid, valid_labels)
    };
    let most = train_labels.iter().chain(&valid_labels).copied().flatten().max().ok_or("no row has a label")?;
    if most >= MOST_CLASSES {
        return Err(format!("there is a label {most}: these are not classes").into());
    }
    let classes = only_labels.classes("label").unwrap_or_else(|| (0..=most).map(|label| label.to_string()).collect());
    if most >= classes.len() {
        return Err(format!("there is a label {most}, but only {} classes have names", classes.len()).into());
    }
    Ok(Data {
        train: Arc::new(Part { rows: train, chosen }),
        valid: Arc::new(Part { rows: valid, chosen: left }),
        classes,
    })
}

/// Splits class by class, as `ImageFolder::split` does: a class of two or more has at least one row in each part. A lone row is
/// for training, and so is one without a label.
fn split(labels: &[Option<usize>], share: f64, seed: u64) -> (Vec<usize>, Vec<usize>) {
    let mut classes = BTreeMap::<Option<usize>, Vec<usize>>::new();
    labels.iter().enumerate().for_each(|(row, label)| classes.entry(*label).or_default().push(row));
    let (mut train, mut valid) = (Vec::new(), Vec::new());
    for (label, mut class) in classes {
        let Some(label) = label else {
            train.extend(class);
            continue;
        };
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(label as u64);
        class.shuffle(&mut rng);
        let (wanted, last) = ((class.len() as f64 * share).round() as usize, class.len() - 1);
        train.extend(class.split_off(wanted.clamp(last.min(1), last)));
        valid.extend(class);
    }
    train.sort_unstable();
    valid.sort_unstable();
    (train, valid)
}
