"""A raw-socket TCPStore client for tests: builds requests of any dialect, right or wrong ones."""
import select
import socket
import struct
import time

DEADLINE = 20.0
MAGIC = 0x3C85F7CE
NAMES = ["SET", "COMPARE_SET", "GET", "ADD", "CHECK", "WAIT", "GETNUMKEYS"]
NAMES_A = NAMES + ["WATCH_KEY", "DELETE_KEY"]
NAMES_B = NAMES + ["DELETE_KEY", "APPEND", "MULTI_GET", "MULTI_SET", "CANCEL_WAIT"]
NAMES_C = ["VALIDATE"] + NAMES_B + ["PING", "QUEUE_PUSH", "QUEUE_POP", "QUEUE_LEN", "LIST_KEYS", "BARRIER"]
CODES = {dialect: {name: code for code, name in enumerate(names)}
         for dialect, names in (("A", NAMES_A), ("B", NAMES_B), ("C", NAMES_C))}
HELLO = struct.pack("<BI", 0, MAGIC)


def blob(data):
    data = data.encode() if isinstance(data, str) else data
    return struct.pack("<Q", len(data)) + data


def request(dialect, name, *arguments):
    """Strings become length and bytes, integers i64, lists a count and their items."""
    out = bytes([CODES[dialect][name]])
    for argument in arguments:
        if isinstance(argument, int):
            out += struct.pack("<q", argument)
        elif isinstance(argument, list):
            items = (b"".join(map(blob, item)) if isinstance(item, tuple) else blob(item)
                     for item in argument)
            out += struct.pack("<Q", len(argument)) + b"".join(items)
        else:
            out += blob(argument)
    return out


class Client:
    def __init__(self, port, dialect, hello=True):
        self.dialect = dialect
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if dialect == "C" and hello:
            self.send(HELLO)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def ask(self, name, *arguments):
        self.send(request(self.dialect, name, *arguments))

    def receive(self, length):
        data = b""
        while len(data) < length:
            piece = self.socket.recv(length - len(data))
            assert piece, "closed after %r" % data[:40]
            data += piece
        return data

    def number(self):
        return struct.unpack("<q", self.receive(8))[0]

    def value(self):
        return self.receive(struct.unpack("<Q", self.receive(8))[0])

    def get(self, key):
        self.ask("GET", key)
        return self.value()

    def add(self, key, difference):
        self.ask("ADD", key, difference)
        return self.number()

    def keys(self):
        """Also a fence: whatever was sent before has been carried out."""
        self.ask("GETNUMKEYS")
        return self.number()

    def expect(self, data):
        got = self.receive(len(data))
        assert got == data, "got %r, not %r" % (got, data)

    def expect_closed(self):
        end = time.monotonic() + DEADLINE
        try:
            while time.monotonic() < end:
                if not self.socket.recv(65536):
                    return
        except ConnectionError:
            return
        raise AssertionError("the connection is still open")

    def expect_nothing_waiting(self):
        assert not select.select([self.socket], [], [], 0)[0], "bytes that nobody asked for"
