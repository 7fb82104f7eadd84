"""ddplaunch near the limits of the system: it works, or says in one line what is too much."""
import os
import resource
import socket
import subprocess
import unittest

from launcher_harness import DDPLAUNCH, Job, alive_with, can_run_as

UNKNOWN_USER = 54322  # nobody else's processes count towards its limit
LONGEST_ARGUMENT = 128 * 1024 - 1


def limit_of_arguments():
    """What execve takes in all, as execve(2) says."""
    soft, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return 6 << 20 if soft == resource.RLIM_INFINITY else min(max(soft // 4, 128 << 10), 6 << 20)


def size_of(texts):
    return sum(len(os.fsencode(text)) + 1 + 8 for text in texts)


class Arguments(unittest.TestCase):
    def launch(self, room):
        """A job whose launcher gets an argument list that long less than the kernel's limit."""
        environment = {"PATH": os.environ["PATH"]}
        command = [DDPLAUNCH, "--nproc-per-node=2", "--no-python", "/bin/sh", "-c", "exit 0", "sh"]
        left = limit_of_arguments() - room - size_of([*command, DDPLAUNCH]) - \
            size_of(f"{name}={value}" for name, value in environment.items())
        while left > 0:
            length = min(left - 9, 100_000)
            command.append("x" * max(length, 0))
            left -= length + 9
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    def test_nearly_the_kernels_limit(self):
        ended = self.launch(room=8192)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_what_the_workers_variables_make_too_long(self):
        ended = self.launch(room=256)
        self.assertEqual(ended.returncode, 126)
        self.assertRegex(ended.stderr, rf"argument list too long \(\d+ bytes, limit {limit_of_arguments()}\)")

    def test_one_text_that_is_too_long(self):
        role = "r" * (LONGEST_ARGUMENT - len("--role="))
        with Job("exit=0", options=["--role=" + role]) as job:
            self.assertEqual(job.wait(), 126)
            self.assertIn(f"ROLE_NAME is too long ({len('ROLE_NAME=' + role)} bytes, limit {LONGEST_ARGUMENT})",
                          job.stderr())

    def test_an_environment_of_one_and_a_half_megabytes(self):
        big = {f"BIG_{i}": "x" * 100_000 for i in range(15)}
        with Job("report={report}:ready", environment=big) as job:
            job.expect("ready", 2)
            self.assertEqual(job.wait(), 0)
            self.assertEqual(job.stderr(), "")


@unittest.skipIf(not can_run_as(UNKNOWN_USER), "not root, or the build is in a private folder")
class Processes(unittest.TestCase):
    def test_a_limit_of_processes_is_explained(self):
        for limit in (1, 2, 3):  # the guardian alone, with its agent, with one of two workers
            with self.subTest(limit=limit), \
                 Job("report={report}:ready", "wait", uid=UNKNOWN_USER,
                     preexec=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))) as job:
                self.assertEqual(job.wait(), 1)
                self.assertIn("ulimit -u", job.stderr())
                self.assertEqual(job.stderr().count("Resource temporarily unavailable"), 1)
                self.assertEqual(alive_with(job.mark), [])
                self.assertEqual(job.stderr().count("ddplaunch: "), 1)


class Ports(unittest.TestCase):
    def test_the_one_who_holds_the_port_is_named(self):
        for family, where in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
            with self.subTest(where=where), socket.socket(family) as taken:
                taken.bind((where, 0))
                taken.listen()
                port = taken.getsockname()[1]
                with Job("exit=0", options=[f"--master-port={port}"]) as job:
                    self.assertEqual(job.wait(), 1)
                    self.assertIn(f"cannot listen on 127.0.0.1:{port}: in use by pid {os.getpid()} (", job.stderr())
                    self.assertEqual(job.stderr().count("ddplaunch: "), 1)

    @unittest.skipIf(not can_run_as(UNKNOWN_USER), "not root, or the build is in a private folder")
    def test_a_holder_that_may_not_be_seen(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with Job("exit=0", options=[f"--master-port={port}"], uid=UNKNOWN_USER) as job:
                self.assertEqual(job.wait(), 1)
                self.assertIn(f"cannot listen on 127.0.0.1:{port}: address already in use", job.stderr())

    def test_two_jobs_without_a_port_are_none_of_each_others_business(self):
        waits = ("report={report}:ready", "wait-for={folder}/go")
        with Job(*waits) as one, Job(*waits) as other:
            for job in (one, other):
                job.expect("ready", 2)
            for job in (one, other):
                job.touch("go")
                self.assertEqual(job.wait(), 0)
                self.assertEqual(job.stderr(), "")


if __name__ == "__main__":
    unittest.main(verbosity=2)
