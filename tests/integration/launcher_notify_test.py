"""ddplaunch: who is told of a death, and --on-failure=notify, under which the others live on."""
import os
import select
import signal
import socket
import sys
import time
import unittest

from launcher_harness import Job, alive_with, is_alive, wait_until

SURVIVOR = os.path.join(os.path.dirname(__file__), "survivor.py")
PAGE_TELLS = "2"  # the control page's word for a death that can be read
NOTIFY = ["--on-failure=notify"]


class Survivors(Job):
    """Its workers are survivors; ranks are told how to die by order()."""

    def __init__(self, workers=3, options=NOTIFY):
        super().__init__(workers=workers, options=options, program=[sys.executable, SURVIVOR, "{mark}", "{report}"])

    def order(self, rank, how):
        path = f"{self.report}.{rank}"
        with open(path + ".new", "w") as file:
            file.write(how)
        os.rename(path + ".new", path)

    def end(self):
        self.touch("report.end")

    def all_lines(self):
        while select.select([self.fifo], [], [], 0)[0]:
            self.read_lines()
        return self.lines


class Told(unittest.TestCase):
    def test_page_and_store_tell_of_a_death_before_anyone_is_stopped(self):
        with Survivors(options=["--shutdown-timeout=1000"]) as job:
            job.expect("ready", 3)
            job.order(1, "exit 3")
            self.assertEqual(job.wait(), 3)
            self.assertEqual(sorted(job.expect("SIGTERM", 2)),
                             [[rank, PAGE_TELLS, "1", "3", "0", "1"] for rank in ("0", "2")])


class Notify(unittest.TestCase):
    def check_survival(self, job, how, code, number):
        job.expect("ready", 3)
        job.order(1, how)
        self.assertEqual(sorted(job.expect("page", 2)),
                         [[rank, PAGE_TELLS, "1", code, number, "1"] for rank in ("0", "2")])
        job.process.send_signal(signal.SIGUSR1)
        job.expect("SIGUSR1", 2)  # they are there
        job.end()
        self.assertEqual(job.wait(), 0)
        self.assertFalse([line for line in job.all_lines() if line[0] == "SIGTERM"])
        self.assertIn("the job succeeded, although rank 1 ", job.stderr())
        self.assertEqual(alive_with(job.mark), [])

    def test_the_others_survive_one_that_is_killed(self):
        with Survivors() as job:
            self.check_survival(job, "signal 9", "-1", "9")

    def test_the_others_survive_the_first_one_that_fails(self):
        with Survivors() as job:
            self.check_survival(job, "exit 3", "3", "0")

    def test_and_a_second_one_that_is_killed(self):
        with Survivors() as job:
            pids = dict(job.expect("ready", 3))
            job.order(1, "signal 9")
            job.expect("page", 2)
            job.order(2, "signal 11")
            wait_until(lambda: not is_alive(int(pids["2"])), "the second one has died")
            job.process.send_signal(signal.SIGUSR1)
            job.expect("SIGUSR1", 1)
            job.end()
            self.assertEqual(job.wait(), 0)
            self.assertIn("although rank 1 ", job.stderr())

    def test_a_survivor_that_fails_fails_the_job_with_the_first_cause(self):
        with Survivors() as job:
            job.expect("ready", 3)
            job.order(1, "signal 9")
            job.expect("page", 2)
            job.order(2, "exit 5")
            self.assertEqual(job.wait(), 137)
            self.assertIn("the job failed: rank 1 ", job.stderr())
            self.assertEqual([rank for rank, *_ in job.expect("SIGTERM", 1)], ["0"])

    def test_with_a_restart_left_all_start_again(self):
        with Survivors(options=[*NOTIFY, "--max-restarts=1"]) as job:
            job.expect("ready", 3)
            job.order(1, "signal 9")
            job.expect("page", 2)
            job.order(2, "exit 5")
            job.expect("ready", 6)
            job.end()
            self.assertEqual(job.wait(), 0)
            self.assertIn("restart 1 of 1: rank 1 ", job.stderr())
            self.assertNotIn("the job succeeded, although", job.stderr())

    def test_when_all_are_lost_the_first_cause_gives_the_code(self):
        with Survivors(workers=2) as job:
            job.expect("ready", 2)
            job.order(1, "signal 9")
            job.expect("page", 1)
            job.order(0, "signal 11")
            self.assertEqual(job.wait(), 137)
            self.assertIn("the job failed: rank 1 ", job.stderr())

    def test_an_interruption_ends_it_as_always(self):
        with Survivors() as job:
            job.expect("ready", 3)
            job.order(1, "signal 9")
            job.expect("page", 2)
            job.process.send_signal(signal.SIGTERM)
            self.assertEqual(job.wait(), 143)
            self.assertIn("the job was stopped", job.stderr())


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class TwoNodes(unittest.TestCase):
    def setUp(self):
        nodes = [*NOTIFY, "--nnodes=2", "--master-addr=127.0.0.1", f"--master-port={free_port()}"]
        self.first = Survivors(workers=2, options=[*nodes, "--node-rank=0"])
        self.addCleanup(self.first.__exit__)
        self.second = Survivors(workers=2, options=[*nodes, "--node-rank=1"])
        self.addCleanup(self.second.__exit__)
        self.first.expect("ready", 2)
        self.second.expect("ready", 2)

    def test_the_other_node_is_told_too(self):
        self.second.order(2, "signal 9")
        self.assertEqual([line[:5] for line in self.second.expect("page", 1)], [["3", PAGE_TELLS, "2", "-1", "9"]])
        self.assertEqual(sorted(self.first.expect("page", 2)),
                         [[rank, PAGE_TELLS, "2", "-1", "9", "1"] for rank in ("0", "1")])
        for job in (self.first, self.second):
            job.end()
        for job in (self.first, self.second):
            self.assertEqual(job.wait(), 0)
            self.assertIn("although rank 2 ", job.stderr())

    def check_loss(self, killed, headline):
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: not alive_with(self.second.mark), "the second node is gone")
        self.assertEqual(sorted(line[:3] for line in self.first.expect("page", 2)),
                         [[rank, PAGE_TELLS, "-1"] for rank in ("0", "1")])
        self.first.end()
        self.assertEqual(self.first.wait(), 0)
        self.assertIn(headline, self.first.stderr())

    def test_a_whole_node_may_be_lost(self):
        self.check_loss(self.second.agent(), "the job succeeded, although node ")

    def test_its_guardian_as_well(self):
        self.check_loss(self.second.guardian, "the job succeeded, although the launcher on ")

    def test_a_node_may_lose_all_of_its_workers(self):
        self.second.order(2, "signal 9")
        self.first.expect("page", 2)
        self.second.order(3, "signal 9")
        time.sleep(0.2)
        self.assertIsNone(self.second.process.poll())
        self.first.end()
        for job in (self.first, self.second):
            self.assertEqual(job.wait(), 0)

    def test_the_node_of_the_store_may_not(self):
        self.first.process.send_signal(signal.SIGKILL)
        self.assertNotEqual(self.second.wait(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
