"""The whole of it on a project of one file: what is planted is noticed, or not, and nothing is left behind."""

import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent

FILES = {
    "CMakeLists.txt": """
cmake_minimum_required(VERSION 3.25)
project(Toy LANGUAGES CXX)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
enable_testing()
add_compile_options(-Wall -Wextra -Werror)
add_executable(toy harness/trace/running_totals.cpp main.cpp)
add_test(NAME toy.adds COMMAND toy adds)
add_test(NAME toy.counts COMMAND toy counts)
add_test(NAME toy.fails_anyway COMMAND toy fails)
""",
    "harness/trace/running_totals.cpp": """
int add(int a, int b) { return a + b; }
int count(int n) {
  int found = 7;
  for (int i = 0; i < n; i += 1) found = i;
  return found;
}
bool unread(int a) { return a < 1; }
""",
    "main.cpp": """
#include <string>
int add(int, int);
int count(int);
int main(int, char** argument) {
  const std::string which = argument[1];
  if (which == "adds") return add(3, 2) == 5 ? 0 : 1;
  return which == "counts" && count(3) == 2 ? 0 : 1;
}
""",
    ".gitignore": "build/\n",
}

# The script, with this project in place of the repository.
SCRIPT = f"""
import pathlib, sys
sys.dont_write_bytecode = True
sys.path.insert(0, {str(HERE)!r})
import rooms
rooms.ROOMS = (rooms.Room("harness/trace", (rooms.Stage(("toy", "none"), select=("-R", "^toy")),)),)
import mutate
mutate.REPOSITORY = pathlib.Path.cwd()
sys.exit(mutate.main())
"""


@unittest.skipUnless(shutil.which("cmake") and shutil.which("ninja") and shutil.which("git"), "needs cmake, ninja and git")
class Whole(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        for name, text in FILES.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.call("git", "init", "-q")
        self.call("git", "add", ".")
        self.call("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "toy")
        self.call("cmake", "-G", "Ninja", "-S", ".", "-B", "build")

    def call(self, *command):
        return subprocess.run(command, cwd=self.folder, check=True, capture_output=True, text=True).stdout

    def command(self, *arguments):
        return [sys.executable, "-c", SCRIPT, "--build", str(self.folder / "build"), *arguments]

    def run_script(self, *arguments):
        done = subprocess.run(self.command(*arguments), cwd=self.folder, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def expect_as_before(self):
        self.assertEqual(self.call("git", "status", "--porcelain"), "")
        self.assertEqual((self.folder / "harness/trace/running_totals.cpp").read_text(), FILES["harness/trace/running_totals.cpp"])
        for test in ("adds", "counts"):
            subprocess.run([self.folder / "build/bin/toy", test], check=True)

    def test_every_verdict(self):
        code, out, error = self.run_script("--count", "100", "--timeout", "2", "--json", str(self.folder / "build/faults.json"))
        self.assertEqual((code, error), (0, ""), out)
        self.assertIn("note: toy.fails_anyway (failed) fails without a fault, so it is left out", out)
        faults = json.loads((self.folder / "build/faults.json").read_text())["faults"]
        verdicts = {(fault["after"], fault["rule"]): (fault["verdict"], fault["why"]) for fault in faults}
        adds, loop = "int add(int a, int b) { return a - b; }", "for (int i = 0; i < n; i -= 1) found = i;"
        self.assertEqual(verdicts[adds, "swap-plus-minus"], ("killed", "toy.adds (failed)"))
        self.assertEqual(verdicts[loop.replace("-= 1", "+= 2"), "shift-constant"][0], "survived")
        self.assertEqual(verdicts[loop.replace("-= 1", "+= 1").replace("0", "1"), "shift-constant"][0], "survived")
        self.assertEqual(verdicts[loop.replace("-= 1", "+= 1").replace("<", "<="), "flip-comparison"][0], "killed")
        self.assertEqual(verdicts["bool unread(int a) { return a <= 1; }", "flip-comparison"], ("survived", ""))
        self.assertIn("No test noticed:\n", out)
        self.expect_as_before()

    def test_a_hang_is_noticed_and_ended(self):
        self.hang()
        code, out, _ = self.run_script("--only", "harness/trace/running_totals.cpp:3", "--timeout", "2")
        self.assertEqual(code, 0)
        self.assertIn("flip-comparison: killed by toy.adds (timeout)", out)

    def hang(self):
        """A loop that ends only as long as nobody touches it."""
        text = "int add(int a, int b) {\n  volatile int i = 0;\n  while (i != 0) {}\n  return a + b;\n}\nint count(int n) { return n - 1; }\n"
        (self.folder / "harness/trace/running_totals.cpp").write_text(text)
        self.call("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "hang")

    def test_ended_in_the_middle_nothing_is_left_behind(self):
        with subprocess.Popen(self.command("--count", "100"), cwd=self.folder, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                if line.startswith("[ 3 of"):
                    process.send_signal(signal.SIGTERM)
                    break
            rest = process.stdout.read()
        self.assertEqual(process.returncode, 143)
        self.assertIn("together", rest)
        self.expect_as_before()

    def test_killed_the_next_start_puts_back(self):
        with subprocess.Popen(self.command("--count", "100"), cwd=self.folder, stdout=subprocess.PIPE, text=True) as process:
            journal = self.folder / "build/mutation/journal.json"
            for _ in range(600):
                if journal.exists():
                    break
                time.sleep(0.05)
            process.kill()
            process.stdout.read()
        code, out, _ = self.run_script("--only", "harness/trace/running_totals.cpp:2")
        self.assertEqual(code, 0)
        self.assertIn("put back as it was", out)
        self.expect_as_before()

    def test_a_changed_tree_is_refused(self):
        (self.folder / "main.cpp").write_text("int main() {}\n")
        code, _, error = self.run_script()
        self.assertEqual(code, 2)
        self.assertIn("error: 1 files differ from the last commit (main.cpp, ...)", error)


if __name__ == "__main__":
    unittest.main()
