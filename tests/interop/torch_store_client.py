#!/usr/bin/env python3
"""Drives `ddprendezvous` with PyTorch's own TCPStore client, that of each PyTorch found.

    torch_store_client.py PATH_OF_DDPRENDEZVOUS

Exits with 77 (skipped) where there is no PyTorch.
"""
import datetime
import os
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from store_daemon import store_daemon  # noqa: E402
from torch_pythons import torch_pythons_or_skip  # noqa: E402

if len(sys.argv) == 2:  # as ctest calls it: once more with each PyTorch
    codes = [subprocess.run([python.path, __file__, sys.argv[1], "here"], check=False).returncode
             for python in torch_pythons_or_skip()]
    sys.exit(1 if any(codes) else 0)

import torch  # noqa: E402
from torch.distributed import PrefixStore, TCPStore  # noqa: E402

NOT_KNOWN = "not in this version"
VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


def client(port, world_size=None, seconds=20):
    arguments = ["127.0.0.1", port, world_size, False, datetime.timedelta(seconds=seconds)]
    try:
        return TCPStore(*arguments)
    except Exception as error:  # a build without libuv refuses its default, even for a client
        if "libuv" not in str(error):
            raise
        return TCPStore(*arguments, use_libuv=False)


def knows(store, request):
    """Whether this PyTorch has that request; without libuv its client has none of the newest."""
    return hasattr(store, request) and getattr(store, "libuvBackend", False)


def equal(got, want):
    assert got == want, "got %r, not %r" % (got, want)


def times_out(action):
    try:
        action()
    except Exception as error:  # the type differs from version to version
        assert "imeout" in str(error), error
        return
    raise AssertionError("no timeout")


def values_and_counters(port):
    store = client(port)
    store.set("k", "v")
    equal(store.get("k"), b"v")
    prefixed = PrefixStore("p", store)
    prefixed.set("k", "w")
    equal(store.get("p/k"), b"w")
    equal([store.add("n", 3), store.add("n", -4), store.add("n", 0)], [3, -1, -1])
    equal(store.get("n"), b"-1")
    equal(store.compare_set("c", "expected", "x"), b"expected")
    equal(store.compare_set("c", "", "x"), b"x")
    equal(store.compare_set("c", "wrong", "y"), b"x")
    equal(store.compare_set("c", "x", "y"), b"y")
    before = store.num_keys()
    equal([store.delete_key("k"), store.delete_key("k")], [True, False])
    equal(store.num_keys(), before - 1)
    big = "0123456789abcdef" * (1 << 18)
    store.set("big", big)
    equal(store.get("big"), big.encode())


def waiting(port):
    store, other = client(port), client(port)
    late = threading.Timer(0.1, lambda: other.set("late", "1"))
    late.start()
    equal(store.get("late"), b"1")
    store.wait(["late"], datetime.timedelta(seconds=20))
    late.join()


def usable_after_a_timeout(port):
    store, other = client(port), client(port)
    times_out(lambda: store.wait(["never"], datetime.timedelta(milliseconds=200)))
    equal(store.add("after", 1), 1)
    other.set("never", "now")
    other.num_keys()
    equal(store.get("never"), b"now")
    equal(store.add("after", 1), 2)


def newer_requests(port):
    if VERSION < (2, 1):
        return NOT_KNOWN
    store = client(port)
    equal(store.check(["n"]), True)
    equal(store.check(["n", "missing"]), False)
    store.append("a", "po")
    store.append("a", "tato")
    store.multi_set(["m1", "m2"], ["1", "2"])
    equal(store.multi_get(["m2", "a", "m1"]), [b"2", b"potato", b"1"])


def queues(port):
    store, other = client(port), client(port)
    if not knows(store, "queue_push"):
        return NOT_KNOWN
    equal(store.queue_len("q"), 0)
    for value in ("first", "second", "third"):
        store.queue_push("q", value)
    equal(store.queue_len("q"), 3)
    equal([other.queue_pop("q"), other.queue_pop("q"), store.queue_pop("q")], [b"first", b"second", b"third"])
    try:
        store.queue_pop("q", block=False)
    except torch.distributed.QueueEmptyError:
        pass
    else:
        raise AssertionError("something came out of an empty queue")
    late = threading.Timer(0.1, lambda: other.queue_push("q", "late"))
    late.start()
    equal(store.queue_pop("q"), b"late")
    late.join()
    equal(store.check(["q"]), False)
    store.queue_push("q", "seen")
    equal(store.check(["q"]), True)
    store.wait(["q"], datetime.timedelta(seconds=20))


def a_list_of_keys(port):
    store = client(port)
    if not knows(store, "list_keys"):
        return NOT_KNOWN
    PrefixStore("listed", store).set("k", "v")
    keys = store.list_keys()
    assert "listed/k" in keys, keys
    equal(len(keys), store.num_keys())


def barriers(port):
    stores, passed = [client(port) for _ in range(4)], []
    if not knows(stores[0], "barrier"):
        return NOT_KNOWN

    def meet(store):
        store.barrier("meeting", len(stores))
        passed.append(store)
    threads = [threading.Thread(target=meet, args=(store,)) for store in stores[1:]]
    for thread in threads:
        thread.start()
    times_out(lambda: client(port).barrier("nobody else comes", 2, datetime.timedelta(milliseconds=200)))
    equal(len(passed), 0)
    meet(stores[0])
    for thread in threads:
        thread.join()
    equal(len(passed), len(stores))
    equal(stores[0].add("after the meeting", 1), 1)


def a_world_joins(port):
    stores = [client(port, world_size=8) for _ in range(8)]
    equal(stores[0].num_keys() > 0, True)
    counts = sorted(store.add("joined", 1) for store in stores)
    equal(counts, list(range(1, 9)))


if __name__ == "__main__":
    with store_daemon(sys.argv[1]) as (port, _):
        for part in (values_and_counters, waiting, usable_after_a_timeout, newer_requests,
                     queues, a_list_of_keys, barriers, a_world_joins):
            said = part(port)
            print("PyTorch %s: %s %s" % (torch.__version__, part.__name__, said or "ok"), flush=True)
