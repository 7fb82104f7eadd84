"""The example programs under ddplaunch. Usage: test_examples.py BIN_DIR [--short] [unittest's own arguments]

--short is for sanitizers, under which the full training takes minutes: it trains less and asks for no accuracy.
"""

import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

LIMIT = 240  # seconds: far above what anything here takes


def alone(*command):
    """Runs a program of ours without a launcher."""
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    program = command[0] if os.path.dirname(command[0]) else shutil.which(command[0], path=BIN) or command[0]
    return subprocess.run([program, *command[1:]], capture_output=True, text=True, timeout=LIMIT, env=environment)


def ranks(count, *command, options=(), wrapper=()):
    """Runs a program of ours with so many ranks on this host."""
    return alone(*wrapper, os.path.join(BIN, "ddplaunch"), "--standalone", "--nproc_per_node=%d" % count, *options,
                 "--no-python", os.path.join(BIN, command[0]), *command[1:])


def read_bytes(path):
    with open(path, "rb") as f:
        return f.read()


def run_in_terminal(*command):
    """What a program of ours shows on a terminal, and its exit code."""
    master, slave = pty.openpty()
    process = subprocess.Popen([os.path.join(BIN, command[0]), *command[1:]], stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    shown = b""
    try:
        while True:
            part = os.read(master, 65536)
            if not part:
                break
            shown += part
    except OSError:  # Linux says EIO when the last writer has gone
        pass
    os.close(master)
    return shown.decode(), process.wait(timeout=LIMIT)


class TestCase(unittest.TestCase):
    def assert_ended(self, result, code=0):
        self.assertEqual(result.returncode, code, "\n--- stdout\n%s--- stderr\n%s" % (result.stdout, result.stderr))


class Hello(TestCase):
    def test_every_rank_speaks_once_and_the_sum_is_right(self):
        result = ranks(3, "hello")
        self.assert_ended(result)
        lines = result.stdout.splitlines()
        spoken = sorted(line for line in lines if line.startswith("rank "))
        self.assertEqual(len(spoken), 3, result.stdout)
        for rank, line in enumerate(spoken):
            self.assertRegex(line, r"^rank %d of 3 on \S+, local rank %d, backend shm$" % (rank, rank))
        self.assertEqual(lines[-1], "all_reduce of the ranks: 3, as it should be")
        self.assertEqual(len(lines), 4, result.stdout)

    def test_in_a_pid_namespace_of_their_own(self):
        if alone("unshare", "--pid", "--fork", "--mount-proc", "true").returncode != 0:
            self.skipTest("no PID namespaces here")
        result = ranks(2, "hello", options=["--isolate=pid"])
        self.assert_ended(result)
        self.assertEqual(result.stderr, "")
        self.assertEqual(result.stdout.count("backend shm"), 2, result.stdout)

    def test_in_a_pid_namespace_without_a_proc_of_its_own(self):
        user = ["setpriv", "--reuid=54324", "--regid=54324", "--clear-groups"]
        mask = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc/sys && exec "$0" "$@"', *user]
        if alone(*mask, os.path.join(BIN, "ddplaunch"), "--version").returncode != 0:
            self.skipTest("not root, or the build is in a private folder")
        result = ranks(2, "hello", options=["--isolate=pid"], wrapper=mask)
        self.assert_ended(result)
        self.assertIn("no /proc of their own", result.stderr)
        self.assertEqual(result.stdout.count("backend shm"), 2, result.stdout)

    def test_alone(self):
        result = alone("hello")
        self.assert_ended(result)
        self.assertRegex(result.stdout, r"^rank 0 of 1 on \S+, local rank 0, backend alone\n"
                                        r"all_reduce of the ranks: 0, as it should be\n$")


class Training(TestCase):
    """Training with the default settings: the stated accuracy, and the same model as without ranks."""

    def check_training(self, count):
        epochs, options = (2, ["--epochs=2", "--samples=1500"]) if SHORT_TRAINING else (16, [])
        with tempfile.TemporaryDirectory() as folder:
            together, one = os.path.join(folder, "together"), os.path.join(folder, "one")
            result = ranks(count, "train_mlp", *options, "--dump", together)
            self.assert_ended(result)
            self.check_progress(result.stdout, count, epochs)
            if not SHORT_TRAINING:
                self.check_accuracy(result.stdout.splitlines()[-1])
            self.assert_ended(alone("train_mlp", *options, "--accumulate", str(count), "--dump", one))
            parameters = read_bytes(together)
            self.assertEqual(len(parameters), 4 * (256 * 192 + 192 + 192 * 10 + 10))
            self.assertTrue(parameters == read_bytes(one), "%d ranks end with other bits than one process" % count)

    def check_progress(self, text, count, epochs):
        lines = text.splitlines()
        self.assertIn("world size %d, backend %s," % (count, "shm" if count > 1 else "alone"), lines[0])
        shown = re.findall(r"(?m)^mlp epoch +(\d+)/%d  loss \d\.\d{4}  test accuracy [\d.]+ %%$" % epochs, text)
        self.assertEqual([int(number) for number in shown], list(range(1, epochs + 1)), text)
        self.assertNotIn("\r", text)  # no progress bar in a pipe

    def check_accuracy(self, line):
        final = re.match(r"accuracy ([\d.]+) % \(stated: ([\d.]+) %\), linear model ([\d.]+) %, [\d.]+ s$", line)
        self.assertIsNotNone(final, line)
        accuracy, stated, linear = (float(number) for number in final.groups())
        self.assertEqual(stated, 95.0)
        self.assertGreaterEqual(accuracy, stated)
        self.assertLess(linear, 85)
        self.assertGreater(linear, 50)  # it was trained, too

    def test_1_rank(self):
        self.check_training(1)

    def test_2_ranks(self):
        self.check_training(2)

    def test_3_ranks(self):
        self.check_training(3)


class Behaviour(TestCase):
    FEW = ("--epochs=2", "--samples=600", "--hidden=16")

    def test_another_seed_gives_another_model(self):
        # Else the comparison of bits would prove nothing.
        with tempfile.TemporaryDirectory() as folder:
            models = set()
            for number, options in enumerate([(), ("--seed=2",), ("--accumulate=2",), ()]):
                path = os.path.join(folder, str(number))
                self.assert_ended(alone("train_mlp", *self.FEW, *options, "--dump", path))
                models.add(read_bytes(path))
            self.assertEqual(len(models), 3)

    def test_ranks_and_accumulated_parts_may_be_mixed(self):
        result = ranks(2, "train_mlp", *self.FEW, "--accumulate=3")
        self.assert_ended(result)
        self.assertIn("batch 120 = 6 x 20", result.stdout)

    def test_no_accuracy_is_promised_for_other_settings(self):
        result = alone("train_mlp", "--epochs=1", "--samples=100", "--hidden=2")
        self.assert_ended(result)
        self.assertIn("(stated: 95.0 % with the default settings)", result.stdout)

    def test_a_terminal_gets_a_progress_bar(self):
        shown, code = run_in_terminal("train_mlp", *self.FEW)
        self.assertEqual(code, 0, shown)
        self.assertIn("\rmlp epoch 1/2 [#", shown)
        self.assertIn("\rmlp epoch 2/2 [##############################] 100 %", shown)
        self.assertRegex(shown, r"\r +\rmlp epoch 2/2  loss ")

    def test_bad_input_is_one_line_and_exit_code_2(self):
        for arguments, text in [(["--epochs=0"], '--epochs wants a whole number from 1 to 10000, not "0"'),
                                (["--nonsense"], 'there is no option "--nonsense"; --help lists them'),
                                (["--lr"], "--lr wants a number from 0 to 10 after it")]:
            result = alone("train_mlp", *arguments)
            self.assert_ended(result, 2)
            self.assertEqual(result.stderr, "train_mlp: %s\n" % text)
            self.assertEqual(result.stdout, "")

    def test_bad_input_is_said_by_the_rank_that_is_seen_to_fail(self):
        result = ranks(2, "train_mlp", "--epochs=0")
        self.assert_ended(result, 2)
        self.assertIn('train_mlp: --epochs wants a whole number from 1 to 10000, not "0"', result.stderr.splitlines())

    def test_a_file_that_cannot_be_written_is_named(self):
        result = alone("train_mlp", *self.FEW, "--dump", "/nonexistent/model")
        self.assert_ended(result, 1)
        self.assertEqual(result.stderr, "train_mlp: cannot write the parameters to /nonexistent/model\n")


if __name__ == "__main__":
    BIN = os.path.abspath(sys.argv.pop(1))
    SHORT_TRAINING = "--short" in sys.argv
    if SHORT_TRAINING:
        sys.argv.remove("--short")
    unittest.main(verbosity=2)
