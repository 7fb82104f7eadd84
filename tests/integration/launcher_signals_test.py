"""ddplaunch: what a signal to it does to the job."""
import os
import random
import signal
import socket
import subprocess
import time
import unittest

from launcher_harness import Job, alive_with, is_alive, wait_until


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Signals(unittest.TestCase):
    def stop(self, number):
        with Job(f"report-on={number}:{{report}}:got", f"exit-on={number}:0", "report={report}:ready", "wait") as job:
            pids = [pid for _, pid in job.expect("ready", 2)]
            job.process.send_signal(number)
            got = [pid for _, pid in job.expect("got", 2)]
            self.assertEqual(sorted(got), sorted(pids))
            self.assertEqual(job.wait(), 128 + number)
            self.assertEqual(alive_with(job.mark), [])

    def test_SIGTERM_reaches_the_workers_and_is_143(self):
        self.stop(signal.SIGTERM)

    def test_SIGINT_reaches_the_workers_and_is_130(self):
        self.stop(signal.SIGINT)

    def test_SIGHUP_reaches_the_workers_and_is_129(self):
        self.stop(signal.SIGHUP)

    def test_under_nohup_SIGHUP_is_nothing(self):
        with Job("report={report}:ready", "wait", preexec=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as job:
            pids = [int(pid) for _, pid in job.expect("ready", 2)]
            job.process.send_signal(signal.SIGHUP)
            job.process.send_signal(signal.SIGTERM)
            self.assertEqual(job.wait(), 128 + signal.SIGTERM)
            self.assertFalse(any(is_alive(pid) for pid in pids))

    def test_what_was_ignored_at_the_start_is_ignored_by_workers_and_nothing_else(self):
        def ignore():
            for number in (signal.SIGHUP, signal.SIGUSR1):
                signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
        wanted = {"SigIgn": 1 << signal.SIGHUP - 1 | 1 << signal.SIGUSR1 - 1, "SigBlk": 1 << signal.SIGUSR2 - 1}
        # Python's child would get SIGPIPE and SIGXFSZ back, whatever we are started with.
        with Job(program=["cat", "/proc/self/status"], workers=1, preexec=ignore) as job:
            self.assertEqual(job.wait(), 0)
            lines = dict(line.split(":\t", 1) for line in job.stdout().splitlines() if ":\t" in line)
            self.assertEqual({name: int(lines[name], 16) for name in wanted}, wanted)

    def test_a_worker_that_ignores_it_is_killed_after_the_shutdown_timeout(self):
        with Job("ignore=15", "report={report}:ready", "wait", options=["--shutdown-timeout=1"]) as job:
            job.expect("ready", 2)
            start = time.monotonic()
            job.process.send_signal(signal.SIGTERM)
            self.assertEqual(job.wait(), 143)
            took = time.monotonic() - start
            print(f"stopped after {took:.2f} s")
            self.assertGreaterEqual(took, 1.0)
            self.assertLess(took, 10.0)
            self.assertEqual(alive_with(job.mark), [])

    def test_a_second_SIGINT_kills_at_once(self):
        with Job("report-on=2:{report}:got", "ignore=15", "report={report}:ready", "wait",
                 options=["--shutdown-timeout=1000"]) as job:
            job.expect("ready", 2)
            job.process.send_signal(signal.SIGINT)
            job.expect("got", 2)  # the first one has been seen, and nobody has left
            self.assertIsNone(job.process.poll())

            # One that follows within an instant counts as the first one's echo, so ask until it is heard.
            def ask_again():
                job.process.send_signal(signal.SIGINT)
                try:
                    return job.wait(0.1) is not None
                except subprocess.TimeoutExpired:
                    return False
            wait_until(ask_again, "killed at once")
            self.assertEqual(job.wait(), 130)
            self.assertIn("the job was stopped: the launcher on", job.stderr())  # the verdict is not lost
            self.assertEqual(alive_with(job.mark), [])

    def test_a_second_SIGINT_to_the_node_of_the_coordinator_holds_up_no_other(self):
        nodes = ["--nnodes=2", "--master-addr=127.0.0.1", f"--master-port={free_port()}", "--shutdown-timeout=1000"]
        with Job("report={report}:ready", "wait", options=[*nodes, "--node-rank=0"]) as first, \
             Job("report-on=15:{report}:got", "report={report}:ready", "wait-for={folder}/go", "exit=0",
                 options=[*nodes, "--node-rank=1"]) as other:
            workers = [int(pid) for _, pid in first.expect("ready", 2)]
            other.expect("ready", 2)
            first.process.send_signal(signal.SIGINT)
            other.expect("got", 2)
            wait_until(lambda: not any(map(is_alive, workers)), "the workers of node 0 are gone")
            time.sleep(0.3)  # long enough to be no echo
            first.process.send_signal(signal.SIGINT)
            time.sleep(1.5)
            self.assertIsNone(first.process.poll())  # the other still needs its coordinator
            other.touch("go")
            self.assertEqual(other.wait(8), 130)  # not when node 0 has given up on it
            self.assertEqual(first.wait(8), 130)
            self.assertIn("the job was stopped", other.stderr())

    def test_while_a_failed_round_is_being_stopped_it_ends_the_job(self):
        with Job("ignore=15", "report-on=2:{report}:got", "exit-on=2:0", "report={report}:ready", "only-rank=1",
                 "wait-for={folder}/go", "only-rank=1", "exit=3", "wait",
                 options=["--max-restarts=5", "--shutdown-timeout=1000"]) as job:
            pids = {rank: int(pid) for rank, pid in job.expect("ready", 2)}
            job.touch("go")
            wait_until(lambda: not is_alive(pids["1"]), "rank 1 has failed")
            job.process.send_signal(signal.SIGINT)
            job.expect("got", 1)
            self.assertEqual(job.wait(), 130)
            self.assertEqual(len(job.expect("ready", 2)), 2)  # nobody was started again
            self.assertNotIn("restart 1", job.stderr())
            self.assertEqual(alive_with(job.mark), [])

    def test_SIGUSR1_is_a_warning_that_the_job_survives(self):
        with Job("report-on=10:{report}:warned", "report-on=15:{report}:got", "exit-on=15:0", "report={report}:ready",
                 "wait", options=["--shutdown-timeout=1000"]) as job:
            pids = [pid for _, pid in job.expect("ready", 2)]
            job.process.send_signal(signal.SIGUSR1)
            self.assertEqual(sorted(pid for _, pid in job.expect("warned", 2)), sorted(pids))
            self.assertEqual(job.stderr(), "")
            job.process.send_signal(signal.SIGTERM)  # the first request to end
            self.assertEqual(sorted(pid for _, pid in job.expect("got", 2)), sorted(pids))
            self.assertEqual(job.wait(), 143)

    def test_listed_SIGUSR1_ends_the_job(self):
        with Job("report-on=10:{report}:got", "exit-on=10:0", "report={report}:ready", "wait",
                 options=["--signals-to-handle=SIGUSR1,SIGALRM"]) as job:
            job.expect("ready", 2)
            job.process.send_signal(signal.SIGUSR1)
            job.expect("got", 2)
            self.assertEqual(job.wait(), 128 + signal.SIGUSR1)

    def test_other_signals_that_kill_end_the_job_as_SIGTERM_does(self):
        for number in (signal.SIGALRM, signal.SIGXCPU, signal.SIGPWR, signal.SIGVTALRM, signal.SIGRTMIN + 1):
            with self.subTest(number), \
                 Job("report-on=15:{report}:got", "exit-on=15:0", "report={report}:ready", "wait") as job:
                job.expect("ready", 2)
                job.process.send_signal(number)
                job.expect("got", 2)
                self.assertEqual(job.wait(), 128 + number)
                self.assertEqual(alive_with(job.mark), [])

    def test_a_batch_system_that_signals_every_process_stops_the_job_once(self):
        with Job("report-on=15:{report}:got", "report={report}:ready", "wait-for={folder}/saved",
                 "report={report}:saved", options=["--shutdown-timeout=1000"]) as job:
            job.expect("ready", 2)
            for number in (signal.SIGCONT, signal.SIGTERM):
                for pid in alive_with(job.mark):
                    os.kill(pid, number)
            job.expect("got", 2)
            job.touch("saved")
            job.expect("saved", 2)  # they had the time
            self.assertEqual(job.wait(), 143)
            self.assertIn("the job was stopped: the launcher on", job.stderr())

    def test_a_worker_that_the_batch_system_reached_first_is_not_blamed(self):
        for _ in range(10):
            with Job("report={report}:ready", "wait", options=["--max-restarts=1"]) as job:
                job.expect("ready", 2)
                for pid in sorted(alive_with(job.mark), reverse=True):  # the workers before the agent
                    try:
                        os.kill(pid, signal.SIGTERM)
                    except ProcessLookupError:
                        pass  # its launcher was quicker
                self.assertEqual(job.wait(), 143)
                self.assertIn("the job was stopped: the launcher on", job.stderr())

    def test_SIGHUP_several_times_gives_workers_their_time(self):
        with Job("report-on=1:{report}:got", "report={report}:ready", "wait-for={folder}/saved",
                 "report={report}:saved", options=["--shutdown-timeout=1000"]) as job:
            job.expect("ready", 2)
            for _ in range(3):
                job.process.send_signal(signal.SIGHUP)
                time.sleep(0.15)  # longer than what counts as an echo
            job.expect("got", 2)
            job.touch("saved")
            job.expect("saved", 2)
            self.assertEqual(job.wait(), 129)

    @unittest.skipUnless(os.environ.get("SLOW_LOOKUP"), "the stand-in for a name server that is down was not built")
    def test_while_a_name_is_looked_up_it_is_not_waited_for(self):
        slow = ["env", "LD_PRELOAD=" + os.environ.get("SLOW_LOOKUP", "")]
        with Job("exit=0", wrapper=slow, options=["--nnodes=2", "--node-rank=1", "--master-addr=head.invalid"]) as job:
            wait_until(lambda: os.path.exists(os.path.join(job.temp, "lookup")), "a lookup")
            start = time.monotonic()
            job.process.send_signal(signal.SIGTERM)
            self.assertEqual(job.wait(), 143)
            self.assertLess(time.monotonic() - start, 20)  # the lookup takes 60 s

    def test_at_random_moments_of_its_life(self):
        """Before the fork, in the rendezvous, while workers run, are restarted, are being stopped."""
        seed = int(os.environ.get("DDP_SEED", random.SystemRandom().randrange(1 << 32)))
        trials = int(os.environ.get("DDP_TRIALS", "100"))
        print(f"DDP_SEED={seed} DDP_TRIALS={trials}")
        draw = random.Random(seed)
        slowest = 0.0
        for trial in range(trials):
            number = draw.choice([signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
            twice = number == signal.SIGINT and draw.random() < 0.5
            delay_s, pause_s = draw.uniform(0, 0.15), draw.uniform(0, 0.2)
            grace = draw.choice([0, 0, 0, 1])
            options = ["--max-restarts=100000", f"--shutdown-timeout={grace}"]
            if draw.random() < 0.2:
                options += ["--nnodes=2", "--node-rank=0", "--master-addr=127.0.0.1", f"--master-port={free_port()}"]
            stubborn = ["ignore=15"] if draw.random() < 0.3 else []
            what = f"{trial}: signal {number}, twice: {twice}, {delay_s:.4f} s, {pause_s:.4f} s, {options} {stubborn}"
            with self.subTest(what), \
                 Job(*stubborn, "daemon={report}", "only-rank=1", "exit=3", "wait", options=options) as job:
                time.sleep(delay_s)  # the moment of the signal, not a wait for anything
                start = time.monotonic()
                job.process.send_signal(number)
                if twice:
                    time.sleep(pause_s)
                    job.process.send_signal(number)
                self.assertEqual(job.wait(), 128 + number)
                slowest = max(slowest, time.monotonic() - start - grace)
                self.assertEqual(alive_with(job.mark), [])
        print(f"slowest of {trials}: gone {slowest:.3f} s after the grace period")
        self.assertLess(slowest, 10)

    def test_in_the_first_moments_it_is_never_lost(self):
        for delay_ms in range(0, 40, 2):
            with self.subTest(delay_ms=delay_ms), Job("wait") as job:
                time.sleep(delay_ms / 1000)
                job.process.send_signal(signal.SIGTERM)
                self.assertEqual(job.wait(), 143)
                self.assertEqual(alive_with(job.mark), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
