"""ddplaunch: suspended and resumed, with and without its terminal, and as a container's first process."""
import fcntl
import os
import pty
import select
import shlex
import signal
import subprocess
import time
import unittest

from launcher_harness import DDPLAUNCH, SCRIPTED_WORKER, Job, alive_with, children_of, is_alive, state_of, wait_until, \
    wait_until_gone


def stopped(pids):
    return all(state_of(pid) == "T" for pid in pids)


def running(pids):
    return all(state_of(pid) in ("S", "R", "D") for pid in pids)


def wait_for_stop(guardian):
    """Until its parent is told that it was stopped, as a shell is; once for each time."""
    told = []

    def look():
        told[:] = os.waitpid(guardian, os.WUNTRACED | os.WNOHANG)
        return told[0] == guardian
    wait_until(look, "the launcher is stopped")
    assert os.WIFSTOPPED(told[1]) and os.WSTOPSIG(told[1]) == signal.SIGTSTP, hex(told[1])


def job_of_a_shell(*actions, **settings):
    """In a process group of its own, as a shell makes it: whoever nobody could continue isn't suspended."""
    return Job(*actions, preexec=os.setpgrp, **settings)


class Suspension(unittest.TestCase):
    def test_SIGTSTP_stops_workers_and_launcher_and_SIGCONT_undoes_it(self):
        # The worker has a child in its process group: what a shell would have stopped as well.
        program = ["/bin/sh", "-c", 'sleep 1000 & echo "child $!" >> "$1"; exec "$0" "$2" report="$1":ready wait',
                   SCRIPTED_WORKER]
        with Job() as unused, job_of_a_shell(workers=2, program=[*program, unused.report, unused.mark]) as job:
            pids = [int(pid) for _, pid in unused.expect("ready", 2)]
            pids += [int(pid) for pid, in unused.expect("child", 2)]
            for _ in range(3):
                os.kill(job.guardian, signal.SIGTSTP)
                wait_for_stop(job.guardian)
                wait_until(lambda: stopped(pids), "all of the workers' stand still")
                os.kill(job.guardian, signal.SIGCONT)
                wait_until(lambda: running([job.guardian, *pids]), "all go on")
            job.process.send_signal(signal.SIGTERM)
            self.assertEqual(job.wait(), 143)
            self.assertFalse(any(map(is_alive, pids)))

    def test_suspended_time_is_not_taken_from_the_grace_period(self):
        with job_of_a_shell("ignore=15", "report={report}:ready", "wait", options=["--shutdown-timeout=1"]) as job:
            pids = [int(pid) for _, pid in job.expect("ready", 2)]
            job.process.send_signal(signal.SIGTERM)
            os.kill(job.guardian, signal.SIGTSTP)
            wait_for_stop(job.guardian)
            time.sleep(2)  # longer than the grace period
            self.assertTrue(stopped(pids))
            start = time.monotonic()
            os.kill(job.guardian, signal.SIGCONT)
            self.assertEqual(job.wait(), 143)
            self.assertGreater(time.monotonic() - start, 0.3)

    def test_SIGTERM_while_suspended_lets_the_workers_end(self):
        for how in ("to the agent", "to the guardian, then SIGCONT"):
            with self.subTest(how), \
                 job_of_a_shell("report-on=15:{report}:got", "exit-on=15:0", "report={report}:ready", "wait",
                                options=["--shutdown-timeout=1000"]) as job:
                pids = [int(pid) for _, pid in job.expect("ready", 2)]
                agent = job.agent()
                os.kill(job.guardian, signal.SIGTSTP)
                wait_for_stop(job.guardian)
                wait_until(lambda: stopped(pids), "the workers stand still")
                os.kill(agent if how == "to the agent" else job.guardian, signal.SIGTERM)
                if how != "to the agent":
                    os.kill(job.guardian, signal.SIGCONT)
                job.expect("got", 2)
                self.assertEqual(job.wait(), 143)
                self.assertEqual(alive_with(job.mark), [])

    def test_a_job_that_ends_while_suspended_does_not_stay_behind(self):
        with job_of_a_shell("report={report}:ready", "wait") as job:
            pids = [int(pid) for _, pid in job.expect("ready", 2)]
            os.kill(job.guardian, signal.SIGTSTP)
            wait_for_stop(job.guardian)
            os.kill(pids[0], signal.SIGKILL)
            self.assertEqual(job.wait(), 137)
            self.assertEqual(alive_with(job.mark), [])

    def test_the_guardian_killed_while_suspended_leaves_nothing(self):
        with job_of_a_shell("daemon={report}", "report={report}:ready", "wait") as job:
            job.expect("ready", 2)
            os.kill(job.guardian, signal.SIGTSTP)
            wait_for_stop(job.guardian)
            job.process.kill()
            job.process.wait()
            wait_until_gone(job.mark)

    def test_a_job_continued_and_suspended_again_at_once_stands_still(self):
        # The second signal makes the kernel drop the first one, wherever it is on its way.
        with job_of_a_shell("report={report}:ready", "wait") as job:
            pids = [int(pid) for _, pid in job.expect("ready", 2)]
            os.kill(job.guardian, signal.SIGTSTP)
            wait_for_stop(job.guardian)
            for _ in range(100):
                os.kill(job.guardian, signal.SIGCONT)
                os.kill(job.guardian, signal.SIGTSTP)
                wait_for_stop(job.guardian)
                wait_until(lambda: stopped(pids), "the workers stand still")
                os.kill(job.guardian, signal.SIGCONT)
                wait_until(lambda: running([job.guardian, *pids]), "all go on")
                os.kill(job.guardian, signal.SIGTSTP)
                wait_for_stop(job.guardian)

    def test_a_job_that_nobody_could_continue_is_not_suspended(self):
        # It leads a session, so its group is an orphaned one.
        with Job("report={report}:ready", "wait", options=["-v"], preexec=os.setsid) as job:
            pids = [int(pid) for _, pid in job.expect("ready", 2)]
            for count in range(1, 4):
                os.kill(job.guardian, signal.SIGTSTP)
                wait_until(lambda: job.stderr().count("resumed") == count, "it goes on")
                wait_until(lambda: running([job.guardian, *pids]), "all go on")
            job.process.send_signal(signal.SIGTERM)
            self.assertEqual(job.wait(), 143)

    def test_reading_or_writing_in_the_background_does_not_stop_it(self):
        with job_of_a_shell("report={report}:ready", "wait-for={folder}/go") as job:
            job.expect("ready", 2)
            os.kill(job.guardian, signal.SIGTTIN)
            os.kill(job.guardian, signal.SIGTTOU)
            os.kill(job.guardian, signal.SIGWINCH)
            job.touch("go")
            self.assertEqual(job.wait(), 0)


class Terminal:
    """A terminal with a program in it, which leads its session."""

    def __init__(self, *command):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.environ.update(PS1="prompt> ", HISTFILE="", INPUTRC="/dev/null")
            os.execvp(command[0], command)
        fcntl.fcntl(self.master, fcntl.F_SETFL, os.O_NONBLOCK)
        self.seen = b""

    def type(self, text):
        os.write(self.master, text.encode())

    def expect(self, text):
        """Waits until the terminal shows it, after what was expected last."""
        def look():
            if select.select([self.master], [], [], 0.05)[0]:
                try:
                    self.seen += os.read(self.master, 65536)
                except OSError:  # EIO: nobody has it open any more
                    pass
            return text.encode() in self.seen
        try:
            wait_until(look, f"'{text}' on the terminal")
        except AssertionError as missing:
            raise AssertionError(f"{missing}; it shows: {self.seen!r}") from None
        self.seen = self.seen[self.seen.index(text.encode()) + len(text):]

    def close(self):
        if self.master >= 0:
            os.close(self.master)
            self.master = -1

    def wait(self):
        self.close()
        wait_until(lambda: os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT), "its program has ended")
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


class AtATerminal(unittest.TestCase):
    """`self.job` lends its folder, report and mark to a launch by a shell at a terminal."""

    def setUp(self):
        self.job = Job("exit=0")
        self.addCleanup(self.job.__exit__)
        self.job.wait()

    def command(self, *actions):
        filled = [a.replace("{report}", self.job.report).replace("{folder}", self.job.folder) for a in actions]
        return [DDPLAUNCH, "--nproc-per-node=2", "--no-python", SCRIPTED_WORKER, self.job.mark, *filled]

    def shell(self):
        terminal = Terminal("bash", "--norc", "--noprofile", "-i")
        self.addCleanup(terminal.__exit__)
        terminal.expect("prompt> ")
        return terminal

    def test_ctrl_z_and_fg_and_ctrl_c_of_a_shell(self):
        shell = self.shell()
        command = self.command("report-on=2:{report}:got", "exit-on=2:0", "report={report}:ready", "wait")
        shell.type(shlex.join(command) + "\n")
        pids = [int(pid) for _, pid in self.job.expect("ready", 2)]
        shell.type("\x1a")
        shell.expect("Stopped")
        wait_until(lambda: stopped(pids), "the workers stand still")
        shell.type("fg\n")
        wait_until(lambda: running(pids), "the workers go on")
        shell.type("\x03")
        self.job.expect("got", 2)
        shell.expect("prompt> ")
        shell.type("echo code=$?\n")
        shell.expect("code=130")
        self.assertEqual(alive_with(self.job.mark), [])

    def test_ctrl_z_where_no_shell_is_and_ctrl_c(self):
        with Terminal(*self.command("report-on=2:{report}:got", "exit-on=2:0", "report={report}:ready",
                                    "wait")) as terminal:
            pids = [int(pid) for _, pid in self.job.expect("ready", 2)]
            terminal.type("\x1a\x1a\x03")
            self.job.expect("got", 2)
            self.assertEqual(terminal.wait(), 130)
            self.assertFalse(any(map(is_alive, pids)))

    def test_in_the_background_of_a_terminal_it_runs_on(self):
        shell = self.shell()
        shell.type("stty tostop\n")
        shell.expect("prompt> ")
        program, *rest = self.command("report={report}:ready", "wait-for={folder}/go")
        shell.type(shlex.join([program, "-v", *rest]) + " &\n")
        self.job.expect("ready", 2)
        self.job.touch("go")
        shell.type("wait $!; echo code=$?\n")
        shell.expect("code=0")

    def test_a_terminal_that_is_closed_ends_the_job(self):
        for leads in ("ddplaunch", "a shell"):
            with self.subTest(leads):
                self.job.lines.clear()
                command = self.command("report-on=1:{report}:got", "exit-on=1:0", "daemon={report}",
                                       "report={report}:ready", "wait")
                with self.shell() if leads == "a shell" else Terminal(*command) as terminal:
                    if leads == "a shell":
                        terminal.type(shlex.join(command) + "\n")
                    self.job.expect("ready", 2)
                    terminal.close()
                    self.job.expect("got", 2)
                    wait_until_gone(self.job.mark)
                    code = terminal.wait()
                    if leads == "ddplaunch":
                        self.assertEqual(code, 129)

    def test_under_nohup_a_closed_terminal_is_nothing(self):
        shell = self.shell()
        command = self.command("report={report}:ready", "wait-for={folder}/go", "report={report}:done")
        shell.type(f"(trap '' HUP; nohup {shlex.join(command)} >/dev/null 2>&1; echo code $? >> {self.job.report}) &\n")
        pids = [int(pid) for _, pid in self.job.expect("ready", 2)]
        shell.close()
        shell.wait()
        self.assertTrue(running(pids))
        self.job.touch("go")
        self.job.expect("done", 2)
        self.assertEqual(self.job.expect("code", 1), [["0"]])


def can_make_pid_namespaces():
    probe = subprocess.run(["unshare", "-pf", "--mount-proc", "true"], stderr=subprocess.DEVNULL, check=False)
    return probe.returncode == 0


@unittest.skipUnless(can_make_pid_namespaces(), "PID namespaces need root (unshare -pf --mount-proc)")
class AsFirstProcess(unittest.TestCase):
    UNSHARE = ["unshare", "-pf", "--mount-proc"]

    def test_it_ends_with_the_jobs_code(self):
        for code in (0, 7):
            with Job("daemon={report}", f"exit={code}", wrapper=self.UNSHARE) as job:
                self.assertEqual(job.wait(), code)
                self.assertEqual(alive_with(job.mark), [])

    def test_it_passes_signals_on(self):
        with Job("report-on=15:{report}:got", "exit-on=15:0", "daemon={report}", "report={report}:ready", "wait",
                 wrapper=self.UNSHARE) as job:
            job.expect("ready", 2)
            init, = children_of(job.process.pid)
            os.kill(init, signal.SIGTERM)
            job.expect("got", 2)
            self.assertEqual(job.wait(), 143)
            self.assertEqual(alive_with(job.mark), [])

    def test_it_is_not_suspended(self):
        with Job("report={report}:ready", "wait", options=["-v"], wrapper=self.UNSHARE) as job:
            job.expect("ready", 2)
            init, = children_of(job.process.pid)
            agent, = children_of(init)
            os.kill(init, signal.SIGTSTP)
            wait_until(lambda: "resumed" in job.stderr(), "it goes on")
            wait_until(lambda: running([init, *children_of(agent)]), "all go on")
            os.kill(init, signal.SIGTERM)
            self.assertEqual(job.wait(), 143)

    def test_it_reaps_what_nobody_else_does(self):
        with Job("report={report}:ready", "wait-for={folder}/go", wrapper=self.UNSHARE) as job:
            job.expect("ready", 2)
            init, = children_of(job.process.pid)
            agent, = children_of(init)
            orphan = ["sh", "-c", f"(while [ ! -e {job.folder}/end ]; do sleep 0.01; done) & "]
            subprocess.run(["nsenter", "-t", str(init), "-p", "-m", *orphan], check=True)
            wait_until(lambda: len(children_of(init)) == 2, "the orphan is a child of the first process")
            job.touch("end")
            wait_until(lambda: children_of(init) == [agent], "the orphan has been reaped")
            job.touch("go")
            self.assertEqual(job.wait(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
