#!/usr/bin/env python3
"""Store servers under load on this host: our ddprendezvous, PyTorch's own, and a bare Asio echo server (the limit).

    bench_store.py BUILD_FOLDER [--clients 1 8 32] [--ranks 512 1024 2048 4096 8192] [--seconds 0.5] [--rounds 7]
                                [--join-rounds 3] [--no-peers]

Requests: each client has one under way; values of 64 bytes; a set is followed by a count of keys, since it has no
answer of its own. Notify: from a set to the last of the waiting clients that is told. Join: so many connections at
once, each joins as PyTorch's clients do and meets the others at a barrier. All servers are measured once in each round,
in an order that changes; ratios are taken within a round, and above 1 they are in our favour. PyTorch's server is kept
from looking up its clients' names, or this machine's name server would be measured with it.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys

from bench_common import commit, load, machine, spread, table
from store_servers import LIMIT, OURS, servers

TIMEOUT = 300
NOTIFY_ROUNDS = 300


class Loads:
    """Puts load on servers, by the program that does so."""

    def __init__(self, build, seconds):
        self.program, self.seconds = os.path.join(build, "bench_bin", "store_load"), seconds

    def run(self, server, words):
        """What the load program says of `server`, and the CPU µs that a request cost it; None if it failed."""
        before = server.cpu()
        try:
            done = subprocess.run([self.program, str(server.port), server.dialect, *map(str, words)], text=True,
                                  capture_output=True, timeout=TIMEOUT, check=False)
        except subprocess.TimeoutExpired:
            return None
        if done.returncode != 0 or server.process.poll() is not None:
            print(f"{server.name}: {done.stderr.strip()}", file=sys.stderr)
            return None
        said = json.loads(done.stdout)
        said["cpu"] = (server.cpu() - before) * 1e6 / said["requests"]
        return said

    def requests(self, server, operation, clients):
        said = self.run(server, ["requests", operation, clients, self.seconds])
        return said and {**said, "speed": said["requests"] / said["seconds"]}

    def notify(self, server, waiters):
        said = self.run(server, ["notify", waiters, NOTIFY_ROUNDS])
        return said and {**said, "speed": 1 / said["microseconds"]}

    def join(self, server, ranks):
        said = self.run(server, ["join", ranks])
        return said and {**said, "speed": 1 / said["seconds"]}


def interleaved(targets, rounds, measure):
    """Server's name -> list of what `measure` gave in each round; None where it failed."""
    results = {server.name: [] for server in targets}
    for _ in range(rounds):
        for server in random.sample(targets, len(targets)):
            results[server.name].append(measure(server))
    return results


def ours_against(results, name):
    """Median over the rounds of our speed ÷ theirs, as text."""
    ratios = [ours["speed"] / theirs["speed"] for ours, theirs in zip(results[OURS], results[name]) if ours and theirs]
    return f"{statistics.median(ratios):.2f}" if ratios else "–"


def median_of(runs, value):
    good = [value(run) for run in runs if run]
    return f"{statistics.median(good):.3g}" if good else "–"


def rows(results, first, value):
    """One row of a table: `first` cells, then of each server the median, and our ratio to it; the CPU at the end."""
    cells = list(first)
    for name, runs in results.items():
        if name == OURS:
            cells.append(spread([value(run) for run in runs if run], 3))
        else:
            cells += [median_of(runs, value), ours_against(results, name)]
    return cells + [" / ".join(median_of(runs, lambda run: run["cpu"]) for runs in results.values())]


def head_of(targets, first):
    cells = list(first)
    for server in targets:
        cells += [server.name] if server.name == OURS else [server.name, "ours ÷ it"]
    return cells + ["server's CPU µs a request, in this order"]


def report_requests(targets, loads, options):
    lines = []
    for operation in ("set", "get", "add"):
        for clients in options.clients:
            results = interleaved(targets, options.rounds, lambda server, operation=operation, clients=clients:
                                  loads.requests(server, operation, clients))
            lines.append(rows(results, [operation, clients], lambda run: run["speed"] / 1000))
            yield results
    print(f"### Requests, thousands a second ({load()})\n")
    print(table(head_of(targets, ["request", "clients"]), lines) + "\n", flush=True)


def report_notify(targets, loads, options):
    lines = []
    for waiters in options.clients:
        results = interleaved(targets, options.rounds, lambda server, waiters=waiters: loads.notify(server, waiters))
        lines.append(rows(results, [waiters], lambda run: run["microseconds"]))
        yield results
    print(f"### From a set to the last waiting client that is told, microseconds ({load()})\n")
    print(table(head_of(targets, ["waiting"]), lines) + "\n", flush=True)


def report_join(targets, loads, options):
    lines = []
    targets = [server for server in targets if server.name != LIMIT]
    for ranks in options.ranks:
        results = interleaved(targets, options.join_rounds, lambda server, ranks=ranks: loads.join(server, ranks))
        resets = " / ".join(str(sum(run["resets"] for run in runs if run)) for runs in results.values())
        a_rank = median_of(results[OURS], lambda run, ranks=ranks: run["seconds"] * 1e6 / ranks)
        lines.append(rows(results, [ranks], lambda run: run["seconds"]) + [resets, a_rank])
        yield results
    print(f"### Join and barrier, seconds ({load()})\n")
    head = head_of(targets, ["ranks"]) + ["connections reset", "ours, µs a rank"]
    print(table(head, lines) + "\n", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 8, 32])
    parser.add_argument("--ranks", type=int, nargs="*", default=[512, 1024, 2048, 4096, 8192])
    parser.add_argument("--seconds", type=float, default=0.5, help="how long each load of requests lasts")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--join-rounds", type=int, default=3)
    parser.add_argument("--no-peers", action="store_true", help="only ddprendezvous and the limit")
    options = parser.parse_args()
    loads = Loads(options.build, options.seconds)
    good = True
    with servers(options.build, not options.no_peers) as (targets, absent):
        print("## Store servers\n")
        print(f"{machine()}; commit {commit()}; {options.rounds} rounds, interleaved.")
        print(f"Not here: {', '.join(absent)}.\n" if absent else "")
        for report in (report_requests, report_notify, report_join):
            for results in report(targets, loads, options):
                good = good and all(run for name in (OURS, LIMIT) for run in results.get(name, []))
                good = good and not any(run["resets"] for run in results[OURS] if "resets" in run)
    sys.exit(0 if good else "bench_store.py: ddprendezvous or the limit failed: these figures mean nothing")


if __name__ == "__main__":
    main()
