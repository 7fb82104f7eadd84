#!/usr/bin/env python3
"""all_reduce of floats (sum) over the SDK's back-ends in one job, beside a limit and, where it is found, Open MPI.

    bench_all_reduce.py BUILD_FOLDER [--ranks 2] [--rounds 5] [--sizes 4 1048576 16777216] [--no-peers]

Within a job the back-ends take turns size by size; the jobs take turns round by round. Buffers are refilled and results
are checked. The limit is one meeting of the ranks in shared memory and one copy of the bytes in each.
"""
import argparse
import os
import random
import statistics
import sys

from bench_common import commit, first_found, load, machine, spread, table, timed

TIMEOUT = 120
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def jobs(build, ranks, sizes):
    """name -> command; and what is not here."""
    programs = os.path.join(build, "bench_bin")
    found, absent = {}, []
    found["limit"] = [os.path.join(programs, "all_reduce_limit"), str(ranks), *sizes]
    found["ddp"] = [os.path.join(build, "bin", "ddplaunch"), "--standalone", f"--nproc-per-node={ranks}",
                    os.path.join(programs, "all_reduce_bench"), "shm,gloo", *sizes]
    mpirun, mpi_bench = first_found("mpirun.openmpi", "mpirun"), os.path.join(programs, "mpi_all_reduce_bench")
    if mpirun and os.path.exists(mpi_bench):
        found["mpi"] = [mpirun, "--oversubscribe", "-n", str(ranks), mpi_bench, *sizes]
    else:
        absent.append("Open MPI")
    return found, absent


def measure(commands, rounds):
    """size -> contender -> microseconds, a value a round."""
    results = {}
    for _ in range(rounds):
        for name in random.sample(list(commands), len(commands)):
            run = timed(commands[name], TIMEOUT, ENVIRONMENT, keep_output=True)
            if not run.good:
                sys.exit(f"bench_all_reduce.py: {' '.join(commands[name])} "
                         + ("hung" if run.hung else f"ended with {run.code}") + f"\n{run.output}")
            for line in run.output.splitlines():
                contender, size, microseconds = line.split()
                results.setdefault(int(size), {}).setdefault(contender, []).append(float(microseconds))
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[4, 1 << 20, 16 << 20])
    parser.add_argument("--no-peers", action="store_true", help="only the SDK and the limit")
    options = parser.parse_args()
    commands, absent = jobs(options.build, options.ranks, list(map(str, options.sizes)))
    if options.no_peers:
        commands, absent = {name: commands[name] for name in ("limit", "ddp")}, []
    print(f"## all_reduce of floats, {options.ranks} ranks on one node\n")
    print(f"{machine()}; commit {commit()}; {options.rounds} rounds, interleaved.")
    print(f"Not here: {', '.join(absent)} (scripts/setup.sh --peers installs it).\n" if absent else "")
    rows = []
    for size, contenders in sorted(measure(commands, options.rounds).items()):
        median = {name: statistics.median(values) for name, values in contenders.items()}
        for name, values in sorted(contenders.items(), key=lambda item: median[item[0]]):
            against_gloo = median["ddp/gloo"] / median[name] if "ddp/gloo" in median else float("nan")
            rows.append([size, name, spread(values), f"{median[name] / median['limit']:.2f}", f"{against_gloo:.2f}"])
    print(table(["bytes", "over", "µs, median of medians (min–max)", "× limit", "times as fast as gloo"], rows))
    print(f"\n({load()} at the end)\n")


if __name__ == "__main__":
    main()
