"""Where the TCPStore conformance tests register themselves, what each works with, and how they are run."""
import fcntl
import struct
import termios
import time

from tcpstore_client import DEADLINE, Client, request

TESTS = []


def test(dialects="ABC"):
    def register(function):
        TESTS.append((function, dialects))
        return function
    return register


class Bench:
    """What a test works with: clients of one dialect, a key space of its own."""

    def __init__(self, port, dialect, name):
        self.port, self.dialect, self.prefix = port, dialect, "/%s/%s/" % (dialect, name)
        self.clients = []

    def client(self, **options):
        self.clients.append(Client(self.port, self.dialect, **options))
        return self.clients[-1]

    def key(self, name):
        return self.prefix + name

    def request(self, name, *arguments):
        return request(self.dialect, name, *arguments)


def settle(fence, waiting):
    """The store has read the WAITs when it has nothing left to read: a loop that serves all its
    connections in turn has come past them after two rounds through another one."""
    end = time.monotonic() + DEADLINE
    while any(unread(c) for c in waiting):
        assert time.monotonic() < end
    for _ in range(10):
        fence.keys()


def unread(client):
    """Bytes that the peer's kernel has not acknowledged."""
    return struct.unpack("i", fcntl.ioctl(client.socket, termios.TIOCOUTQ, b"\0" * 4))[0]


def run(port, dialects, tests):
    failures = 0
    for function, of in tests:
        for dialect in filter(of.__contains__, dialects):
            bench = Bench(port, dialect, function.__name__)
            try:
                function(bench)
                outcome = "ok"
            except (AssertionError, OSError) as error:
                failures += 1
                outcome = "FAILED: %s: %s" % (type(error).__name__, error)
            for client in bench.clients:
                client.socket.close()
            print("%s %-50s %s" % (dialect, function.__name__, outcome), flush=True)
    return failures
