"""Two nodes, each a network namespace of its own, under ddplaunch. Usage: test_two_nodes.py BIN_DIR

Needs root and network namespaces; says so and is skipped (77) elsewhere. The two "hosts" share /proc and the boot id,
so the tests assert which back end carried the bytes.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ADDRESSES = ["10.213.7.1", "10.213.7.2"]
NAMES = ["ddpt%d-%d" % (os.getpid(), i) for i in range(2)]
LIMIT = 60  # seconds: far above what anything here takes


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True)


def make_hosts():
    veth = ["dv%d%s" % (os.getpid() % 100000, end) for end in "ab"]
    for name in NAMES:
        if ip("netns", "add", name).returncode != 0:
            return False
    if ip("link", "add", veth[0], "type", "veth", "peer", "name", veth[1]).returncode != 0:
        return False
    for name, link, address in zip(NAMES, veth, ADDRESSES):
        ip("link", "set", link, "netns", name)
        ip("-n", name, "addr", "add", address + "/24", "dev", link)
        ip("-n", name, "link", "set", link, "up")
        ip("-n", name, "link", "set", "lo", "up")
    return all(ip("netns", "exec", name, "true").returncode == 0 for name in NAMES)


def remove_hosts():
    for name in NAMES:
        ip("netns", "del", name)


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def agent_of(guardian):
    """The guardian's one child."""
    with open("/proc/%d/task/%d/children" % (guardian, guardian)) as f:
        (agent,) = f.read().split()
    with open("/proc/%s/comm" % agent) as f:
        assert f.read().strip() == "ddp-agent"
    return int(agent)


class Job:
    """One ddplaunch per host, outputs in files."""

    def __init__(self, folder, command, options=(), workers=2, port=29517, own=({}, {})):
        self.folder = folder
        self.agents = []
        for node in range(2):
            out = open(os.path.join(folder, "node%d.out" % node), "w")
            err = open(os.path.join(folder, "node%d.err" % node), "w")
            self.agents.append(subprocess.Popen(
                ["ip", "netns", "exec", NAMES[node], os.path.join(BIN, "ddplaunch"), "--nnodes=2",
                 "--node-rank=%d" % node, "--nproc-per-node=%d" % workers, "--master-addr=" + ADDRESSES[0],
                 "--master-port=%d" % port, *options, *command],
                stdout=out, stderr=err, stdin=subprocess.DEVNULL,
                env=dict(os.environ, PATH=BIN + ":" + os.environ["PATH"], OUT=folder, **own[node])))
            out.close()
            err.close()

    def wait(self):
        return [a.wait(timeout=LIMIT) for a in self.agents]

    def text(self, node, stream):
        with open(os.path.join(self.folder, "node%d.%s" % (node, stream))) as f:
            return f.read()

    def end(self):
        for a in self.agents:
            if a.poll() is None:
                a.kill()
                a.wait()


def wait_for(path):
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        if os.path.exists(path) and os.path.getsize(path) > 0:
            with open(path) as f:
                return f.read()
        time.sleep(0.01)
    raise AssertionError("%s never appeared" % path)


class TwoNodes(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.addCleanup(self.tmp.cleanup)

    def job(self, command, **kw):
        job = Job(self.tmp.name, command, **kw)
        self.addCleanup(job.end)
        return job

    def script(self, body):
        """A worker: a shell script that first says its pid (ddplaunch makes $$ of $$$$), then does `body`."""
        announce = 'echo $$$$ > "$OUT/tmp.$RANK" && mv "$OUT/tmp.$RANK" "$OUT/pid.$RANK"; '
        return ["--no-python", "sh", "-c", announce + body]

    def pids(self, world=4):
        return [int(wait_for(os.path.join(self.tmp.name, "pid.%d" % r))) for r in range(world)]

    def assert_all_gone(self, pids):
        deadline = time.monotonic() + 20
        while any(alive(p) for p in pids) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual([p for p in pids if alive(p)], [])

    def test_all_reduce_over_gloo(self):
        job = self.job([os.path.join(BIN, "hello")])
        codes = job.wait()
        self.assertEqual(codes, [0, 0], job.text(0, "err") + job.text(1, "err"))
        out = job.text(0, "out") + job.text(1, "out")
        for rank in range(4):
            self.assertRegex(out, r"rank %d of 4\b" % rank)
        self.assertEqual(out.count("gloo"), 4, out)

    def test_the_environment_of_each_node(self):
        job = self.job(["--no-python", "sh", "-c",
                        'echo "$RANK $LOCAL_RANK $GROUP_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_WORLD_SIZE '
                        '$MASTER_ADDR $MASTER_PORT $TORCHELASTIC_USE_AGENT_STORE"'])
        self.assertEqual(job.wait(), [0, 0])
        lines = sorted((job.text(0, "out") + job.text(1, "out")).splitlines())
        self.assertEqual(lines, ["%d %d %d 4 2 2 10.213.7.1 29517 True" % (r, r % 2, r // 2) for r in range(4)])

    def test_a_failure_on_node_1_ends_both_with_its_code(self):
        path = os.path.join(self.tmp.name, "go")
        os.mkfifo(path)
        go = os.open(path, os.O_RDWR)  # so that nobody waits for the other end, should it never come
        self.addCleanup(os.close, go)
        job = self.job(self.script('[ $RANK = 3 ] && read x < "$OUT/go" && exit 7; exec sleep 600'))
        pids = self.pids()
        os.write(go, b"go\n")
        self.assertEqual(job.wait(), [7, 7], job.text(0, "err") + job.text(1, "err"))
        self.assert_all_gone(pids)
        for node in range(2):  # each says the same first cause
            self.assertRegex(job.text(node, "err"), r"rank 3\b.*7")

    def test_a_restart_is_a_new_round_on_both(self):
        job = self.job(["--no-python", "sh", "-c",
                        'echo "$RANK $TORCHELASTIC_RESTART_COUNT $DDP_ROUND" >> "$OUT/rounds"; '
                        '[ $RANK = 1 ] && [ $TORCHELASTIC_RESTART_COUNT = 0 ] && exit 3; '
                        '[ $TORCHELASTIC_RESTART_COUNT = 0 ] && exec sleep 600; exit 0'],
                       options=["--max-restarts=1"])
        self.assertEqual(job.wait(), [0, 0], job.text(0, "err") + job.text(1, "err"))
        with open(os.path.join(self.tmp.name, "rounds")) as f:
            rows = [line.split() for line in f]
        second = [r for r in rows if r[1] == "1"]
        self.assertEqual(sorted(r[0] for r in second), ["0", "1", "2", "3"])
        self.assertEqual({r[2].split(":")[0] for r in second}, {"2"})
        self.assertEqual(len({r[2] for r in second}), 1)

    def test_sigterm_to_one_node_ends_both_and_says_so(self):
        job = self.job(self.script("exec sleep 600"))
        pids = self.pids()
        job.agents[1].send_signal(signal.SIGTERM)
        self.assertEqual(job.wait(), [143, 143], job.text(0, "err") + job.text(1, "err"))
        self.assert_all_gone(pids)

    def test_kill_9_of_the_coordinators_agent_ends_node_1(self):
        job = self.job(self.script("exec sleep 600"))
        pids = self.pids()
        os.kill(agent_of(job.agents[0].pid), signal.SIGKILL)
        self.assertEqual(job.agents[0].wait(timeout=LIMIT), 137, job.text(0, "err"))  # the fault took place
        self.assertEqual(job.agents[1].wait(timeout=LIMIT), 122, job.text(1, "err"))
        self.assert_all_gone(pids)

    def test_kill_9_of_the_other_agent_is_noticed_by_node_0(self):
        job = self.job(self.script("exec sleep 600"), options=["--rdzv-conf=join_timeout=2"])
        pids = self.pids()
        os.kill(agent_of(job.agents[1].pid), signal.SIGKILL)
        self.assertEqual(job.agents[1].wait(timeout=LIMIT), 137, job.text(1, "err"))
        self.assertEqual(job.agents[0].wait(timeout=LIMIT), 123, job.text(0, "err"))
        self.assertIn("lost", job.text(0, "err"))
        self.assert_all_gone(pids)

    def test_kill_9_of_a_guardian_ends_both_and_is_named(self):
        job = self.job(self.script("exec sleep 600"))
        pids = self.pids()
        job.agents[1].kill()
        self.assertEqual(job.agents[1].wait(timeout=LIMIT), -signal.SIGKILL)
        self.assertEqual(job.agents[0].wait(timeout=LIMIT), 1, job.text(0, "err"))
        self.assertIn("guardian", job.text(0, "err"))
        self.assert_all_gone(pids)

    def test_a_node_that_never_comes_is_named_after_the_join_timeout(self):
        with tempfile.TemporaryFile("w+") as err:
            run = subprocess.run(["ip", "netns", "exec", NAMES[0], os.path.join(BIN, "ddplaunch"), "--nnodes=2",
                                  "--node-rank=0", "--master-addr=" + ADDRESSES[0], "--master-port=29518",
                                  "--rdzv-conf=join_timeout=1", "--no-python", "true"], stderr=err, timeout=LIMIT)
            err.seek(0)
            text = err.read()
        self.assertEqual(run.returncode, 120, text)
        self.assertIn("1 of 2 nodes", text)

    def test_a_node_with_other_limits_is_refused_and_both_sides_are_named(self):
        common = ["--master-addr=" + ADDRESSES[0], "--master-port=29519", "--no-python", "true"]
        first = subprocess.Popen(["ip", "netns", "exec", NAMES[0], os.path.join(BIN, "ddplaunch"), "--nnodes=2",
                                  "--node-rank=0", *common], stderr=subprocess.PIPE)
        try:
            other = subprocess.run(["ip", "netns", "exec", NAMES[1], os.path.join(BIN, "ddplaunch"), "--nnodes=3",
                                    "--node-rank=2", *common], capture_output=True, text=True, timeout=LIMIT)
            self.assertIsNone(first.poll(), "the first node must go on waiting")
        finally:
            first.terminate()
            said = first.communicate(timeout=LIMIT)[1].decode()
        self.assertEqual(other.returncode, 121, other.stderr)
        self.assertRegex(other.stderr, r"\b2\b.*\b3\b|\b3\b.*\b2\b")
        self.assertEqual(first.returncode, 143)
        self.assertIn("a node was refused", said)  # the one that waits is told as well


if __name__ == "__main__":
    BIN = os.path.abspath(sys.argv.pop(1))
    if os.geteuid() != 0 or not make_hosts():
        remove_hosts()
        print("skipped: network namespaces cannot be made and entered here (root, iproute2, mounts of its own)")
        sys.exit(77)
    try:
        program = unittest.main(verbosity=2, exit=False)
    finally:
        remove_hosts()
    sys.exit(not program.result.wasSuccessful())
