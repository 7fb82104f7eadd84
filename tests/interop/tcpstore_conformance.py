#!/usr/bin/env python3
"""Speaks TCPStore to `ddprendezvous` with raw sockets, in every dialect, well and badly.

    tcpstore_conformance.py PATH_OF_DDPRENDEZVOUS
"""
import os
import socket
import struct
import sys

import tcpstore_waiting  # noqa: F401, registers its tests
from store_daemon import store_daemon
from tcpstore_client import CODES, HELLO, Client, blob
from tcpstore_scene import TESTS, run, test


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
    if b.dialect in "BC":
        cases += [(b.request("MULTI_SET", [(k, "value"), (w, "")]), b""),
                  (b.request("MULTI_GET", [w, k]), blob("") + blob("value")),
                  (b.request("APPEND", k, ""), b""),
                  (b.request("CANCEL_WAIT"), b"\x01")]
    if b.dialect == "C":
        cases += [(b"\x0d" + b"\x01\x02\x03\x04", b"\x01\x02\x03\x04"),
                  (HELLO, b""),
                  (b.request("QUEUE_PUSH", k, "item"), b""),
                  (b.request("QUEUE_LEN", w), struct.pack("<q", 0)),
                  (b.request("QUEUE_POP", w), struct.pack("<q", 0)),
                  (b.request("BARRIER", b.key("barrier"), 1), b"\x00")]
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
    if b.dialect in "AB":
        c.expect_closed()
    else:
        assert c.value() == b""


@test("A")
def the_second_connection_of_a_client_may_be_silent(b):
    silent = b.client()
    assert b.client().add(b.key("n"), 1) == 1
    silent.socket.settimeout(0.2)
    try:
        assert silent.socket.recv(1), "a silent connection was closed"
    except socket.timeout:
        pass


@test("BC")
def append_and_multi(b):
    c = b.client()
    c.ask("APPEND", b.key("a"), "po")
    c.ask("APPEND", b.key("a"), "tato")
    c.ask("MULTI_SET", [(b.key("x"), "1"), (b.key("y"), "2")])
    c.ask("MULTI_GET", [b.key("y"), b.key("a"), b.key("x")])
    assert [c.value() for _ in range(3)] == [b"2", b"potato", b"1"]
    c.ask("MULTI_GET", [b.key("y"), b.key("none")])
    if b.dialect == "B":
        c.expect_closed()
    else:
        assert [c.value() for _ in range(2)] == [b"2", b""]


@test("C")
def ping(b):
    c = b.client()
    c.send(b"\x0d\xef\xbe\xad\xde")
    c.expect(b"\xef\xbe\xad\xde")


@test("C")
def the_list_of_keys(b):
    c = b.client()
    c.ask("MULTI_SET", [(b.key("x"), ""), (b.key("y"), "")])
    c.ask("QUEUE_PUSH", b.key("a queue is none"), "")
    c.ask("LIST_KEYS")
    listed = [c.value() for _ in range(c.number())]
    mine = sorted(key for key in listed if key.startswith(b.prefix.encode()))
    assert mine == [b.key("x").encode(), b.key("y").encode()] and len(set(listed)) == len(listed)


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


@test("BC")
def a_reply_over_the_limit_closes(b):
    c, other = b.client(), b.client()
    c.ask("SET", b.key("k"), bytes(8 << 20))
    c.ask("MULTI_GET", [b.key("k")] * 8)
    c.expect_closed()
    other.ask("DELETE_KEY", b.key("k"))
    assert other.number() == 1


@test()
def unknown_codes_close(b):
    # A connection of dialect A that uses a code of B is one of B.
    known = set(range(12)) if b.dialect in "AB" else set(range(19))
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
        except OSError:
            pass  # it has closed already
        bad.expect_closed()
        bad.socket.close()
    assert good.add(b.key("n"), 1) == 2


def dialect_b_shows_itself(b):
    """To a server that expects A of legacy clients."""
    c = b.client()
    c.ask("SET", b.key("k"), "v")
    c.ask("DELETE_KEY", b.key("k"))
    assert c.number() == 1
    c.ask("APPEND", b.key("k"), "more")
    assert c.get(b.key("k")) == b"more"
    for name, arguments, reply in (("MULTI_GET", [[b.key("k")]], blob("more")), ("CANCEL_WAIT", [], b"\x01")):
        c = b.client()
        c.ask(name, *arguments)
        c.expect(reply)
        c.ask("DELETE_KEY", b.key("n"))
        assert c.number() == 0
    c = b.client()
    c.ask("MULTI_SET", [(b.key("m"), "v")])
    c.ask("DELETE_KEY", b.key("m"))
    assert c.number() == 1


if __name__ == "__main__":
    with store_daemon(sys.argv[1]) as (daemon_port, _):
        failed = run(daemon_port, "AC", TESTS)
        failed += run(daemon_port, "B", [(dialect_b_shows_itself, "B")])
    with store_daemon(sys.argv[1], "--legacy-store", "2.1") as (daemon_port, _):
        failed += run(daemon_port, "B", TESTS)
    print("%d failed" % failed)
    sys.exit(1 if failed else 0)
