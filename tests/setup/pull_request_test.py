"""ci/pull_request in a repository of a test's own, with a build and a program that only say what they were asked."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = """#!/bin/sh
cd "$(dirname "$0")/.." && mkdir -p build/release/bin
printf '#!/bin/sh\\nwhich=%s\\n' "$(cat WHICH)" >build/release/bin/peakbench
cat ci/program >>build/release/bin/peakbench && chmod +x build/release/bin/peakbench
"""
PROGRAM = """
case $1 in
  run) mkdir -p "$4" && echo "$which ran $2" >"$4/said" ;;
  gate) echo "$which gates $2 $3" >"$5/comparison.md"; exit "${GATE_SAYS:-0}" ;;
esac
"""


class PullRequest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="peakbench-pull-request-")
        self.addCleanup(folder.cleanup)
        self.repository, self.out = pathlib.Path(folder.name) / "repository", pathlib.Path(folder.name) / "out"
        for name in ("ci", "cmake", "suites"):
            (self.repository / name).mkdir(parents=True)
        for name in ("ci/pull_request", "ci/lib.sh", "cmake/libtorch_releases.txt"):
            shutil.copy(SOURCE / name, self.repository / name)
        (self.repository / "ci/build").write_text(BUILD)
        (self.repository / "ci/build").chmod(0o755)
        (self.repository / "ci/program").write_text(PROGRAM)
        for name in ("nightly.toml", "-a $(touch pwned),b.toml"):
            (self.repository / "suites" / name).write_text("")
        (self.repository / ".gitignore").write_text("build/\n.cache/\n")
        self.git("init", "--quiet")
        for which in ("before", "after"):
            (self.repository / "WHICH").write_text(which)
            self.git("add", "--all")
            self.git("-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", which)

    def git(self, *arguments):
        return subprocess.run(["git", *arguments], cwd=self.repository, check=True, capture_output=True, text=True).stdout

    def pull_request(self, *arguments, exit_code, **variables):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PEAKBENCH_", "GIT_"))}
        done = subprocess.run([self.repository / "ci/pull_request", *arguments], capture_output=True, text=True, check=False,
                              env={**inherited, "PEAKBENCH_PULL_REQUEST_DIR": str(self.out), **variables})
        self.assertEqual(done.returncode, exit_code, done.stdout + done.stderr)
        return done.stderr

    def test_each_commit_runs_its_own_program_and_this_tree_judges(self):
        for exit_code in (0, 4, 5):
            self.pull_request("HEAD~1", exit_code=exit_code, GATE_SAYS=str(exit_code))
            suite = self.repository / "suites/nightly.toml"
            self.assertEqual((self.out / "base/said").read_text(), f"before ran {suite}\n")
            self.assertEqual((self.out / "head/said").read_text(), f"after ran {suite}\n")
            self.assertEqual((self.out / "comparison.md").read_text(), f"after gates {self.out}/base {self.out}/head\n")
            self.assertEqual(len(self.git("worktree", "list").splitlines()), 1, "the base's work tree is gone")

    def test_bad_input(self):
        self.assertIn("no base commit was given", self.pull_request(exit_code=1))
        self.assertIn("nonsense is no commit here", self.pull_request("nonsense", exit_code=1))
        self.assertIn("no suite", self.pull_request("HEAD~1", "nowhere.toml", exit_code=1))

    def test_names_are_data(self):
        for name in ("topic,a=b", "$(touch${IFS}pwned)", "a'b\"c;é|`touch`", "feature/-x"):
            self.git("branch", name, "HEAD~1")
            self.pull_request(name, "./suites/-a $(touch pwned),b.toml", exit_code=0)
            self.assertIn("before ran", (self.out / "base/said").read_text())
        self.assertEqual([path.name for path in self.repository.parent.rglob("pwned")], [])
        self.assertIn("is no commit here", self.pull_request("a b\n--exec=touch pwned", exit_code=1))

    def test_a_run_that_fails_is_said(self):
        with open(self.repository / "ci/program", "a", encoding="utf-8") as program:
            program.write('[ "$1$which" = runafter ] && exit 2\n')
        self.assertIn("head: the run failed (exit code 2)", self.pull_request("HEAD~1", exit_code=1))
