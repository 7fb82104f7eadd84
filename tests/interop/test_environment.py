"""What a worker finds in its environment under ddplaunch, beside torchrun.

Usage: test_environment.py DDPLAUNCH TORCHRUN

The differences that are meant are listed here by name, and in the README; any other fails.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

PYTHON = "/usr/bin/python3"

# Set by ddplaunch alone: its own names.
OURS = {"DDP_SHM_FD", "DDP_NODE_ID", "DDP_ROUND"}
# Names that changed with PyTorch's version: ddplaunch follows the newest.
RENAMED = {"NCCL_ASYNC_ERROR_HANDLING": "TORCH_NCCL_ASYNC_ERROR_HANDLING"}
# Those that PyTorch's version here doesn't set yet.
NEWER = {"TORCHELASTIC_SIGNALS_TO_HANDLE"}
# Same name, same kind of value, but not the same text: a port, a folder; and one node without a port gets a run id
# of its own, as the newest torchrun does (older ones call every job "none").
VALUE_RULES = {
    "MASTER_PORT": r"[0-9]{2,5}",
    "TORCHELASTIC_RUN_ID": r"none|[0-9a-f]{8,}",
    "TORCHELASTIC_ERROR_FILE": r"/.*/attempt_0/[01]/error\.json",
}


def environments(command):
    """Runs `command` with 2 workers that each write their environment to a file; gives the two as dicts."""
    with tempfile.TemporaryDirectory() as out:
        dump = ["/bin/sh", "-c", 'env -0 > "$0/$RANK"', out]
        # Without a locale Python sets LC_CTYPE for its children, which says nothing of torchrun.
        base = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8", "KEPT": "a=b c\n d",
                "RANK": "77", "WORLD_SIZE": "99", "MASTER_ADDR": "stale.example", "GROUP_RANK": "5"}
        run = subprocess.run([*command, *dump], env=base, capture_output=True, text=True, timeout=120)
        assert run.returncode == 0, run.stderr
        result = []
        for rank in range(2):
            with open(os.path.join(out, str(rank)), "rb") as f:
                entries = f.read().decode().split("\0")
            shells_own = ("PWD=", "OLDPWD=", "SHLVL=", "_=")
            result.append(dict(e.split("=", 1) for e in entries if e and not e.startswith(shells_own)))
        return result


class Environment(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        options = ["--nproc_per_node=2", "--max_restarts=3", "--role=trainer", "--no_python"]
        cls.ours = environments([DDPLAUNCH, *options])
        # A port of its own, since torchrun of this version always takes 29500 otherwise.
        cls.theirs = environments([PYTHON, TORCHRUN, *options, "--master_port=%d" % free_port()])

    def test_the_same_names(self):
        for ours, theirs in zip(self.ours, self.theirs):
            expected = {RENAMED.get(name, name) for name in theirs} | NEWER
            self.assertEqual(set(ours) - OURS, expected)

    def test_our_own_names_are_there_and_no_others(self):
        for ours in self.ours:
            self.assertEqual({n for n in ours if n.startswith("DDP_")}, OURS)
            self.assertEqual(ours["DDP_SHM_FD"], "3")
            self.assertRegex(ours["DDP_NODE_ID"], r"^[0-9a-f]{32}$")
            self.assertRegex(ours["DDP_ROUND"], r"^1:[0-9a-f]+$")

    def test_the_same_values(self):
        for ours, theirs in zip(self.ours, self.theirs):
            for name, value in theirs.items():
                mine = ours[RENAMED.get(name, name)]
                if name in VALUE_RULES:
                    self.assertRegex(mine, "^(?:%s)$" % VALUE_RULES[name], name)
                    self.assertRegex(value, "^(?:%s)$" % VALUE_RULES[name], name)
                else:
                    self.assertEqual(mine, value, name)

    def test_stale_values_of_an_outer_job_are_overwritten(self):
        self.assertEqual([e["RANK"] for e in self.ours], ["0", "1"])
        self.assertEqual(self.ours[0]["WORLD_SIZE"], "2")
        self.assertEqual(self.ours[0]["MASTER_ADDR"], "127.0.0.1")
        self.assertEqual(self.ours[0]["KEPT"], "a=b c\n d")

    def test_one_worker_keeps_omp_num_threads_unset_and_a_users_value_wins(self):
        text = subprocess.run([DDPLAUNCH, "--no-python", "env"], env={"PATH": "/usr/bin:/bin"}, capture_output=True,
                              text=True, timeout=60).stdout
        self.assertFalse(re.search(r"^OMP_NUM_THREADS=", text, re.M))
        text = subprocess.run([DDPLAUNCH, "--nproc-per-node=2", "--no-python", "env"], capture_output=True, text=True,
                              env={"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "3"}, timeout=60).stdout
        self.assertEqual(re.findall(r"^OMP_NUM_THREADS=(.*)$", text, re.M), ["3", "3"])


def free_port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    DDPLAUNCH = os.path.abspath(sys.argv.pop(1))
    TORCHRUN = os.path.abspath(sys.argv.pop(1))
    if subprocess.run([PYTHON, "-c", "import torch.distributed"], capture_output=True).returncode != 0:
        print("skipped: no python3-torch here")
        sys.exit(77)
    unittest.main(verbosity=2)
