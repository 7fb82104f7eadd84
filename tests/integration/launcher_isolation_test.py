"""ddplaunch --isolate=pid: whatever dies, and however suddenly, nothing of the job outlives it."""
import os
import signal
import subprocess
import sys
import unittest

from launcher_harness import (Job, alive_with, can_isolate, can_run_as, children_of, comm_of, is_alive, state_of,
                              wait_until, wait_until_gone)

UNKNOWN_USER = 54323
HARD_TO_FIND = ["ignore=15", "ignore=2", "daemon={report}", "daemon={report}", "report={report}:ready", "wait"]

# /proc of a container that hides a part of it: the kernel then lets nobody without privileges mount another.
MASK_PROC = 'mount -t tmpfs none /proc/sys && exec setpriv --reuid=%d --regid=%d --clear-groups "$0" "$@"'
FORBID = 'echo 0 > /proc/sys/user/max_user_namespaces && echo 0 > /proc/sys/user/max_pid_namespaces && exec "$0" "$@"'


def outer_pids(mark):
    """By the number that the process has in its own namespace."""
    pids = {}
    for pid in alive_with(mark):
        try:
            with open(f"/proc/{pid}/status") as status:
                numbers = [line.split()[1:] for line in status if line.startswith("NSpid:")][0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if len(numbers) > 1:
            pids[int(numbers[-1])] = pid
    return pids


class Isolated(unittest.TestCase):
    user = None

    def job(self, *actions, options=(), **more):
        return Job(*actions, options=["--isolate=pid", *options], uid=self.user, **more)

    def ready_job(self, **more):
        job = self.job(*HARD_TO_FIND, **more)
        try:
            job.expect("ready", 2)
            for rank in (0, 1):
                job.expect(f"daemon{rank}", 2)
            self.assertGreaterEqual(len(alive_with(job.mark)), 9)  # two of ours, init, two workers, four daemons
        except AssertionError:
            job.__exit__()
            raise
        return job

    def test_a_launch_ends_as_without_it(self):
        for code in (0, 7):
            with self.subTest(code=code), self.job("daemon={report}", f"exit={code}") as job:
                self.assertEqual(job.wait(), code)
                wait_until_gone(job.mark)
                self.assertEqual(job.left_in_temp(), [])
                if code == 0:
                    self.assertEqual(job.stderr(), "")

    def test_workers_see_no_process_but_the_jobs(self):
        look = "ls /proc | grep -c '^[0-9]'; readlink /proc/self/ns/pid; pwd"
        with self.job(program=["sh", "-c", look], workers=1) as job:
            self.assertEqual(job.wait(), 0)
            seen, namespace, folder = job.stdout().split()
            self.assertLess(int(seen), 8)
            self.assertNotEqual(namespace, os.readlink("/proc/self/ns/pid"))
            self.assertEqual(folder, os.getcwd())

    def test_messages_have_the_numbers_of_the_outside(self):
        with self.job("report={report}:ready", "wait-for={folder}/go", "exit=7", workers=1) as job:
            (_, inner), = job.expect("ready", 1)
            outer = outer_pids(job.mark)[int(inner)]
            job.touch("go")
            self.assertEqual(job.wait(), 7)
            self.assertIn(f"pid {outer}", job.stderr())

    def test_guardian_and_agent_killed_at_the_same_moment(self):
        for first in ("agent", "guardian"):
            with self.subTest(first=first), self.ready_job() as job:
                agent = job.agent()
                victims = [agent, job.guardian] if first == "agent" else [job.guardian, agent]
                for pid in victims:
                    os.kill(pid, signal.SIGKILL)
                self.assertEqual(job.process.wait(20), -signal.SIGKILL)
                print(f"gone after {wait_until_gone(job.mark):.3f} s")

    def test_that_this_is_what_the_namespace_is_good_for(self):
        with Job(*HARD_TO_FIND, uid=self.user) as job:
            daemons = [int(pid) for rank in (0, 1) for pid, in job.expect(f"daemon{rank}", 2)]
            agent = job.agent()
            os.kill(job.guardian, signal.SIGSTOP)  # so that it can't clean up
            os.kill(agent, signal.SIGKILL)
            os.kill(job.guardian, signal.SIGKILL)
            self.assertEqual(job.process.wait(20), -signal.SIGKILL)
            wait_until(lambda: len(alive_with(job.mark)) == len(daemons), "all but the daemons gone")
            self.assertTrue(all(is_alive(pid) for pid in daemons))

    def test_each_alone(self):
        for victim in ("agent", "guardian"):
            with self.subTest(victim=victim), self.ready_job() as job:
                os.kill(job.agent() if victim == "agent" else job.guardian, signal.SIGKILL)
                self.assertEqual(job.process.wait(20), 137 if victim == "agent" else -signal.SIGKILL)
                wait_until_gone(job.mark)
                self.assertEqual(job.left_in_temp(), [])

    def test_what_a_round_left_behind_is_gone_before_the_next_one(self):
        with self.job("daemon={report}", "hop={report}", "report={report}:ready", "exit-in-restart=0:3",
                      "wait-for={folder}/go", options=["--max-restarts=1", "--restart-delay=0"], workers=1) as job:
            job.expect("ready", 2)
            inner = [int(pid) for pid, in job.expect("daemon0", 2)]
            alive = outer_pids(job.mark)
            self.assertNotIn(inner[0], alive)
            self.assertIn(inner[1], alive)
            job.touch("go")
            self.assertEqual(job.wait(), 0)
            wait_until_gone(job.mark)

    def test_a_signal_stops_everything(self):
        with self.ready_job(options=["--shutdown-timeout=0"]) as job:
            job.process.terminate()
            self.assertEqual(job.wait(), 143)
            wait_until_gone(job.mark)

    def test_a_program_that_is_not_there(self):
        with self.job(program=["/no/such/program"]) as job:
            self.assertEqual(job.wait(), 127)
            self.assertIn("there is no program", job.stderr())

    def test_an_init_that_somebody_kills_takes_all_with_it_and_is_named(self):
        with self.job("report={report}:ready", "wait", options=["--max-restarts=1", "--restart-delay=0"]) as job:
            job.expect("ready", 2)
            init = [pid for pid in children_of(job.agent()) if comm_of(pid) == "ddp-init"]
            self.assertEqual(len(init), 1)
            os.kill(init[0], signal.SIGKILL)
            self.assertEqual(job.wait(), 1)
            self.assertIn("(ddp-init) is gone", job.stderr())
            self.assertEqual(alive_with(job.mark), [])

    def test_without_proc_of_their_own_workers_run_and_one_line_says_so(self):
        user = self.user or UNKNOWN_USER
        hide = ["unshare", "--mount", "sh", "-c", MASK_PROC % (user, user)]
        if os.geteuid() != 0 or not can_run_as(user):
            self.skipTest("not root, or the build is in a private folder")
        with Job("daemon={report}", "report={report}:ready", "exit=0", options=["--isolate=pid"], wrapper=hide) as job:
            os.chmod(job.folder, 0o711)
            os.chmod(job.report, 0o666)
            job.expect("ready", 2)
            self.assertEqual(job.wait(), 0)
            self.assertRegex(job.stderr(), r"^ddplaunch: --isolate=pid: no /proc of their own .*\n$")
            wait_until_gone(job.mark)


@unittest.skipIf(not can_run_as(UNKNOWN_USER), "not root, or the build is in a private folder")
class IsolatedUser(Isolated):
    """The same without privileges: in a user namespace."""
    user = UNKNOWN_USER

    def test_it_is_the_same_user_with_no_more_rights(self):
        with self.job(program=["sh", "-c", "id -u; id -g; grep CapEff /proc/self/status"], workers=1) as job:
            self.assertEqual(job.wait(), 0)
            self.assertEqual(job.stdout().split(), [str(self.user), str(self.user), "CapEff:", "0" * 16])


class Forbidden(unittest.TestCase):
    def test_never_silently_without(self):
        forbid = ["unshare", "--user", "--map-root-user", "sh", "-c", FORBID]
        if subprocess.run([*forbid, "true"], capture_output=True).returncode != 0:
            self.skipTest("no user namespaces here")
        with Job("report={report}:ran", options=["--isolate=pid"], wrapper=forbid) as job:
            self.assertEqual(job.wait(), 1)
            self.assertRegex(job.stderr(), r"^ddplaunch: --isolate=pid: no PID namespace can be made here: .*\n$")
            self.assertEqual(alive_with(job.mark), [])


if __name__ == "__main__":
    if not can_isolate():
        print("skipped: no PID namespaces here")
        sys.exit(77)
    unittest.main(verbosity=2)
