"""An unmodified PyTorch DDP script under ddplaunch. Usage: test_pytorch_ddp.py DDPLAUNCH"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ddp_train.py")
# The interpreter that has the distribution's PyTorch; ddplaunch takes it from PYTHON_EXEC, as torchrun does.
PYTHON = next((p for p in ("/usr/bin/python3", sys.executable)
               if subprocess.run([p, "-c", "import torch.distributed"], capture_output=True).returncode == 0), None)


class PyTorchUnderDdplaunch(unittest.TestCase):
    def launch(self, options, script_options=()):
        with tempfile.TemporaryDirectory() as out:
            run = subprocess.run([DDPLAUNCH, *options, SCRIPT, "--out", out, *script_options], text=True,
                                 capture_output=True, timeout=300, env=dict(os.environ, PYTHON_EXEC=PYTHON))
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

    def test_two_ranks_end_with_equal_parameters(self):
        run, ranks, _ = self.launch(["--standalone", "--nproc_per_node=2"])
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assert_trained_equally(ranks, 0)

    def test_a_crash_of_rank_1_costs_one_restart_and_the_training_ends_the_same(self):
        run, ranks, crashed = self.launch(["--nproc-per-node=2", "--max-restarts=1"], ["--crash-rank", "1"])
        self.assertTrue(crashed, "rank 1 was meant to kill itself and did not\n" + run.stderr)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assert_trained_equally(ranks, 1)

    def test_without_a_restart_the_crash_is_the_exit_code_and_is_named(self):
        run, _, crashed = self.launch(["--nproc-per-node=2"], ["--crash-rank", "1"])
        self.assertTrue(crashed)
        self.assertEqual(run.returncode, 128 + 9, run.stderr)
        self.assertRegex(run.stderr, r"rank 1\b.*SIGKILL")


if __name__ == "__main__":
    DDPLAUNCH = os.path.abspath(sys.argv.pop(1))
    if PYTHON is None:
        print("skipped: no Python with torch.distributed here (Debian: python3-torch)")
        sys.exit(77)
    unittest.main(verbosity=2)
