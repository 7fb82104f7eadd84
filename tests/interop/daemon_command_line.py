#!/usr/bin/env python3
"""What `ddprendezvous` promises on its command line.

    daemon_command_line.py PATH_OF_DDPRENDEZVOUS
"""
import re
import signal
import subprocess
import sys

from store_daemon import DEADLINE, store_daemon

PROGRAM = sys.argv[1]


def run(*arguments):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=DEADLINE)
    return done.returncode, done.stdout, done.stderr


def refused(expected, *arguments):
    code, out, err = run(*arguments)
    assert code == 2, (arguments, code)
    assert out == "" and err.count("\n") == 1, "one line on stderr: %r %r" % (out, err)
    assert re.search(expected, err), err


refused("refusing to listen on 0.0.0.0.*--insecure", "--host", "0.0.0.0", "--port", "0")
refused("refusing to listen on ::.*--insecure", "--host", "::", "--port", "0", "--plain-store")
refused("cannot resolve \"no such host\"", "--host", "no such host")
refused("--help", "--no-such-option")
refused("--port-file: /dev/null is there already, and it is no file", "--port", "0", "--port-file", "/dev/null")
for port in ("65536", "-1", "22x"):
    refused("^ddprendezvous: --port: \"%s\" is no port; give 1 to 65535, or 0 for a free one$" % port, "--port=" + port)
for number in ("x", "-1", "99999999999999999999999"):
    refused("--max-connections: \"%s\" is no number of connections; give" % number, "--max-connections=" + number)

code, out, _ = run("--help")
assert code == 0 and "plain TCPStore" in out and "no coordinator" in out, out

with store_daemon(PROGRAM, "--host", "::ffff:127.0.0.1") as (port, process):
    assert process.stdout.readline().endswith(b" %d\n" % port)

with store_daemon(PROGRAM, "--host", "0.0.0.0", "--insecure") as (port, process):
    line = process.stdout.readline().decode()
    assert line == "ddprendezvous: serving a TCPStore on 0.0.0.0 %d\n" % port, line
    code, out, err = run("--port", str(port))
    assert code == 1 and "in use by pid %d " % process.pid in err and err.count("\n") == 1, (code, err)

interrupted = subprocess.Popen([PROGRAM, "--port", "0"], stdout=subprocess.PIPE)
interrupted.stdout.readline()
interrupted.send_signal(signal.SIGINT)
assert interrupted.wait(DEADLINE) == 0
