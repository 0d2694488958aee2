//! Saves the position of a loader with the checkpoints of Burn's learner.

use super::{data_loader::PinnedDataLoader, state::LoaderState};
use crate::{order::Position, sync::locks::Mutex};
use burn::train::checkpoint::{Checkpoint, Checkpointer, CheckpointerError};
use burn_shards::for_loader::replace;
use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

/// A checkpointer of Burn's learner that saves the position of a loader with each checkpoint, and restores it. It wraps another
/// checkpointer, which saves the record. It needs the feature `metrics`.
///
/// ```
/// use burn::{data::dataset::InMemDataset, prelude::*, tensor::DType, train::checkpoint::FileCheckpointer};
/// use burn_pinned::{Field, LoaderCheckpointer, PinnedDataLoaderBuilder, collate};
///
/// let numbers = collate(
///     [Field::new("x", DType::F32, [])],
///     |x: &f32, row| Ok(row.put("x", *x)?),
///     |mut batch| Ok(batch.take::<1, Float>("x")?),
/// );
/// let train = PinnedDataLoaderBuilder::new(numbers).batch_size(2).shuffle(42).build(InMemDataset::new(vec![1.0f32, 2.0, 3.0]))?;
/// # let folder = tempfile::tempdir()?;
/// let checkpoints = folder.path().join("checkpoint");
/// let file = |name| FileCheckpointer::new(&checkpoints, name);
/// let model = LoaderCheckpointer::new(file("model"), &train, &checkpoints);
/// // let training = SupervisedTraining::new(folder, train, valid)
/// //     .with_custom_checkpointers(model, file("optim"), file("scheduler"));
/// // A later process builds all of it again, and adds `.checkpoint(n)`: the loader continues at the epoch after it.
/// # let (_, _) = (model, file("optim"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The file of epoch `n` is `loader-n.json` in the folder. It is written to another name and then renamed. It has the position at
/// which the epoch after `n` begins, whatever the loader has done since. [`LoaderState`] says what must be the same in the later process.
/// Make it right before the training, and use it for one training: each `iter()` in between counts as an epoch of the training. Restoring sets
/// the position of the loader itself, and so of the copies that the learner makes afterwards. A loader that was built with
/// [`resume`](crate::PinnedDataLoaderBuilder::resume) in the middle of an epoch is refused. To save a second loader, such as a shuffled one
/// for validation, wrap this one in another with another folder. Burn calls it on a thread of its own.
#[derive(Debug)]
pub struct LoaderCheckpointer<C, O: Send + 'static> {
    checkpointer: C,
    loader: Arc<PinnedDataLoader<O>>,
    folder: PathBuf,
    /// An epoch of the learner after which the loader is at the begin of this epoch of its own.
    since: Mutex<(usize, usize)>,
}

impl<C, O: Send + 'static> LoaderCheckpointer<C, O> {
    /// Saves the position of `loader` in `folder`, and the record by `checkpointer`.
    pub fn new(checkpointer: C, loader: &Arc<PinnedDataLoader<O>>, folder: impl Into<PathBuf>) -> Self {
        let since = Mutex::new((0, loader.next_epoch()));
        Self { checkpointer, loader: Arc::clone(loader), folder: folder.into(), since }
    }

    fn path(&self, epoch: usize) -> PathBuf {
        self.folder.join(format!("loader-{epoch}.json"))
    }

    /// The position of the loader at the end of an epoch of the learner.
    fn state(&self, epoch: usize) -> LoaderState {
        let (learner, loader) = *self.since.lock();
        self.loader.state_at(Position::begin(loader + epoch.saturating_sub(learner)))
    }
}

impl<R: Checkpoint, C: Checkpointer<R>, O: Send + 'static> Checkpointer<R> for LoaderCheckpointer<C, O> {
    fn save(&self, epoch: usize, record: R) -> Result<(), CheckpointerError> {
        let text = serde_json::to_vec(&self.state(epoch)).map_err(other)?;
        fs::create_dir_all(&self.folder).map_err(|error| at(&self.folder, &error))?;
        let path = self.path(epoch);
        let refused = |error| at(&path, &error);
        replace(&path, refused, |file| file.write_all(&text).map_err(refused))?;
        self.checkpointer.save(epoch, record)
    }

    fn delete(&self, epoch: usize) -> Result<(), CheckpointerError> {
        let path = self.path(epoch);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(&path, &error)),
            _ => self.checkpointer.delete(epoch),
        }
    }

    fn restore(&self, epoch: usize) -> Result<R, CheckpointerError> {
        let path = self.path(epoch);
        let text = fs::read(&path).map_err(|error| at(&path, &error))?;
        let state: LoaderState = serde_json::from_slice(&text).map_err(|error| at(&path, &error.into()))?;
        let record = self.checkpointer.restore(epoch)?;
        self.loader.continue_at(&state).map_err(other)?;
        *self.since.lock() = (epoch, state.epoch());
        Ok(record)
    }
}

fn at(path: &Path, error: &io::Error) -> CheckpointerError {
    CheckpointerError::IOError(io::Error::new(
        error.kind(),
        format!("the loader's position, {}: {error}", path.display()),
    ))
}

fn other(error: impl ToString) -> CheckpointerError {
    CheckpointerError::Unknown(error.to_string())
}
