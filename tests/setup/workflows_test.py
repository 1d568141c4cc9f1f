"""The GitHub workflows: by GitHub's published schema, as shell, and by what they call. They are untried on GitHub itself.

Issue forms and Dependabot's settings are checked by their schemas, too.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((SOURCE / ".github/workflows").glob("*.yml"))
EXAMPLE = SOURCE / "docs/gate_scripts/workflow.yml"  # for other people's repositories
FORMS = sorted((SOURCE / ".github/ISSUE_TEMPLATE").glob("*.yml"))
# A hash is fixed, whereas a tag can be moved to other code; Dependabot updates both the hash and the version after it.
PINNED = re.compile(r"(?P<action>[\w.-]+/[\w./-]+)@(?P<commit>[0-9a-f]{40})  # (?P<version>v\d+\.\d+\.\d+)")
CALLED = re.compile(r"\./(\.github/workflows/\w+\.yml)")


def find_linter():
    found = pathlib.Path(os.environ.get("PEAKBENCH_LINTERS", "/nowhere")) / "check-jsonschema"
    return str(found) if found.exists() else shutil.which("check-jsonschema")


def shell_steps(text):
    """Each step's script, blocks and single lines."""
    for match in re.finditer(r"^( *)(?:- )?run: (\|?)(.*)\n((?:(?:\1 {2,}.*)?\n)*)", text, re.MULTILINE):
        yield match[4] if match[2] else match[3]


LINTER = find_linter()
pytestmark = pytest.mark.skipif(not LINTER, reason="there is no check-jsonschema (PEAKBENCH_LINTERS=$(ci/linters) makes one)")


def jobs_of(text):
    """-> [(name, text)]"""
    return re.findall(r"(?m)^  (\w+):\n((?: {4}.*\n|\n| {2}#.*\n)+)", text.partition("\njobs:\n")[2])


def uses(text):
    """What each step or job uses, with the comment after it."""
    return re.findall(r"(?m)^ *(?:- )?uses: (.*)$", text)


def unpinned(text):
    return [used for used in uses(text) if not PINNED.fullmatch(used) and not CALLED.fullmatch(used)]


class Workflows(unittest.TestCase):
    def lint(self, *files, schema="github-workflows"):
        return subprocess.run([LINTER, "--builtin-schema", f"vendor.{schema}", *files], capture_output=True, text=True, check=False)

    def test_there_are_some(self):
        self.assertEqual([path.stem for path in WORKFLOWS], ["gpu", "nightly", "pull_request", "release", "tests", "wheel"])

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
                for name in re.findall(r"\bci/[\w.-]+", script):
                    self.assertTrue(os.access(SOURCE / name, os.X_OK), f"{path}: {name}")

    def test_actions_are_pinned_by_commit(self):
        used = [used for path in WORKFLOWS for used in uses(path.read_text(encoding="utf-8"))]
        self.assertGreater(len(used), 20)
        for path in WORKFLOWS:
            self.assertEqual(unpinned(path.read_text(encoding="utf-8")), [], path)
        for called in filter(None, map(CALLED.fullmatch, used)):
            self.assertTrue((SOURCE / called[1]).exists(), called[1])
        pins = {}
        for pin in filter(None, map(PINNED.fullmatch, used)):
            pins.setdefault("/".join(pin["action"].split("/")[:2]), set()).add((pin["commit"], pin["version"]))
        self.assertEqual({action: pin for action, pin in pins.items() if len(pin) > 1}, {}, "one version of an action everywhere")

    def test_what_is_not_pinned_is_found(self):
        pin = "a/b@" + "0" * 40
        for used in ("a/b@v4", pin, f"{pin}  # v4", f"{pin[:-1]}  # v4.0.0", "./other"):
            self.assertEqual(unpinned(f"      - uses: {used}\n    uses: {pin}  # v4.0.0\n"), [used])

    def test_nothing_is_released_or_published_without_a_tag(self):
        text = (SOURCE / ".github/workflows/release.yml").read_text(encoding="utf-8")
        on = text.partition("\non:\n")[2].partition("\npermissions:\n  contents: read\n")[0]
        self.assertEqual(on, '  push:\n    tags: ["v[0-9]+.[0-9]+.[0-9]+"]')
        jobs = dict(jobs_of(text))
        self.assertEqual(list(jobs), ["notes", "wheel", "release", "publish"])
        for name, needed in (("wheel", "notes"), ("release", "wheel"), ("publish", "release")):
            self.assertIn(f"    needs: {needed}\n", jobs[name])
        self.assertEqual({name: re.findall(r"\w[\w-]*: write", job) for name, job in jobs.items()},
                         {"notes": [], "wheel": [], "release": ["contents: write"], "publish": ["id-token: write"]})  # fmt: skip
        for other in WORKFLOWS:
            if other.stem != "release":
                self.assertNotIn("contents: write", other.read_text(encoding="utf-8"), other)
                self.assertNotIn("gh release", other.read_text(encoding="utf-8"), other)

    def test_publishing_waits_for_its_setup_and_has_no_token(self):
        job = dict(jobs_of((SOURCE / ".github/workflows/release.yml").read_text(encoding="utf-8")))["publish"]
        self.assertIn("    if: vars.PEAKBENCH_PUBLISH == 'true'\n    ", job)
        self.assertIn("    environment: pypi\n", job)
        self.assertNotRegex(job, r"secrets\.|password|token:(?! write)")

    def test_issue_forms_and_dependabot_fit_their_schemas(self):
        self.assertEqual([path.stem for path in FORMS], ["bug", "config", "feature", "wrong_figure"])
        for schema, files in (("github-issue-forms", [path for path in FORMS if path.stem != "config"]),
                              ("github-issue-config", [path for path in FORMS if path.stem == "config"]),
                              ("dependabot", [SOURCE / ".github/dependabot.yml"])):  # fmt: skip
            done = self.lint(*files, schema=schema)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_pull_requests_of_strangers_reach_no_machine_of_ours(self):
        text = (SOURCE / ".github/workflows/gpu.yml").read_text(encoding="utf-8")
        self.assertNotIn("pull_request", re.sub("#.*", "", text))
        for path in [*WORKFLOWS, EXAMPLE]:
            self.assertNotIn("pull_request_target", path.read_text(encoding="utf-8"))
            self.assertIn("permissions:", path.read_text(encoding="utf-8"))

    def test_scripts_are_shell(self):
        for name in ("nightly", "pull_request", "linters"):
            subprocess.run(["bash", "-n", SOURCE / "ci" / name], check=True)
