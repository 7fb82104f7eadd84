"""Finds the Pythons that have PyTorch, for the tests and benchmarks that run unmodified PyTorch programs.

They are the system's own (Debian: python3-torch), the one of `scripts/setup.sh --torch2`, and those that
DDP_TORCH_PYTHON lists, with colons between them.
"""
import os
import shutil
import subprocess
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PLACES = [("/usr/bin/python3", "python3-torch"),
          (os.path.join(ROOT, ".venv-torch2", "bin", "python"), "PyTorch 2 of scripts/setup.sh --torch2")]
# Asks for the version without an import, which takes seconds.
ASK = "import importlib.metadata as m; print(m.version('torch'))"
SKIPPED = 77


class TorchPython:
    """A Python that has PyTorch: its path, PyTorch's version as text and as (major, minor)."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        self.version = tuple(int(part) for part in text.split(".")[:2])

    def __str__(self):
        return f"PyTorch {self.text} ({self.path})"


def look_at(path):
    """The TorchPython at `path`, or None."""
    try:
        asked = subprocess.run([path, "-c", ASK], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return TorchPython(path, asked.stdout.strip().partition("+")[0]) if asked.returncode == 0 else None


def torch_pythons():
    """(those found, oldest first and each version once; what was looked for in vain)."""
    places = PLACES + [(path, path) for path in os.environ.get("DDP_TORCH_PYTHON", "").split(":") if path]
    found, absent = {}, []
    for path, name in places:
        python = look_at(path)
        if python is None:
            absent.append(name)
        else:
            found.setdefault(python.text, python)
    if not found:
        other = shutil.which("python3")
        python = look_at(other) if other else None
        if python:
            found[python.text] = python
    return sorted(found.values(), key=lambda python: python.version), absent


def torch_pythons_or_skip():
    """Those found; says what it found and what not. Ends the program as skipped if there is none."""
    found, absent = torch_pythons()
    for python in found:
        print("with", python, flush=True)
    for name in absent:
        print("without", name, flush=True)
    if not found:
        print("skipped: no Python with PyTorch here")
        sys.exit(SKIPPED)
    return found
