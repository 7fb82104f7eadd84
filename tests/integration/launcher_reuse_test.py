"""ddplaunch restarts 10,000 times while process numbers are used again at once: no stranger is hurt, nothing adds up.

Needs BYSTANDERS and QUICK_WORKER in the environment beside the others. Runs in a PID namespace of its own, where
somebody keeps setting back the kernel's last number (ns_last_pid). DDP_RESTARTS sets the length.
"""
import os
import statistics
import subprocess
import sys
import time
import unittest

from launcher_harness import Job, children_of, state_of

RESTARTS = int(os.environ.get("DDP_RESTARTS", "10000"))
FIRST = 300
BYSTANDERS = 12
SETTLED = 1000  # restarts after which nothing may grow any more
ZOMBIE_LIMIT_S = 1.0  # 0.1 is promised


class Watch:
    """What the agent looks like while it restarts."""

    def __init__(self, job):
        self.job = job
        self.agent = job.agent()
        self.errors = open(job.err_path, "rb")  # pylint: disable=consider-using-with  # closed by __exit__
        self.unfinished = b""
        self.restarts = 0
        self.samples = []  # restarts, descriptors, bytes of memory
        self.workers = set()
        self.dead_since = {}
        self.oldest_zombie_s = 0.0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.errors.close()

    def look(self):
        lines = (self.unfinished + self.errors.read()).split(b"\n")
        self.unfinished = lines.pop()
        self.restarts += sum(line.startswith(b"ddplaunch: restart ") for line in lines)
        now = time.monotonic()
        children = children_of(self.agent)
        self.workers.update(children)
        dead = {pid for pid in children if state_of(pid) == "Z"}
        self.dead_since = {pid: self.dead_since.get(pid, now) for pid in dead}
        self.oldest_zombie_s = max([self.oldest_zombie_s] + [now - since for since in self.dead_since.values()])
        try:
            with open(f"/proc/{self.agent}/statm") as statm:
                memory = int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            self.samples.append((self.restarts, len(os.listdir(f"/proc/{self.agent}/fd")), memory))
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended

    def at(self, low, high):
        """Fewest descriptors and median memory between so many restarts."""
        chosen = [(fds, memory) for restarts, fds, memory in self.samples if low <= restarts < high]
        return min(fds for fds, _ in chosen), statistics.median(memory for _, memory in chosen)


class Reuse(unittest.TestCase):
    def test_restarts_beside_strangers(self):
        strangers = subprocess.Popen([os.environ["BYSTANDERS"], str(FIRST), str(BYSTANDERS)],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started = time.monotonic()
        options = [f"--max-restarts={RESTARTS}", "--restart-delay=0"]
        with Job(program=[os.environ["QUICK_WORKER"]], options=options) as job, Watch(job) as watch:
            while job.process.poll() is None:
                watch.look()
                time.sleep(0.02)
            watch.look()
            self.assertEqual(job.wait(), 7)
            self.assertEqual(watch.restarts, RESTARTS)
            self.assertEqual(job.left_in_temp(), [])
        took_s = time.monotonic() - started
        strangers.terminate()
        said, complaints = strangers.communicate(timeout=20)
        _, born, _, hurt, _, *numbers = said.split()
        shared = {int(number) for number in numbers} & watch.workers
        print(f"{RESTARTS} restarts in {took_s:.0f} s, {born} strangers born with {len(numbers)} numbers, "
              f"{len(shared)} of them seen on workers too; oldest zombie {watch.oldest_zombie_s:.3f} s")
        self.assertEqual(int(hurt), 0, complaints)
        # The fault took place: the same few numbers went to and fro.
        self.assertGreater(int(born), 10 * len(numbers))
        self.assertGreater(len(shared), 5)
        self.assertLess(watch.oldest_zombie_s, ZOMBIE_LIMIT_S)
        early, late = watch.at(SETTLED, 2 * SETTLED), watch.at(RESTARTS - SETTLED, RESTARTS)
        print(f"descriptors and memory: {early} after {SETTLED} restarts, {late} in the end")
        self.assertLess(late[0] - early[0], 4)  # a leak would be thousands
        self.assertLess(late[1] - early[1], 128 * 1024)


def isolate_numbers():
    """Begins anew as the first process of a namespace, where that is permitted."""
    isolated = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    probe = [*isolated, "sh", "-c", "echo 300 > /proc/sys/kernel/ns_last_pid"]
    if subprocess.run(probe, capture_output=True).returncode != 0:
        print("skipped: process numbers can't be chosen here")
        sys.exit(77)
    os.execvpe(isolated[0], [*isolated, sys.executable, *sys.argv], {**os.environ, "DDP_OWN_NUMBERS": "1"})


if __name__ == "__main__":
    if "DDP_OWN_NUMBERS" not in os.environ:
        isolate_numbers()
    unittest.main(verbosity=2)
