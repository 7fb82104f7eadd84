"""The launchers that ours is compared with: which of them are here, and how each starts N processes of a program."""
import os
import sys

from bench_common import HERE, first_found, free_port, torch_pythons

OPEN_MPI = "mpirun (Open MPI)"
HYDRA = "mpiexec.hydra (MPICH)"
PARALLEL = "GNU parallel"
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def ddplaunch(build):
    """A function of (count, program, restarts) that gives the command; so are all below."""
    path = os.path.join(build, "bin", "ddplaunch")
    if not os.access(path, os.X_OK):
        sys.exit(f"no {path}: build it first (scripts/bench.sh does)")
    return lambda count, program, restarts=0: [
        path, "--standalone", f"--nproc-per-node={count}", f"--max-restarts={restarts}", *program]


def torchruns():
    """(name -> function, what is not here): they can start all processes again when one has failed."""
    found, absent = torch_pythons()

    def of(python):
        return lambda count, program, restarts=0: [
            python.path, os.path.join(HERE, "torchrun_repaired.py"), f"--nproc_per_node={count}",
            f"--max_restarts={restarts}", "--monitor_interval=0.1", f"--master_port={free_port()}", "--no_python",
            *program]
    return ({f"torchrun {python.text}, polling every 0.1 s": of(python) for python in found},
            [f"torchrun of {name}" for name in absent])


def others():
    """(name -> function, what is not here): they only start, and end."""
    mpirun = first_found("mpirun.openmpi", "mpirun")
    hydra, parallel = first_found("mpiexec.hydra"), first_found("parallel")
    known = {
        OPEN_MPI: (mpirun, lambda n, program: [mpirun, "--oversubscribe", "-n", str(n), *program]),
        HYDRA: (hydra, lambda n, program: [hydra, "-n", str(n), *program]),
        PARALLEL: (parallel, lambda n, program: [parallel, "--will-cite", "--halt", "now,fail=1", "-j", str(n), "-N0",
                                                 *program, ":::", *map(str, range(n))]),
    }
    return ({name: command for name, (path, command) in known.items() if path},
            [name for name, (path, _) in known.items() if not path])
