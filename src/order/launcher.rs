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
        let (rank, world, local) = (distributed.rank(), distributed.world(), distributed.local_world());
        let of = if local > 1 { format!(" of {local}") } else { String::new() };
        write!(f, "rank {rank} of {world}, number {local_rank}{of} on this host, by {launcher}")
    }
}

/// A launcher, and its variables: the rank, the number of processes, the rank on this host.
struct Launcher {
    name: &'static str,
    rank: &'static str,
    world: &'static str,
    local: &'static str,
    local_world: Here,
}

/// How a launcher tells the number of processes on this host.
enum Here {
    /// As a number.
    Number(&'static str),
    /// As the numbers of all nodes, like `4(x2),3`: twice 4, then 3. The first variable that is set counts. The last
    /// argument is that of this node's number.
    Nodes([&'static str; 2], &'static str),
}

impl Here {
    /// Returns `None` if the launcher has not told it, or not so that it can be read.
    fn read(&self, variable: impl Fn(&str) -> Option<String>) -> Option<usize> {
        match self {
            Self::Number(name) => variable(name)?.trim().parse().ok(),
            Self::Nodes(names, node) => {
                let node: usize = variable(node)?.trim().parse().ok()?;
                let nodes = names.iter().find_map(|name| variable(name))?;
                let mut first = 0;
                for part in nodes.trim().split(',') {
                    let (tasks, times) = part.split_once("(x").unwrap_or((part, "1)"));
                    first = times.strip_suffix(')')?.parse::<usize>().ok()?.checked_add(first)?;
                    if node < first {
                        return tasks.parse().ok();
                    }
                }
                None
            }
        }
    }
}

/// In this order: a process that Open MPI starts under SLURM has the variables of both.
const LAUNCHERS: [Launcher; 3] = [
    Launcher {
        name: "torchrun",
        rank: "RANK",
        world: "WORLD_SIZE",
        local: "LOCAL_RANK",
        local_world: Here::Number("LOCAL_WORLD_SIZE"),
    },
    Launcher {
        name: "Open MPI",
        rank: "OMPI_COMM_WORLD_RANK",
        world: "OMPI_COMM_WORLD_SIZE",
        local: "OMPI_COMM_WORLD_LOCAL_RANK",
        local_world: Here::Number("OMPI_COMM_WORLD_LOCAL_SIZE"),
    },
    Launcher {
        name: "SLURM",
        rank: "SLURM_PROCID",
        world: "SLURM_NTASKS",
        local: "SLURM_LOCALID",
        local_world: Here::Nodes(["SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"], "SLURM_NODEID"),
    },
];

impl Distributed {
    /// Reads the share of this process from the environment that its launcher has made:
    ///
    /// | launcher | rank | number of processes | rank on this host | processes on this host |
    /// | --- | --- | --- | --- | --- |
    /// | torchrun | `RANK` | `WORLD_SIZE` | `LOCAL_RANK` | `LOCAL_WORLD_SIZE` |
    /// | Open MPI (`mpirun`), names without `OMPI_COMM_` | `WORLD_RANK` | `WORLD_SIZE` | `WORLD_LOCAL_RANK` | `WORLD_LOCAL_SIZE` |
    /// | SLURM (`srun`) | `SLURM_PROCID` | `SLURM_NTASKS` | `SLURM_LOCALID` | `SLURM_STEP_TASKS_PER_NODE` |
    ///
    /// The last one may be missing, and does not count if it cannot be: see [`with_local_world`](Self::with_local_world). If there are the variables of several, the first of this table counts.
    ///
    /// ```
    /// use burn_pinned::Distributed;
    ///
    /// match Distributed::from_env() {
    ///     Ok(here) => println!("{here}"), // rank 3 of 8, number 1 of 4 on this host, by torchrun
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
    let Some(Launcher { name, rank, world, local, local_world }) = LAUNCHERS.iter().find(set) else {
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
    let distributed = Distributed::new(number(rank)?, number(world)?)?;
    // It only sets defaults. A process may have inherited it from one that another launcher has started.
    let known = local_world.read(&variable).and_then(|processes| distributed.with_local_world(processes).ok());
    Ok(Launched { distributed: known.unwrap_or(distributed), local_rank: number(local)?, launcher: name })
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
        let found = read(&slurm).unwrap();
        assert_eq!((found.launcher, found.distributed.local_world()), ("SLURM", 1));
        let mpi = [("OMPI_COMM_WORLD_RANK", "5"), ("OMPI_COMM_WORLD_SIZE", "6"), ("OMPI_COMM_WORLD_LOCAL_RANK", "2")];
        let both = [&slurm[..], &mpi].concat();
        assert_eq!(read(&both).unwrap(), Launched { distributed: of(5, 6), local_rank: 2, launcher: "Open MPI" });
    }

    #[test]
    fn the_processes_of_this_host_are_known() {
        let local = |variables: &[(&str, &str)], more: &[(&str, &str)]| {
            read(&[variables, more].concat()).map(|found| found.distributed.local_world())
        };
        let torchrun = [("RANK", "3"), ("WORLD_SIZE", "8"), ("LOCAL_RANK", "1")];
        let found = read(&[&torchrun[..], &[("LOCAL_WORLD_SIZE", "4")]].concat()).unwrap();
        assert_eq!(found.to_string(), "rank 3 of 8, number 1 of 4 on this host, by torchrun");
        let wrong = ["9", "0", "four"].map(|text| local(&torchrun, &[("LOCAL_WORLD_SIZE", text)]));
        assert_eq!(wrong, [Ok(1), Ok(1), Ok(1)], "it is not of these processes");
        let mpi = [("OMPI_COMM_WORLD_RANK", "5"), ("OMPI_COMM_WORLD_SIZE", "6"), ("OMPI_COMM_WORLD_LOCAL_RANK", "2")];
        assert_eq!(local(&mpi, &[("OMPI_COMM_WORLD_LOCAL_SIZE", "3")]), Ok(3));
        let slurm = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "16"), ("SLURM_LOCALID", "0")];
        let on = |node, nodes| local(&slurm, &[("SLURM_NODEID", node), ("SLURM_STEP_TASKS_PER_NODE", nodes)]);
        assert_eq!(["0", "1", "2", "3"].map(|node| on(node, "4(x2),3,5").unwrap()), [4, 4, 3, 5]);
        assert_eq!([on("9", "4(x2)"), on("0", "four"), on("0", "4(x")], [Ok(1), Ok(1), Ok(1)], "it is not known");
        assert_eq!(local(&slurm, &[("SLURM_NODEID", "0"), ("SLURM_TASKS_PER_NODE", "8")]), Ok(8));
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
