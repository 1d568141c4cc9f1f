"""lab/mutation.py on a project of one source: it kills what a test notices, reports what none does, and restores the source.

$PEAKBENCH_LINTERS, which ci/linters makes, has the Python with universalmutator.
"""

import os
import pathlib
import subprocess
import tempfile
import time
import unittest

import pytest

LAB = pathlib.Path(__file__).resolve().parents[2] / "lab"
PYTHON = pathlib.Path(os.environ.get("PEAKBENCH_LINTERS", "/nonexistent"), "python")
pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="there is no universalmutator (PEAKBENCH_LINTERS=$(ci/linters) has one)")
SOURCE = "toy/toy.cpp"
FILES = {
    SOURCE: """int add(int a, int b) {
  return a + b;
}
bool unread(int a) {
  return a < 1;
}
void wait(volatile int* turns) {
  while (*turns > 0) {
    *turns = *turns - 1;
  }
}
""",
    "main.cpp": """int add(int, int);
void wait(volatile int*);
int main() {
  volatile int turns = 3;
  wait(&turns);
  return add(3, 2) == 5 ? 0 : 1;
}
""",
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.25)
project(Toy LANGUAGES CXX)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
add_executable(toy_test toy/toy.cpp main.cpp)
""",
    ".gitignore": "build/\n",
    "lab/equivalent_mutants.json": '{"mutants": [{"file": "toy/toy.cpp", "line": "return a < 1;", "becomes": "return a == 1;", "reason": "nobody reads it"}]}',
}
# The script, with this project instead of the repository.
SCRIPT = f"""import pathlib, sys
sys.path.insert(0, {str(LAB)!r})
import mutation
mutation.ROOT = pathlib.Path.cwd()
mutation.EQUIVALENT = mutation.ROOT / "lab/equivalent_mutants.json"
mutation.MODULES = {{"toy": ("toy_test",)}}
sys.exit(mutation.main())
"""


class Mutation(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        for name, text in FILES.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for command in (["git", "init", "-q"], ["git", "add", "."], ["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "toy"],
                        ["cmake", "-G", "Ninja", "-S", ".", "-B", "build"]):  # fmt: skip
            subprocess.run(command, cwd=self.folder, check=True, capture_output=True)

    def mutate(self, *arguments):
        done = subprocess.run([PYTHON, "-B", "-c", SCRIPT, "--build", self.folder / "build", *arguments], cwd=self.folder,
                              capture_output=True, text=True, check=False)  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def test_verdicts(self):
        code, out, error = self.mutate("--only", f"{SOURCE}:2")
        self.assertEqual((code, error), (0, ""), out)
        self.assertIn(f"{SOURCE}:2: killed by toy_test", out)
        self.assertRegex(out, r"mutants killed \(100%; at least 70% wanted\)\. Not counted: \d+ does not compile")
        code, out, _ = self.mutate("--only", f"{SOURCE}:5")
        self.assertEqual(code, 1, out)
        self.assertIn(f"No test noticed:\n{SOURCE}:5\n    - return a < 1;\n    + return a > 1;\n", out)
        self.assertIn(f"{SOURCE}:5: known to change nothing: nobody reads it", out)
        self.assertEqual((self.folder / SOURCE).read_text(encoding="utf-8"), FILES[SOURCE])
        subprocess.run([self.folder / "build/bin/toy_test"], check=True)

    def test_a_hang_is_killed(self):
        code, out, _ = self.mutate("--only", f"{SOURCE}:9", "--timeout", "1", "--score", "0")
        self.assertEqual(code, 0, out)
        self.assertIn(f"{SOURCE}:9: killed by toy_test, ", out)

    def test_ended_early_it_restores_the_source(self):
        source = self.folder / SOURCE
        with subprocess.Popen([PYTHON, "-B", "-c", SCRIPT, "--build", self.folder / "build"], cwd=self.folder, stdout=subprocess.DEVNULL) as process:
            for _ in range(3000):
                if source.read_text(encoding="utf-8") != FILES[SOURCE]:
                    break
                time.sleep(0.01)
            process.terminate()
        self.assertEqual((process.returncode, source.read_text(encoding="utf-8")), (143, FILES[SOURCE]))
        subprocess.run([self.folder / "build/bin/toy_test"], check=True)

    def test_a_seed_decides_the_sample(self):
        lists = [self.mutate("--list", "--count", "3", "--seed", seed)[1] for seed in ("1", "1", "2")]
        self.assertEqual(lists[0], lists[1])
        self.assertNotEqual(lists[0], lists[2])

    def test_changed_files_are_refused(self):
        (self.folder / "main.cpp").write_text("int main() {}\n", encoding="utf-8")
        self.assertEqual(self.mutate("--count", "1")[::2], (2, "error: files differ from the last commit (main.cpp, ...), and sources are changed "
                                                               "in place: commit or restore them\n"))  # fmt: skip
