"""Starts ddplaunch with scripted workers and looks at what is alive, for tests of the launcher.

Needs DDPLAUNCH and SCRIPTED_WORKER in the environment. Processes of a job are recognised by a mark
in their arguments, which no process can lose except by another exec.
"""
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
import uuid

DDPLAUNCH = os.environ["DDPLAUNCH"]
SCRIPTED_WORKER = os.environ["SCRIPTED_WORKER"]
DEADLINE_S = 20.0


def state_of(pid):
    """The state letter in /proc, or None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return chr(stat.read().rpartition(b")")[2].split()[0][0])
    except (FileNotFoundError, ProcessLookupError):
        return None


def is_alive(pid):
    return state_of(pid) not in (None, "Z", "X")


def alive_with(mark):
    """Pids of processes with that mark among their arguments; the dead that nobody reaped don't count."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/cmdline", "rb") as cmdline:
                arguments = cmdline.read().split(b"\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if mark.encode() in arguments and is_alive(int(name)):
            found.append(int(name))
    return found


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            return [int(child) for child in children.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def wait_until(condition, what, deadline_s=DEADLINE_S):
    """Seconds until `condition` held; AssertionError if it never does."""
    start = time.monotonic()
    while not condition():
        if time.monotonic() - start > deadline_s:
            raise AssertionError(f"not within {deadline_s} s: {what}")
        time.sleep(0.002)
    return time.monotonic() - start


def wait_until_gone(mark):
    """Seconds until nothing with that mark is alive. A look can miss what changes its pid, so several must agree."""
    clean = 0

    def look():
        nonlocal clean
        clean = 0 if alive_with(mark) else clean + 1
        return clean >= 3
    return wait_until(look, "everything gone")


class Job:
    """One ddplaunch with workers that carry out `actions`; {report} and {folder} in them are replaced.

    With `script` the workers are shells that run it, with the folder as $1. `uid`: it runs as that user, whom nobody
    else need know. `environment`: what differs from ours; None leaves out. `prepare` is called with the folder first.
    """

    def __init__(self, *actions, workers=2, options=(), program=None, script=None, preexec=None, wrapper=(),
                 stdout=None, stderr=None, uid=None, environment=None, prepare=lambda folder: None):
        self.mark = "mark-" + uuid.uuid4().hex
        self.folder = tempfile.mkdtemp(prefix="ddp_test_")
        self.report = os.path.join(self.folder, "report")
        os.mkfifo(self.report)
        self.fifo = os.open(self.report, os.O_RDWR | os.O_NONBLOCK)
        self.buffer = b""
        self.lines = []
        self.temp = os.path.join(self.folder, "tmp")
        os.mkdir(self.temp)
        prepare(self.folder)
        if uid is not None:
            os.chmod(self.folder, 0o711)
            for path in (self.report, self.temp):
                os.chown(path, uid, uid)

        def fill(word):
            if isinstance(word, bytes):
                return word
            for name, value in (("{report}", self.report), ("{folder}", self.folder), ("{mark}", self.mark)):
                word = word.replace(name, value)
            return word
        filled = map(fill, actions)
        command = [*wrapper, DDPLAUNCH, f"--nproc-per-node={workers}", *map(fill, options), "--no-python"]
        program = ["sh", "-c", script, self.mark, self.folder] if script else program
        command += [fill(word) for word in program] if program else [SCRIPTED_WORKER, self.mark, *filled]
        # Files, not pipes: a survivor would keep a pipe open and the test waiting.
        self.out_path = os.path.join(self.folder, "stdout")
        self.err_path = os.path.join(self.folder, "stderr")
        try:
            with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
                self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=preexec,
                                                stdout=out if stdout is None else stdout,
                                                stderr=err if stderr is None else stderr,
                                                env=self.with_changes(environment or {}),
                                                **({} if uid is None else {"user": uid, "group": uid,
                                                                           "extra_groups": []}))
        except OSError:
            self.forget()
            raise
        self.guardian = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in alive_with(self.mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it went with the one before
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.forget()

    def with_changes(self, changes):
        environment = {**os.environ, "TMPDIR": self.temp, **changes}
        return {name: value for name, value in environment.items() if value is not None}

    def forget(self):
        os.close(self.fifo)
        shutil.rmtree(self.folder)

    def expect(self, word, count, deadline_s=DEADLINE_S):
        """Waits for `count` lines that begin with `word` in the report; their other words."""
        give_up = time.monotonic() + deadline_s
        while True:
            found = [line[1:] for line in self.lines if line[0] == word]
            if len(found) >= count:
                return found
            left = give_up - time.monotonic()
            if left <= 0 or not select.select([self.fifo], [], [], left)[0]:
                raise AssertionError(f"{len(found)} of {count} lines '{word}' within {deadline_s} s; "
                                     f"stderr: {self.stderr()}")
            self.read_lines()

    def read_lines(self):
        self.buffer += os.read(self.fifo, 65536)
        *whole, self.buffer = self.buffer.split(b"\n")
        self.lines += [line.decode().split() for line in whole]

    def agent(self):
        """Pid of the agent, as soon as it has its name."""
        found = []

        def look():
            found[:] = [pid for pid in children_of(self.guardian) if comm_of(pid) == "ddp-agent"]
            return found
        wait_until(look, "an agent")
        return found[0]

    def touch(self, name):
        with open(os.path.join(self.folder, name), "w"):
            pass

    def wait(self, deadline_s=60):
        """The exit code, as a shell would say it."""
        code = self.process.wait(deadline_s)
        return 128 - code if code < 0 else code

    def stderr(self):
        with open(self.err_path, errors="replace") as text:
            return text.read()

    def stdout(self):
        with open(self.out_path, errors="replace") as text:
            return text.read()

    def left_in_temp(self):
        return [os.path.join(folder, name) for folder, folders, files in os.walk(self.temp) for name in folders + files]


def can_run_as(uid):
    """Whether tests may start the launcher as another user: as root, from a folder that all may read."""
    command = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", DDPLAUNCH, "--version"]
    return shutil.which("setpriv") and subprocess.run(command, capture_output=True).returncode == 0


def can_isolate():
    """Whether this system lets us have --isolate=pid, by its own means."""
    return subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], capture_output=True).returncode == 0


def comm_of(pid):
    try:
        with open(f"/proc/{pid}/comm") as comm:
            return comm.read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
