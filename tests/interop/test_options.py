"""The table of options in the README beside torchrun's own parser, of every PyTorch found here.

Usage: test_options.py DDPLAUNCH
"""
import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from torch_pythons import ROOT, torch_pythons_or_skip  # noqa: E402

DDPLAUNCH = sys.argv[1]
# Prints each option of torchrun: spellings, whether it takes a value, whether the environment gives a default, choices.
ASK = r"""
import json
from torch.distributed.run import get_args_parser
for action in get_args_parser()._actions:
    if action.option_strings:
        print(json.dumps({"names": action.option_strings, "value": action.nargs != 0, "choices": action.choices or [],
                          "variable": type(action).__name__ in ("env", "check_env")}))
"""
# A value that torchrun takes, for options without choices.
VALUES = {"--nnodes": "1", "--nproc-per-node": "2", "--rdzv-backend": "static", "--rdzv-endpoint": "127.0.0.1:29400",
          "--rdzv-id": "job", "--rdzv-conf": "timeout=5", "--max-restarts": "1", "--monitor-interval": "0.2",
          "--role": "trainer", "--log-dir": "/tmp/logs", "--redirects": "1", "--tee": "1", "--local-ranks-filter": "0",
          "--node-rank": "0", "--master-addr": "127.0.0.1", "--master-port": "29400", "--local-addr": "127.0.0.1",
          "--signals-to-handle": "SIGTERM", "--shutdown-timeout": "5", "--logs-specs": "mine",
          "--event-log-handler": "console", "--log-line-prefix-template": "${rank}: ",
          "--duplicate-stdout-filters": "a,b", "--duplicate-stderr-filters": "a,b"}
ALONE = {"--help", "--print-completion"}


def table():
    """The README's: {long name: word}."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as readme:
        part = readme.read().split("<!-- torchrun's options:")[1].split("<!-- end of torchrun's options -->")[0]
    rows = re.findall(r"^\| (?:`-\w`, )?`(--[a-z-]+)[^`]*` \| (\w+) \|", part, re.M)
    return dict(rows)


def options_of(python):
    asked = subprocess.run([python.path, "-W", "ignore", "-c", ASK], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in asked.stdout.splitlines()]


def long_name(option):
    return next(name for name in option["names"] if name.startswith("--")).replace("_", "-")


def launch(*arguments, **environment):
    return subprocess.run([DDPLAUNCH, "--dry-run", *arguments, "true"], capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"], **environment}, timeout=60)


class Options(unittest.TestCase):
    def each(self):
        for python in PYTHONS:
            for option in options_of(python):
                print(f"with PyTorch {python.text}: {long_name(option)}")  # of the last one, where a test fails
                yield option, long_name(option)

    def test_the_readme_has_each_option(self):
        rows = table()
        self.assertGreater(len(rows), 25)
        for _, name in self.each():
            self.assertIn(name, rows)

    def value_for(self, option, name):
        self.assertTrue(option["choices"] or name in VALUES, name + " is new: give a value for it here")
        return option["choices"][0] if option["choices"] else VALUES[name]

    def judge(self, run, word, name):
        if word == "refused":
            self.assertEqual(run.returncode, 2)
            self.assertEqual(run.stderr, f"ddplaunch: {name} is not in this version\n")
        else:
            self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_each_spelling_does_what_the_table_says(self):
        rows = table()
        for option, name in self.each():
            if name in ALONE:
                continue
            for spelling in option["names"]:
                value = [self.value_for(option, name)] if option["value"] else []
                self.judge(launch(spelling, *value), rows[name], name)

    def test_each_choice_of_an_option_that_takes_all(self):
        rows = table()
        for option, name in self.each():
            for choice in option["choices"] if rows[name] in ("same", "better") else ():
                self.judge(launch(name, choice), rows[name], name)

    def test_each_variable_gives_a_default(self):
        rows = table()
        for option, name in self.each():
            if not option["variable"]:
                continue
            value = self.value_for(option, name) if option["value"] else "1"
            variable = "PET_" + name[2:].upper().replace("-", "_")
            self.judge(launch(**{variable: value}), rows[name], name)

    def test_what_gives_no_default_there_gives_none_here(self):
        for option, name in self.each():
            if option["variable"] or not option["value"]:
                continue
            variable = "PET_" + name[2:].upper().replace("-", "_")
            self.assertEqual(launch(**{variable: "nonsense"}).returncode, 0)


if __name__ == "__main__":
    PYTHONS = torch_pythons_or_skip()
    unittest.main(argv=sys.argv[:1], buffer=True)
