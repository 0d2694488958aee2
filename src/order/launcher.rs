//! What a launcher tells each process it starts: torchrun, Open MPI and SLURM.

use super::distributed::Distributed;
use crate::fault::Error;
use std::{env, fmt};

/// The share of this process, as its launcher gave it; see [`Distributed::from_env`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Launched {
    /// This process's share of every epoch.
    pub distributed: Distributed,
    /// The number of this process on its host, from 0: the index of its device.
    pub local_rank: usize,
    /// Who said so: `torchrun`, `Open MPI` or `SLURM`.
    pub launcher: &'static str,
}

impl fmt::Display for Launched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { distributed, local_rank, launcher } = self;
        let (rank, world) = (distributed.rank(), distributed.world());
        write!(f, "rank {rank} of {world}, number {local_rank} on this host, by {launcher}")
    }
}

/// A launcher, and its variables: the rank, the number of processes, the rank on this host.
struct Launcher {
    name: &'static str,
    rank: &'static str,
    world: &'static str,
    local: &'static str,
}

/// In this order: a process that Open MPI starts under SLURM has the variables of both.
const LAUNCHERS: [Launcher; 3] = [
    Launcher { name: "torchrun", rank: "RANK", world: "WORLD_SIZE", local: "LOCAL_RANK" },
    Launcher {
        name: "Open MPI",
        rank: "OMPI_COMM_WORLD_RANK",
        world: "OMPI_COMM_WORLD_SIZE",
        local: "OMPI_COMM_WORLD_LOCAL_RANK",
    },
    Launcher { name: "SLURM", rank: "SLURM_PROCID", world: "SLURM_NTASKS", local: "SLURM_LOCALID" },
];

impl Distributed {
    /// Reads the share of this process from the environment that its launcher has made:
    ///
    /// | launcher | rank | number of processes | rank on this host |
    /// | --- | --- | --- | --- |
    /// | torchrun | `RANK` | `WORLD_SIZE` | `LOCAL_RANK` |
    /// | Open MPI (`mpirun`) | `OMPI_COMM_WORLD_RANK` | `OMPI_COMM_WORLD_SIZE` | `OMPI_COMM_WORLD_LOCAL_RANK` |
    /// | SLURM (`srun`) | `SLURM_PROCID` | `SLURM_NTASKS` | `SLURM_LOCALID` |
    ///
    /// If there are the variables of several, the first of this table counts.
    ///
    /// ```
    /// use burn_pinned::Distributed;
    ///
    /// match Distributed::from_env() {
    ///     Ok(here) => println!("{here}"), // rank 3 of 8, number 1 on this host, by torchrun
    ///     Err(error) => println!("{error}"),
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] if no launcher has started this process, if one of its variables is missing, or if one is not
    /// a number.
    pub fn from_env() -> Result<Launched, Error> {
        from_variables(|name| env::var(name).ok())
    }
}

fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Launched, Error> {
    let set = |launcher: &&Launcher| [launcher.rank, launcher.world].iter().any(|name| variable(name).is_some());
    let Some(Launcher { name, rank, world, local }) = LAUNCHERS.iter().find(set) else {
        let names: Vec<String> =
            LAUNCHERS.iter().map(|of| format!("{} and {} ({})", of.rank, of.world, of.name)).collect();
        let problem = format!("no launcher has set {}", names.join(", or "));
        let advice = "start it with torchrun, mpirun or srun, or use `Distributed::new(0, 1)`";
        return Err(Error::config("Distributed::from_env", problem, advice));
    };
    let number = |name: &str| {
        let Some(text) = variable(name) else {
            let advice = format!("set {name}, or start the process with its launcher");
            return Err(Error::config("Distributed::from_env", format!("{name} is not set"), advice));
        };
        text.trim().parse::<usize>().map_err(|_| {
            Error::config("Distributed::from_env", format!("{name} is `{text}`"), "set it to a whole number from 0 up")
        })
    };
    Ok(Launched {
        distributed: Distributed::new(number(rank)?, number(world)?)?,
        local_rank: number(local)?,
        launcher: name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Launched, String> {
        let variable = |name: &str| variables.iter().find(|(of, _)| *of == name).map(|(_, value)| value.to_string());
        from_variables(variable).map_err(|error| error.to_string())
    }

    #[test]
    fn each_launcher_is_known() {
        let of = |rank, world| Distributed::new(rank, world).unwrap();
        let torchrun = [("RANK", "3"), ("WORLD_SIZE", "8"), ("LOCAL_RANK", "1")];
        let found = read(&torchrun).unwrap();
        assert_eq!(found, Launched { distributed: of(3, 8), local_rank: 1, launcher: "torchrun" });
        assert_eq!(found.to_string(), "rank 3 of 8, number 1 on this host, by torchrun");
        let slurm = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "2"), ("SLURM_LOCALID", "0")];
        assert_eq!(read(&slurm).unwrap().launcher, "SLURM");
        let mpi = [("OMPI_COMM_WORLD_RANK", "5"), ("OMPI_COMM_WORLD_SIZE", "6"), ("OMPI_COMM_WORLD_LOCAL_RANK", "2")];
        let both = [&slurm[..], &mpi].concat();
        assert_eq!(read(&both).unwrap(), Launched { distributed: of(5, 6), local_rank: 2, launcher: "Open MPI" });
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let error = read(&[]).unwrap_err();
        assert!(["RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_SIZE", "torchrun"].iter().all(|name| error.contains(name)));
        assert!(read(&[("RANK", "0"), ("LOCAL_RANK", "0")]).unwrap_err().contains("WORLD_SIZE is not set"));
        assert!(read(&[("WORLD_SIZE", "4"), ("LOCAL_RANK", "0")]).unwrap_err().contains("RANK is not set"));
        assert!(read(&[("RANK", "0"), ("WORLD_SIZE", "4")]).unwrap_err().contains("LOCAL_RANK is not set"));
        let error = read(&[("RANK", "two"), ("WORLD_SIZE", "4"), ("LOCAL_RANK", "0")]).unwrap_err();
        assert!(error.contains("RANK is `two`"), "{error}");
        let error = read(&[("RANK", "4"), ("WORLD_SIZE", "4"), ("LOCAL_RANK", "0")]).unwrap_err();
        assert!(error.contains("no rank 4"), "{error}");
    }
}
