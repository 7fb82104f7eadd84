#!/usr/bin/env python3
"""Speaks TCPStore to `ddprendezvous` with raw sockets, dialects A and C, well and badly.

    tcpstore_conformance.py PATH_OF_DDPRENDEZVOUS
"""
import fcntl
import os
import socket
import struct
import sys
import termios
import time

from store_daemon import store_daemon
from tcpstore_client import CODES, DEADLINE, HELLO, Client, blob, request

TESTS = []


def test(dialects="AC"):
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


@test()
def values_are_bytes(b):
    c, key = b.client(), b.key("k")
    for value in (b"v1", b"", b"\x00\xff\n", bytes(range(256)) * 300):
        c.ask("SET", key, value)
        assert c.get(key) == value
    c.expect_nothing_waiting()


@test()
def every_fragmentation_of_every_request(b):
    """Each request is cut in two at every byte; another client is served in between."""
    other, c, k, n, w = b.client(), b.client(), b.key("k"), b.key("n"), b.key("w")
    other.keys()
    cases = [(b.request("SET", k, "value"), b""),
             (b.request("COMPARE_SET", k, "value", "value"), blob("value")),
             (b.request("GET", k), blob("value")),
             (b.request("CHECK", [k, n]), b"\x01"),
             (b.request("WAIT", [k, k]), b"\x00"),
             (b.request("DELETE_KEY", n), struct.pack("<q", 0))]
    if b.dialect == "C":
        cases += [(b.request("MULTI_SET", [(k, "value"), (w, "")]), b""),
                  (b.request("MULTI_GET", [w, k]), blob("") + blob("value")),
                  (b.request("APPEND", k, ""), b""),
                  (b"\x0d" + b"\x01\x02\x03\x04", b"\x01\x02\x03\x04"),
                  (HELLO, b"")]
    for data, reply in cases:
        for cut in range(1, len(data)):
            c.send(data[:cut])
            other.keys()
            c.send(data[cut:])
            c.expect(reply)
    assert c.add(n, 1) == 1


@test()
def a_connection_byte_by_byte(b):
    c = b.client(hello=False)
    start = HELLO if b.dialect == "C" else b""
    for byte in start + b.request("SET", b.key("k"), "slow") + b.request("GET", b.key("k")):
        c.send(bytes([byte]))
    assert c.value() == b"slow"


@test()
def half_requests_of_many_block_nobody(b):
    whole = b.request("SET", b.key("half"), b"0123456789")
    halves = [b.client() for _ in range(50)]
    for i, half in enumerate(halves):
        half.send(whole[:1 + i % (len(whole) - 1)])
    c = b.client()
    assert [c.add(b.key("n"), 1) for _ in range(100)] == list(range(1, 101))
    for i, half in enumerate(halves):
        half.send(whole[1 + i % (len(whole) - 1):])
        half.keys()
    assert c.get(b.key("half")) == b"0123456789"


@test()
def pipelined_requests_are_answered_in_order(b):
    c = b.client()
    c.send(b"".join(b.request("SET", b.key("k"), str(i)) + b.request("GET", b.key("k")) +
                    b.request("ADD", b.key("n"), 1) for i in range(1000)))
    for i in range(1000):
        assert c.value() == str(i).encode()
        assert c.number() == i + 1


@test()
def add_is_decimal_text(b):
    c, key = b.client(), b.key("n")
    assert c.add(key, 5) == 5 and c.add(key, -7) == -2 and c.get(key) == b"-2"
    for text, total in ((b"  +12abc", 13), (b"7\x00z", 8), (b"9223372036854775807", -2**63)):
        c.ask("SET", key, text)
        assert c.add(key, 1) == total, text
    for text in (b"hello", b"", b"9223372036854775808", b"+-1"):
        c.ask("SET", key, text)
        bad = b.client()
        c.keys()
        bad.ask("ADD", key, 1)
        bad.expect_closed()
        assert c.get(key) == text


@test()
def compare_set(b):
    c, key = b.client(), b.key("k")
    for expected, desired, there in (("other", "new", "other"), ("", "first", "first"),
                                     ("wrong", "x", "first"), ("first", "second", "second"),
                                     ("", "third", "second")):
        c.ask("COMPARE_SET", key, expected, desired)
        assert c.value() == there.encode()


@test()
def delete_and_count(b):
    c, key = b.client(), b.key("k")
    before = c.keys()
    c.ask("SET", key, "")
    assert c.keys() == before + 1
    for existed in (1, 0):
        c.ask("DELETE_KEY", key)
        assert c.number() == existed
    assert c.keys() == before


@test()
def get_of_a_missing_key(b):
    c = b.client()
    c.ask("GET", b.key("missing"))
    if b.dialect == "A":
        c.expect_closed()
    else:
        assert c.value() == b""


@test()
def wait_ends_with_the_last_key(b):
    setting, keys = b.client(), [b.key("a"), b.key("b"), b.key("a")]
    waiting = [b.client() for _ in range(20)]
    for c in waiting:
        c.keys()
        c.ask("WAIT", keys)
    settle(setting, waiting)
    setting.ask("SET", keys[0], "")
    setting.ask("DELETE_KEY", keys[0])  # has been seen: counts
    assert setting.number() == 1
    for c in waiting:
        c.expect_nothing_waiting()
    assert setting.add(keys[1], 0) == 0
    for c in waiting:
        c.expect(b"\x00")
        c.keys()


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


@test()
def a_waiter_that_left(b):
    waiting, c = b.client(), b.client()
    waiting.ask("WAIT", [b.key("k")])
    settle(c, [waiting])
    waiting.socket.close()
    c.keys()
    c.ask("SET", b.key("k"), "v")
    assert c.get(b.key("k")) == b"v"


@test("C")
def cancel_wait(b):
    waiting, setting = b.client(), b.client()
    waiting.ask("WAIT", [b.key("k")])
    waiting.ask("CANCEL_WAIT")
    waiting.expect(b"\x01")
    setting.ask("SET", b.key("k"), "")
    setting.keys()
    assert waiting.keys() >= 0  # nothing came in between


@test("C")
def cancel_wait_races_with_the_key(b):
    c, setting = b.client(), b.client()
    for i in range(200):
        key = b.key("k%d" % i)
        c.ask("WAIT", [key])
        setting.ask("SET", key, "")
        c.ask("CANCEL_WAIT")
        first = c.receive(1)
        if first == b"\x00":  # the key was quicker: then both replies come
            c.expect(b"\x01")
        assert c.add(b.key("n"), 1) == i + 1, "the stream is shifted"


@test("A")
def a_new_request_cancels_a_wait(b):
    c, setting = b.client(), b.client()
    c.ask("WAIT", [b.key("k")])
    assert c.add(b.key("n"), 3) == 3
    setting.ask("SET", b.key("k"), "")
    setting.keys()
    assert c.add(b.key("n"), 1) == 4


@test("A")
def the_second_connection_of_a_client_may_be_silent(b):
    silent = b.client()
    assert b.client().add(b.key("n"), 1) == 1
    silent.socket.settimeout(0.2)
    try:
        assert silent.socket.recv(1), "a silent connection was closed"
    except socket.timeout:
        pass


@test("C")
def ping_append_and_multi(b):
    c = b.client()
    c.send(b"\x0d\xef\xbe\xad\xde")
    c.expect(b"\xef\xbe\xad\xde")
    c.ask("APPEND", b.key("a"), "po")
    c.ask("APPEND", b.key("a"), "tato")
    c.ask("MULTI_SET", [(b.key("x"), "1"), (b.key("y"), "2")])
    c.ask("MULTI_GET", [b.key("y"), b.key("a"), b.key("none"), b.key("x")])
    assert [c.value() for _ in range(4)] == [b"2", b"potato", b"", b"1"]


@test("C")
def all_writes_wake(b):
    setting = b.client()
    for i, write in enumerate((("SET", ""), ("ADD", 0), ("APPEND", ""), ("COMPARE_SET", "", ""))):
        waiting, key = b.client(), b.key("k%d" % i)
        waiting.ask("WAIT", [key])
        settle(setting, [waiting])
        setting.ask(write[0], key, *write[1:])
        waiting.expect(b"\x00")
    waiting = b.client()
    waiting.ask("WAIT", [b.key("m1"), b.key("m2")])
    setting = b.client()
    setting.ask("MULTI_SET", [(b.key("m1"), ""), (b.key("m2"), "")])
    waiting.expect(b"\x00")


@test()
def limits_hold_and_one_more_closes(b):
    code = CODES[b.dialect]
    c, key, value = b.client(), b.key("k").ljust(8192, "x"), os.urandom(8 << 20)
    c.ask("SET", key, value)
    assert c.get(key) == value
    c.ask("DELETE_KEY", key)
    assert c.number() == 1
    c.ask("CHECK", ["k%d" % i for i in range(131072)])
    c.expect(b"\x01")
    for bad in (bytes([code["GET"]]) + struct.pack("<Q", 8193),
                bytes([code["SET"]]) + blob("k") + struct.pack("<Q", (8 << 20) + 1),
                bytes([code["CHECK"]]) + struct.pack("<Q", 131073)):
        for data in (bad, bad[:-8] + b"\xff" * 8, bad[:-8] + struct.pack("<Q", 1 << 63)):
            refused = b.client()
            refused.send(data)
            refused.expect_closed()
    assert c.keys() >= 0


@test("C")
def a_reply_over_the_limit_closes(b):
    c, other = b.client(), b.client()
    c.ask("SET", b.key("k"), bytes(8 << 20))
    c.ask("MULTI_GET", [b.key("k")] * 8)
    c.expect_closed()
    other.ask("DELETE_KEY", b.key("k"))
    assert other.number() == 1


@test()
def unknown_codes_close(b):
    known = set(range(9)) - {7} if b.dialect == "A" else set(range(14))
    c = b.client()
    for code in set(range(256)) - known:
        bad = b.client()
        bad.send(b.request("GETNUMKEYS") + bytes([code]))
        bad.number()
        bad.expect_closed()
    assert c.keys() >= 0


@test()
def garbage_hurts_nobody(b):
    good = b.client()
    assert good.add(b.key("n"), 1) == 1
    for i in range(200):
        junk = (os.urandom(1 + i), b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01" + os.urandom(99),
                HELLO + os.urandom(1 + i))[i % 4]
        bad = Client(b.port, "A")
        try:
            bad.send(junk)
            bad.socket.shutdown(socket.SHUT_WR)
        except ConnectionError:
            pass
        bad.expect_closed()
        bad.socket.close()
    assert good.add(b.key("n"), 1) == 2


def run(port):
    failures = 0
    for function, dialects in TESTS:
        for dialect in dialects:
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


if __name__ == "__main__":
    with store_daemon(sys.argv[1]) as (daemon_port, _):
        failed = run(daemon_port)
    print("%d failed" % failed)
    sys.exit(1 if failed else 0)
