"""Starts ddprendezvous on a free port for a test, and ends it again."""
import contextlib
import os
import signal
import subprocess
import tempfile
import time

DEADLINE = 20.0


@contextlib.contextmanager
def store_daemon(program, *options):
    """Yields (port, process). The daemon must end with 0 when it is told to."""
    with tempfile.TemporaryDirectory() as folder:
        port_file = os.path.join(folder, "port")
        process = subprocess.Popen(
            [program, "--plain-store", "--port", "0", "--port-file", port_file, *options],
            stdout=subprocess.PIPE)
        try:
            yield read_port(port_file, process), process
            assert process.poll() is None, "the daemon ended by itself: %r" % process.returncode
            process.send_signal(signal.SIGTERM)
            code = process.wait(DEADLINE)
            assert code == 0, "exit code after SIGTERM: %d" % code
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            process.stdout.close()


def read_port(port_file, process):
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        if os.path.exists(port_file):
            with open(port_file) as file:
                return int(file.read())
        assert process.poll() is None, "the daemon did not start: exit code %r" % process.returncode
        time.sleep(0.01)
    raise AssertionError("no port after %g s" % DEADLINE)
