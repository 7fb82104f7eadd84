"""An unmodified PyTorch DDP script under ddplaunch, with each PyTorch found. Usage: test_pytorch_ddp.py DDPLAUNCH"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from torch_pythons import torch_pythons_or_skip  # noqa: E402

SCRIPT = os.path.join(HERE, "ddp_train.py")


def with_each_pytorch(test):
    def run(self):
        for python in PYTHONS:
            with self.subTest(torch=python.text):
                test(self, python)
    return run


class PyTorchUnderDdplaunch(unittest.TestCase):
    def launch(self, python, options, script_options=()):
        with tempfile.TemporaryDirectory() as out:
            # As with torchrun, PYTHON_EXEC says which Python runs the script.
            run = subprocess.run([DDPLAUNCH, *options, SCRIPT, "--out", out, *script_options], text=True,
                                 capture_output=True, timeout=300, env=dict(os.environ, PYTHON_EXEC=python.path))
            ranks = []
            for name in sorted(os.listdir(out)):
                if name.endswith(".json"):
                    with open(os.path.join(out, name)) as f:
                        ranks.append(json.load(f))
            return run, ranks, os.path.exists(os.path.join(out, "crashed"))

    def assert_trained_equally(self, ranks, attempt):
        self.assertEqual([r["rank"] for r in ranks], [0, 1])
        self.assertEqual([r["world"] for r in ranks], [2, 2])
        self.assertEqual([r["attempt"] for r in ranks], [attempt, attempt])
        self.assertEqual([r["steps"] for r in ranks], [8, 8])  # 256 samples / 2 ranks / 32 a batch * 2 epochs
        self.assertEqual(ranks[0]["digest"], ranks[1]["digest"])
        self.assertLess(ranks[0]["last"], ranks[0]["first"])

    @with_each_pytorch
    def test_two_ranks_end_with_equal_parameters(self, python):
        run, ranks, _ = self.launch(python, ["--standalone", "--nproc_per_node=2"])
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assert_trained_equally(ranks, 0)

    @with_each_pytorch
    def test_a_crash_of_rank_1_costs_one_restart_and_the_training_ends_the_same(self, python):
        run, ranks, crashed = self.launch(python, ["--nproc-per-node=2", "--max-restarts=1"], ["--crash-rank", "1"])
        self.assertTrue(crashed, "rank 1 was meant to kill itself and did not\n" + run.stderr)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assert_trained_equally(ranks, 1)

    @with_each_pytorch
    def test_without_a_restart_the_crash_is_the_exit_code_and_is_named(self, python):
        run, _, crashed = self.launch(python, ["--nproc-per-node=2"], ["--crash-rank", "1"])
        self.assertTrue(crashed)
        self.assertEqual(run.returncode, 128 + 9, run.stderr)
        self.assertRegex(run.stderr, r"rank 1\b.*SIGKILL")


if __name__ == "__main__":
    DDPLAUNCH = os.path.abspath(sys.argv.pop(1))
    PYTHONS = torch_pythons_or_skip()
    unittest.main(verbosity=2)
