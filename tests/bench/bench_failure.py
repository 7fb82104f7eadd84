#!/usr/bin/env python3
"""One of N workers fails: how long until its successors run, and how long until the launcher is gone?

    bench_failure.py BUILD_FOLDER [--workers 8] [--rounds 7] [--no-peers]

Time counts from the worker's exit; beside ddplaunch run the least that a supervisor can do (the limit) and the peers
found here. All contenders run once in each round, in an order that changes; ratios are taken within a round.
"""
import argparse
import os
import random
import statistics
import sys
import tempfile

import bench_peers
from bench_common import commit, load, machine, spread, table, timed

TIMEOUT = 60
TIMEOUTS = {bench_peers.HYDRA: 5}  # doesn't end its other processes when one exits with a failure
FAILURES_UNTIL_GIVEN_UP = 2


def one_run(name, command, worker, count, restarts):
    """Milliseconds from the failure to (the first successor, the last one, the launcher's end), or None."""
    with tempfile.TemporaryDirectory() as folder:
        moments = os.path.join(folder, "moments")
        with open(moments, "w", encoding="utf-8"):
            pass
        arguments = [count, [worker, moments, str(count)]] + ([restarts] if restarts else [])
        run = timed(command(*arguments), TIMEOUTS.get(name, TIMEOUT), bench_peers.ENVIRONMENT)
        with open(moments, encoding="utf-8") as text:
            lines = [line.split() for line in text]
    failed = [int(at) for at, what, _, _ in lines if what == "fail"]
    again = [int(at) for at, what, _, generation in lines if what == "start" and int(generation) > 0]
    if run.hung or len(failed) != 1 or len(again) != (count if restarts else 0) or (run.code == 0) != bool(restarts):
        return None
    return [(at - failed[0]) / 1e6 for at in ((min(again), max(again)) if restarts else (run.end * 1e9,))]


def measure(contenders, worker, count, restarts, rounds):
    """name -> list of (milliseconds, ratios to this round's limit), or None for a run that did not go well."""
    results = {name: [] for name in contenders}
    for number in range(rounds + 1):
        order = [name for name in contenders if results[name].count(None) < FAILURES_UNTIL_GIVEN_UP]
        random.shuffle(order)
        runs = {name: one_run(name, contenders[name], worker, count, restarts) for name in order}
        if number == 0:
            continue  # warms caches up
        for name, times in runs.items():
            good = times and runs["limit"]
            results[name].append((times, [a / b for a, b in zip(times, runs["limit"])]) if good else None)
    return results


def rows_of(results, columns):
    for name, runs in results.items():
        good = [run for run in runs if run]
        row = [name]
        for column in range(columns):
            row += [spread([times[column] for times, _ in good]),
                    f"{statistics.median(ratios[column] for _, ratios in good):.2f}" if good else "–"]
        yield row + [f"{len(runs) - len(good)} of {len(runs)}" if len(good) < len(runs) else "–"]


def report(title, contenders, worker, count, restarts, rounds, heads):
    results = measure(contenders, worker, count, restarts, rounds)
    print(f"### {title} ({load()})\n")
    head = ["launcher"]
    for text in heads:
        head += [text, "× limit"]
    print(table(head + ["did not end well"], rows_of(results, len(heads))) + "\n", flush=True)
    return all(run for name in ("limit", "ddplaunch") for run in results[name])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-peers", action="store_true", help="only ddplaunch and the limit")
    options = parser.parse_args()
    worker = os.path.join(options.build, "bench_bin", "failing_worker")
    limit = os.path.join(options.build, "bench_bin", "supervise_limit")
    restarting = {"limit": lambda count, program, restarts=0: [limit, str(count), str(restarts), *program],
                  "ddplaunch": bench_peers.ddplaunch(options.build)}
    ending, absent = {}, []
    if not options.no_peers:
        torch, absent = bench_peers.torchruns()
        restarting.update(torch)
        ending, more = bench_peers.others()
        absent += more
    print("## One worker of several fails\n")
    print(f"{machine()}; commit {commit()}; {options.rounds} rounds, interleaved; milliseconds, median (min–max).")
    print(f"Not here: {', '.join(absent)} (scripts/setup.sh --peers).\n" if absent else "")
    good = report(f"N = {options.workers}, restarts left: until the next round's workers run", restarting, worker,
                  options.workers, 1, options.rounds, ["first worker", "last worker"])
    good &= report(f"N = {options.workers}, no restart left: until the launcher is gone", {**restarting, **ending},
                   worker, options.workers, 0, options.rounds, ["gone"])
    sys.exit(0 if good else "bench_failure.py: limit or ddplaunch failed: these figures mean nothing")


if __name__ == "__main__":
    main()
