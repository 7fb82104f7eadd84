#!/usr/bin/env python3
"""Starts N × /bin/true on this node: under ddplaunch, in a posix_spawn loop (the limit), under the peers found here.

    bench_launch.py BUILD_FOLDER [--counts 8 64 512] [--rounds 7] [--no-peers]

All contenders run once in each round, in an order that changes, so that a drifting machine hits all alike; ratios to
the limit are taken within a round. Wall time is from the start of the launcher to its exit. Memory: the peak of the
largest process, and what all of the launcher's processes hold together (PSS) while N × sleep run.
"""
import argparse
import os
import random
import statistics
import subprocess
import sys
import time

import bench_peers
from bench_common import children_of, commit, kill_tree, load, machine, spread, table, timed

# Open MPI's mpirun hangs now and then with many short processes; the rest has two minutes.
TIMEOUTS = {bench_peers.OPEN_MPI: 15}
TIMEOUT = 120
HANGS_UNTIL_GIVEN_UP = 3  # then a contender is spared the other rounds of this N
PROGRAM = ["/bin/true"]
HELD = ["/bin/sleep", "600"]


def measure(commands, count, rounds):
    """name -> list of (Run, ratio to that round's limit)."""
    results = {name: [] for name in commands}
    for number in range(rounds + 1):
        order = list(commands)
        random.shuffle(order)
        order = [name for name in order if sum(run.hung for run, _ in results[name]) < HANGS_UNTIL_GIVEN_UP]
        runs = {name: timed(commands[name](count, PROGRAM), TIMEOUTS.get(name, TIMEOUT), bench_peers.ENVIRONMENT)
                for name in order}
        if number == 0:
            continue  # warms caches up
        for name, run in runs.items():
            results[name].append((run, run.wall / runs["limit"].wall))
    return results


def name_and_pss(pid):
    """A process's name and its share of memory in KiB; ("", 0) if it is gone."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as comm:
            name = comm.read().strip()
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
            return name, next(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return "", 0


def peak_memory(build, command):
    """Peak MiB of the largest process; None if it did not end well."""
    run = timed([os.path.join(build, "bench_bin", "peak_memory"), *command], TIMEOUT, bench_peers.ENVIRONMENT, True)
    return int(run.output) / 1024 if run.good else None


def held_memory(command, count):
    """MiB of all the launcher's processes while its workers sleep; None if they never all did."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env={**os.environ, **bench_peers.ENVIRONMENT})
    give_up = time.monotonic() + TIMEOUT
    try:
        while time.monotonic() < give_up and process.poll() is None:
            found = [name_and_pss(pid) for pid in children_of(process.pid)]
            if sum(name == "sleep" for name, _ in found) == count:
                return sum(size for name, size in found if name != "sleep") / 1024
            time.sleep(0.05)
        return None
    finally:
        kill_tree(process.pid)
        process.wait()


def rows_of(results, peak, held):
    for name, runs in results.items():
        good = [(run, ratio) for run, ratio in runs if run.good]
        hung = sum(run.hung for run, _ in runs)
        bad = len(runs) - len(good) - hung
        trouble = [f"{hung} hung" if hung else "", f"{bad} failed" if bad else ""]
        yield [name, spread([run.wall * 1000 for run, _ in good]),
               f"{statistics.median(ratio for _, ratio in good):.2f}" if good else "–",
               f"{statistics.median(run.cpu for run, _ in good):.3g}" if good else "–",
               f"{peak[name]:.1f}" if peak[name] else "–",
               f"{held[name]:.1f}" if held[name] else "–",
               ", ".join(filter(None, trouble)) or "–"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--counts", type=int, nargs="+", default=[8, 64, 512])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-peers", action="store_true", help="only ddplaunch and the limit")
    options = parser.parse_args()
    limit = os.path.join(options.build, "bench_bin", "spawn_limit")
    commands = {"limit": lambda count, program: [limit, str(count), *program],
                "ddplaunch": bench_peers.ddplaunch(options.build)}
    absent = []
    if not options.no_peers:
        for found, missing in (bench_peers.torchruns(), bench_peers.others()):
            commands.update(found)
            absent += missing
    print("## N × /bin/true on one node\n")
    print(f"{machine()}; commit {commit()}; {options.rounds} rounds, interleaved.")
    print(f"Not here: {', '.join(absent)} (scripts/setup.sh --peers installs them).\n" if absent else "")
    failed = False
    for count in options.counts:
        results = measure(commands, count, options.rounds)
        failed = failed or not all(run.good for name in ("limit", "ddplaunch") for run, _ in results[name])
        print(f"### N = {count} ({load()})\n")
        peak = {name: peak_memory(options.build, command(count, PROGRAM)) for name, command in commands.items()}
        held = {name: held_memory(command(count, HELD), count) for name, command in commands.items()}
        head = ["launcher", "ms, median (min–max)", "× limit", "CPU s", "peak MiB, largest", "MiB, all, held",
                "did not end well"]
        print(table(head, rows_of(results, peak, held)) + "\n", flush=True)
    sys.exit("bench_launch.py: limit or ddplaunch failed: these figures mean nothing" if failed else 0)


if __name__ == "__main__":
    main()
