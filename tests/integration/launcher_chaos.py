"""Kills ddplaunch's own processes with SIGKILL at random moments of a job's life, and looks for what is left.

    launcher_chaos.py [--trials N] [--at-once N] [--seed S] [--only TRIAL]

Each trial is drawn from the seed and its number, so that one can be repeated alone. It counts only if the victims were
alive when they were killed. Both at once is promised with --isolate=pid only. Exits with 1 if anything of a job lived
on for longer than 20 s, or a file stayed behind where somebody was left to remove it.
"""
import argparse
import collections
import contextlib
import multiprocessing
import os
import random
import signal
import sys
import time
import traceback

from launcher_harness import Job, can_isolate, children_of, is_alive, wait_until, wait_until_gone

PROMISED_S = 2.0
TRIES = 20  # for a moment in which the victim still lives

HARD_TO_FIND = ["daemon={report}", "daemon={report}", "report={report}:ready"]
STUBBORN = ["ignore=15", "ignore=2", "ignore=1"]


class Missed(Exception):
    """The victim had ended by itself."""


class Trial:
    """What is done to one job."""

    def __init__(self, seed, number, can_be_isolated):
        draw = random.Random(f"{seed} {number}")
        self.number = number
        self.moment = draw.choice(["beginning", "starting", "running", "stopping", "restarting"])
        self.isolated = can_be_isolated and draw.random() < 0.4
        single, both = [["agent"], ["guardian"]], [["agent", "guardian"], ["guardian", "agent"]]
        self.victims = draw.choice(single + both if self.isolated else single)
        self.stubborn = draw.random() < 0.5
        self.waits = [draw.random() for _ in range(TRIES)]

    def __str__(self):
        return f"trial {self.number}: {' and '.join(self.victims)} while {self.moment}" + \
               (", deaf to SIGTERM" if self.stubborn else "") + (", isolated" if self.isolated else "")

    def job(self):
        options = ["--shutdown-timeout=1"] + (["--isolate=pid"] if self.isolated else [])
        actions = HARD_TO_FIND + ["wait"]
        if self.moment == "restarting":
            options += ["--max-restarts=1000", "--restart-delay=0"]
            actions = HARD_TO_FIND + ["wait-for={folder}/go", "only-rank=0", "exit=3", "wait"]
        elif self.stubborn:
            actions = STUBBORN + actions
        return Job(*actions, options=options)

    def lead_up_to(self, job, wait):
        """Brings the job to the moment; `wait` from 0 to 1 says where in it."""
        longest_s = {"beginning": 0.004, "starting": 0.04, "running": 0.01, "restarting": 0.1,
                     "stopping": 0.2 if self.stubborn else 0.004}[self.moment]
        if self.moment in ("running", "stopping", "restarting"):
            job.expect("ready", 2)
        if self.moment == "stopping":
            os.kill(job.guardian, signal.SIGTERM)
        if self.moment == "restarting":
            job.touch("go")
        time.sleep(wait * longest_s)  # the moment of the fault, not a wait for anything

    def run(self):
        """Seconds until everything was gone, and how often the moment was missed."""
        for missed, wait in enumerate(self.waits):
            with contextlib.suppress(Missed), self.job() as job:
                self.lead_up_to(job, wait)
                self.kill(job)
                start = time.monotonic()
                self.check(job)
                return time.monotonic() - start, missed
        raise AssertionError(f"the victim had always ended before, in {TRIES} tries")

    def kill(self, job):
        children = []

        def has_forked():
            children[:] = children_of(job.guardian)
            return children or not is_alive(job.guardian)
        wait_until(has_forked, "an agent")
        if not children:
            raise Missed
        pids = {"agent": children[0], "guardian": job.guardian}
        with contextlib.ExitStack() as open_fds:
            pidfds = []
            for victim in self.victims:
                try:
                    pidfds.append(os.pidfd_open(pids[victim]))
                except ProcessLookupError:
                    raise Missed from None
                open_fds.callback(os.close, pidfds[-1])
            if not all(is_alive(pids[victim]) for victim in self.victims):
                raise Missed
            for pidfd in pidfds:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)

    def check(self, job):
        code = job.wait(deadline_s=20)
        if code != 128 + signal.SIGKILL:
            # The agent was a zombie already, or so close to its end that the guardian had its exit code.
            raise Missed if code in (3, 143) else AssertionError(f"exit code {code}; {job.stderr()}")
        wait_until_gone(job.mark)
        if self.victims == ["agent"]:
            assert "was killed by SIGKILL" in job.stderr(), job.stderr()
        assert len(self.victims) == 2 or job.left_in_temp() == [], job.left_in_temp()


def run_trial(argument):
    trial = Trial(*argument)
    try:
        return trial, *trial.run(), ""
    except Exception:  # pylint: disable=broad-except  # it is told to the parent
        return trial, 0.0, 0, traceback.format_exc()


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--trials", type=int, default=1000)
    options.add_argument("--at-once", type=int, default=max(2, os.cpu_count() or 1))
    options.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options.add_argument("--only", type=int)
    options = options.parse_args()
    numbers = range(options.trials) if options.only is None else [options.only]

    can_be_isolated = can_isolate()
    if not can_be_isolated:
        print("no PID namespaces here: both at once is not tried")
    todo = [(options.seed, number, can_be_isolated) for number in numbers]
    started = time.monotonic()
    seconds, failed, missed = [], 0, 0
    killed = collections.Counter()
    with multiprocessing.Pool(options.at_once) as pool:
        for trial, took_s, misses, error in pool.imap_unordered(run_trial, todo):
            missed += misses
            if error:
                failed += 1
                print(f"FAILED {trial}\n{error}repeat it: {sys.argv[0]} --seed {options.seed} --only {trial.number}",
                      flush=True)
                continue
            seconds.append(took_s)
            killed[f"{'+'.join(sorted(trial.victims))}, {trial.moment}{', isolated' if trial.isolated else ''}"] += 1
    late = sum(took_s > PROMISED_S for took_s in seconds)
    for what, count in sorted(killed.items()):
        print(f"{count:6} {what}")
    print(f"{len(seconds)} kills in {time.monotonic() - started:.0f} s, {options.at_once} jobs at once, "
          f"seed {options.seed}; {missed} more came too late for their victim; {failed} failed")
    print(f"everything gone after {max(seconds, default=0):.3f} s at most, {late} times "
          f"({late / max(len(seconds), 1):.1%}) after more than {PROMISED_S:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
