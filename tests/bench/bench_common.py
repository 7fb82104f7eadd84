"""What the benchmarks share: timing a command as a whole, finding the peers, describing the machine, drawing tables."""
import os
import platform
import select
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from torch_pythons import TorchPython, torch_pythons  # noqa: E402, F401


class Run:
    """How one command ended: seconds from its start to its exit, the monotonic clock then, CPU seconds of all it waited
    for, exit code."""

    def __init__(self, begin, end, cpu, code, hung, output):
        self.wall, self.end = end - begin, end
        self.cpu, self.code, self.hung, self.output = cpu, code, hung, output

    @property
    def good(self):
        return self.code == 0 and not self.hung


def children_of(root):
    """`root` and everything below it, as /proc has it now."""
    below = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as stat:
                    parent = int(stat.read().rpartition(")")[2].split()[1])
            except OSError:
                continue
            below.setdefault(parent, []).append(int(name))
    found, todo = [], [root]
    while todo:
        found.append(todo.pop())
        todo += below.get(found[-1], [])
    return found


def kill_tree(root):
    for pid in children_of(root):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def timed(command, timeout, environment=None, keep_output=False):
    """Runs `command` without input. What it prints is thrown away unless `keep_output`."""
    reading, writing = os.pipe() if keep_output else (None, os.open(os.devnull, os.O_WRONLY))
    with open(os.devnull, "rb") as nothing:
        actions = [(os.POSIX_SPAWN_DUP2, nothing.fileno(), 0), (os.POSIX_SPAWN_DUP2, writing, 1)]
        if not keep_output:
            actions.append((os.POSIX_SPAWN_DUP2, writing, 2))
        program = shutil.which(command[0]) or command[0]
        begin = time.monotonic()
        pid = os.posix_spawn(program, command, {**os.environ, **(environment or {})}, file_actions=actions, setpgroup=0)
    os.close(writing)
    output, hung = b"", False
    watch = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(watch, select.POLLIN)
    if keep_output:
        output, hung = read_until(reading, begin + timeout)
    if hung or not poll.poll(max(0, (begin + timeout - time.monotonic()) * 1000)):
        hung = True
        kill_tree(pid)
    end = time.monotonic()
    _, status, usage = os.wait4(pid, 0)
    os.close(watch)
    code = os.waitstatus_to_exitcode(status)
    return Run(begin, end, usage.ru_utime + usage.ru_stime, code, hung, output.decode(errors="replace"))


def read_until(reading, deadline):
    """(bytes up to the end of the stream, False), or what came before the deadline and True."""
    poll = select.poll()
    poll.register(reading, select.POLLIN | select.POLLHUP)
    output = b""
    try:
        while poll.poll(max(0, (deadline - time.monotonic()) * 1000)):
            more = os.read(reading, 65536)
            if not more:
                return output, False
            output += more
        return output, True
    finally:
        os.close(reading)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def first_found(*names):
    return next((path for path in map(shutil.which, names) if path), None)


def load():
    return "load " + "/".join(f"{value:.1f}" for value in os.getloadavg())


def machine():
    model, memory = platform.machine(), 0
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        for line in info:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
    with open("/proc/meminfo", encoding="utf-8") as info:
        memory = int(info.readline().split()[1]) / 2**20
    return (f"{len(os.sched_getaffinity(0))} CPUs ({model}), {memory:.0f} GiB, Linux {platform.release()}, "
            f"{time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC, {load()}")


def commit():
    try:
        asked = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"],
                               capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "unknown commit"
    return asked.stdout.strip() or "unknown commit"


def spread(values, digits=4):
    """`median (min–max)`, or a dash."""
    if not values:
        return "–"

    def short(value):
        return f"{value:.{digits}g}"

    return f"{short(statistics.median(values))} ({short(min(values))}–{short(max(values))})"


def table(head, rows):
    rows = [list(map(str, row)) for row in rows]
    widths = [max(len(row[i]) for row in [head] + rows) for i in range(len(head))]

    def line(cells):
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths)) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([line(head), rule] + [line(row) for row in rows])
