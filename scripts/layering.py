#!/usr/bin/env python3
"""Checks the law of the source tree and exits 1 with one `file:line: message` for each offence.

    layering.py [--root FOLDER]

`core/` decides and is pure; `io/` acts. rendezvous is the ground floor, worker_sdk stands on it, launcher on both.
Each rule below says why it is there. Comments and strings are blanked before words are searched for.
"""
import argparse
import os
import re
import sys

HOUSES = ("rendezvous", "worker_sdk", "launcher")  # from the ground floor up
FOLDERS = HOUSES + ("tests", "scripts")
SKIPPED = {"build", ".git", "__pycache__", ".cache"}
SOURCES = (".h", ".hpp", ".cpp", ".c")
HEADERS = (".h", ".hpp")
MEASURED = SOURCES + (".py", ".sh", ".cmake", "CMakeLists.txt")

QUESTION_LENGTH, REFUSE_LENGTH, LINE_LENGTH = 400, 600, 120

# A translation unit with CLI11 costs six seconds, and its types must not leak: two files, no more.
COMMAND_LINE_FILES = {"launcher/core/command_line.cpp", "rendezvous/main.cpp"}

# The one core file that may write to stderr: a broken invariant has nobody left to return to.
ASSERTION_FILE = "rendezvous/core/result.h"

IMPURE_HEADERS = re.compile(
    r"^(thread|mutex|shared_mutex|condition_variable|future|stop_token|semaphore|barrier|latch|fstream|filesystem"
    r"|ctime|time\.h|unistd\.h|fcntl\.h|poll\.h|pthread\.h|spawn\.h|dlfcn\.h|netdb\.h|ifaddrs\.h"
    r"|(sys|netinet|arpa|net|linux)/.*)$")

IMPURE_WORDS = (
    (re.compile(r"::\s*now\s*\("), "reads a clock: time comes in as an Instant"),
    (re.compile(r"\b(clock_gettime|gettimeofday|std::time)\s*\("), "reads a clock: time comes in as an Instant"),
    (re.compile(r"\b(secure_getenv|getenv|setenv|unsetenv|putenv)\b|\benviron\b"),
     "touches the environment: it comes in as a value"),
    (re.compile(r"\b(s?rand|rand_r|random|drand48|getrandom|arc4random)\s*\(|\brandom_device\b"),
     "draws a random number: randomness comes in as a value"),
    (re.compile(r"\b(sleep|usleep|nanosleep|sleep_for|sleep_until)\s*\("), "sleeps: core never waits"),
    (re.compile(r"\bthread_local\b"), "keeps a value that outlives the call: state lives in the machine"),
)
LOGGING = re.compile(r"\bstd::(cout|cerr|clog)\b|(?<![\w:])(std::)?f?(printf|puts|putchar)\s*\(")

UNORDERED = re.compile(r"\bunordered_(?:multi)?(?:map|set)\s*<")
FOR = re.compile(r"\bfor\s*\(")
RANGE = re.compile(r"[^;]*?[^:;]:(?!:)\s*(?:\w+\s*(?:\.|->|::)\s*)*(\w+)\s*")  # declaration : a.b->name
BEGIN_CALL = re.compile(r"\b(\w+)\s*(?:\.|->)\s*c?r?begin\s*\(|\bc?r?begin\s*\(\s*(?:\w+\.)*(\w+)\s*\)")

COROUTINE = re.compile(r"\bco_(await|return|yield)\b")
MODERN = re.compile(r"#\s*include\s*<(format|ranges|coroutine)>|\bstd::format\b|\bstd::(ranges::)?views\b")
NEW = re.compile(r"(?<!operator )(?<!operator)\bnew\b(?!\s*\((?!\s*std::nothrow))")
DELETE = re.compile(r"(?<!operator )(?<!operator)\bdelete\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


class File:
    def __init__(self, root, path):
        self.path = path
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as stream:
            self.text = stream.read()
        self.lines = self.text.splitlines()
        parts = path.split("/")
        self.house = parts[0] if parts[0] in HOUSES else None
        self.is_core = self.house is not None and parts[1] == "core"
        self.is_source = path.endswith(SOURCES)
        self.is_header = path.endswith(HEADERS)
        self.is_public = path.startswith("worker_sdk/include/")
        self.code = blank_comments_and_strings(self.text) if self.is_source else ""
        self.code_lines = self.code.splitlines()
        self.includes = []
        for number, line in enumerate(self.lines if self.is_source else [], 1):
            found = INCLUDE.match(line)
            if found and self.code_lines[number - 1].lstrip().startswith("#"):
                self.includes.append((number, found.group(2)))


def blank_comments_and_strings(text):
    """The same text, as long and with the same lines, in which only code is left."""
    token = re.compile(
        r"//(?:\\\n|[^\n])*|/\*.*?\*/"  # comments
        r'|(?<![\w])(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"'  # raw strings
        r'|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\'',  # strings, characters, not 1'000
        re.DOTALL)

    def blank(found):
        return re.sub(r"[^\n]", " ", found.group(0))

    return token.sub(blank, text)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def matches(file, pattern):
    for number, line in enumerate(file.code_lines, 1):
        if pattern.search(line):
            yield number


# ---- who may include what ----

def check_floors(file):
    """No arrow up and no circle between the houses; core never knows io."""
    if file.house is None:
        return
    allowed = HOUSES[:HOUSES.index(file.house) + 1]
    for number, name in file.includes:
        top = name.split("/")[0]
        if top in HOUSES and top not in allowed:
            yield number, f"{file.house} includes {name}: no arrow up (rendezvous <- worker_sdk <- launcher)"
        if top == "ddp" and file.house == "rendezvous":
            yield number, f"rendezvous includes {name}: no arrow up (rendezvous <- worker_sdk <- launcher)"
        if top == "tests":
            yield number, f"{name}: what is shipped never needs the tests"
        if file.is_core and ("/io/" in name or name.startswith("io/")):
            yield number, f"core includes {name}: core never includes io"
        if ".." in name.split("/"):
            yield number, f"{name}: write the path from the root of the tree"


def check_libraries(file):
    """Heavy or worldly libraries stay where they are carried out."""
    acts = file.house is None or not (file.is_core or file.is_public)
    for number, name in file.includes:
        if name == "boost/asio.hpp":
            yield number, "boost/asio.hpp brings in everything: include the narrow headers"
        if not acts and re.match(r"boost/(asio|process|beast)", name):
            yield number, f"{name}: Asio belongs in io/ and main.cpp"
        if not acts and name.startswith("spdlog/"):
            yield number, f"{name}: core and public headers don't log; a decision carries its reason"
        if name.startswith("CLI/") and file.path not in COMMAND_LINE_FILES:
            yield number, f"{name}: CLI11 only in {' and '.join(sorted(COMMAND_LINE_FILES))}"
        if file.is_public and name.split("/")[0] in ("rendezvous", "launcher", "worker_sdk", "boost"):
            yield number, f"{name}: a public header shows users neither our insides nor Boost"


def check_core(file):
    """core is a function of its input: the same events give the same effects, on every machine, in a simulation too."""
    if not file.is_core:
        return
    for number, name in file.includes:
        if IMPURE_HEADERS.match(name):
            yield number, f"core includes <{name}>: no threads, clocks, files or system calls in core"
    for pattern, message in IMPURE_WORDS:
        for number in matches(file, pattern):
            yield number, f"core {message}"
    if file.path != ASSERTION_FILE:
        for number in matches(file, LOGGING):
            yield number, "core prints: a decision carries its reason, the shell says it"
    yield from check_changing_statics(file)


def check_changing_statics(file):
    for number, line in enumerate(file.code_lines, 1):
        found = re.search(r"\bstatic\b(?!_)(.*)", line)
        if not found:
            continue
        head = re.split(r"[={;]", found.group(1))[0]
        if "(" not in head and not re.search(r"\b(const|constexpr|constinit const)\b", head) and head.strip():
            yield number, "core keeps a static that changes: state lives in the machine"


# ---- order must be a function of the input ----

def unordered_names(files):
    """Names of variables and members of an unordered type, aliases included, of one house's core."""
    names, aliases = set(), set()
    for file in files:
        for found in UNORDERED.finditer(file.code):
            alias = re.search(r"\busing\s+(\w+)\s*=\s*(?:std::)?$", file.code[:found.start()])
            if alias:
                aliases.add(alias.group(1))
                continue
            declared = re.match(r"[\s&*]*(?:const\b)?[\s&*]*(\w+)",
                                file.code[after_closing(file.code, found.end(), "<>"):])
            if declared:
                names.add(declared.group(1))
    for file in files:
        for alias in aliases:
            names.update(re.findall(rf"\b{alias}\b[\s&*]+(\w+)\s*[;={{,)]", file.code))
    return names


def after_closing(text, position, brackets):
    """Where the bracket that was opened just before `position` has been closed."""
    depth = 1
    while depth and position < len(text):
        depth += {brackets[0]: 1, brackets[1]: -1}.get(text[position], 0)
        position += 1
    return position


def check_unordered(files):
    """Iterating a hash map gives an order that no simulation can replay."""
    for house in HOUSES:
        core = [file for file in files if file.house == house and file.is_core and file.is_source]
        names = unordered_names(core)
        for file in core:
            for found in FOR.finditer(file.code):
                inside = file.code[found.end():after_closing(file.code, found.end(), "()") - 1]
                ranged = RANGE.fullmatch(inside)
                if ranged and ranged.group(1) in names:
                    yield file, line_of(file.code, found.start()), f"iterates over the unordered {ranged.group(1)}"
            for found in BEGIN_CALL.finditer(file.code):
                name = found.group(1) or found.group(2)
                if name in names:
                    yield file, line_of(file.code, found.start()), f"iterates over the unordered {name}"


# ---- what every source looks like ----

def check_header(file):
    """The first line of a header is what a reader of a folder sees of it."""
    if not file.is_header:
        return
    first = file.lines[0] if file.lines else ""
    opening = re.match(r"(//|/\*)\s*(\S.*)", first)
    comment = []
    for line in file.lines[:6] if opening else []:
        if not re.match(r"\s*(//|/\*|\*)", line):
            break
        comment.append(line)
    said = " ".join(comment)
    if not opening or re.search(r"copyright|spdx", first, re.IGNORECASE):
        yield 1, "the first line of a header is a comment that says in a sentence what it is for"
    elif not re.search(r"[.:!?](\s|$|\*/)", said) or len(opening.group(2).split()) < 3:
        yield 1, "the comment on the first line is no sentence"
    if not re.search(r"^\s*#\s*pragma\s+once\b", file.code, re.MULTILINE):
        speaks_c = 'extern "C"' in file.text
        guarded = re.search(r"^\s*#\s*ifndef\s+(\w+)\s*\n\s*#\s*define\s+\1\b", file.code, re.MULTILINE)
        if not (speaks_c and guarded):
            yield 1, "no #pragma once (a C header: an include guard)"
    for number in matches(file, re.compile(r"\busing\s+namespace\b")):
        yield number, "using namespace in a header reaches everybody who includes it"


def check_language(file):
    """What g++ 12 miscompiles, what clang 14 can't parse, and who owns memory."""
    for number in matches(file, COROUTINE):
        yield number, "no coroutines: g++ 12 destroys temporaries of a co_await expression twice"
    for number in matches(file, MODERN):
        yield number, "not to be had with g++ 12 and clang 14"
    if file.path.endswith(".c"):
        return
    for number in matches(file, NEW):
        if not re.match(r"\s*#", file.code_lines[number - 1]):
            yield number, "raw new: values first, make_unique for the rest"
    for number, line in enumerate(file.code_lines, 1):
        if DELETE.search(re.sub(r"=\s*delete\b", "", line)) and not re.match(r"\s*#", line):
            yield number, "raw delete: let an owner do it"


def check_length(file):
    if len(file.lines) > REFUSE_LENGTH:
        yield REFUSE_LENGTH, f"{len(file.lines)} lines: more than {REFUSE_LENGTH}, split it"
    for number, line in enumerate(file.lines, 1):
        if len(line) > LINE_LENGTH:
            yield number, f"{len(line)} characters: more than {LINE_LENGTH}"


def find_files(root):
    for top in FOLDERS:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders[:] = sorted(name for name in folders if name not in SKIPPED)
            for name in sorted(names):
                if name.endswith(MEASURED):
                    yield File(root, os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/"))


def offences(files):
    for file in files:
        checks = [check_length]
        if file.is_source:
            checks += [check_floors, check_libraries, check_core, check_header, check_language]
        for check in checks:
            for number, message in check(file):
                yield file.path, number, message
    for file, number, message in check_unordered(files):
        yield file.path, number, f"core {message}: its order is no function of the input"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    root = parser.parse_args().root
    files = list(find_files(root))
    if not files:
        sys.exit(f"layering: no source found under {root}")
    for file in files:
        if QUESTION_LENGTH < len(file.lines) <= REFUSE_LENGTH:
            print(f"{file.path}:1: note: {len(file.lines)} lines: is this still one thing?")
    found = sorted(set(offences(files)))
    for path, number, message in found:
        print(f"{path}:{number}: {message}")
    print(f"layering: {len(files)} files, {len(found)} offences")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
