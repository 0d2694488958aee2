//! A checkpoint: the model, the optimiser and the loader after the same step, in one folder.

use burn::{optim::ModuleOptimizer, prelude::*};
use burn_pinned::{BoxError, LoaderState};
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The state of the training loop itself.
#[derive(Serialize, Deserialize)]
pub(crate) struct Place {
    /// Steps done.
    pub(crate) step: usize,
    /// The loader's state after the batch of the last step.
    pub(crate) loader: LoaderState,
}

/// Saves a checkpoint under `root` and removes those before it.
///
/// The three files belong together, so they are written to a folder that gets its name last. If the process is killed here, the previous
/// checkpoint stays complete. (To survive a power cut, also call `sync_all` on the files and on the folder.)
pub(crate) fn save<M: Module>(root: &Path, model: &M, optim: &ModuleOptimizer, place: &Place) -> Result<(), BoxError> {
    let before = all(root)?;
    let partial = root.join("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial)?;
    }
    fs::create_dir(&partial)?;
    // `valid` first merges the statistics that batch normalisation collected in the last step. Otherwise the record lacks them.
    model.valid().into_record().save(partial.join("model.bpk"))?;
    optim.save(partial.join("optim.bpk"))?;
    fs::write(partial.join("place.json"), serde_json::to_vec(place)?)?;
    fs::rename(&partial, root.join(format!("step-{:06}", place.step)))?;
    for old in before {
        fs::remove_dir_all(old)?;
    }
    Ok(())
}

/// The place of the newest checkpoint, and the folder to [`load`] it from. `None` if there is no checkpoint.
pub(crate) fn newest(root: &Path) -> Result<Option<(Place, PathBuf)>, BoxError> {
    let Some(folder) = all(root)?.pop() else { return Ok(None) };
    let place = serde_json::from_slice(&fs::read(folder.join("place.json"))?)?;
    Ok(Some((place, folder)))
}

/// The model and the optimiser of a checkpoint.
pub(crate) fn load<M: Module>(
    folder: &Path,
    model: M,
    optim: ModuleOptimizer,
) -> Result<(M, ModuleOptimizer), BoxError> {
    Ok((model.try_load_file(folder.join("model.bpk"))?, optim.load(folder.join("optim.bpk"))?))
}

/// The folders of complete checkpoints, oldest first.
fn all(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut folders = fs::read_dir(root)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    folders.retain(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"step-")));
    folders.sort();
    Ok(folders)
}
