"""ddplaunch: which death came first, and how it is told."""
import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

from launcher_harness import Job, alive_with, wait_until

LOST_PEER = "RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:6347"


def on_rank(rank, *actions):
    return [word for action in actions for word in (f"only-rank={rank}", action)]


def reported(job, name="verdict.json"):
    with open(os.path.join(job.folder, name)) as report:
        return json.load(report)


class CauseJob(Job):
    """A job with a report; `cause` is its first cause."""

    def __init__(self, *actions, options=(), **more):
        super().__init__(*actions, options=["--report={folder}/verdict.json", *options], **more)

    @property
    def cause(self):
        return reported(self)["first_cause"]


class FirstCause(unittest.TestCase):
    def check(self, job, exit_code, /, **cause):
        self.assertEqual(job.wait(), exit_code, job.stderr())
        told = job.cause
        self.assertEqual({name: told.get(name) for name in cause}, cause)
        _, _, verdict = job.stderr().partition("ddplaunch: the job failed: ")
        self.assertTrue(verdict.startswith(f"rank {told['rank']} (local rank {told['rank']}, pid {told['pid']}) on "))
        self.assertLessEqual(verdict.count("\n"), 25)
        self.assertEqual(alive_with(job.mark), [])

    def test_a_code_a_crash_and_a_kill(self):
        with CauseJob(*on_rank(1, "exit=7"), "wait") as job:
            self.check(job, 7, rank=1, exit_code=7, tied_ranks=[], lost_a_peer=False)
        with CauseJob(*on_rank(2, f"raise={int(signal.SIGSEGV)}"), "wait", workers=3) as job:
            self.check(job, 139, rank=2, signal=11, signal_name="SIGSEGV")
            self.assertEqual(reported(job)["workers_stopped"], 2)
        with CauseJob("report={report}:ready", "wait") as job:
            pid = [int(pid) for rank, pid in job.expect("ready", 2) if rank == "1"][0]
            os.kill(pid, signal.SIGKILL)
            self.check(job, 137, rank=1, pid=pid, signal=9, oom_killed=False)
            self.assertIn("SIGKILL was sent by another process", job.stderr())

    def test_one_that_the_kernel_killed_for_want_of_memory(self):
        with MemoryCgroup(256 << 20) as cgroup:
            hog = "import os, time\nif os.environ['RANK'] == '1': x = b'x' * (1 << 30)\ntime.sleep(60)"
            with CauseJob(program=[sys.executable, "-c", hog, "{mark}"], wrapper=cgroup.wrapper()) as job:
                self.check(job, 137, rank=1, signal=9, oom_killed=True)
                self.assertEqual(cgroup.kills(), 1)  # the fault did happen
                self.assertIn(f"in this round (cgroup {cgroup.name}): most likely this worker", job.stderr())
                self.assertGreater(job.cause["peak_memory"], 16 << 20)

    def test_one_that_ends_early_with_0_is_no_failure(self):
        with CauseJob("report={report}:ready", *on_rank(0, "exit=0"), "wait-for={folder}/go", "exit=0",
                      workers=3) as job:
            pids = {rank: int(pid) for rank, pid in job.expect("ready", 3)}
            wait_until(lambda: not os.path.exists(f"/proc/{pids['0']}"), "rank 0 gone")
            self.assertIsNone(job.process.poll())
            job.touch("go")
            self.assertEqual(job.wait(), 0)
            self.assertEqual(job.stderr(), "")
            report = reported(job)
            self.assertEqual([report["succeeded"], report["first_cause"]], [True, None])

    def test_one_that_ignores_sigterm_is_killed_and_not_blamed(self):
        with CauseJob(*on_rank(0, "ignore=15"), "report={report}:ready", "wait-for={folder}/go", *on_rank(1, "exit=3"),
                      "wait", options=["--shutdown-timeout=1"]) as job:
            job.expect("ready", 2)
            job.touch("go")
            self.check(job, 3, rank=1, exit_code=3)
            self.assertIn("is killed", job.stderr())
            self.assertEqual([reported(job)[name] for name in ("workers_stopped", "others_failed")], [1, []])

    def test_one_that_closed_its_stdio_and_one_that_left_a_daemon(self):
        with CauseJob(*on_rank(1, "close-stdio", "exit=3"), "wait") as job:
            self.check(job, 3, rank=1, exit_code=3)
        with CauseJob(*on_rank(0, "daemon={report}", "exit=4"), "wait") as job:
            self.check(job, 4, rank=0, exit_code=4)

    def test_all_8_die_in_the_same_moment(self):
        for _ in range(10):
            with CauseJob("report={report}:ready", "wait-for={folder}/go", *on_rank(5, "complain=ValueError: bad step",
                          "exit=7"), f"complain={LOST_PEER}", "exit=1", workers=8) as job:
                job.expect("ready", 8)
                job.touch("go")
                self.check(job, 7, rank=5, exit_code=7, lost_a_peer=False, last_output="ValueError: bad step")
                report = reported(job)
                others = sum(end["count"] for end in report["others_failed"]) + report["workers_stopped"]
                self.assertEqual(others, 7)

    def test_the_culprit_closes_its_connections_and_dies_a_second_later(self):
        with CauseJob("report={report}:ready", *on_rank(3, "hold={folder}/link", "wait-for={folder}/go",
                      "complain=Traceback (most recent call last):", 'complain=  File "train.py", line 7, in <module>',
                      "complain=IndexError: no such sample", "let-go", "wait-for={folder}/die", "linger=600", "exit=3"),
                      "until-closed={folder}/link", "report={report}:lost", f"complain={LOST_PEER}", "exit=1",
                      workers=4, prepare=lambda folder: os.mkfifo(os.path.join(folder, "link"))) as job:
            job.expect("ready", 4)
            job.touch("go")
            job.expect("lost", 3)
            start = time.monotonic()
            job.touch("die")
            self.check(job, 3, rank=3, exit_code=3, lost_a_peer=False)
            self.assertGreater(time.monotonic() - start, 0.5)  # it did die after them
            self.assertIn("    IndexError: no such sample\n", job.stderr())
            self.assertIn("3 others exited with code 1 on this node", job.stderr())

    def test_a_peer_that_hangs_is_waited_for_3_seconds(self):
        with CauseJob("report={report}:ready", "wait-for={folder}/go", *on_rank(1, f"complain={LOST_PEER}", "exit=1"),
                      "wait") as job:
            job.expect("ready", 2)
            start = time.monotonic()
            job.touch("go")
            self.check(job, 1, rank=1, exit_code=1, lost_a_peer=True)
            self.assertGreater(time.monotonic() - start, 2.9)
            self.assertIn("no worker is known to have failed before it", job.stderr())

    def test_error_files_tell_which_of_two_failed_first(self):
        def error_file(message, at):
            return 'error-file={"message": {"message": "%s", "extraInfo": {"timestamp": "%d"}}}' % (message, at)
        # Both dead before anybody looks: the agent stands still meanwhile.
        with CauseJob("report={report}:ready", "wait-for={folder}/go", *on_rank(0, error_file("KeyError: late", 1700)),
                      *on_rank(1, error_file("ValueError: early", 1650)), "exit=1") as job:
            pids = [int(pid) for _, pid in job.expect("ready", 2)]
            agent = job.agent()
            os.kill(agent, signal.SIGSTOP)
            job.touch("go")
            wait_until(lambda: all(is_zombie(pid) for pid in pids), "both dead")
            os.kill(agent, signal.SIGCONT)
            self.check(job, 1, rank=1, message="ValueError: early", tied_ranks=[])

    def test_found_dead_in_one_look_they_are_a_tie(self):
        with CauseJob("report={report}:ready", "wait-for={folder}/go", "exit=6", workers=3) as job:
            pids = [int(pid) for _, pid in job.expect("ready", 3)]
            agent = job.agent()
            os.kill(agent, signal.SIGSTOP)
            job.touch("go")
            wait_until(lambda: all(is_zombie(pid) for pid in pids), "all dead")
            os.kill(agent, signal.SIGCONT)
            self.assertEqual(job.wait(), 6)
            self.assertEqual(sorted([job.cause["rank"], *job.cause["tied_ranks"]]), [0, 1, 2])
            self.assertIn("were found dead in the same moment", job.stderr())


class Tracer:
    """A process that traces another one, as a debugger at its prompt does, and doesn't look at its death."""

    def __init__(self, pid):
        code = ("import ctypes, sys\nif ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), 0, 0) != 0: sys.exit(1)\n"
                "print('traces', flush=True)\nsys.stdin.read()")
        self.process = subprocess.Popen([sys.executable, "-S", "-c", code, str(pid)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        if self.process.stdout.readline() != "traces\n":
            self.__exit__()
            raise unittest.SkipTest("no process may be traced here")
        return self

    def __exit__(self, *_):
        self.process.communicate()


class Traced(unittest.TestCase):
    """The kernel doesn't show its parent a dead process that somebody else traces."""

    def check(self, exit_code, codes):
        actions = [action for rank, code in codes.items() for action in on_rank(rank, f"exit={code}")]
        with CauseJob("report={report}:ready", "wait-for={folder}/go", *actions, "wait") as job:
            pids = {rank: int(pid) for rank, pid in job.expect("ready", 2)}
            with Tracer(pids["0"]):
                agent = job.agent()
                start = time.monotonic()
                job.touch("go")
                wait_until(lambda: is_zombie(pids["0"]), "a dead worker that is held")
                self.assertEqual(job.wait(deadline_s=9), exit_code)  # below the 10 s after which one is given up
                print(f"noticed after {time.monotonic() - start:.2f} s")
                self.assertFalse(os.path.exists(f"/proc/{agent}"))
            return job.cause

    def test_its_death_is_seen_all_the_same(self):
        self.assertEqual(self.check(8, {0: 8})["rank"], 0)

    def test_its_success_too(self):
        self.assertIsNone(self.check(0, {0: 0, 1: 0}))


class Hints(unittest.TestCase):
    def hint(self, *program, options=(), exit_code=1):
        with CauseJob(program=program, workers=1, options=options) as job:
            self.assertEqual(job.wait(), exit_code, job.stderr())
            return re.search(r"^  hint: (.*)$", job.stderr(), re.M).group(1)

    def python(self, text, exit_code=1):
        return self.hint(sys.executable, "-c", text, exit_code=exit_code)

    def test_what_python_really_says(self):
        self.assertIn("has no module ddp_no_such_module: ", self.python("import ddp_no_such_module"))
        self.assertTrue(self.python("import ddp_no_such_module").startswith(sys.executable))
        self.assertIn("has no module ddp_no_such_module: ", self.hint(sys.executable, "-m", "ddp_no_such_module"))
        self.assertIn("a port that is taken", self.python(
            "import socket\na = socket.socket(); a.bind(('127.0.0.1', 0)); a.listen()\n"
            "socket.socket().bind(a.getsockname())"))
        self.assertIn("the library libddp-none.so.7 isn't found",
                      self.python("import ctypes\nctypes.CDLL('libddp-none.so.7')"))
        self.assertIn("ulimit -n", self.python(
            "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))\n"
            "files = [open('/dev/null') for _ in range(9)]"))
        self.assertIn("PYTHONFAULTHANDLER", self.python("import os\nos.abort()", exit_code=134))

    def test_a_script_whose_interpreter_is_missing_names_it(self):
        with tempfile.TemporaryDirectory() as folder:
            for first_line, said in (("#!/no/such/python3\n", "/no/such/python3"),
                                     ("#!/bin/sh\r\n", "carriage return")):
                script = os.path.join(folder, "train")
                with open(script, "w", newline="") as text:
                    text.write(first_line)
                os.chmod(script, 0o755)
                with self.subTest(first_line), Job(program=[script], workers=1) as job:
                    self.assertEqual(job.wait(), 126)
                    self.assertIn(said, job.stderr())
                    self.assertEqual(job.stderr().count("\n"), 2)


class Report(unittest.TestCase):
    def test_it_is_there_whole_or_not_at_all(self):
        with CauseJob("exit=0") as job:
            self.assertEqual(job.wait(), 0)
            self.assertEqual(sorted(name for name in os.listdir(job.folder) if "verdict" in name), ["verdict.json"])
            path = os.path.join(job.folder, "verdict.json")
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o666 & ~current_umask())
            self.assertEqual(reported(job)["exit_code"], 0)

    def test_it_replaces_an_older_one(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "verdict.json")
            with open(path, "w") as old:
                old.write("old")
            with Job("exit=3", options=[f"--report={path}"]) as job:
                self.assertEqual(job.wait(), 3)
            with open(path) as new:
                self.assertEqual(json.load(new)["exit_code"], 3)

    def test_an_older_one_is_gone_even_if_ddplaunch_is_killed(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "verdict.json")
            with open(path, "w") as old:
                old.write("old")
            with Job("report={report}:ready", "wait", options=[f"--report={path}"]) as job:
                job.expect("ready", 2)
                os.kill(job.agent(), signal.SIGKILL)
                self.assertEqual(job.wait(), 137)
            self.assertEqual(os.listdir(folder), [])

    def test_the_file_of_the_events_is_none_for_it(self):
        with tempfile.TemporaryDirectory() as folder:
            for events in ("one", "./one", "x/../one"):
                options = [f"--report={folder}/one", f"--events={folder}/{events}"]
                with self.subTest(events), Job(options=options) as job:
                    self.assertEqual(job.wait(), 2)
                    self.assertIn("the same file", job.stderr())

    def test_a_place_where_it_cant_be_written_is_told_before_anything_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            link = os.path.join(folder, "link")
            os.symlink(os.path.join(folder, "elsewhere"), link)
            fifo = os.path.join(folder, "fifo")
            os.mkfifo(fifo)
            places = [os.path.join(folder, "none", "x"), link, fifo, folder, "/proc/x", "/dev/null"]
            for place in places:
                with self.subTest(place), Job("report={report}:ready", options=[f"--report={place}"]) as job:
                    self.assertEqual(job.wait(), 2)
                    self.assertEqual(job.stderr().count("\n"), 1)
                    self.assertTrue(job.stderr().startswith("ddplaunch: --report: "), job.stderr())
                    self.assertRaises(AssertionError, job.expect, "ready", 1, 0)
            self.assertEqual(sorted(os.listdir(folder)), ["fifo", "link"])

    def test_a_place_that_is_lost_meanwhile_costs_a_warning(self):
        with Job("report={report}:ready", "wait-for={folder}/go", "exit=5", options=["--report={folder}/place/x"],
                 prepare=lambda folder: os.mkdir(os.path.join(folder, "place"))) as job:
            job.expect("ready", 2)
            os.rmdir(os.path.join(job.folder, "place"))
            job.touch("go")
            self.assertEqual(job.wait(), 5)
            warnings = [line for line in job.stderr().splitlines() if "could not be written" in line]
            self.assertEqual(len(warnings), 1)

    def test_the_loss_that_others_survived_is_in_it(self):
        with CauseJob(*on_rank(1, f"raise={int(signal.SIGKILL)}"), "exit=0", options=["--on-failure=notify"]) as job:
            self.assertEqual(job.wait(), 0)
            report = reported(job)
            self.assertEqual([report["succeeded"], report["first_cause"]["rank"]], [True, 1])
            self.assertEqual(report["others_failed"], [])
            self.assertNotIn("1 other", job.stderr())

    def test_an_interruption_is_in_it(self):
        with CauseJob("report={report}:ready", "wait") as job:
            job.expect("ready", 2)
            job.process.send_signal(signal.SIGTERM)
            self.assertEqual(job.wait(), 143)
            self.assertEqual(job.cause["kind"], "interrupted")


class MemoryCgroup:
    """A memory cgroup with a limit; skips the test where none can be made, and says why."""

    def __init__(self, limit):
        self.limit = limit

    def __enter__(self):
        version, parent = own_memory_cgroup()
        if version is None:
            raise unittest.SkipTest("no memory cgroup is mounted here")
        mount = "/sys/fs/cgroup/memory" if version == 1 else "/sys/fs/cgroup"
        self.name = os.path.join(parent, f"ddp_test_{os.getpid()}")
        self.path = mount + self.name
        try:
            os.mkdir(self.path)
        except OSError as error:
            raise unittest.SkipTest(f"no memory cgroup may be made here: {error}") from error
        try:
            limits = ["memory.limit_in_bytes"] if version == 1 else ["memory.max", "memory.swap.max"]
            for name, value in zip(limits, (self.limit, 0)):
                self.write(name, value)
        except OSError as error:
            os.rmdir(self.path)
            raise unittest.SkipTest(f"no memory cgroup may be limited here: {error}") from error
        self.counter = "memory.oom_control" if version == 1 else "memory.events"
        return self

    def __exit__(self, *_):
        def gone():
            try:
                os.rmdir(self.path)
                return True
            except OSError:
                return False
        wait_until(gone, "an empty cgroup")

    def write(self, name, value):
        with open(os.path.join(self.path, name), "w") as file:
            file.write(str(value))

    def wrapper(self):
        return ["sh", "-c", f"echo $$ > {self.path}/cgroup.procs && exec \"$@\"", "sh"]

    def kills(self):
        with open(os.path.join(self.path, self.counter)) as file:
            return int(re.search(r"^oom_kill (\d+)$", file.read(), re.M).group(1))


def own_memory_cgroup():
    with open("/proc/self/cgroup") as file:
        entries = [line.rstrip("\n").split(":", 2) for line in file]
    for _, controllers, path in entries:
        if "memory" in controllers.split(","):
            return 1, path
    for _, controllers, path in entries:
        if not controllers and os.path.exists(f"/sys/fs/cgroup{path}/memory.events"):
            return 2, path
    return None, None


def is_zombie(pid):
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[0] == b"Z"


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


if __name__ == "__main__":
    unittest.main(verbosity=2)
