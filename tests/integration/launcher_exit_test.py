"""ddplaunch: how a job's end becomes an exit code, and what restarts do."""
import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from launcher_harness import Job, alive_with, children_of, is_alive, state_of, wait_until


class ExitCodes(unittest.TestCase):
    def test_success_is_0_and_prints_nothing_of_its_own(self):
        with Job("print=hello", "exit=0") as job:
            self.assertEqual(job.wait(), 0)
            self.assertEqual(job.stdout(), "hello\nhello\n")
            self.assertEqual(job.stderr(), "")
            self.assertEqual(job.left_in_temp(), [])

    def test_the_workers_own_code_comes_out(self):
        for code in (1, 7, 255):
            with self.subTest(code=code), Job("only-rank=1", f"exit={code}", "wait") as job:
                self.assertEqual(job.wait(), code)
                self.assertIn("rank 1", job.stderr())
                self.assertEqual(job.left_in_temp(), [])

    def test_a_signal_is_128_plus_its_number(self):
        for number in (signal.SIGSEGV, signal.SIGKILL):
            with self.subTest(signal=number), Job("only-rank=0", f"raise={int(number)}", "wait") as job:
                self.assertEqual(job.wait(), 128 + number)
                self.assertIn(number.name, job.stderr())

    def test_the_first_failure_wins(self):
        with Job("report={report}:ready", "only-rank=0", "exit-on=15:9", "only-rank=1", "wait-for={folder}/go",
                 "only-rank=1", "exit=7", "wait") as job:
            job.expect("ready", 2)
            job.touch("go")
            self.assertEqual(job.wait(), 7)
            self.assertIn("rank 1", job.stderr())
            self.assertNotIn("code 9", job.stderr())

    def test_a_program_that_is_not_there_is_127(self):
        for name in ("ddp-no-such-program", "/no/such/program"):
            with self.subTest(name=name), Job(program=[name]) as job:
                self.assertEqual(job.wait(), 127)
                self.assertIn(name, job.stderr())

    def test_a_program_that_cant_be_run_is_126(self):
        with Job(program=["/etc/passwd"]) as job:
            self.assertEqual(job.wait(), 126)
            self.assertIn("/etc/passwd", job.stderr())

    def test_a_wrong_command_line_is_2_and_one_line(self):
        with Job("exit=0", options=["--no-such-option"]) as job:
            self.assertEqual(job.wait(), 2)
            self.assertEqual(job.stderr().count("\n"), 1)

    def test_the_error_file_of_a_worker_reaches_the_verdict(self):
        with Job("only-rank=1", 'error-file={"message": {"message": "ValueError: no such thing"}}',
                 "only-rank=1", "exit=1", "wait") as job:
            self.assertEqual(job.wait(), 1)
            self.assertIn("ValueError: no such thing", job.stderr())

    def test_it_works_where_SIGCHLD_is_ignored_and_stdio_is_closed(self):
        def strip():
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            os.close(0)
        with Job("exit=5", preexec=strip) as job:
            self.assertEqual(job.wait(), 5)

    def test_it_can_be_process_1_of_a_container(self):
        wrapper = ["unshare", "--fork", "--pid", "--mount-proc", "--kill-child"]
        if subprocess.run([*wrapper, "true"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no PID namespace may be made here")
        with Job("daemon={report}", "exit=6", wrapper=wrapper) as job:
            self.assertEqual(job.wait(), 6)
            self.assertEqual(alive_with(job.mark), [])


class ExitBarrier(unittest.TestCase):
    def test_workers_that_end_one_after_the_other_never_fail_the_job(self):
        def run(_):
            with Job("sleep-at-most=50", "exit=0", workers=8) as job:
                return job.wait(), job.stderr()
        with concurrent.futures.ThreadPoolExecutor(4) as at_once:
            self.assertEqual(set(at_once.map(run, range(200))), {(0, "")})


# Waits for a death on the control page, asks the store about it too, and writes both down.
WITNESS = r"""
import mmap, os, signal, socket, struct, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
page = mmap.mmap(int(os.environ["DDP_SHM_FD"]), 8192)
if os.environ["RANK"] == "1":
    while not os.path.exists(sys.argv[1] + ".ready"):
        time.sleep(0.001)
    os._exit(3)
open(sys.argv[1] + ".ready", "w").close()
while struct.unpack_from("<I", page, 64)[0] != 2:
    time.sleep(0.001)
dead_rank, dead_pid, exit_code, dead_signal = struct.unpack_from("<4i", page, 68)
reason = page[148:148 + 512].split(b"\0")[0].decode()
store = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
key = b"\0ddp/1/death"
store.sendall(bytes.fromhex("00cef7853c") + struct.pack("<BQ", 3, len(key)) + key)
length = struct.unpack("<Q", store.recv(8, socket.MSG_WAITALL))[0]
notice = store.recv(length, socket.MSG_WAITALL).decode()
with open(sys.argv[1], "w") as out:
    print(dead_rank, dead_pid > 0, exit_code, dead_signal, reason, notice, sep="\n", file=out)
os.replace(sys.argv[1], sys.argv[1] + ".done")
"""


class Workers(unittest.TestCase):
    def test_survivors_are_told_of_a_death_before_they_are_stopped(self):
        with tempfile.TemporaryDirectory() as folder:
            told = os.path.join(folder, "told")
            with Job(program=[sys.executable, "-c", WITNESS, told], options=["--shutdown-timeout=20"]) as job:
                self.assertEqual(job.wait(), 3)
            with open(told + ".done") as text:
                rank, has_pid, code, number, reason, notice = text.read().splitlines()
            self.assertEqual([rank, has_pid, code, number], ["1", "True", "3", "0"])
            self.assertIn("exited with code 3", reason)
            self.assertEqual(json.loads(notice)["rank"], 1)
            self.assertEqual(json.loads(notice)["exit_code"], 3)

    def test_they_have_0_1_2_and_the_control_page(self):
        with Job("descriptors={report}", "exit=0", workers=3) as job:
            for rank, *descriptors in job.expect("descriptors", 3):
                self.assertEqual(descriptors, ["0", "1", "2", "3"], rank)
            self.assertEqual(job.wait(), 0)

    def test_they_lead_sessions_and_die_with_the_agent(self):
        with Job("session={report}", "exit=0") as job:
            for _, pid, session, death_signal in job.expect("session", 2):
                self.assertEqual(pid, session)
                self.assertEqual(death_signal, str(int(signal.SIGKILL)))
            self.assertEqual(job.wait(), 0)

    def test_200_of_them(self):
        start = time.monotonic()
        with Job("report={report}:ready", "wait-for={folder}/go", "exit=0", workers=200) as job:
            ranks = sorted(int(rank) for rank, _ in job.expect("ready", 200, 60))
            self.assertEqual(ranks, list(range(200)))
            job.touch("go")
            self.assertEqual(job.wait(), 0)
            self.assertEqual(job.stderr(), "")
            print(f"200 workers: {time.monotonic() - start:.2f} s")

    def test_one_that_closes_its_stdio_is_still_a_worker(self):
        with Job("close-stdio", "report={report}:ready", "wait-for={folder}/go", "only-rank=1", "exit=3",
                 "wait") as job:
            pids = [int(pid) for _, pid in job.expect("ready", 2)]
            self.assertTrue(all(is_alive(pid) for pid in pids))
            job.touch("go")
            self.assertEqual(job.wait(), 3)

    def test_one_that_has_ended_is_no_zombie_while_the_others_run(self):
        with Job("daemon={report}", "report={report}:ready", "only-rank=0", "exit=0",
                 "wait-for={folder}/go", "exit=0") as job:
            first = [int(pid) for rank, pid in job.expect("ready", 2) if rank == "0"][0]
            agent = job.agent()
            wait_until(lambda: state_of(first) is None, "rank 0 reaped")
            wait_until(lambda: "Z" not in [state_of(pid) for pid in children_of(agent)], "no zombie")
            daemon = int(job.expect("daemon0", 1)[0][0])
            os.kill(daemon, signal.SIGKILL)  # a stranger by now
            wait_until(lambda: state_of(daemon) is None, "stranger reaped")
            job.touch("go")
            self.assertEqual(job.wait(), 0)

    def test_what_they_leave_behind_is_gone_after_success(self):
        with Job("daemon={report}", "wait-for={folder}/go", "exit=0") as job:
            daemons = [int(job.expect(f"daemon{rank}", 1)[0][0]) for rank in (0, 1)]
            self.assertTrue(all(is_alive(pid) for pid in daemons))
            job.touch("go")
            self.assertEqual(job.wait(), 0)
            self.assertEqual(alive_with(job.mark), [])
            self.assertFalse(any(is_alive(pid) for pid in daemons))


class Restarts(unittest.TestCase):
    def test_two_failures_then_success_each_round_with_a_store_of_its_own(self):
        with Job("environment={folder}/env", "only-rank=1", "exit-in-restart=0:3", "only-rank=0",
                 "exit-in-restart=1:4", "report={report}:round", "only-rank=0", "exit-in-restart=2:0",
                 "only-rank=1", "exit-in-restart=2:0", "wait", options=["--max-restarts=2"]) as job:
            self.assertEqual(job.wait(), 0)
            ports, counts = set(), set()
            with open(os.path.join(job.folder, "env"), "rb") as text:
                for entry in text.read().split(b"\0"):
                    name, _, value = entry.partition(b"=")
                    if name == b"MASTER_PORT":
                        ports.add(value)
                    if name == b"TORCHELASTIC_RESTART_COUNT":
                        counts.add(int(value))
            self.assertEqual(counts, {0, 1, 2})
            self.assertEqual(len(ports), 3)
            self.assertEqual(alive_with(job.mark), [])

    def test_when_they_are_used_up_the_last_failure_counts(self):
        with Job("exit-in-restart=0:3", "exit-in-restart=1:4", workers=1, options=["--max-restarts=1"]) as job:
            self.assertEqual(job.wait(), 4)

    def test_what_a_failed_round_left_is_gone_before_the_next(self):
        with Job("daemon={report}", "exit-in-restart=0:3", "wait-for={folder}/go", workers=1,
                 options=["--max-restarts=1"]) as job:
            first, second = [int(pid) for pid, in job.expect("daemon0", 2)]
            self.assertFalse(is_alive(first))
            self.assertTrue(is_alive(second))
            job.touch("go")
            self.assertEqual(job.wait(), 0)
            self.assertFalse(is_alive(second))


if __name__ == "__main__":
    unittest.main(verbosity=2)
