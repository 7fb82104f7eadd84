"""What a program that parses strangers' bytes is built with. Usage: test_hardening.py PROGRAM... LIBRARY"""
import shutil
import subprocess
import sys
import unittest


def readelf(path, *options):
    run = subprocess.run(["readelf", "-W", *options, path], capture_output=True, text=True, check=True)
    return run.stdout


class Hardening(unittest.TestCase):
    def test_addresses_are_unknown_in_advance(self):
        for path in PROGRAMS:
            self.assertIn("DYN", readelf(path, "-h"), path)

    def test_what_the_loader_writes_cant_be_written_later(self):
        for path in PROGRAMS:
            self.assertIn("GNU_RELRO", readelf(path, "-l"), path)
            self.assertRegex(readelf(path, "-d"), r"BIND_NOW|FLAGS_1.*NOW", path)

    def test_the_stack_is_guarded_and_never_executed(self):
        for path in PROGRAMS:
            self.assertIn("__stack_chk_fail", readelf(path, "--dyn-syms"), path)
            self.assertRegex(readelf(path, "-l"), r"GNU_STACK.* RW +0x", path)

    def test_calls_that_overrun_a_buffer_end_the_process(self):
        for path in PROGRAMS:
            self.assertRegex(readelf(path, "--dyn-syms"), r"__(read|memcpy|poll|readlink|vsnprintf|snprintf)_chk", path)


if __name__ == "__main__":
    if shutil.which("readelf") is None:
        print("skipped: no readelf here (binutils)")
        sys.exit(77)
    PROGRAMS = sys.argv[1:]
    del sys.argv[1:]
    unittest.main(verbosity=2)
