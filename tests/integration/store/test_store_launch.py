#!/usr/bin/env python3
"""The worker store inside ddplaunch: where it listens, what it is told, and few descriptors.

Needs DDPLAUNCH and SCRIPTED_WORKER in the environment.
"""
import glob
import os
import resource
import socket
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "..", "interop")]
from launcher_harness import Job, children_of, wait_until  # noqa: E402
from tcpstore_client import Client  # noqa: E402

# Its shadow is more than any limit of address space allows.
SANITIZED = any(mark in open(os.environ["DDPLAUNCH"], "rb").read() for mark in (b"__asan_init", b"__tsan_init"))
LOOPBACK = ("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")


def listening(pids):
    """(address in hex, port) of every TCP socket on which one of these processes listens."""
    sockets = set()
    for pid in pids:
        for descriptor in glob.glob("/proc/%d/fd/*" % pid):
            try:
                sockets.add(os.readlink(descriptor))
            except FileNotFoundError:
                pass
    found = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if not os.path.exists(table):
            continue
        with open(table) as lines:
            for line in list(lines)[1:]:
                fields = line.split()
                if fields[3] == "0A" and "socket:[%s]" % fields[9] in sockets:
                    address, port = fields[1].split(":")
                    found.append((address, int(port, 16)))
    return found


def family(job):
    """Guardian, agent and workers."""
    pids, new = [], [job.guardian]
    while new:
        pids += new
        new = [child for pid in new for child in children_of(pid)]
    return pids


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class WhereItListens(unittest.TestCase):
    def test_on_one_node_nothing_listens_but_the_store_on_loopback(self):
        for options in ([], ["--standalone"], ["--master-port=%d" % free_port()],
                        ["--master-addr=0.0.0.0", "--master-port=%d" % free_port()],
                        ["--master-addr=localhost"]):
            with self.subTest(options=options), \
                    Job("report={report}:ready", "wait-for={folder}/go", options=options) as job:
                job.expect("ready", 2)
                ports = listening(family(job))
                self.assertEqual(len(ports), 1, ports)
                self.assertIn(ports[0][0], LOOPBACK)
                job.touch("go")
                self.assertEqual(job.wait(), 0)


class LegacyClients(unittest.TestCase):
    def test_the_launcher_is_told_which_legacy_dialect_workers_speak(self):
        """Only --legacy-store=2.1 makes sense of a first request that both dialects have."""
        for option, kept in (("--legacy-store=2.0", False), ("--legacy-store=2.1", True)):
            port = free_port()
            with self.subTest(option=option), \
                    Job("report={report}:ready", "wait-for={folder}/go",
                        options=[option, "--master-port=%d" % port]) as job:
                job.expect("ready", 2)
                with Client(port, "B") as client:
                    client.ask("APPEND", "/k", "v")  # of dialect A: DELETE_KEY, and then nonsense
                    try:
                        client.ask("GETNUMKEYS")
                        answer = client.number() == 1
                    except (ConnectionError, AssertionError):
                        answer = False
                    self.assertEqual(answer, kept)
                job.touch("go")
                self.assertEqual(job.wait(), 0)


class FewDescriptors(unittest.TestCase):
    def test_two_hundred_connections_don_t_keep_the_agent_from_starting_and_stopping_workers(self):
        port = free_port()
        limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))  # noqa: E731
        with Job("report={report}:ready", "wait-for={folder}/go", "exit-in-restart=0:3", "report={report}:again",
                 "wait-for={folder}/end", options=["--max-restarts=1", "--master-port=%d" % port],
                 preexec=limit) as job:
            job.expect("ready", 2)
            agent = job.agent()
            silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
            used = lambda: len(os.listdir("/proc/%d/fd" % agent))  # noqa: E731
            wait_until(lambda: used() >= 25, "connections with the agent")
            job.touch("go")
            job.expect("again", 2)  # stopped, and started anew
            silent += [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
            with Client(port, "C") as client:
                self.assertEqual(client.add("/n", 1), 1)
            self.assertLessEqual(used(), 64)
            job.touch("end")
            self.assertEqual(job.wait(), 0, job.stderr())
            for connection in silent:
                connection.close()


@unittest.skipIf(SANITIZED, "a sanitizer needs address space without bound")
class LittleMemory(unittest.TestCase):
    def test_where_the_store_finds_no_memory_one_line_says_what_to_do(self):
        port = free_port()
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))  # noqa: E731
        with Job("report={report}:ready", "wait-for={folder}/never", options=["--master-port=%d" % port],
                 preexec=limit) as job:
            job.expect("ready", 2)
            with Client(port, "C") as client:
                with self.assertRaises((ConnectionError, AssertionError)):
                    for i in range(100):
                        client.ask("SET", "/k%d" % i, bytes(8 << 20))
                        client.keys()
            self.assertEqual(job.wait(), 1)
            lines = [line for line in job.stderr().splitlines() if "memory" in line or "alloc" in line]
            self.assertEqual(len(lines), 1, job.stderr())
            self.assertRegex(lines[0], "^ddplaunch: cannot go on: out of memory [(]raise ulimit -v ")


if __name__ == "__main__":
    unittest.main(verbosity=2)
