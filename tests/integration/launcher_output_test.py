"""What workers write passes through ddplaunch: unchanged, in order, to the last byte, and no reader holds up a job."""
import contextlib
import os
import re
import resource
import select
import signal
import subprocess
import time
import unittest

from launcher_harness import Job, alive_with, children_of, comm_of, is_alive, wait_until

BOTH = subprocess.STDOUT
ENDS = "head -c 900000 /dev/zero; touch $1/wrote; exit 3"  # less than is held for a reader
UNTIL_GO = "while [ ! -e $1/go ]; do sleep 0.01; done; "


class Unchanged(unittest.TestCase):
    """Bytes come as they were written."""

    def test_any_bytes_in_any_amount(self):
        for size in (0, 1, 65536, 10_000_000):
            for stderr, script in ((None, "cat $1/data >&2"), (BOTH, "cat $1/data")):
                with self.subTest(size=size, script=script), \
                     Job(script=UNTIL_GO + script, workers=1, stderr=stderr) as job:
                    data = os.urandom(size)  # NULs, no UTF-8, no newline at the end
                    with open(os.path.join(job.folder, "data"), "wb") as file:
                        file.write(data)
                    job.touch("go")
                    self.assertEqual(job.wait(), 0)
                    with open(job.out_path if stderr else job.err_path, "rb") as file:
                        self.assertEqual(file.read(), data)

    def test_one_file_for_both_keeps_a_workers_order(self):
        lines = 'i=0; while [ $i -lt 500 ]; do echo "$RANK out $i"; echo "$RANK err $i" >&2; i=$((i+1)); done'
        with Job(script=lines, workers=2, stderr=BOTH) as job:
            self.assertEqual(job.wait(), 0)
            written = job.stdout().splitlines()
            self.assertEqual(len(written), 2000)
            for rank in "01":
                self.assertEqual([line for line in written if line[0] == rank],
                                 [f"{rank} {way} {i}" for i in range(500) for way in ("out", "err")])

    def test_an_unfinished_line_is_not_glued_to_ours(self):
        with Job(script="printf 'half a line'; exit 3", workers=1, stderr=BOTH) as job:
            self.assertEqual(job.wait(), 3)
            self.assertTrue(job.stdout().startswith("half a line\nddplaunch: the job failed"), job.stdout())

    def test_two_hundred_workers_are_all_heard(self):
        with Job(script='echo "out $RANK"; echo "err $RANK" >&2', workers=200, stderr=BOTH) as job:
            self.assertEqual(job.wait(), 0)
            self.assertEqual(sorted(job.stdout().splitlines()),
                             sorted(f"{way} {rank}" for rank in range(200) for way in ("out", "err")))


class LastWords(unittest.TestCase):
    """What was written before an end is there, and nobody waits for those who hold the pipe."""

    def test_what_is_written_right_before_the_end_is_never_lost(self):
        for code in (0, 3):
            script = f'echo "last words of $RANK" >&2; [ $RANK != 50 ] || exit {code}'
            for _ in range(4):
                with self.subTest(code=code), Job(script=script, workers=64) as job:
                    self.assertEqual(job.wait(), code)
                    said = set(re.findall(r"^last words of (\d+)$", job.stderr(), re.MULTILINE))
                    self.assertIn("50", said)  # others may have been stopped before they spoke
                    if code == 0:
                        self.assertEqual(len(said), 64)

    def test_more_than_fits_in_a_pipe_before_a_crash(self):
        for _ in range(5):
            with Job(script="head -c 200000 /dev/zero >&2; kill -KILL $$$$", workers=1) as job:
                self.assertEqual(job.wait(), 137)
                self.assertEqual(job.stderr().count("\0"), 200000)

    def test_a_grandchild_that_holds_the_pipe_delays_nothing(self):
        with Job(script="sleep 1000 & echo up; exit $RANK", workers=2, stderr=BOTH) as job:
            self.assertEqual(job.wait(deadline_s=20), 1)
            self.assertEqual(job.stdout().splitlines().count("up"), 2)

    def test_a_grandchild_is_heard_while_the_round_lasts(self):
        script = f"""
            if [ $RANK = 0 ]; then
                setsid sh -c 'touch $1/up; {UNTIL_GO} echo late; touch $1/said' - $1 &
                while [ ! -e $1/up ]; do sleep 0.01; done
                exit 0
            fi
            while [ ! -e $1/said ]; do sleep 0.01; done"""
        with Job(script=script, workers=2, stderr=BOTH) as job:
            agent = job.agent()
            wait_until(lambda: any(comm_of(child) == "sh" and leads_no_worker(child) for child in children_of(agent)),
                       "rank 0 has ended and its child is the agent's")
            job.touch("go")
            self.assertEqual(job.wait(), 0)
            self.assertEqual(job.stdout(), "late\n")


class Readers(unittest.TestCase):
    """Whoever reads what we write can slow workers down, but neither kill them nor hold up their end."""

    def test_a_slow_reader_holds_workers_back_and_misses_nothing(self):
        read, write = os.pipe()
        with Job(script="head -c 300000000 /dev/zero; touch $1/wrote", workers=1, stdout=write, stderr=BOTH) as job:
            os.close(write)
            agent = job.agent()
            count = len(os.read(read, 1))
            wait_until(lambda: sleeps_in_write(job), "the worker is held back")
            self.assertLess(peak_memory(agent), 128 << 20)  # sanitizers take most of that
            self.assertFalse(os.path.exists(os.path.join(job.folder, "wrote")))
            while chunk := os.read(read, 1 << 20):
                count += len(chunk)
            self.assertEqual(count, 300_000_000)
            self.assertEqual(job.wait(), 0)
        os.close(read)

    def test_a_reader_that_is_gone_costs_output_but_not_the_job(self):
        read, write = os.pipe()
        script = f"echo first; {UNTIL_GO} head -c 3000000 /dev/zero; touch $1/survived; exit 4"
        with Job(script=script, workers=1, stdout=write, stderr=BOTH) as job:
            os.close(write)
            self.assertEqual(os.read(read, 6), b"first\n")
            os.close(read)
            job.touch("go")
            self.assertEqual(job.wait(), 4)
            self.assertTrue(os.path.exists(os.path.join(job.folder, "survived")))

    def test_a_fifo_that_nobody_reads_holds_workers_back_for_ten_seconds_only(self):
        fifo = open_unread_fifo()
        with Job(script="head -c 3000000 /dev/zero; touch $1/survived; exit 5", workers=1,
                 stdout=fifo, stderr=BOTH) as job:
            wait_until(lambda: sleeps_in_write(job), "the worker is held back")
            self.assertEqual(job.wait(), 5)
            self.assertTrue(os.path.exists(os.path.join(job.folder, "survived")))
            self.assertEqual(alive_with(job.mark), [])
        os.close(fifo)

    def test_signals_are_obeyed_while_output_is_stuck(self):
        fifo = open_unread_fifo()
        with Job(script="trap 'touch $1/told; exit 0' TERM; head -c 3000000 /dev/zero & wait", workers=1,
                 stdout=fifo, stderr=BOTH) as job:
            wait_until(lambda: sleeps_in_write(job), "the worker is held back")
            job.process.send_signal(signal.SIGTERM)
            wait_until(lambda: os.path.exists(os.path.join(job.folder, "told")), "the worker is told", deadline_s=5)
            wait_until(lambda: not children_of(job.agent()), "the workers are gone", deadline_s=5)
            os.set_blocking(fifo, False)
            wait_until(lambda: read_some(fifo) or job.process.poll() is not None, "the rest is written")
            self.assertEqual(job.wait(), 143)
        os.close(fifo)

    def test_a_slow_reader_keeps_nothing_alive_when_the_guardian_is_killed(self):
        for while_running in (True, False):
            for takes in (0, 16):
                with self.subTest(while_running=while_running, takes=takes), \
                     self.slow_reader("exec head -c 1000000000 /dev/zero" if while_running else ENDS) as (job, read):
                    agent = job.agent()
                    if while_running:
                        wait_until(lambda: sleeps_in_write(job), "the worker is held back")
                    else:
                        self.wait_for_the_end(job)
                    job.process.kill()
                    job.process.wait()
                    wait_until(lambda: read(takes) is None or not is_alive(agent), "the agent is gone", deadline_s=2)
                    self.assertEqual(alive_with(job.mark), [])

    def test_a_second_request_to_stop_waits_for_no_reader(self):
        with self.slow_reader("exec head -c 1000000000 /dev/zero") as (job, read):
            wait_until(lambda: sleeps_in_write(job), "the worker is held back")
            job.process.send_signal(signal.SIGINT)
            wait_until(lambda: not children_of(job.agent()), "the worker is gone")
            time.sleep(0.2)  # sooner it would be the first one's echo
            job.process.send_signal(signal.SIGINT)
            wait_until(lambda: read(16) is None or job.process.poll() is not None, "it has ended", deadline_s=3)
            self.assertEqual(job.wait(), 130)

    def test_a_request_to_stop_when_the_job_is_over_ends_the_wait_for_a_reader(self):
        with self.slow_reader(ENDS) as (job, read):
            self.wait_for_the_end(job)
            job.process.send_signal(signal.SIGTERM)
            # Half a second is too short for all; a reader that then wakes up gets the last words.
            text = []
            wakes = time.monotonic() + 0.5
            wait_until(lambda: text.append(read(2048 if time.monotonic() < wakes else 1 << 20))
                       or job.process.poll() is not None, "it has ended", deadline_s=3)
            self.assertEqual(job.wait(), 3)
            while chunk := read(1 << 20):
                text.append(chunk)
            self.assertRegex(b"".join(filter(None, text))[-200:],
                             rb"\d+ bytes of output for stderr were lost: it was not read in time\n$")

    def wait_for_the_end(self, job):
        wait_until(lambda: os.path.exists(os.path.join(job.folder, "wrote")), "all is written")
        wait_until(lambda: not children_of(job.agent()), "the worker is gone")

    @contextlib.contextmanager
    def slow_reader(self, script):
        """A job, and what reads at most so many bytes of its output."""
        read, write = os.pipe()
        os.set_blocking(read, False)

        def take(most):
            try:
                return os.read(read, most)
            except BlockingIOError:
                return b""
        try:
            with Job(script=script, workers=1, stdout=write, stderr=BOTH) as job:
                os.close(write)
                yield job, take
        finally:
            os.close(read)

    def test_a_full_disk_costs_output_but_not_the_job(self):
        with open("/dev/full", "wb") as full, \
             Job(script="echo text; echo more; exit 6", workers=1, stdout=full, stderr=BOTH) as job:
            self.assertEqual(job.wait(), 6)


class Surroundings(unittest.TestCase):
    def test_closed_standard_descriptors(self):
        for closed in ((1,), (2,), (1, 2), (0, 1, 2)):
            with self.subTest(closed=closed), \
                 Job(script="echo out; echo err >&2; exit 3", workers=1,
                     preexec=lambda: [os.close(descriptor) for descriptor in closed]) as job:
                self.assertEqual(job.wait(), 3)
                self.assertEqual(job.stdout(), "" if 1 in closed else "out\n")
                self.assertEqual(job.stderr().startswith("err\n"), 2 not in closed)

    def test_64_descriptors_are_enough_for_the_output_of_eight_workers(self):
        with Job(script="echo $RANK", workers=8, stderr=BOTH, preexec=limit_descriptors, options=["-v"]) as job:
            self.assertEqual(job.wait(), 0)
            lines = job.stdout().splitlines()
            self.assertEqual(sorted(line for line in lines if len(line) == 1), list("01234567"))
            self.assertNotIn("doesn't pass through", job.stdout())

    def test_where_descriptors_run_short_output_goes_past_us_and_a_failure_says_so(self):
        for code in (0, 3):
            with self.subTest(code=code), \
                 Job(script=f"echo $RANK; exit {code}", workers=14, stderr=BOTH, preexec=limit_descriptors) as job:
                self.assertEqual(job.wait(), code)
                self.assertEqual("ulimit -n" in job.stdout(), code == 3)
                if code == 0:
                    self.assertEqual(sorted(job.stdout().split()), sorted(map(str, range(14))))


def leads_no_worker(pid):
    """A worker's shell has the mark of its job among its arguments."""
    with open(f"/proc/{pid}/cmdline", "rb") as cmdline:
        return b"mark-" not in cmdline.read()


def limit_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


def peak_memory(pid):
    with open(f"/proc/{pid}/status") as status:
        return 1024 * int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1))


def sleeps_in_write(job):
    """Some process of the agent's sits in a write to its pipe."""
    found = children_of(job.agent())
    while found:
        pid = found.pop()
        found += children_of(pid)
        try:
            with open(f"/proc/{pid}/syscall") as syscall, open(f"/proc/{pid}/comm") as comm:
                if comm.read() == "head\n" and syscall.read().split()[0] == "1":
                    return True
        except (FileNotFoundError, ProcessLookupError):
            pass
    return False


def open_unread_fifo():
    """Open for reading and writing, so that it never breaks."""
    path = f"/tmp/ddp_unread_{os.getpid()}"
    os.mkfifo(path)
    fifo = os.open(path, os.O_RDWR)
    os.unlink(path)
    return fifo


def read_some(fifo):
    """True once there is nothing left to read for a moment."""
    while select.select([fifo], [], [], 0.1)[0]:
        os.read(fifo, 1 << 20)
    return False


if __name__ == "__main__":
    unittest.main(verbosity=2)
