//! The environment variables that launchers set for each process: torchrun, MPI launchers, and SLURM.

use super::distributed::Distributed;
use crate::{fault::Error, observe::warn};
use std::{env, fmt};

/// The share of this process, from the environment; see [`Distributed::from_env`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Launched {
    /// This process's share of every epoch.
    pub distributed: Distributed,
    /// The number of this process on its host, from 0: the index of its device.
    pub local_rank: usize,
    /// The launcher: `torchrun`, `Open MPI`, `MVAPICH`, `MPICH` (also for Intel MPI and others with the same variables), `SLURM`, or `SLURM
    /// without srun` for a job's single process.
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

/// A launcher and its variables. If a list has several names, the first that is set counts.
struct Launcher {
    name: &'static str,
    rank: &'static str,
    world: &'static [&'static str],
    /// The rank on this host.
    local: &'static [&'static str],
    /// The number of processes on this host.
    local_world: &'static [&'static str],
}

/// The first launcher whose variables are set counts. If one launcher runs under another, or under SLURM, the process has the variables of
/// both.
const LAUNCHERS: [Launcher; 4] = [
    Launcher {
        name: "torchrun",
        rank: "RANK",
        world: &["WORLD_SIZE"],
        local: &["LOCAL_RANK"],
        local_world: &["LOCAL_WORLD_SIZE"],
    },
    Launcher {
        name: "Open MPI",
        rank: "OMPI_COMM_WORLD_RANK",
        world: &["OMPI_COMM_WORLD_SIZE"],
        local: &["OMPI_COMM_WORLD_LOCAL_RANK"],
        local_world: &["OMPI_COMM_WORLD_LOCAL_SIZE"],
    },
    Launcher {
        name: "MVAPICH",
        rank: "MV2_COMM_WORLD_RANK",
        world: &["MV2_COMM_WORLD_SIZE"],
        local: &["MV2_COMM_WORLD_LOCAL_RANK"],
        local_world: &["MV2_COMM_WORLD_LOCAL_SIZE"],
    },
    Launcher {
        name: "MPICH",
        rank: "PMI_RANK",
        world: &["PMI_SIZE"],
        local: &["MPI_LOCALRANKID", "PMI_LOCAL_RANK"],
        local_world: &["MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"],
    },
];

/// A task of a step that `srun` has started. With `--preserve-env`, `SLURM_NTASKS` is the number of the whole job.
const SLURM: Launcher = Launcher {
    name: "SLURM",
    rank: "SLURM_PROCID",
    world: &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"],
    local: &["SLURM_LOCALID"],
    local_world: &[],
};

/// The two names of a step's number.
const STEP: [&str; 2] = ["SLURM_STEP_ID", "SLURM_STEPID"];
/// Other variables of a step's tasks, in case the environment has lost the step's number.
const TASKS_OF_STEP: [&str; 2] = ["SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"];
/// Step numbers from here on mean the batch script, a shell of `salloc` and the like, and so do these words.
const NO_STEP: u64 = 0xffff_fff0;
const NO_STEPS: [&str; 3] = ["batch", "interactive", "extern"];

impl Distributed {
    /// Reads the share of this process from the environment variables of its launcher:
    ///
    /// | launcher | rank | number of processes | rank on this host | processes on this host |
    /// | --- | --- | --- | --- | --- |
    /// | torchrun | `RANK` | `WORLD_SIZE` | `LOCAL_RANK` | `LOCAL_WORLD_SIZE` |
    /// | Open MPI, names without `OMPI_COMM_` | `WORLD_RANK` | `WORLD_SIZE` | `WORLD_LOCAL_RANK` | `WORLD_LOCAL_SIZE` |
    /// | MVAPICH, names without `MV2_COMM_` | `WORLD_RANK` | `WORLD_SIZE` | `WORLD_LOCAL_RANK` | `WORLD_LOCAL_SIZE` |
    /// | MPICH, Intel MPI | `PMI_RANK` | `PMI_SIZE` | `MPI_LOCALRANKID` or `PMI_LOCAL_RANK` | `MPI_LOCALNRANKS` or `PMI_LOCAL_SIZE` |
    /// | SLURM (`srun`) | `SLURM_PROCID` | `SLURM_STEP_NUM_TASKS` or `SLURM_NTASKS` | `SLURM_LOCALID` | `SLURM_STEP_TASKS_PER_NODE` |
    ///
    /// The number of processes on this host may be missing, and is ignored if it is impossible: see
    /// [`with_local_world`](Self::with_local_world). If the variables of several launchers are set, the first launcher in this table
    /// counts. If MPICH sets no rank on this host, the rank is used instead, and the number of processes on this host is unknown.
    ///
    /// SLURM also sets a rank and a number of tasks for a job's script, and for each program that the script starts without `srun`. Such a
    /// process is alone, so it gets the whole epoch. A step is recognised by `SLURM_STEP_ID` or by the number of its tasks.
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
    /// [`Error::Config`], which names the variables: if no launcher started this process, if a variable is missing or not a number, if the
    /// rank does not exist, or if SLURM set a rank above 0 without a step.
    pub fn from_env() -> Result<Launched, Error> {
        from_variables(&|name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }
}

type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

fn from_variables(variable: Variable<'_>) -> Result<Launched, Error> {
    if let Some(launcher) = LAUNCHERS.iter().find(|of| of.has_set(variable)) {
        return launcher.read(variable);
    }
    let names = [&["SLURM_JOB_ID", SLURM.rank][..], SLURM.world, &STEP, &TASKS_OF_STEP].concat();
    if !names.into_iter().any(|name| variable(name).is_some()) {
        let names: Vec<String> = LAUNCHERS
            .iter()
            .chain([&SLURM])
            .map(|of| format!("{} and {} ({})", of.rank, of.world[0], of.name))
            .collect();
        let advice = "start it with torchrun, mpirun or srun, or use `Distributed::new(0, 1)`";
        return Err(wrong(format!("no launcher has set {}", names.join(", or ")), advice));
    }
    if is_step(variable)? { SLURM.read(variable) } else { without_srun(variable) }
}

fn wrong(problem: String, advice: impl Into<String>) -> Error {
    Error::config("Distributed::from_env", problem, advice)
}

/// Returns the first of these variables that is set, and its value.
fn first<'a>(names: &[&'a str], variable: Variable<'_>) -> Option<(&'a str, String)> {
    names.iter().find_map(|name| Some((*name, variable(name)?)))
}

/// Returns the number in the first of these variables that is set.
fn number<'a>(names: &[&'a str], variable: Variable<'_>) -> Result<Option<(&'a str, usize)>, Error> {
    let Some((name, text)) = first(names, variable) else { return Ok(None) };
    match text.trim().parse() {
        Ok(number) => Ok(Some((name, number))),
        Err(_) => Err(wrong(format!("{name} is `{text}`"), "set it to a whole number from 0 up")),
    }
}

impl Launcher {
    fn has_set(&self, variable: Variable<'_>) -> bool {
        first(&[self.rank], variable).or_else(|| first(self.world, variable)).is_some()
    }

    fn read(&self, variable: Variable<'_>) -> Result<Launched, Error> {
        let needed = |names: &[&'static str]| {
            number(names, variable)?.ok_or_else(|| {
                let problem =
                    format!("{} is not set, but this process has variables of {}", names.join(" or "), self.name);
                let advice = format!(
                    "set it, unset {} and {}, or start the process with its launcher",
                    self.rank, self.world[0]
                );
                wrong(problem, advice)
            })
        };
        let ((of_rank, rank), (of_world, world)) = (needed(&[self.rank])?, needed(self.world)?);
        let distributed = Distributed::new(rank, world).map_err(|_| {
            let problem =
                format!("{of_rank} is {rank} and {of_world} is {world}: there is no rank {rank} of {world} processes");
            wrong(problem, "count ranks from 0 to one less than the number of processes")
        })?;
        let local_rank = match number(self.local, variable)? {
            Some((_, local_rank)) => local_rank,
            None if self.rank == "PMI_RANK" => match of_same_task(distributed, variable) {
                Some(task) => return Ok(task),
                None => rank,
            },
            None => needed(self.local)?.1,
        };
        // This number only sets defaults. A process may have inherited the variable from a process of another launcher.
        let processes = match self.local_world {
            [] => tasks_of_node(variable),
            names => number(names, variable).ok().flatten().map(|(_, processes)| processes),
        };
        let known = processes.and_then(|processes| distributed.with_local_world(processes).ok());
        Ok(Launched { distributed: known.unwrap_or(distributed), local_rank, launcher: self.name })
    }
}

/// The SLURM task that is also this MPI process, as with `srun --mpi=pmi2`. SLURM gives its rank on this host.
fn of_same_task(distributed: Distributed, variable: Variable<'_>) -> Option<Launched> {
    let task = SLURM.read(variable).ok().filter(|_| matches!(is_step(variable), Ok(true)))?;
    let same = (task.distributed.rank(), task.distributed.world()) == (distributed.rank(), distributed.world());
    same.then_some(task)
}

/// Whether `srun` started this process or one of its ancestors.
fn is_step(variable: Variable<'_>) -> Result<bool, Error> {
    let Some((name, text)) = first(&STEP, variable) else { return Ok(first(&TASKS_OF_STEP, variable).is_some()) };
    match text.trim().parse::<u64>() {
        Ok(number) => Ok(number < NO_STEP),
        Err(_) if NO_STEPS.contains(&text.trim()) => Ok(false),
        Err(_) => Err(wrong(format!("{name} is `{text}`"), "start the process with srun, or unset it")),
    }
}

/// The single process of a job: its script, a program that the script starts without `srun`, or one in a shell of `salloc`.
fn without_srun(variable: Variable<'_>) -> Result<Launched, Error> {
    if let Some((name, rank)) = number(&[SLURM.rank], variable)?
        && rank > 0
    {
        let problem = format!("{name} is {rank}, but {} and {} tell of no step of srun", STEP[0], TASKS_OF_STEP[0]);
        return Err(wrong(problem, "start the process with srun, and pass on the variables of SLURM to it"));
    }
    if let Ok(Some((name, tasks @ 2..))) = number(&["SLURM_NTASKS"], variable) {
        warn(&format!(
            "{name} is {tasks}, but srun has not started this process, so it has the whole epoch. For {tasks} processes, start \
             it with srun"
        ));
    }
    Ok(Launched { distributed: Distributed::alone(), local_rank: 0, launcher: "SLURM without srun" })
}

/// The number of tasks on this node, from the list for all nodes: `4(x2),3` means 4 tasks on each of two nodes, then 3. `None` if the list
/// is missing or cannot be parsed.
fn tasks_of_node(variable: Variable<'_>) -> Option<usize> {
    let (_, node) = number(&["SLURM_NODEID"], variable).ok()??;
    let (_, nodes) = first(&["SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"], variable)?;
    let mut end = 0;
    for part in nodes.trim().split(',') {
        let (tasks, times) = part.split_once("(x").unwrap_or((part, "1)"));
        end = times.strip_suffix(')')?.parse::<usize>().ok()?.checked_add(end)?;
        if node < end {
            return tasks.parse().ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Launched, String> {
        let variable = |name: &str| variables.iter().find(|(of, _)| *of == name).map(|(_, value)| value.to_string());
        from_variables(&variable).map_err(|error| error.to_string())
    }

    #[test]
    fn each_launcher_is_known() {
        let of = |rank, world| Distributed::new(rank, world).unwrap();
        let torchrun = [("RANK", "3"), ("WORLD_SIZE", "8"), ("LOCAL_RANK", "1")];
        let found = read(&torchrun).unwrap();
        assert_eq!(found, Launched { distributed: of(3, 8), local_rank: 1, launcher: "torchrun" });
        assert_eq!(found.to_string(), "rank 3 of 8, number 1 on this host, by torchrun");
        let slurm = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "2"), ("SLURM_LOCALID", "0"), ("SLURM_STEP_ID", "0")];
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
        let slurm = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "16"), ("SLURM_LOCALID", "0"), ("SLURM_STEP_ID", "2")];
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

    /// Variables, and the rank, the number of processes and the rank on this host, or what the error names.
    type Case = (&'static str, Result<(usize, usize, usize, &'static str), &'static [&'static str]>);

    fn check(cases: &[Case]) {
        for (variables, right) in cases {
            let pairs: Vec<_> = variables.split_whitespace().map(|pair| pair.split_once('=').unwrap()).collect();
            match (read(&pairs), right) {
                (Ok(Launched { distributed, local_rank, launcher }), Ok(right)) => {
                    assert_eq!(&(distributed.rank(), distributed.world(), local_rank, launcher), right, "{variables}");
                }
                (Err(error), Err(names)) => {
                    assert!(names.iter().all(|name| error.contains(name)), "{variables}: {error}");
                }
                (found, _) => panic!("{variables}: {found:?}"),
            }
        }
    }

    /// Only tasks of a step are several processes.
    #[test]
    fn a_job_of_slurm_without_a_step_is_one_process() {
        let alone = Ok((0, 1, 0, "SLURM without srun"));
        check(&[
            ("SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=0", alone),
            (
                "SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_TASKS_PER_NODE=4",
                alone,
            ),
            ("SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_LOCALID=0", alone), // a job that has not said how many tasks
            ("SLURM_JOB_ID=7", alone),
            ("SLURM_NTASKS=4", alone), // the shell of `salloc`
            ("SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=0 SLURM_STEP_ID=4294967291", alone),
            ("SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=0 SLURM_STEP_ID=4294967290 SLURM_STEP_NUM_TASKS=1", alone),
            ("SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=0 SLURM_STEP_ID=batch", alone),
            ("SLURM_PROCID=2 SLURM_NTASKS=4 SLURM_LOCALID=2", Err(&["SLURM_PROCID is 2", "SLURM_STEP_ID", "srun"])),
            ("SLURM_PROCID=x SLURM_NTASKS=4", Err(&["SLURM_PROCID is `x`"])),
            ("SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_STEP_ID=first", Err(&["SLURM_STEP_ID is `first`"])),
        ]);
    }

    #[test]
    fn a_step_of_slurm_has_as_many_processes_as_tasks() {
        check(&[
            ("SLURM_PROCID=1 SLURM_NTASKS=4 SLURM_LOCALID=1 SLURM_STEP_ID=0", Ok((1, 4, 1, "SLURM"))),
            ("SLURM_PROCID=1 SLURM_NTASKS=4 SLURM_LOCALID=1 SLURM_STEPID=3", Ok((1, 4, 1, "SLURM"))),
            (
                "SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=1 SLURM_STEP_ID=0",
                Ok((1, 2, 1, "SLURM")),
            ),
            (
                "SLURM_PROCID=1 SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=0 SLURM_STEP_ID=0",
                Ok((1, 2, 0, "SLURM")),
            ),
            ("SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=1", Ok((1, 2, 1, "SLURM"))),
            (
                "SLURM_PROCID=1 SLURM_LOCALID=1 SLURM_STEP_ID=0",
                Err(&["SLURM_STEP_NUM_TASKS or SLURM_NTASKS is not set"]),
            ),
            ("SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_LOCALID=1", Err(&["SLURM_PROCID is not set"])),
            ("SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=0", Err(&["SLURM_LOCALID is not set"])),
            (
                "SLURM_PROCID=2 SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_LOCALID=0",
                Err(&["SLURM_PROCID is 2", "SLURM_NTASKS is 2"]),
            ),
            (
                "SLURM_PROCID=0 SLURM_NTASKS=0 SLURM_STEP_ID=0 SLURM_LOCALID=0",
                Err(&["SLURM_PROCID is 0", "SLURM_NTASKS is 0"]),
            ),
            ("SLURM_PROCID=0 SLURM_NTASKS=-4 SLURM_STEP_ID=0 SLURM_LOCALID=0", Err(&["SLURM_NTASKS is `-4`"])),
        ]);
    }

    /// `mpirun` and torchrun start processes of their own from the script of a job, or from the tasks of a step.
    #[test]
    fn a_launcher_under_slurm_goes_before_slurm() {
        check(&[
            (
                "SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=0 PMI_RANK=2 PMI_SIZE=4 MPI_LOCALRANKID=1",
                Ok((2, 4, 1, "MPICH")),
            ),
            (
                "SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=0 PMI_RANK=2 PMI_SIZE=4 PMI_LOCAL_RANK=1",
                Ok((2, 4, 1, "MPICH")),
            ),
            ("SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=0 PMI_RANK=2 PMI_SIZE=4", Ok((2, 4, 2, "MPICH"))),
            // Intel MPI starts one task of SLURM on each host, and its own processes from there.
            (
                "SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=0 PMI_RANK=6 PMI_SIZE=8 MPI_LOCALRANKID=2",
                Ok((6, 8, 2, "MPICH")),
            ),
            // `srun --mpi=pmi2`
            (
                "SLURM_STEP_ID=0 SLURM_PROCID=6 SLURM_NTASKS=8 SLURM_LOCALID=2 PMI_RANK=6 PMI_SIZE=8",
                Ok((6, 8, 2, "SLURM")),
            ),
            (
                "SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=0 OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 \
                 OMPI_COMM_WORLD_LOCAL_RANK=1",
                Ok((3, 4, 1, "Open MPI")),
            ),
            (
                "SLURM_PROCID=0 SLURM_NTASKS=4 MV2_COMM_WORLD_RANK=3 MV2_COMM_WORLD_SIZE=4 MV2_COMM_WORLD_LOCAL_RANK=1",
                Ok((3, 4, 1, "MVAPICH")),
            ),
            (
                "SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=0 RANK=5 WORLD_SIZE=8 LOCAL_RANK=1",
                Ok((5, 8, 1, "torchrun")),
            ),
            ("SLURM_PROCID=0 SLURM_NTASKS=4 PMI_RANK=2", Err(&["PMI_SIZE is not set", "unset PMI_RANK"])),
            ("SLURM_PROCID=0 SLURM_NTASKS=4 PMI_SIZE=2", Err(&["PMI_RANK is not set"])),
            ("PMI_RANK=two PMI_SIZE=2", Err(&["PMI_RANK is `two`"])),
            ("PMI_RANK=2 PMI_SIZE=2", Err(&["PMI_RANK is 2", "PMI_SIZE is 2"])),
            (
                "SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=0 WORLD_SIZE=2",
                Err(&["RANK is not set", "unset"]),
            ),
        ]);
    }
}
