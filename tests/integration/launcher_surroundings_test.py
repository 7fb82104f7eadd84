"""ddplaunch in places where something is missing: it runs a job of two all the same."""
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import unittest

from launcher_harness import DDPLAUNCH, SCRIPTED_WORKER, Job, alive_with, can_run_as, is_alive, wait_until


def can(*command):
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


# A number that no user has, so that nobody else's processes count towards its limits.
UNKNOWN_USER = 54321

# Each in a mount namespace of its own, so nothing changes for anybody else.
HIDE_PROC = 'mount -t tmpfs none /proc && exec "$0" "$@"'
HIDE_DEV_SHM = 'mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && exec "$0" "$@"'
READ_ONLY = ('while read -r _ place _; do mount -o remount,bind,ro "$place" 2> /dev/null; done < /proc/self/mounts; '
             '! touch "$0" 2> /dev/null && exec "$0" "$@"')


def number_in(path):
    with open(path) as text:
        return int(text.read())


def with_mounts(script):
    return ["unshare", "--mount", "sh", "-c", script]


def with_host_name(name):
    return ["unshare", "--uts", "python3", "-c",
            "import os, socket, sys; socket.sethostname(sys.argv[1]); os.execvp(sys.argv[2], sys.argv[2:])", name]


class Surroundings(unittest.TestCase):
    def succeeds(self, job, said="", workers=2):
        with job:
            ranks = sorted(int(rank) for rank, _ in job.expect("ready", workers))
            self.assertEqual(ranks, list(range(workers)))
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

    def test_64_descriptors_and_8_workers(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        self.succeeds(Job("report={report}:ready", preexec=limit, workers=8), workers=8)

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

    def test_a_user_without_home_name_or_passwd_entry(self):
        if not can_run_as(UNKNOWN_USER):
            self.skipTest("not root, or the build is in a private folder")
        nameless = {"HOME": None, "USER": None, "LOGNAME": None}
        self.succeeds(Job("report={report}:ready", uid=UNKNOWN_USER, environment=nameless))

    def test_a_plain_locale_and_names_in_any_bytes(self):
        with tempfile.TemporaryDirectory(prefix="ddp_größe_") as folder:
            odd = os.fsencode(folder) + b"/w\xc3\xb6rker \xf0\x9f\x9a\x80 \xff\n"  # UTF-8, and bytes that are none
            shutil.copy(os.fsencode(SCRIPTED_WORKER), odd)
            with Job(program=[odd, b"mark", b"print=\xc3\xa9 \xff $$ \xe2\x9c\x93"],
                     environment={"LANG": "C", "LC_ALL": "C"}) as job:
                self.assertEqual(job.wait(), 0)
                self.assertEqual(job.stderr(), "")
                with open(job.out_path, "rb") as out:
                    self.assertEqual(out.read(), b"\xc3\xa9 \xff $ \xe2\x9c\x93\n" * 2)

    def test_any_host_name(self):
        if not can(*with_host_name("x"), "true"):
            self.skipTest("host names can't be changed here")
        for name in ("h" * 64, "123", "", "under_score", "-", "a.b.", "10.0.0.300"):
            with self.subTest(name=name):
                self.succeeds(Job("report={report}:ready", wrapper=with_host_name(name)))

    def test_no_place_for_error_files(self):
        with Job("environment={folder}/env", wrapper=["env", "TMPDIR=/proc/no/such/folder"], workers=1) as job:
            self.assertEqual(job.wait(), 0)
            with open(os.path.join(job.folder, "env"), "rb") as text:
                self.assertIn(b"TORCHELASTIC_ERROR_FILE=", text.read().split(b"\0"))

    def succeeds_with_mounts(self, script, said="", **more):
        hide = with_mounts(script)
        if not can(*hide, "/bin/true"):
            self.skipTest("no mount namespaces here")
        looked = subprocess.run([*hide, DDPLAUNCH, "--help"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if looked.returncode != 0 or looked.stderr:
            self.skipTest("a sanitizer needs what is hidden")
        self.succeeds(Job("report={report}:ready", wrapper=hide, **more), said)

    def test_no_proc(self):
        self.succeeds_with_mounts(
            HIDE_PROC, "ddplaunch: /proc can't be read: processes that workers leave behind may outlive the job\n")

    def test_no_dev_shm(self):
        self.succeeds_with_mounts(HIDE_DEV_SHM, environment={"TMPDIR": None})

    def test_nothing_can_be_written_anywhere(self):
        self.succeeds_with_mounts(READ_ONLY)
        self.succeeds_with_mounts(READ_ONLY, environment={"TMPDIR": None})

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

    def test_what_that_leaves_when_it_ends_lives_on_too(self):
        for session in ("", "setsid "):
            left = (f'{session}sh -c \'sleep 1000 & echo $! > "$TMPDIR/left"; '
                    'while [ ! -e "$TMPDIR/end" ]; do sleep 0.01; done\'')
            started = ["sh", "-c", left + ' & echo $! > "$TMPDIR/bystander"; exec "$0" "$@"']
            for agent_dies in (False, True):
                with self.subTest(session=session, agent_dies=agent_dies), \
                     Job("report={report}:ready", "wait-for={folder}/go", "exit=0", wrapper=started) as job:
                    job.expect("ready", 2)
                    bystander, left_behind = [os.path.join(job.temp, name) for name in ("bystander", "left")]
                    wait_until(lambda: os.path.exists(left_behind) and os.path.getsize(left_behind), "what is left")
                    bystander, left_behind = map(number_in, (bystander, left_behind))
                    try:
                        with open(os.path.join(job.temp, "end"), "w"):
                            pass
                        wait_until(lambda: not os.path.exists(f"/proc/{bystander}"), "the bystander reaped")
                        if agent_dies:
                            os.kill(job.agent(), signal.SIGKILL)
                        job.touch("go")
                        self.assertEqual(job.wait(), 137 if agent_dies else 0)
                        self.assertTrue(is_alive(left_behind))
                        self.assertEqual(alive_with(job.mark), [])
                    finally:
                        os.kill(left_behind, signal.SIGKILL)

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
