"""TCPStore conformance: WAIT, CANCEL_WAIT, watched keys, queues and barriers."""
from tcpstore_client import blob
from tcpstore_scene import settle, test


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


@test()
def a_waiter_that_left(b):
    waiting, c = b.client(), b.client()
    waiting.ask("WAIT", [b.key("k")])
    settle(c, [waiting])
    waiting.socket.close()
    c.keys()
    c.ask("SET", b.key("k"), "v")
    assert c.get(b.key("k")) == b"v"


@test("BC")
def cancel_wait(b):
    waiting, setting = b.client(), b.client()
    waiting.ask("WAIT", [b.key("k")])
    waiting.ask("CANCEL_WAIT")
    waiting.expect(b"\x01")
    setting.ask("SET", b.key("k"), "")
    setting.keys()
    assert waiting.keys() >= 0  # nothing came in between


@test("BC")
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


@test("AB")
def a_new_request_cancels_a_wait(b):
    c, setting = b.client(), b.client()
    c.ask("WAIT", [b.key("k")])
    assert c.add(b.key("n"), 3) == 3
    setting.ask("SET", b.key("k"), "")
    setting.keys()
    assert c.add(b.key("n"), 1) == 4


@test("A")
def watched_keys(b):
    watching, c, key = b.client(), b.client(), b.key("k")
    watching.ask("WATCH_KEY", b.key("another"))
    watching.ask("WATCH_KEY", key)
    watching.expect(b"\x03\x03")
    c.ask("SET", key, "one")
    c.add(b.key("n"), 1)
    c.ask("SET", key, "two")
    c.ask("DELETE_KEY", key)
    assert c.number() == 1
    for event, before, after in ((1, "", "one"), (0, "one", "two"), (2, "two", "")):
        watching.expect(bytes([event]) + blob(key) + blob(before) + blob(after))
    watching.expect_nothing_waiting()


@test("C")
def queues(b):
    c, q = b.client(), b.key("q")
    c.ask("QUEUE_POP", q)
    assert c.number() == 0
    before = c.keys()
    for item in ("1", "", "333"):
        c.ask("QUEUE_PUSH", q, item)
    c.ask("QUEUE_LEN", q)
    assert c.number() == 3
    c.ask("CHECK", [q])
    c.expect(b"\x00")
    assert c.keys() == before
    for left, item in ((3, b"1"), (2, b""), (1, b"333")):
        c.ask("QUEUE_POP", q)
        assert (c.number(), c.value()) == (left, item)
    c.ask("CHECK", [q])
    c.expect(b"\x01")


@test("C")
def a_push_wakes_one_and_in_turn(b):
    pushing, q, key = b.client(), b.key("q"), b.key("k")
    first, both, second = b.client(), b.client(), b.client()
    for c, names in ((first, [q]), (both, [q, key]), (second, [q])):
        c.ask("WAIT", names)
        settle(pushing, [c])
    pushing.ask("QUEUE_PUSH", q, "1")
    first.expect(b"\x00")
    first.ask("QUEUE_POP", q)
    assert (first.number(), first.value()) == (1, b"1")
    second.expect_nothing_waiting()
    pushing.ask("QUEUE_PUSH", q, "2")  # for `both`, which goes on waiting for the key, and for `second`
    second.expect(b"\x00")
    both.expect_nothing_waiting()
    pushing.ask("SET", key, "")
    both.expect(b"\x00")
    late = b.client()
    late.ask("WAIT", [q, b.key("other")])  # the queue holds something: the key alone is missing
    settle(pushing, [late])
    pushing.ask("SET", b.key("other"), "")
    late.expect(b"\x00")


@test("C")
def a_value_whose_waiter_has_left_goes_to_the_next(b):
    pushing, leaving, staying, q = b.client(), b.client(), b.client(), b.key("q")
    for c in (leaving, staying):
        c.ask("WAIT", [q])
        settle(pushing, [c])
    pushing.ask("QUEUE_PUSH", q, "1")
    leaving.expect(b"\x00")
    leaving.socket.close()
    staying.expect(b"\x00")
    staying.ask("QUEUE_POP", q)
    assert (staying.number(), staying.value()) == (1, b"1")


@test("C")
def barrier(b):
    early, gone, last = b.client(), b.client(), b.client()
    for c in (early, gone):
        c.ask("BARRIER", b.key("b"), 3)
        settle(last, [c])
    gone.ask("CANCEL_WAIT")
    gone.expect(b"\x01")
    assert last.get(b.key("b")) == b"2"
    early.expect_nothing_waiting()
    last.ask("BARRIER", b.key("b"), 3)  # who gave up stays counted
    last.expect(b"\x00")
    early.expect(b"\x00")
    gone.ask("BARRIER", b.key("b"), 3)
    gone.expect(b"\x00")
    assert gone.get(b.key("b")) == b"4"


@test("BC")
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
