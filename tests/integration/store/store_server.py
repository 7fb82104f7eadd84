"""A ddprendezvous under load: what it costs, and clients by the thousand that one process drives."""
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "interop"))
from tcpstore_client import Client, request  # noqa: E402

DEADLINE = 60.0
HELLO = struct.pack("<BI", 0, 0x3C85F7CE)


class Server:
    """`files`: its limit of open files."""

    def __init__(self, program, *options, files=None):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        self.process = subprocess.Popen([program, "--port", "0", *options], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, preexec_fn=limit if files else None)
        line = self.process.stdout.readline()
        assert line, "the store did not start"
        self.port = int(line.split()[-1])
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        alive = self.process.poll() is None
        if alive:
            self.process.send_signal(signal.SIGTERM if kind is None else signal.SIGKILL)
        code = self.process.wait(DEADLINE)
        self.complaints = self.process.stderr.read().decode()
        self.process.stdout.close()
        self.process.stderr.close()
        if kind is None:
            assert alive and code == 0, "it ended by itself or badly: %d" % code

    def client(self, dialect="C", hello=True):
        return Client(self.port, dialect, hello)

    def cpu(self):
        """Seconds on a CPU so far."""
        with open("/proc/%d/schedstat" % self.pid) as stat:
            return int(stat.read().split()[0]) / 1e9

    def rss(self):
        """Bytes resident now."""
        with open("/proc/%d/statm" % self.pid) as statm:
            return int(statm.read().split()[1]) * resource.getpagesize()

    def peak(self):
        """Bytes resident at most so far."""
        with open("/proc/%d/status" % self.pid) as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.pid))

    def quiet_second(self):
        """CPU seconds that it used in a second in which nobody asked for anything."""
        before = self.cpu()
        time.sleep(1)
        return self.cpu() - before


def wait_until(condition, what):
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "never: " + what
        time.sleep(0.005)


def settle(server):
    """Until the server has nothing left to do."""
    before = -1.0
    while before != server.cpu():
        before = server.cpu()
        time.sleep(0.05)


def reset(connection):
    """Closes it with a RST, so that no port stays behind in TIME_WAIT."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class Crowd:
    """Many connections, driven through one epoll: each sends its steps in turn, and each step is answered with a
    known number of bytes."""

    def __init__(self, port, size):
        self.port = port
        self.epoll = select.epoll()
        self.members = {}
        for _ in range(size):
            connection = socket.socket()
            connection.setblocking(False)
            connection.connect_ex(("127.0.0.1", port))
            self.members[connection.fileno()] = connection

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for connection in self.members.values():
            reset(connection)
        self.epoll.close()

    def play(self, steps):
        """steps: [(bytes, length of the answer)]. Returns the seconds until all have all their answers."""
        start = time.monotonic()
        progress = {descriptor: [-1, 0] for descriptor in self.members}  # step, bytes that are missing
        for descriptor in self.members:
            self.epoll.register(descriptor, select.EPOLLOUT)
        left = len(progress)
        while left:
            assert time.monotonic() - start < DEADLINE, "%d of %d wait" % (left, len(progress))
            for descriptor, _ in self.epoll.poll(1.0, 1024):
                connection, state = self.members[descriptor], progress[descriptor]
                if state[0] >= 0:
                    got = connection.recv(state[1])
                    assert got, "closed by the store"
                    state[1] -= len(got)
                    if state[1]:
                        continue
                else:
                    self.epoll.modify(descriptor, select.EPOLLIN)
                state[0] += 1
                if state[0] == len(steps):
                    left -= 1
                    self.epoll.unregister(descriptor)
                    continue
                connection.send(steps[state[0]][0])
                state[1] = steps[state[0]][1]
        return time.monotonic() - start


def asked(name, *arguments):
    return request("C", name, *arguments)
