"""ddplaunch: 1,000 jobs whose workers end in random ways: right outcome, first cause and exit code, nothing left.

Who may be the first cause is worked out here from what the workers do, not from when: what dies at once and says
nothing of a peer may be it; else what dies later and says nothing; else what says that it lost a peer.
DDP_RANDOM_JOBS and DDP_RANDOM_SEED choose others.
"""
import concurrent.futures
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import uuid

from launcher_harness import DDPLAUNCH, SCRIPTED_WORKER, alive_with

JOBS = int(os.environ.get("DDP_RANDOM_JOBS", "1000"))
SEED = int(os.environ.get("DDP_RANDOM_SEED", "0")) or random.SystemRandom().getrandbits(32)
LOST_PEER = "complain=RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:6347"
TRACEBACK = ["complain=Traceback (most recent call last):", "complain=ValueError: bad step"]
WELL, AT_ONCE, LATE, CONSEQUENCE, WAITS = "well", "at once", "late", "consequence", "waits"


class Worker:
    """What one of them does: `kind` is what the oracle goes by, `code` what its end makes of the job."""

    def __init__(self, rng, kind):
        self.kind = kind
        self.actions = []
        self.code = 0
        if rng.random() < 0.1:
            self.actions.append("daemon=/dev/null")
        if rng.random() < 0.15:
            self.actions.append("ignore=15")
        if kind == WELL:
            self.actions.append("exit=0")
        elif kind == WAITS:
            self.actions.append("wait")
        elif kind == CONSEQUENCE:
            self.actions.append(LOST_PEER)
            if rng.random() < 0.3:
                self.die_by_signal(rng, [signal.SIGABRT])
            else:
                self.die_by_code(rng, [1, 2, 250])
        else:
            if kind == LATE:
                self.actions.append("linger=40")
            self.say_something(rng)
            if rng.random() < 0.4:
                self.die_by_signal(rng, [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT, signal.SIGFPE])
            else:
                self.die_by_code(rng, range(1, 120))

    def say_something(self, rng):
        words = rng.choice([[], TRACEBACK, ["complain=step 3"], ['error-file={"message": "ValueError: x"}'],
                            # It falls apart, and loses its peers on the way out.
                            [*TRACEBACK, LOST_PEER], ["close-stdio"]])
        self.actions += words

    def die_by_code(self, rng, codes):
        self.code = rng.choice(codes)
        self.actions.append(f"exit={self.code}")

    def die_by_signal(self, rng, signals):
        number = int(rng.choice(signals))
        self.code = 128 + number
        self.actions.append(f"raise={number}")


def draw(rng):
    """The workers of a job, by rank, and who of them may be blamed."""
    kinds = rng.choice([[WELL], [WELL, AT_ONCE], [AT_ONCE], [AT_ONCE, WAITS], [AT_ONCE, CONSEQUENCE],
                        [AT_ONCE, CONSEQUENCE, LATE, WAITS, WELL], [LATE, CONSEQUENCE],
                        [LATE, CONSEQUENCE, WELL, WAITS], [CONSEQUENCE, WELL], [LATE, WAITS], [LATE, AT_ONCE, WELL]])
    workers = [Worker(rng, rng.choice(kinds)) for _ in range(rng.randint(1, 8))]
    present = {worker.kind for worker in workers}
    if WAITS in present and not present & {AT_ONCE, LATE}:
        # Nothing would end it, or only the 3 s for which a cause is waited for.
        return draw(rng)
    for kind in (AT_ONCE, LATE, CONSEQUENCE):
        if kind in present:
            return workers, [rank for rank, worker in enumerate(workers) if worker.kind == kind]
    return workers, []


class RandomDeaths(unittest.TestCase):
    def setUp(self):
        self.mark = "mark-" + uuid.uuid4().hex
        self.folder = tempfile.mkdtemp(prefix="ddp_test_")
        self.addCleanup(shutil.rmtree, self.folder)
        self.addCleanup(self.kill_all)

    def kill_all(self):
        for pid in alive_with(self.mark):
            os.kill(pid, signal.SIGKILL)

    def run_job(self, number):
        workers, blamable = draw(random.Random(f"{SEED}/{number}"))
        report_path = os.path.join(self.folder, f"{number}.json")
        actions = [word for rank, worker in enumerate(workers) for action in worker.actions
                   for word in (f"only-rank={rank}", action)]
        command = [DDPLAUNCH, f"--nproc-per-node={len(workers)}", f"--report={report_path}", "--shutdown-timeout=0",
                   "--no-python", SCRIPTED_WORKER, self.mark, *actions]
        with open(os.path.join(self.folder, f"{number}.err"), "w+") as err:
            code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err,
                                  env={**os.environ, "TMPDIR": self.folder}, timeout=120).returncode
            err.seek(0)
            said = err.read()
        with open(report_path) as file:
            report = json.load(file)
        try:
            return self.judge(workers, blamable, code, report)
        except AssertionError as error:
            raise AssertionError(f"DDP_RANDOM_SEED={SEED}, job {number}: {error}\n{' '.join(command)}\n"
                                 f"{json.dumps(report)}\n{said}") from None

    def judge(self, workers, blamable, code, report):
        cause = report["first_cause"]
        self.assertEqual(report["exit_code"], code)
        if not blamable:
            self.assertEqual([code, cause], [0, None])
            return WELL
        blamed = workers[cause["rank"]]
        told = [cause["rank"], *cause["tied_ranks"]]
        # On a loaded machine what dies at once may be later than what lingers, or found with it.
        late = {rank for rank, worker in enumerate(workers) if worker.kind == LATE} - set(blamable)
        if workers[blamable[0]].kind != AT_ONCE:
            late = set()
        self.assertLessEqual(set(told), set(blamable) | late, "blamed")
        self.assertEqual(len(told), len(set(told)))
        self.assertEqual(code, blamed.code)
        self.assertEqual(cause["lost_a_peer"], blamed.kind == CONSEQUENCE)
        ended_well = sum(worker.kind == WELL for worker in workers)
        others = sum(end["count"] for end in report["others_failed"]) + report["workers_stopped"]
        self.assertLessEqual(others + 1, len(workers))
        self.assertGreaterEqual(others + 1 + ended_well, len(workers))
        if not late:
            return blamed.kind
        return "overtaken" if late & set(told) else "not overtaken"

    def test_each_ends_as_it_must(self):
        start = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            outcomes = list(pool.map(self.run_job, range(JOBS)))
        print(f"{JOBS} jobs in {time.monotonic() - start:.1f} s:",
              {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))})
        self.assertEqual(alive_with(self.mark), [])
        # Error files of failed jobs are kept, and nothing else is.
        left = [name for folder, _, names in os.walk(self.folder) for name in names
                if name != "error.json" and not re.fullmatch(r"\d+\.(json|err)|tsan\..*", name)]
        self.assertEqual(left, [])
        if JOBS >= 1000:
            for outcome in (WELL, AT_ONCE, LATE, CONSEQUENCE):
                self.assertGreater(outcomes.count(outcome), JOBS // 50, outcome)
            self.assertLess(outcomes.count("overtaken"), outcomes.count("not overtaken"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
