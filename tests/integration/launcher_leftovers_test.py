"""ddplaunch: kill -9 of its own processes leaves nothing of the job alive. launcher_chaos.py chooses the moments."""
import os
import signal
import time
import unittest

from launcher_harness import Job, alive_with, is_alive, wait_until_gone

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


if __name__ == "__main__":
    unittest.main(verbosity=2)
