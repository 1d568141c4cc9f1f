"""What the pages for authors of plugins show is what works: every fenced block of C++, JSON, TOML and shell in them."""

import json
import pathlib
import re
import subprocess
import tempfile
import tomllib
import unittest

from given import CHECK_MANIFEST, CXX, PEAKBENCH, TORCH
from snippets import snippets_of, unit

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PAGES = [SOURCE / "docs/how-to/plugins.md", SOURCE / "docs/reference/models.md"]
HEADERS = sorted(path.name for path in (SOURCE / "harness/sdk/include/peakbench").glob("*.h"))
ALL = [snippet for page in PAGES for snippet in snippets_of(page)]

STRATEGY = {"id": "snippet", "title": "Snippet", "summary": "One.", "source_url": "https://example.org", "options": [], "order": 50,
            "promise": "different_problem"}  # fmt: skip
MODEL = {"id": "snippet", "title": "Snippet", "summary": "One.", "source_url": "https://example.org", "options": [], "family": "snippets",
         "facts": ["linear_layers"], "has_sequence": False, "default_sequence_length": 0, "parameters": 1}  # fmt: skip
OF_MODELS = {"linears", "missing_linears", "loss", "facts", "family", "has_sequence", "default_sequence_length", "parameters"}


def of(language, before=False):
    return [one for one in ALL if one.language == language and (one.how == "before") == before]


class Snippets(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="peakbench-snippets-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def compile(self, snippets):
        path = self.folder / "snippets.cpp"
        path.write_text(unit(snippets, HEADERS))
        done = subprocess.run(
            [CXX, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror=return-type",
             f"-I{SOURCE}/harness/sdk/include", "-isystem", f"{TORCH}/include", "-isystem", f"{TORCH}/include/torch/csrc/api/include", path],
            capture_output=True, text=True, timeout=500)  # fmt: skip
        return "\n".join(line for line in done.stderr.splitlines() if "error:" in line)

    def test_languages(self):
        """No block goes unlooked at."""
        self.assertLessEqual({one.language for one in ALL}, {"cpp", "json", "toml", "sh", "cmake"})
        self.assertGreater(len(ALL), 5)

    def test_cpp(self):
        self.assertEqual(self.compile(of("cpp")), "")

    def test_what_changed_does_not_compile_any_more(self):
        """One compilation of all: each must have an error of its own."""
        if not of("cpp", before=True):
            return
        said = self.compile(of("cpp", before=True))
        for one in of("cpp", before=True):
            last = one.line + one.text.count("\n")
            lines = [int(number) for number in re.findall(rf"^{re.escape(one.page)}:(\d+):", said, re.MULTILINE)]
            self.assertTrue(any(one.line <= number <= last for number in lines), f"{one.place()} still compiles:\n{one.text}")

    def check_manifest(self, snippet):
        value = json.loads(snippet.text)
        if snippet.how == "entry":
            is_model = bool(OF_MODELS & set(value))
            value = {"kind": "model" if is_model else "strategy", "entries": [{**(MODEL if is_model else STRATEGY), **value}]}
        path = self.folder / "plugin.json"
        path.write_text(json.dumps(value))
        done = subprocess.run([CHECK_MANIFEST, path], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    def test_json(self):
        for one in of("json"):
            with self.subTest(one.place()):
                code, said = self.check_manifest(one)
                self.assertEqual(code, 0, said)

    def test_toml(self):
        for one in of("toml"):
            with self.subTest(one.place()):
                tomllib.loads(one.text)
                suite = self.folder / "suite.toml"
                suite.write_text(one.text)
                done = subprocess.run([PEAKBENCH, "run", suite, "--dry-run"], cwd=SOURCE, capture_output=True, text=True, timeout=60)
                # The plugins that it names are not built here.
                self.assertTrue(done.returncode == 0 or "no such plugin folder" in done.stderr, done.stderr)

    def test_shell(self):
        for one in of("sh"):
            with self.subTest(one.place()):
                done = subprocess.run(["bash", "-n"], input=one.text, capture_output=True, text=True, timeout=60)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                for command, rest in re.findall(r"(?:^|[ /])peakbench (\w+)([^#\n]*)", one.text, re.MULTILINE):
                    self.check_options(command, rest.partition(" -- ")[0])

    def check_options(self, command, words):
        help_text = subprocess.run([PEAKBENCH, command, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
        for option in re.findall(r"(?<= )--[\w-]+", words):
            self.assertRegex(help_text, rf"{option}\b", f"peakbench {command} {words}")
