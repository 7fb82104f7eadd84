"""Unmodified PyTorch programs meet under ddplaunch and talk over gloo. Usage: test_gloo_collectives.py DDPLAUNCH

One process a rank, each with its own import of PyTorch: the 16 ranks are what takes the time.
"""
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from torch_pythons import torch_pythons_or_skip  # noqa: E402

SCRIPT = os.path.join(HERE, "gloo_collectives.py")


class GlooCollectives(unittest.TestCase):
    def ranks_of(self, python, world):
        with tempfile.TemporaryDirectory() as out:
            begin = time.monotonic()
            run = subprocess.run([DDPLAUNCH, "--standalone", f"--nproc-per-node={world}", SCRIPT, out], text=True,
                                 capture_output=True, timeout=300, env=dict(os.environ, PYTHON_EXEC=python.path))
            print(f"{python}, {world} ranks: {time.monotonic() - begin:.1f} s", flush=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(len(os.listdir(out)), world, run.stderr)
            ranks = []
            for rank in range(world):
                with open(os.path.join(out, f"rank{rank}.json"), encoding="utf-8") as text:
                    ranks.append(json.load(text))
            return ranks

    def assert_all_collectives(self, got, world):
        rank = got["rank"]
        self.assertEqual(got["world"], world)
        self.assertEqual(got["sum"], [world * (world + 1) / 2] * 2)
        self.assertEqual(got["sum_of_half"], sum(range(rank % 2, world, 2)))
        self.assertEqual(got["broadcast"], (world - 1) * 10)
        self.assertEqual(got["gathered"], [2 * other for other in range(world)])
        self.assertFalse(got["initialized_after_destroy"])

    def assert_environment_is_as_promised(self, got, python):
        """The store is the launcher's: PyTorch connects to it, on every rank, and opens none."""
        self.assertFalse(got["hosts_store"])
        self.assertEqual(got["environment"]["TORCHELASTIC_USE_AGENT_STORE"], "True")
        self.assertEqual(got["environment"]["TORCHELASTIC_RESTART_COUNT"], "0")
        if python.version >= (2, 2):
            self.assertEqual(got["environment"]["TORCH_NCCL_ASYNC_ERROR_HANDLING"], "1")

    def check(self, world):
        for python in PYTHONS:
            with self.subTest(torch=python.text):
                for got in self.ranks_of(python, world):
                    self.assertTrue(got["torch"].startswith(python.text))
                    self.assert_all_collectives(got, world)
                    self.assert_environment_is_as_promised(got, python)

    def test_2_ranks(self):
        self.check(2)

    def test_4_ranks(self):
        self.check(4)

    def test_16_ranks(self):
        self.check(16)


if __name__ == "__main__":
    DDPLAUNCH = os.path.abspath(sys.argv.pop(1))
    PYTHONS = torch_pythons_or_skip()
    unittest.main(verbosity=2)
