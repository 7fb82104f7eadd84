"""A worker that tells what it can see of another worker's death.

survivor.py MARK REPORT: reports "ready RANK pid". At each SIGTERM and SIGUSR1, and as soon as the control page tells
of a death: "SIGTERM", "SIGUSR1" or "page", then "RANK poison dead_rank exit_code signal in_store". Ends with 0 when
REPORT.end is there and after SIGTERM; as the file REPORT.RANK says, "exit 3" or "signal 9", when that is there.
"""
import encodings.idna  # here: a signal may come while it is loaded for the first name
import mmap
import os
import signal
import socket
import struct
import sys
import time

_, MARK, REPORT = sys.argv
RANK = os.environ["RANK"]
POISON_AT = 64  # rendezvous/PROTOCOL.md, "Control page"
POISONED = 2
DEATH_NOTICE = b"\0ddp/1/death"
CHECK = 4  # in the oldest dialect
PAGE = mmap.mmap(int(os.environ["DDP_SHM_FD"]), 8192, prot=mmap.PROT_READ)


def report(*words):
    with open(REPORT, "ab", buffering=0) as to:
        to.write((" ".join(map(str, words)) + "\n").encode())


def death():
    """poison, dead rank, its pid, exit code, signal"""
    return struct.unpack_from("<Iiiii", PAGE, POISON_AT)


def is_in_store():
    with socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))) as store:
        store.sendall(struct.pack("<BQQ", CHECK, 1, len(DEATH_NOTICE)) + DEATH_NOTICE)
        return int(store.recv(1) == b"\0")


def tell(why):
    poison, dead_rank, _, exit_code, dead_signal = death()
    report(why, RANK, poison, dead_rank, exit_code, dead_signal, is_in_store())


def on_signal(number, _):
    tell(signal.Signals(number).name)
    if number == signal.SIGTERM:
        os._exit(0)


def die_if_told():
    try:
        with open(f"{REPORT}.{RANK}") as order:
            how, number = order.read().split()
        os.unlink(order.name)  # it doesn't hold for the next round
    except FileNotFoundError:
        return
    if how == "exit":
        os._exit(int(number))
    os.kill(os.getpid(), int(number))


signal.signal(signal.SIGTERM, on_signal)
signal.signal(signal.SIGUSR1, on_signal)
report("ready", RANK, os.getpid())
told = False
while not os.path.exists(REPORT + ".end"):
    die_if_told()
    if death()[0] == POISONED and not told:
        tell("page")
        told = True
    time.sleep(0.002)
