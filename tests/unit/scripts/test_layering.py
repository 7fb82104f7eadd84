"""Plants each kind of offence in a small tree; scripts/layering.py must find it, on its line, and nothing else."""
import os
import subprocess
import sys
import tempfile
import unittest

LAYERING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "scripts", "layering.py")

HEADER = "// What this header is for, in a sentence.\n#pragma once\n"  # offences in headers begin on line 3


def check(files):
    """(exit code, offences as (path, line, message)) of a tree made of `files`: path -> text."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as stream:
                stream.write(text)
        run = subprocess.run([sys.executable, LAYERING, "--root", root], capture_output=True, text=True, check=False)
    if run.stderr:
        raise AssertionError(run.stderr)
    found = []
    for line in run.stdout.splitlines():
        path, _, rest = line.partition(":")
        number, _, message = rest.partition(": ")
        if path in files and not message.startswith("note: "):
            found.append((path, int(number), message))
    return run.returncode, found


class Layering(unittest.TestCase):
    def refused(self, path, text, line, words):
        code, found = check({path: text})
        self.assertEqual([(p, n) for p, n, _ in found], [(path, line)], f"{text!r} gave {found}")
        self.assertIn(words, found[0][2])
        self.assertEqual(code, 1)

    def accepted(self, path, text):
        self.assertEqual(check({path: text}), (0, []))

    def test_no_arrow_points_up(self):
        self.refused("rendezvous/io/a.cpp", '\n#include "launcher/core/agent.h"\n', 2, "no arrow up")
        self.refused("rendezvous/core/a.cpp", '#include "worker_sdk/core/a.h"\n', 1, "no arrow up")
        self.refused("rendezvous/io/a.cpp", '#include <ddp/ddp.hpp>\n', 1, "no arrow up")
        self.refused("worker_sdk/io/a.cpp", '#include "launcher/io/a.h"\n', 1, "no arrow up")
        self.refused("launcher/io/a.cpp", '#include "tests/support/a.h"\n', 1, "never needs the tests")
        self.accepted("launcher/io/a.cpp", '#include "rendezvous/io/a.h"\n#include "worker_sdk/core/a.h"\n')

    def test_core_never_includes_io(self):
        self.refused("launcher/core/a.cpp", '#include "launcher/io/guardian.h"\n', 1, "core never includes io")
        self.refused("launcher/core/a.cpp", '#include "rendezvous/io/server.h"\n', 1, "core never includes io")
        self.refused("launcher/core/a.cpp", '#include "../core/agent.h"\n', 1, "from the root")

    def test_libraries_stay_where_they_act(self):
        self.refused("rendezvous/core/a.cpp", "#include <boost/asio/ip/tcp.hpp>\n", 1, "Asio belongs in io/")
        self.refused("launcher/core/a.cpp", "#include <boost/process/v2/process.hpp>\n", 1, "Asio belongs in io/")
        self.refused("launcher/core/a.h", HEADER + "#include <spdlog/spdlog.h>\n", 3, "don't log")
        self.refused("rendezvous/io/a.cpp", "#include <boost/asio.hpp>\n", 1, "narrow")
        self.refused("launcher/io/a.cpp", "#include <CLI/CLI.hpp>\n", 1, "CLI11 only in")
        self.accepted("launcher/core/command_line.cpp", "#include <CLI/CLI.hpp>\n")
        self.accepted("rendezvous/main.cpp", "#include <CLI/CLI.hpp>\n#include <boost/asio/io_context.hpp>\n")

    def test_public_headers_show_no_insides(self):
        public = "worker_sdk/include/ddp/a.hpp"
        self.refused(public, HEADER + '#include "rendezvous/core/time.h"\n', 3, "public header")
        self.refused(public, HEADER + "#include <boost/json.hpp>\n", 3, "public header")
        self.refused(public, HEADER + '#include "worker_sdk/core/a.h"\n', 3, "public header")
        self.accepted(public, HEADER + "#include <vector>\n\n#include <ddp/error.hpp>\n")

    def test_core_is_pure(self):
        for house in ("rendezvous", "worker_sdk", "launcher"):
            path = f"{house}/core/a.cpp"
            for header in ("thread", "mutex", "unistd.h", "sys/socket.h", "fstream"):
                self.refused(path, f"int a;\n#include <{header}>\n", 2, "no threads, clocks, files")
            self.refused(path, "auto t = std::chrono::steady_clock::now();\n", 1, "reads a clock")
            self.refused(path, "\nauto* home = std::getenv(\"HOME\");\n", 2, "environment")
            self.refused(path, "int a = rand();\n", 1, "random")
            self.refused(path, "std::random_device device;\n", 1, "random")
            self.refused(path, "\n\nstd::cout << 1;\n", 3, "core prints")
            self.refused(path, "void f() {\n  static int calls = 0;\n}\n", 2, "static that changes")
            self.refused(path, "thread_local int calls;\n", 1, "outlives the call")

    def test_io_and_tests_may_act(self):
        self.accepted("rendezvous/io/a.cpp", "#include <unistd.h>\nauto t = std::chrono::steady_clock::now();\n")
        self.accepted("tests/unit/a.cpp", "#include <thread>\nauto* home = std::getenv(\"HOME\");\n")

    def test_words_in_comments_and_strings_are_no_offence(self):
        self.accepted("launcher/core/a.cpp", "// no ::now( here, nor getenv, new or delete\n/* std::cout\n rand() */\n"
                                             'const char* kText = "co_await getenv \\" new X";\n'
                                             'const char* kRaw = R"(delete "x" rand())";\n'
                                             "const int kMany = 1'000'000;  // it's rand()\n")
        self.refused("launcher/core/a.cpp", "const int kMany = 1'000;\nint a = rand();\nconst char b = '\\'';\n", 2,
                     "random")

    def test_statics_that_never_change_are_fine(self):
        self.accepted("launcher/core/a.h", HEADER + "struct A {\n  static constexpr int kOne = 1;\n"
                                                    "  static int f(int a);\n"
                                                    "  static const std::map<int, int> kTable;\n"
                                                    "};\nstatic_assert(true);\n")

    def test_order_is_a_function_of_the_input(self):
        header = HEADER + "class A {\n  std::unordered_map<std::string, std::vector<int>> table_;\n};\n"
        loop = "void A::f() {\n  for (const auto& [key, value] : table_) use(key);\n}\n"
        code, found = check({"rendezvous/core/a.h": header, "rendezvous/core/a.cpp": loop})
        self.assertEqual((code, [(p, n) for p, n, _ in found]), (1, [("rendezvous/core/a.cpp", 2)]))
        self.refused("launcher/core/a.cpp", "std::unordered_set<int> seen;\nauto first = seen.begin();\n", 2,
                     "unordered seen")
        self.refused("launcher/core/a.cpp", "using Seen = std::unordered_set<int>;\nint f(const Seen& seen) {\n"
                                            "  for (int value : seen) return value;\n}\n", 3, "unordered seen")
        self.accepted("launcher/core/a.cpp", "std::unordered_map<int, int> seen;\nint f(int a) { return seen.at(a); }\n"
                                             "std::map<int, int> table;\n"
                                             "int g() {\n  for (auto& row : table) h(seen);\n}\n")

    def test_a_header_says_what_it_is_for(self):
        self.refused("launcher/io/a.h", "#pragma once\n", 1, "says in a sentence")
        self.refused("launcher/io/a.h", "// Copyright Somebody. All rights.\n#pragma once\n", 1, "says in a sentence")
        self.refused("launcher/io/a.h", "// agent\n#pragma once\n", 1, "is no sentence")
        self.refused("launcher/io/a.h", "// What this header is for.\nint f();\n", 1, "no #pragma once")
        self.accepted("launcher/io/a.h", "// What this header is for, which takes\n// two lines.\n#pragma once\n")
        self.accepted("worker_sdk/include/ddp/a.h", "/* The C interface, for all languages. */\n#ifndef DDP_A_H\n"
                                                    '#define DDP_A_H\nextern "C" void f();\n#endif\n')
        self.refused("launcher/io/a.h", HEADER + "using namespace std;\n", 3, "using namespace")

    def test_the_language_that_both_compilers_know(self):
        self.refused("launcher/io/a.cpp", "auto f() { co_return 1; }\n", 1, "no coroutines")
        self.refused("launcher/io/a.cpp", "\n#include <format>\n", 2, "not to be had")
        self.refused("launcher/io/a.cpp", "auto s = std::views::all(v);\n", 1, "not to be had")

    def test_memory_has_an_owner(self):
        self.refused("launcher/io/a.cpp", "auto* a = new int;\n", 1, "raw new")
        self.refused("launcher/io/a.cpp", "auto* a = new (std::nothrow) int;\n", 1, "raw new")
        self.refused("launcher/io/a.cpp", "void f(int* a) {\n  delete a;\n}\n", 2, "raw delete")
        self.accepted("launcher/io/a.cpp", "struct A { A(const A&) = delete; };\nauto* a = new (place) A;\n"
                                           "#include <new>\n")

    def test_files_and_lines_have_an_end(self):
        self.accepted("launcher/io/a.cpp", "int a;\n" * 600)
        self.refused("launcher/io/a.cpp", "int a;\n" * 601, 600, "split it")
        self.refused("tests/a.py", "a = 1\n" * 601, 600, "split it")
        self.accepted("launcher/io/a.cpp", "//" + "a" * 118 + "\n")
        self.refused("launcher/io/a.cpp", "//" + "a" * 119 + "\n", 1, "more than 120")

    def test_an_empty_tree_is_an_error(self):
        run = subprocess.run([sys.executable, LAYERING, "--root", "/nonexistent"], capture_output=True, check=False)
        self.assertEqual(run.returncode, 1)


if __name__ == "__main__":
    unittest.main()
