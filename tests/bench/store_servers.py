"""The servers that the benchmark of stores compares: how each is started, which port it has, what CPU it has used."""
import contextlib
import os
import resource
import subprocess
import sys
import tempfile
import time

from bench_common import HERE, free_port, torch_pythons

PATIENCE = 60
OURS, LIMIT = "ddprendezvous", "echo limit"


class Server:
    def __init__(self, name, dialect, process, port):
        self.name, self.dialect, self.process, self.port = name, dialect, process, port

    def cpu(self):
        """Seconds, of all its threads."""
        total = 0
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{thread}/schedstat", encoding="ascii") as times:
                total += int(times.read().split()[0])
        return total / 1e9


def end(process):
    if process.stdin:
        process.stdin.close()
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout:
        process.stdout.close()


def start(stack, command, **more):
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **more)
    stack.callback(end, process)
    return process


def start_ours(stack, build):
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    port_file = os.path.join(folder, "port")
    process = start(stack, [os.path.join(build, "bin", "ddprendezvous"), "--plain-store", "--port", "0", "--port-file",
                            port_file], stdout=subprocess.DEVNULL)
    give_up = time.monotonic() + PATIENCE
    while not os.path.exists(port_file):
        if process.poll() is not None or time.monotonic() > give_up:
            sys.exit("bench_store.py: ddprendezvous did not start")
        time.sleep(0.01)
    with open(port_file, encoding="ascii") as text:
        return Server(OURS, "current", process, int(text.read()))


def start_limit(stack, build):
    process = start(stack, [os.path.join(build, "bench_bin", "echo_limit")], stdout=subprocess.PIPE)
    return Server(LIMIT, "echo", process, int(process.stdout.readline()))


def start_torch(stack, python, build):
    preloaded = os.path.join(build, "bench_bin", "numeric_names.so")
    process = start(stack, [python.path, os.path.join(HERE, "torch_store_server.py"), str(free_port())],
                    stdout=subprocess.PIPE, env={**os.environ, "LD_PRELOAD": preloaded})
    words = process.stdout.readline().split()
    if len(words) != 3:
        sys.exit(f"bench_store.py: the store of {python} did not start")
    return Server(f"PyTorch {python.text}, {words[2]}", "current" if python.version >= (2, 2) else "legacy", process,
                  int(words[0]))


@contextlib.contextmanager
def servers(build, with_peers):
    """([limit, ours, those of PyTorch], what is not here). All have as many files as they may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with contextlib.ExitStack() as stack:
        found, absent = torch_pythons() if with_peers else ([], [])
        yield ([start_limit(stack, build), start_ours(stack, build)] +
               [start_torch(stack, python, build) for python in found], absent)
