"""ddplaunch: kill -9 of its own processes leaves nothing of the job alive. launcher_chaos.py chooses the moments."""
import os
import signal
import tempfile
import time
import unittest

from launcher_harness import Job, alive_with, children_of, is_alive, state_of, wait_until, wait_until_gone

HARD_TO_FIND = ["ignore=15", "ignore=2", "ignore=1", "daemon={report}", "daemon={report}",
                "report={report}:ready", "wait"]


def kill_for_sure(pid):
    """SIGKILL through a pidfd, after a look that it is alive: so the fault is known to have taken place."""
    pidfd = os.pidfd_open(pid)
    try:
        assert is_alive(pid), f"{pid} has ended by itself"
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    finally:
        os.close(pidfd)


class Leftovers(unittest.TestCase):
    def check_agent_killed(self, job):
        kill_for_sure(job.agent())
        start = time.monotonic()
        self.assertEqual(job.wait(), 128 + signal.SIGKILL)
        self.assertIn("was killed by SIGKILL", job.stderr())
        wait_until_gone(job.mark)
        return time.monotonic() - start

    def check_guardian_killed(self, job):
        kill_for_sure(job.guardian)
        start = time.monotonic()
        self.assertEqual(job.process.wait(20), -signal.SIGKILL)
        wait_until_gone(job.mark)
        return time.monotonic() - start

    def ready_job(self):
        job = Job(*HARD_TO_FIND)
        try:
            job.expect("ready", 2)
            for rank in (0, 1):
                pids = [int(pid) for pid, in job.expect(f"daemon{rank}", 2)]
                self.assertTrue(all(is_alive(pid) for pid in pids))
            self.assertGreaterEqual(len(alive_with(job.mark)), 8)
        except AssertionError:
            job.__exit__()
            raise
        return job

    def test_kill_9_of_the_agent(self):
        with self.ready_job() as job:
            print(f"gone after {self.check_agent_killed(job):.3f} s")
            self.assertEqual(job.left_in_temp(), [])

    def test_kill_9_of_the_guardian(self):
        with self.ready_job() as job:
            print(f"gone after {self.check_guardian_killed(job):.3f} s")
            self.assertEqual(job.left_in_temp(), [])

    def test_a_stopped_agent_cleans_up_when_it_is_continued(self):
        with self.ready_job() as job:
            agent = job.agent()
            os.kill(agent, signal.SIGSTOP)
            kill_for_sure(job.guardian)
            self.assertEqual(job.process.wait(20), -signal.SIGKILL)
            self.assertTrue(is_alive(agent))
            os.kill(agent, signal.SIGCONT)
            wait_until_gone(job.mark)

    def test_a_process_that_hops_from_pid_to_pid(self):
        for check in (self.check_agent_killed, self.check_guardian_killed):
            with self.subTest(check=check.__name__), Job("hop={report}", "report={report}:ready", "wait") as job:
                job.expect("ready", 2)
                job.expect("hop", 2)
                print(f"gone after {check(job):.3f} s")


class Unkillable(unittest.TestCase):
    """A worker that even SIGKILL does not end; the freezer of cgroup v1 makes such ones."""

    def test_it_is_written_off_and_reaped_when_it_ends_after_all(self):
        try:
            freezer = tempfile.mkdtemp(prefix="ddp_test_", dir="/sys/fs/cgroup/freezer")
        except OSError:
            self.skipTest("no freezer of cgroup v1 here, or not root")
        try:
            self.check_written_off(freezer)
        finally:
            self.tell(freezer, "freezer.state", "THAWED")
            wait_until(lambda: self.remove(freezer), "an empty freezer")

    @staticmethod
    def tell(freezer, name, text):
        with open(os.path.join(freezer, name), "w") as file:
            file.write(text)

    @staticmethod
    def remove(freezer):
        try:
            os.rmdir(freezer)
        except OSError:
            return False
        return True

    def test_one_beside_a_worker_that_cannot_be_started(self):
        try:
            freezer = tempfile.mkdtemp(prefix="ddp_test_", dir="/sys/fs/cgroup/freezer")
        except OSError:
            self.skipTest("no freezer of cgroup v1 here, or not root")
        # When the first worker is frozen their file is taken away, and so one of the next finds none.
        script = (f'#!/bin/sh\n[ $RANK = 0 ] || exec sleep 1000\n'
                  f'(until grep -q FROZEN {freezer}/freezer.state; do :; done; mv "$0" "$0.gone") &\n'
                  f'echo $$ > {freezer}/cgroup.procs; echo FROZEN > {freezer}/freezer.state; sleep 1000\n')

        def prepare(folder):
            path = os.path.join(folder, "worker")
            with open(path, "w") as file:
                file.write(script)
            os.chmod(path, 0o755)
        try:
            with Job(program=["{folder}/worker", "{mark}"], workers=400, prepare=prepare) as job:
                self.assertEqual(job.wait(), 127)
                self.assertIn("cannot be killed", job.stderr())
        finally:
            self.tell(freezer, "freezer.state", "THAWED")
            wait_until(lambda: self.remove(freezer), "an empty freezer")

    def check_written_off(self, freezer):
        with Job("report={report}:ready", "only-rank=0", "wait-for={folder}/go", "only-rank=0", "exit-in-restart=0:3",
                 "wait-for={folder}/end", "exit=0",
                 options=["--max-restarts=1", "--restart-delay=0", "--shutdown-timeout=0"]) as job:
            pids = {rank: int(pid) for rank, pid in job.expect("ready", 2)}
            self.tell(freezer, "cgroup.procs", str(pids["1"]))
            self.tell(freezer, "freezer.state", "FROZEN")
            wait_until(lambda: state_of(pids["1"]) == "D", "a frozen worker")
            agent = job.agent()
            job.touch("go")
            job.expect("ready", 4)  # the next round runs; it took 10 s of patience
            self.assertIn("cannot be killed", job.stderr())
            self.assertEqual(state_of(pids["1"]), "D")
            self.tell(freezer, "freezer.state", "THAWED")
            wait_until(lambda: pids["1"] not in children_of(agent), "the worker reaped")
            job.touch("end")
            self.assertEqual(job.wait(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
