"""ddplaunch on a terminal: workers have one too, and a status line comes and goes below what they write."""
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import unittest

from launcher_harness import DDPLAUNCH, Job, children_of, state_of, wait_until

WIDTH = 80
UNTIL_GO = "while [ ! -e $1/go ]; do sleep 0.01; done; "


class Screen:
    """What a terminal would show: rows of text, and where the cursor is."""

    def __init__(self, width=WIDTH):
        self.width = width
        self.rows = [""]
        self.column = 0

    def take(self, data):
        for part in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|.", data.decode(errors="replace"), re.DOTALL):
            if part == "\r":
                self.column = 0
            elif part == "\n":
                self.rows.append("")
                self.column = 0
            elif part == "\x1b[K":
                self.rows[-1] = self.rows[-1][:self.column]
            elif not part.startswith("\x1b"):
                if self.column == self.width:
                    self.rows.append("")
                    self.column = 0
                row = self.rows[-1].ljust(self.column)
                self.rows[-1] = row[:self.column] + part + row[self.column + 1:]
                self.column += 1


class TerminalJob:
    """ddplaunch in a terminal of its own. Its workers are shells that run `script`, with the folder as $1."""

    def __init__(self, script, workers=1, options=(), environment=None, redirect=None, wrapper=()):
        self.folder = tempfile.mkdtemp(prefix="ddp_test_")
        self.screen = Screen()
        self.seen = b""
        self.at = 0
        self.closed = False
        command = [*wrapper, DDPLAUNCH, f"--nproc-per-node={workers}", *options, "--no-python", "sh", "-c", script,
                   "sh", self.folder]
        # The size is there before anybody asks for it.
        self.master, slave = pty.openpty()
        self.resize(24, WIDTH)
        self.pid = os.fork()
        if self.pid == 0:
            os.login_tty(slave)
            if redirect:
                redirect(self.folder)
            os.execvpe(command[0], command, {**os.environ, "TERM": "xterm", **(environment or {})})
        os.close(slave)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.master)
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        shutil.rmtree(self.folder)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def touch(self, name):
        with open(os.path.join(self.folder, name), "w"):
            pass

    def exists(self, name):
        return os.path.exists(os.path.join(self.folder, name))

    def text_of(self, name):
        with open(os.path.join(self.folder, name)) as file:
            return file.read()

    def take(self):
        """Reads what has come; False once nobody is left who could write."""
        if self.closed or not select.select([self.master], [], [], 0.05)[0]:
            return not self.closed
        try:
            data = os.read(self.master, 65536)
        except OSError:
            self.closed = True
            return False
        self.seen += data
        self.screen.take(data)
        return True

    def expect(self, pattern):
        """Waits until the terminal has been sent it, after what was expected last."""
        def look():
            self.take()
            found = re.search(pattern.encode(), self.seen[self.at:], re.DOTALL)
            if found:
                self.at += found.end()
            return found
        try:
            wait_until(look, f"'{pattern}' on the terminal")
        except AssertionError as missing:
            raise AssertionError(f"{missing}; it shows: {self.seen!r}") from None

    def wait(self):
        """The exit code; everything is on the screen then."""
        wait_until(lambda: not self.take(), "the terminal is left")
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.pid = 0
        return code

    def rows(self):
        return [row.rstrip() for row in self.screen.rows]


class WorkersTerminal(unittest.TestCase):
    def test_what_was_a_terminal_is_one_for_workers(self):
        with TerminalJob("test -t 0 && test -t 1 && test -t 2 && tty <&1 && tty <&2 && tty < /dev/tty") as job:
            self.assertEqual(job.wait(), 0)
            rows = job.rows()
            self.assertEqual(len(rows), 4)
            self.assertRegex(rows[0], r"^/dev/pts/\d+$")
            self.assertEqual(rows[1:], [rows[0], "/dev/tty", ""])

    def test_bytes_come_as_they_are(self):
        with TerminalJob(r"printf '\033[31mred\033[0m\n\001\377 1\n'; printf 'two\r\n' >&2; printf end") as job:
            self.assertEqual(job.wait(), 0)
            # The user's own terminal makes two bytes of a newline, and nobody else does.
            self.assertEqual(job.seen, b"\x1b[31mred\x1b[0m\r\n\x01\xff 1\r\ntwo\r\r\nend")

    def test_both_streams_stay_in_order(self):
        with TerminalJob("i=0; while [ $i -lt 100 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done") as job:
            self.assertEqual(job.wait(), 0)
            self.assertEqual(job.rows(), [f"{way}{i}" for i in range(100) for way in "oe"] + [""])

    def test_lines_of_many_workers_stay_whole(self):
        line = "x" * 60
        script = f"i=0; while [ $i -lt 50 ]; do echo $RANK-{line}; i=$((i+1)); done"
        with TerminalJob(script, workers=8) as job:
            self.assertEqual(job.wait(), 0)
            self.assertEqual(sorted(job.rows()), sorted([f"{rank}-{line}" for rank in range(8)] * 50 + [""]))

    def test_the_window_size_arrives_and_its_changes_too(self):
        script = "stty size <&2; trap 'echo now $(stty size <&2)' WINCH; echo ready; while :; do sleep 0.02; done"
        with TerminalJob(script, workers=2) as job:
            job.expect("24 80.*24 80")
            job.expect("ready.*ready|ready")
            wait_until(lambda: job.seen.count(b"ready") == 2 or not job.take(), "both are ready")
            job.resize(33, 111)
            job.expect("now 33 111.*now 33 111")
            os.kill(job.pid, signal.SIGTERM)
            self.assertEqual(job.wait(), 143)

    def test_one_of_the_two_may_be_a_terminal(self):
        def out_to_file(folder):
            os.dup2(os.open(folder + "/file", os.O_WRONLY | os.O_CREAT), 1)

        def err_to_file(folder):
            os.dup2(os.open(folder + "/file", os.O_WRONLY | os.O_CREAT), 2)
        script = ("test -t 1 && echo out is one >&{0}; test -t 2 && echo err is one >&{0}; echo out; "
                  "echo err >&2; exit 3")
        with TerminalJob(script.format(2), redirect=out_to_file) as job:
            self.assertEqual(job.wait(), 3)
            self.assertEqual(job.rows()[:2], ["err is one", "err"])
            self.assertIn("the job failed", job.rows()[2])
            self.assertEqual(job.text_of("file"), "out\n")
        with TerminalJob(script.format(1), redirect=err_to_file) as job:
            self.assertEqual(job.wait(), 3)
            self.assertEqual(job.rows(), ["out is one", "out", ""])
            self.assertTrue(job.text_of("file").startswith("err\nddplaunch: the job failed"))

    def test_workers_can_still_read_what_is_typed(self):
        with TerminalJob("echo ready; read line; echo got $line") as job:
            job.expect("ready")
            os.write(job.master, b"hello\n")
            job.expect("got hello")
            self.assertEqual(job.wait(), 0)

    def test_a_worker_that_closes_its_streams_is_not_hung_up(self):
        with TerminalJob("exec <&- >&- 2>&-; touch $1/closed; " + UNTIL_GO) as job:
            wait_until(lambda: job.exists("closed"), "they are closed")
            wait_until(lambda: job.take() and job.exists("closed"), "and the launcher is there")
            job.touch("go")
            self.assertEqual(job.wait(), 0)

    def test_what_is_written_right_before_the_end_is_never_lost(self):
        for _ in range(5):
            with TerminalJob("echo last words of $RANK", workers=32) as job:
                self.assertEqual(job.wait(), 0)
                self.assertEqual(sorted(job.rows()), sorted(["", *(f"last words of {rank}" for rank in range(32))]))

    def test_a_stderr_that_cannot_be_written_is_reported_on_the_terminal_once(self):
        def err_to_full_disk(_):
            os.dup2(os.open("/dev/full", os.O_WRONLY), 2)
        script = "echo one >&2; " + UNTIL_GO + "echo two >&2; echo out; exit 4"
        with TerminalJob(script, redirect=err_to_full_disk) as job:
            job.expect("stderr can't be written")
            job.touch("go")
            self.assertEqual(job.wait(), 4)
            text = "\n".join(job.rows())
            self.assertEqual(text.count("stderr can't be written (No space left on device)"), 1, text)
            self.assertRegex(text, r"ddplaunch: \d+ bytes of output for stderr were lost: No space left")

    def test_without_pseudo_terminals_output_goes_past_us_and_a_failure_says_so(self):
        hide = ["unshare", "--mount", "sh", "-c", 'mount --bind /dev/null /dev/ptmx && exec "$0" "$@"']
        if subprocess.run([*hide, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("/dev/ptmx can't be hidden here")
        for code in (0, 3):
            with self.subTest(code=code), TerminalJob(f"test -t 1 && echo here; exit {code}", wrapper=hide) as job:
                self.assertEqual(job.wait(), code)
                text = "\n".join(job.rows())
                self.assertIn("here", text)
                self.assertEqual("no pseudo terminal is to be had" in text, code == 3, text)


ONE_ENDS = "[ $RANK != 0 ] || exit 0; "


class StatusLine(unittest.TestCase):
    def test_it_names_a_worker_that_ended_early_and_goes_when_the_others_end(self):
        with TerminalJob(ONE_ENDS + UNTIL_GO, workers=4) as job:
            job.expect(r"rank 0 has ended \d s ago; 3 of 4 workers still run")
            job.expect(r"rank 0 has ended [2-9] s ago")  # it counts
            job.touch("go")
            self.assertEqual(job.wait(), 0)
            self.assertEqual(job.rows(), [""])

    def test_it_is_never_mixed_into_what_workers_write(self):
        # Lines, and some that take their time to be finished.
        script = ONE_ENDS + "i=0; while [ $i -lt 20 ]; do " \
            "echo line; sleep 0.2; printf half; sleep 0.05; echo done; i=$((i+1)); done"
        with TerminalJob(script, workers=2) as job:
            while job.take():
                # Whatever has come so far: all rows but the last are the worker's.
                for i, row in enumerate(job.screen.rows[:-1]):
                    self.assertEqual(row, ("line", "halfdone")[i % 2])
            self.assertEqual(job.wait(), 0)
            self.assertEqual(job.rows(), ["line", "halfdone"] * 20 + [""])
            self.assertGreater(job.seen.count(b"rank 0 has ended"), 10)

    def test_it_counts_down_while_workers_are_stopped(self):
        script = "trap '' TERM INT; echo ready; while :; do sleep 0.05; done"
        with TerminalJob(script, workers=2, options=["--shutdown-timeout=3"]) as job:
            wait_until(lambda: job.seen.count(b"ready") == 2 or not job.take(), "both are ready")
            os.write(job.master, b"\x03")
            job.expect("stopping: 2 of 2 workers are left, SIGKILL in 3 s")
            job.expect("stopping: 2 of 2 workers are left, SIGKILL in 1 s")
            self.assertEqual(job.wait(), 130)
            text = "\n".join(job.rows())
            self.assertNotIn("stopping", text)
            self.assertIn("the job was stopped", text)

    def test_it_says_what_a_launch_waits_for(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with TerminalJob("true", options=["--nnodes=2", "--node-rank=0", "--master-addr=127.0.0.1",
                                          f"--master-port={port}", "--rdzv-conf=join_timeout=2"]) as job:
            job.expect(r"waiting for 1 more.* \(at most 2 s\)")
            job.expect(r"\(at most 1 s\)")
            self.assertEqual(job.wait(), 120)

    def test_our_lines_take_its_place(self):
        with TerminalJob(ONE_ENDS + UNTIL_GO + "exit 5", workers=2) as job:
            job.expect("rank 0 has ended")
            job.touch("go")
            self.assertEqual(job.wait(), 5)
            self.assertTrue(job.rows()[0].startswith("ddplaunch: the job failed"), job.rows())

    def test_it_is_gone_before_the_shell_is_told_of_a_suspension_and_comes_back_after_it(self):
        # A shell goes on as soon as what it waits for is stopped.
        shell = ["bash", "-mc", '"$0" "$@"; ' + UNTIL_GO.replace("$1/go", "${@: -1}/fg") + "fg > /dev/null"]
        with TerminalJob(ONE_ENDS + UNTIL_GO, workers=2, wrapper=shell) as job:
            job.expect("rank 0 has ended")
            guardian, = children_of(job.pid)
            os.kill(guardian, signal.SIGTSTP)
            wait_until(lambda: state_of(guardian) == "T", "it is stopped")
            # The shell may have said by then that the job is stopped.
            wait_until(lambda: job.take() and "has ended" not in " ".join(job.rows()), "it is erased")
            os.write(job.master, b"typed while suspended")
            job.expect("typed while suspended")
            job.touch("fg")
            job.expect("rank 0 has ended")
            job.touch("go")
            self.assertEqual(job.wait(), 0)

    def test_it_is_cut_to_the_width_of_the_terminal(self):
        with TerminalJob(ONE_ENDS + UNTIL_GO, workers=2) as job:
            job.resize(24, 20)
            job.screen.width = 20
            job.expect("rank 0 has")
            job.touch("go")
            self.assertEqual(job.wait(), 0)
            self.assertEqual(job.rows(), [""])

    def test_a_plain_job_has_none(self):
        with TerminalJob(UNTIL_GO + "echo done", workers=2) as job:
            # Longer than a first line takes to come.
            give_up = select.select([job.master], [], [], 1)[0]
            self.assertEqual(give_up, [])
            job.touch("go")
            self.assertEqual(job.wait(), 0)
            self.assertEqual(job.seen, b"done\r\ndone\r\n")

    def ticks_only(self, job):
        """Rank 1 writes on for long enough that a status line would have come."""
        self.assertEqual(job.wait(), 0)
        self.assertEqual(job.seen, b"tick\r\n" * 10)

    def test_none_where_it_cannot_be_erased_or_others_write_too(self):
        script = ONE_ENDS + "i=0; while [ $i -lt 10 ]; do echo tick >&2; sleep 0.1; i=$((i+1)); done"
        with self.subTest("a terminal that can't erase"), \
             TerminalJob(script, workers=2, environment={"TERM": "dumb"}) as job:
            self.ticks_only(job)

        with self.subTest("stdout goes to a reader that may use the terminal"), \
             TerminalJob(script, workers=2, wrapper=["sh", "-c", '"$0" "$@" | cat']) as job:
            self.ticks_only(job)
        with self.subTest("in the background"), \
             TerminalJob(script, workers=2, wrapper=["setsid", "-c", "-w", "sh", "-mc", '"$0" "$@" & wait $!']) as job:
            self.ticks_only(job)

    def test_none_without_a_terminal(self):
        script = ONE_ENDS + "i=0; while [ $i -lt 10 ]; do echo tick >&2; sleep 0.1; i=$((i+1)); done"
        with Job(script=script, workers=2) as job:
            self.assertEqual(job.wait(), 0)
            self.assertEqual(job.stderr(), "tick\n" * 10)


if __name__ == "__main__":
    unittest.main(verbosity=2)
