"""The GitHub workflows: by GitHub's published schema, as shell, and by what they call. They are untried on GitHub itself."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((SOURCE / ".github/workflows").glob("*.yml"))
EXAMPLE = SOURCE / "docs/gate_scripts/workflow.yml"  # for other people's repositories


def find_linter():
    found = pathlib.Path(os.environ.get("PEAKBENCH_LINTERS", "/nowhere")) / "check-jsonschema"
    return str(found) if found.exists() else shutil.which("check-jsonschema")


def shell_steps(text):
    """Each step's script, blocks and single lines."""
    for match in re.finditer(r"^( *)(?:- )?run: (\|?)(.*)\n((?:(?:\1 {2,}.*)?\n)*)", text, re.MULTILINE):
        yield match[4] if match[2] else match[3]


class Workflows(unittest.TestCase):
    def lint(self, *files):
        return subprocess.run([LINTER, "--builtin-schema", "vendor.github-workflows", *files], capture_output=True, text=True,
                              check=False)

    def test_there_are_some(self):
        self.assertEqual([path.stem for path in WORKFLOWS], ["gpu", "nightly", "pull_request", "tests", "wheel"])

    def test_they_fit_the_schema(self):
        done = self.lint(*WORKFLOWS, EXAMPLE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_linter_finds_a_mistake(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "bad.yml"
            path.write_text(WORKFLOWS[0].read_text(encoding="utf-8").replace("runs-on:", "run-on:"), encoding="utf-8")
            self.assertNotEqual(self.lint(path).returncode, 0)

    def test_their_scripts_are_shell_and_call_what_there_is(self):
        for path in [*WORKFLOWS, EXAMPLE]:
            scripts = list(shell_steps(path.read_text(encoding="utf-8")))
            self.assertTrue(scripts, path)
            for script in scripts:
                done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""), f"{path}\n{script}")
                for name in re.findall(r"\bci/[a-z_]+", script):
                    self.assertTrue(os.access(SOURCE / name, os.X_OK), f"{path}: {name}")

    def test_nothing_is_released_or_published_without_a_tag(self):
        text = (SOURCE / ".github/workflows/wheel.yml").read_text(encoding="utf-8")
        jobs = re.findall(r"(?m)^  (\w+):\n((?: {4}.*\n|\n| {2}#.*\n)+)", text.partition("\njobs:\n")[2])
        self.assertEqual([name for name, _ in jobs], ["wheel", "release", "publish"])
        for name, job in jobs:
            self.assertEqual(bool(re.search(r"(?m)^    if: startsWith\(github\.ref, 'refs/tags/'\)$", job)), name != "wheel", name)
            self.assertEqual(": write" in job, name != "wheel", name)

    def test_pull_requests_of_strangers_reach_no_machine_of_ours(self):
        text = (SOURCE / ".github/workflows/gpu.yml").read_text(encoding="utf-8")
        self.assertNotIn("pull_request", re.sub("#.*", "", text))
        for path in [*WORKFLOWS, EXAMPLE]:
            self.assertNotIn("pull_request_target", path.read_text(encoding="utf-8"))
            self.assertIn("permissions:", path.read_text(encoding="utf-8"))

    def test_scripts_are_shell(self):
        for name in ("nightly", "pull_request", "linters"):
            subprocess.run(["bash", "-n", SOURCE / "ci" / name], check=True)


if __name__ == "__main__":
    LINTER = find_linter()
    if not LINTER:
        print("SKIP: there is no check-jsonschema (PEAKBENCH_LINTERS=$(ci/linters) makes one)")
        sys.exit(77)
    unittest.main(verbosity=2)
