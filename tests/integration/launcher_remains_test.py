"""What workers leave behind: heard out, told to end with them where they were told to, gone when the round is over."""
import json
import os
import signal
import subprocess
import sys
import time
import unittest

from launcher_harness import Job, alive_with, can_isolate, is_alive, wait_until

BASH = ["bash", "-c"]
LAST = "the error that matters"
# The last line goes through processes that outlive the shell.
SLOW_LOG = (f'exec > >(while read -r line; do echo "$line"; done | tee "$1/log") 2>&1; '
            f'for i in 1 2 3 4 5 6 7 8 9; do echo "line $i"; done; echo "{LAST}"; ')
SAVES = """
import os, signal, sys, time
folder = sys.argv[2]
def save(*_):
    open(folder + "/saving", "w").close()
    while not os.path.exists(folder + "/go"):
        time.sleep(0.01)
    open(folder + "/saved", "w").close()
    os._exit(0)
signal.signal(signal.SIGTERM, save)
open(folder + "/ready-" + os.environ["RANK"], "w").close()
while True:
    time.sleep(1)
"""
TIMEOUT = ["--shutdown-timeout=1000"]


class Remains(unittest.TestCase):
    options = []

    def job(self, script, *arguments, workers=1, options=(), **more):
        return Job(program=[*BASH, script, "{mark}", "{folder}", sys.executable, *arguments], workers=workers,
                   options=[*self.options, *options], **more)

    def exists(self, job, name):
        return os.path.exists(os.path.join(job.folder, name))

    def wait_for(self, job, name):
        wait_until(lambda: self.exists(job, name), name)

    def test_what_a_worker_pipes_its_output_through_is_heard_out(self):
        for code in (7, 0):
            for _ in range(5):
                with self.subTest(code=code), self.job(SLOW_LOG + f"exit {code}", stderr=subprocess.STDOUT,
                                                       options=["--report={folder}/verdict"]) as job:
                    self.assertEqual(job.wait(), code)
                    self.assertIn(f"line 9\n{LAST}\n", job.stdout())
                    with open(os.path.join(job.folder, "log")) as log:
                        self.assertTrue(log.read().endswith(LAST + "\n"))
                    if code == 0:
                        continue
                    with open(os.path.join(job.folder, "verdict")) as verdict:
                        self.assertEqual(json.load(verdict)["first_cause"]["last_output"].splitlines()[-1], LAST)

    def test_nobody_is_waited_for_who_says_nothing(self):
        with self.job('sleep 1000 & exit 3') as job:
            self.assertEqual(job.wait(), 3)
            self.assertEqual(alive_with(job.mark), [])

    def test_what_a_worker_left_that_ended_with_0_lives_while_others_run(self):
        script = ('if [ $RANK = 0 ]; then (while [ ! -e $1/pack ]; do sleep 0.01; done; : > $1/packed) & exit 0; fi; '
                  'while [ ! -e $1/go ]; do sleep 0.01; done')
        with self.job(script, workers=2, options=["--events={folder}/events"]) as job:
            def first_has_ended():
                with open(os.path.join(job.folder, "events")) as events:
                    return "worker_exited" in events.read()
            wait_until(lambda: self.exists(job, "events") and first_has_ended(), "the end of rank 0")
            job.touch("pack")
            self.wait_for(job, "packed")
            job.touch("go")
            self.assertEqual(job.wait(), 0)

    def check_saves(self, job, signal_sent):
        self.wait_for(job, "ready-0")
        job.process.send_signal(signal_sent)
        self.wait_for(job, "saving")
        job.touch("go")
        self.assertEqual(job.wait(), 128 + signal_sent)
        self.assertTrue(self.exists(job, "saved"))
        self.assertEqual(alive_with(job.mark), [])

    def test_what_runs_below_a_shell_has_the_grace_period_too(self):
        with self.job('"$2" -c "$3" "$0" "$1"; true', SAVES, options=TIMEOUT) as job:
            self.check_saves(job, signal.SIGTERM)

    def test_so_has_what_has_left_the_shells_process_group(self):
        with self.job('set -m; "$2" -c "$3" "$0" "$1"; true', SAVES, options=TIMEOUT) as job:
            self.check_saves(job, signal.SIGTERM)

    def test_what_the_shell_made_deaf_to_SIGINT_gets_SIGTERM(self):
        with self.job('"$2" -c "$3" "$0" "$1" & exec sleep 1000', SAVES, options=TIMEOUT) as job:
            self.check_saves(job, signal.SIGINT)

    def test_a_failure_elsewhere_gives_it_the_grace_period_too(self):
        script = ('if [ $RANK = 1 ]; then while [ ! -e $1/ready-0 ]; do sleep 0.01; done; exit 5; fi; '
                  '"$2" -c "$3" "$0" "$1"; true')
        with self.job(script, SAVES, workers=2, options=TIMEOUT) as job:
            self.wait_for(job, "saving")
            job.touch("go")
            self.assertEqual(job.wait(), 5)
            self.assertTrue(self.exists(job, "saved"))

    def test_after_the_grace_period_it_is_killed(self):
        with self.job('"$2" -c "$3" "$0" "$1"; true', SAVES, options=["--shutdown-timeout=1"]) as job:
            self.wait_for(job, "ready-0")
            start = time.monotonic()
            job.process.send_signal(signal.SIGTERM)
            self.assertEqual(job.wait(), 143)
            self.assertGreaterEqual(time.monotonic() - start, 1)
            self.assertIn("what workers left behind did not end within 1 s of SIGTERM: it is killed", job.stderr())
            self.assertFalse(self.exists(job, "saved"))
            self.assertEqual(alive_with(job.mark), [])

    def test_a_second_request_kills_it_at_once(self):
        with self.job('"$2" -c "$3" "$0" "$1"; true', SAVES, options=TIMEOUT) as job:
            self.wait_for(job, "ready-0")
            job.process.send_signal(signal.SIGTERM)
            self.wait_for(job, "saving")
            give_up = time.monotonic() + 20
            while job.process.poll() is None and time.monotonic() < give_up:
                job.process.send_signal(signal.SIGTERM)  # what comes too soon is no second request
                time.sleep(0.02)
            self.assertEqual(job.wait(), 143)
            self.assertFalse(self.exists(job, "saved"))
            self.assertEqual(alive_with(job.mark), [])

    def test_what_a_failed_worker_left_is_killed_without_one(self):
        with self.job('"$2" -c "$3" "$0" "$1" & while [ ! -e $1/ready-0 ]; do sleep 0.01; done; exit 6', SAVES,
                      options=TIMEOUT) as job:
            self.assertEqual(job.wait(), 6)
            self.assertFalse(self.exists(job, "saving"))
            self.assertEqual(alive_with(job.mark), [])

    def test_kill_9_of_our_own_spares_nothing(self):
        for agent_dies in (True, False):
            with self.subTest(agent_dies=agent_dies), \
                 self.job('"$2" -c "$3" "$0" "$1"; true', SAVES, options=TIMEOUT) as job:
                self.wait_for(job, "ready-0")
                agent = job.agent()
                job.process.send_signal(signal.SIGTERM)
                self.wait_for(job, "saving")
                os.kill(agent if agent_dies else job.guardian, signal.SIGKILL)
                job.process.wait(20)
                wait_until(lambda: not is_alive(agent) and alive_with(job.mark) == [], "everything gone")
                self.assertFalse(self.exists(job, "saved"))


@unittest.skipUnless(can_isolate(), "no PID namespace can be made here")
class RemainsInNamespace(Remains):
    options = ["--isolate=pid"]


if __name__ == "__main__":
    unittest.main(verbosity=2)
