"""ddplaunch in places where something is missing: it runs a job of two all the same."""
import os
import resource
import signal
import subprocess
import unittest

from launcher_harness import DDPLAUNCH, Job, alive_with, is_alive


def can(*command):
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


class Surroundings(unittest.TestCase):
    def succeeds(self, job, said=""):
        with job:
            ranks = sorted(rank for rank, _ in job.expect("ready", 2))
            self.assertEqual(ranks, ["0", "1"])
            self.assertEqual(job.wait(), 0)
            self.assertEqual(job.stderr(), said)
            self.assertEqual(alive_with(job.mark), [])

    def test_each_standard_descriptor_closed(self):
        for descriptor in (0, 1):
            with self.subTest(descriptor=descriptor):
                self.succeeds(Job("report={report}:ready", preexec=lambda: os.close(descriptor)))
        with self.subTest(descriptor=2), Job("descriptors={report}", preexec=lambda: os.closerange(0, 3)) as job:
            for _, *descriptors in job.expect("descriptors", 2):
                self.assertEqual(descriptors, ["0", "1", "2", "3"])
            self.assertEqual(job.wait(), 0)

    def test_64_descriptors(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        self.succeeds(Job("report={report}:ready", preexec=limit))

    def test_too_few_descriptors_for_so_many_workers(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        with Job("exit=0", workers=100, preexec=limit) as job:
            self.assertEqual(job.wait(), 1)  # nothing is wrong with the program: not 126
            self.assertIn("ulimit -n", job.stderr())
            self.assertNotIn("chmod", job.stderr())
            self.assertEqual(alive_with(job.mark), [])

    def test_a_limit_of_file_sizes_is_explained(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        with Job("exit=0", preexec=limit) as job:
            self.assertEqual(job.wait(), 1)
            self.assertIn("ulimit -f", job.stderr())

    def test_a_full_disk_behind_stdout_is_no_success(self):
        with open("/dev/full", "w") as full:
            shown = subprocess.run([DDPLAUNCH, "--version"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual((shown.returncode, shown.stderr), (1, "ddplaunch: cannot write to stdout\n"))

    def test_an_empty_environment_but_for_PATH(self):
        self.succeeds(Job("report={report}:ready", wrapper=["env", "-i", "PATH=" + os.environ["PATH"]]))

    def test_no_place_for_error_files(self):
        with Job("environment={folder}/env", wrapper=["env", "TMPDIR=/proc/no/such/folder"], workers=1) as job:
            self.assertEqual(job.wait(), 0)
            with open(os.path.join(job.folder, "env"), "rb") as text:
                self.assertIn(b"TORCHELASTIC_ERROR_FILE=", text.read().split(b"\0"))

    def test_no_proc(self):
        hide = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$0" "$@"']
        looked = subprocess.run([*hide, DDPLAUNCH, "--help"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if not can(*hide, "true") or looked.returncode != 0 or looked.stderr:
            self.skipTest("/proc can't be hidden here, or a sanitizer needs it")
        self.succeeds(Job("report={report}:ready", wrapper=hide),
                      "ddplaunch: /proc can't be read: processes that workers leave behind may outlive the job\n")

    def test_what_a_script_started_before_it_became_ddplaunch_lives_on(self):
        started = ["sh", "-c", 'sleep 1000 & echo $! > "$TMPDIR/bystander"; exec "$0" "$@"']
        for agent_dies in (False, True):
            with self.subTest(agent_dies=agent_dies), \
                 Job("report={report}:ready", "wait-for={folder}/go", "exit=0", wrapper=started) as job:
                job.expect("ready", 2)
                with open(os.path.join(job.temp, "bystander")) as text:
                    bystander = int(text.read())
                try:
                    if agent_dies:
                        os.kill(job.agent(), signal.SIGKILL)
                    job.touch("go")
                    self.assertEqual(job.wait(), 137 if agent_dies else 0)
                    self.assertTrue(is_alive(bystander))
                    self.assertEqual(alive_with(job.mark), [])
                finally:
                    os.kill(bystander, signal.SIGKILL)

    def test_a_folder_that_was_removed(self):
        def vanish():
            os.mkdir("/tmp/ddp_gone_%d" % os.getpid())
            os.chdir("/tmp/ddp_gone_%d" % os.getpid())
            os.rmdir("/tmp/ddp_gone_%d" % os.getpid())
        self.succeeds(Job("report={report}:ready", preexec=vanish))

    def test_help_needs_nothing(self):
        shown = subprocess.run([DDPLAUNCH, "--help"], env={}, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(shown.returncode, 0)
        self.assertIn("--nproc-per-node", shown.stdout)
        self.assertEqual(shown.stderr, "")

    def test_a_reader_of_stdout_that_leaves_kills_the_worker_not_us(self):
        read, write = os.pipe()
        with Job("wait-for={folder}/go", "print=x", "exit=0", workers=1, stdout=write) as job:
            os.close(write)
            os.close(read)
            job.touch("go")
            self.assertEqual(job.wait(), 128 + 13)  # the worker's SIGPIPE has its default effect
            self.assertIn("SIGPIPE", job.stderr())

    def test_a_stderr_that_nobody_reads_holds_up_nothing(self):
        read, write = os.pipe()
        os.set_blocking(write, False)
        try:
            while True:
                os.write(write, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(write, True)
        with Job("report={report}:ready", "wait-for={folder}/go", "exit=7", options=["--verbose"],
                 preexec=lambda: os.dup2(write, 2)) as job:
            job.expect("ready", 2)  # the launcher had things to say before it started these
            job.touch("go")
            self.assertEqual(job.wait(), 7)  # and gives up on saying the rest
            self.assertEqual(alive_with(job.mark), [])
        os.close(read)
        os.close(write)


if __name__ == "__main__":
    unittest.main(verbosity=2)
