"""Options that a user sees the effect of: dry run, ports in a range, what Python is given, the shell's completion."""
import os
import re
import socket
import subprocess
import tempfile
import unittest

from launcher_harness import DDPLAUNCH, Job


def launch(*arguments, **environment):
    return subprocess.run([DDPLAUNCH, *arguments], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **environment})


def free_range(count):
    """The first port of `count` neighbours that are free now."""
    while True:
        sockets = []
        try:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                first = probe.getsockname()[1]
            for port in range(first, first + count):
                sockets.append(socket.socket())
                sockets[-1].bind(("127.0.0.1", port))
            return first
        except (OSError, OverflowError):
            continue
        finally:
            for each in sockets:
                each.close()


class Occupied:
    """Listens on ports of the loopback, so that nobody else can."""

    def __init__(self, ports):
        self.ports = ports

    def __enter__(self):
        self.sockets = []
        for port in self.ports:
            self.sockets.append(socket.socket())
            self.sockets[-1].bind(("127.0.0.1", port))
            self.sockets[-1].listen()

    def __exit__(self, *_):
        for each in self.sockets:
            each.close()


class DryRun(unittest.TestCase):
    def test_it_starts_nothing_and_writes_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            ran = os.path.join(folder, "ran")
            files = [f"--events={folder}/events", f"--report={folder}/report"]
            shown = launch("--dry-run", "--nproc-per-node=2", *files, "--no-python", "touch", ran)
            self.assertEqual((shown.returncode, shown.stderr), (0, ""))
            self.assertIn("command: touch " + ran, shown.stdout)
            self.assertEqual(os.listdir(folder), [])

    def test_it_shows_what_workers_then_find(self):
        options = ["--nproc-per-node=2", "--role=trainer", "--max-restarts=3", "--rdzv-id=job"]
        shown = launch("--dry-run", *options, "--no-python", "env", PET_MASTER_ADDR="127.0.0.2")
        shared, *workers = re.split(r"\nRank \d.*\n", shown.stdout)
        program = ["--no-python", "sh", "-c", 'if [ "$RANK" = 1 ]; then env; fi']
        ran = launch(*options, *program, PET_MASTER_ADDR="127.0.0.2")
        found = dict(line.split("=", 1) for line in ran.stdout.splitlines() if "=" in line)
        told = dict(re.findall(r"^  ([A-Z_]+)=(.*?)  ", shared + "\n" + workers[1], re.M))
        self.assertGreater(len(told), 18)
        for name, value in told.items():
            if not value.startswith("<"):
                self.assertEqual(found[name], value, name)
            self.assertIn(name, found)
        self.assertRegex(shared, r"MASTER_ADDR=127.0.0.2 +PET_MASTER_ADDR")

    def test_mistakes_are_found_there_too(self):
        self.assertEqual(launch("--dry-run", "--node-rank=3", "true").returncode, 2)


class PortRange(unittest.TestCase):
    def port_with(self, first, last, *options):
        options = [f"--port-range={first}-{last}", *options]
        with Job("environment={folder}/env", options=options, workers=1) as job:
            self.assertEqual(job.wait(), 0, job.stderr())
            with open(os.path.join(job.folder, "env"), encoding="utf-8") as environment:
                return int(re.search(r"\bMASTER_PORT=(\d+)\b", environment.read())[1])

    def test_a_fresh_port_is_in_it(self):
        first = free_range(4)
        self.assertTrue(first <= self.port_with(first, first + 3) <= first + 3)

    def test_the_free_one_is_found(self):
        first = free_range(4)
        with Occupied([first, first + 1, first + 3]):
            self.assertEqual(self.port_with(first, first + 3), first + 2)

    def test_none_left_is_told(self):
        first = free_range(2)
        with Occupied([first, first + 1]), Job("exit=0", options=[f"--port-range={first}-{first + 1}"]) as job:
            self.assertEqual(job.wait(), 1)
            self.assertIn(f"cannot listen on any port of 127.0.0.1 from {first} to {first + 1}: all are in use",
                          job.stderr())

    def test_several_nodes_meet_at_its_first_port(self):
        first = free_range(2)
        options = ["--nnodes=2", f"--port-range={first}-{first + 1}", "--no-python", "printenv", "MASTER_PORT"]
        nodes = [subprocess.Popen([DDPLAUNCH, f"--node-rank={rank}", *options], stdout=subprocess.PIPE, text=True)
                 for rank in range(2)]
        for node in nodes:
            self.assertEqual(node.communicate(timeout=60)[0], f"{first}\n")
            self.assertEqual(node.returncode, 0)


class WhatPythonIsGiven(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.script = os.path.join(self.folder.name, "__main__.py")
        with open(self.script, "w", encoding="utf-8") as script:
            script.write("import sys\nprint(*sys.argv[1:])\n")

    def test_run_path_takes_a_folder(self):
        ran = launch("--run-path", self.folder.name, "a")
        self.assertEqual((ran.returncode, ran.stdout), (0, "a\n"))

    def test_run_path_names_what_is_missing(self):
        ran = launch("--run-path", os.path.join(self.folder.name, "nowhere"))
        self.assertEqual(ran.returncode, 127)
        self.assertIn("nowhere", ran.stderr)

    def test_the_local_rank_comes_before_the_programs_arguments(self):
        for option, spelling in (("--pass-local-rank", "--local-rank"),
                                 ("--pass-local-rank=local_rank", "--local_rank")):
            ran = launch("--nproc-per-node=2", option, self.script, "a", "b")
            self.assertEqual(sorted(ran.stdout.splitlines()), [f"{spelling}=0 a b", f"{spelling}=1 a b"])
        self.assertEqual(launch("--use-env", self.script, "a").stdout, "a\n")


@unittest.skipIf(subprocess.run(["bash", "-c", "type complete mapfile"], capture_output=True).returncode,
                 "no bash with completion")
class Completion(unittest.TestCase):
    def complete(self, *words, at=None):
        """What is offered for the last of `words`; bash takes '=' for a word of its own."""
        script = ("compopt() { echo \"compopt $*\"; }; eval \"$(\"$0\" --print-completion bash)\"; "
                  "COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _ddplaunch; printf '%s\\n' \"${COMPREPLY[@]}\"")
        run = subprocess.run(["bash", "-c", script, DDPLAUNCH, "ddplaunch", *words], capture_output=True, text=True)
        self.assertEqual(run.stderr, "")
        return [line for line in run.stdout.splitlines() if line]

    def test_names(self):
        self.assertEqual(self.complete("--mas"), ["--master-addr", "--master-port"])
        self.assertIn("--nproc-per-node", self.complete("--"))

    def test_values(self):
        self.assertEqual(self.complete("--on-failure", ""), ["restart", "notify"])
        self.assertEqual(self.complete("--on-failure", "=", "n"), ["notify"])
        self.assertEqual(self.complete("--on_failure", "=", "n"), ["notify"])
        self.assertEqual(self.complete("--isolate", "="), ["none", "pid"])
        self.assertEqual(self.complete("--pass-local-rank", "=", ""), ["local-rank", "local_rank"])

    def test_files_for_the_program_and_behind_it(self):
        for words in ([""], ["--standalone", ""], ["--nnodes", "1", "./pro"], ["--nnodes", "=", "1", ""],
                      ["./program", "--mas"], ["--nnodes", "1", "./program", ""], ["--report", "x"]):
            self.assertEqual(self.complete(*words), ["compopt -o default"], words)


if __name__ == "__main__":
    unittest.main()
