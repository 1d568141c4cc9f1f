"""Plugins that are wrong, in every way: what is said of each, and that the other cases of a run go on."""

import json
import pathlib
import subprocess
import tempfile
import unittest

from given import BAD_PLUGINS as BAD, PEAKBENCH as PROGRAM, WORKER

PATIENCE = 200  # seconds: what nobody waits for who does not hang
MODEL = "vit-b-16,layers=1,width=48,mlp=64,image=32"


class PluginTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "plugins").mkdir()

    def peakbench(self, *arguments, exit_code=0):
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, cwd=self.folder, timeout=300)
        self.assertEqual(done.returncode, exit_code, done.stdout + done.stderr)
        return done

    def changed(self, library, old, new):
        """A copy of a bad plugin with a text of its section exchanged for one of the same length."""
        self.assertEqual(len(old), len(new))
        content = (BAD / library).read_bytes()
        self.assertTrue(old in content, old)
        path = self.folder / "plugins" / library
        path.write_bytes(content.replace(old, new))
        return path


class Manifests(PluginTest):
    def left_out(self):
        return self.peakbench("list", "strategies", "--plugins", "plugins").stderr

    def test_wrong_stamp(self):
        self.changed("no_entry.so", b'"libtorch_version": "2.', b'"libtorch_version": "1.')
        message = self.left_out()
        for part in ("plugins/no_entry.so", "plugin has 1.", "this Peakbench needs 2.", "rebuild it"):
            self.assertIn(part, message)

    def test_every_mismatch_at_once(self):
        path = self.changed("no_entry.so", b'"libtorch_version": "2.', b'"libtorch_version": "1.')
        path.write_bytes(path.read_bytes().replace(b'"libtorch_cuda": "13', b'"libtorch_cuda": "12'))
        message = self.left_out()
        self.assertIn("libtorch_version", message)
        self.assertIn("libtorch_cuda", message)

    def test_another_revision(self):
        self.changed("no_entry.so", b'"sdk_revision": 6', b'"sdk_revision": 7')
        self.assertIn("sdk_revision: plugin has 7, this Peakbench needs 6", self.left_out())

    def test_broken_json(self):
        self.changed("no_entry.so", b'"manifest": {', b'"manifest": [')
        self.assertIn("plugins/no_entry.so: broken manifest: not JSON", self.left_out())

    def test_unknown_field(self):
        self.changed("no_entry.so", b'"promise"', b'"premise"')
        self.assertIn('/manifest/entries/0/premise: unknown key; did you mean "promise"?', self.left_out())

    def test_cut_short(self):
        (self.folder / "plugins/cut.so").write_bytes((BAD / "no_entry.so").read_bytes()[:400])
        self.assertIn("plugins/cut.so: damaged", self.left_out())

    def test_no_library(self):
        (self.folder / "plugins/text.so").write_text("hello")
        self.assertIn("plugins/text.so: not a shared library", self.left_out())

    def test_a_folder_without_plugins(self):
        message = self.peakbench("list", "strategies", "--plugins", "plugins", exit_code=2).stderr
        self.assertIn("plugins: the folder holds no plugin", message)

    def test_running_what_was_left_out(self):
        self.changed("no_entry.so", b'"libtorch_version": "2.', b'"libtorch_version": "1.')
        arguments = ["run", "--plugins", "plugins", "--model", MODEL, "--strategy", "no-entry", "--out", "out"]
        message = self.peakbench(*arguments, exit_code=2).stderr
        self.assertIn("plugin has 1.", message)
        self.assertIn("no-entry", message)
        self.assertFalse((self.folder / "out/run.json").exists())

    def test_the_worker_looks_again(self):
        """A plugin may be exchanged after the plan was made."""
        path = self.changed("no_entry.so", b'"libtorch_version": "2.', b'"libtorch_version": "1.')
        use = {"selection": {"id": "no-entry", "options": {}}, "options": {}, "path": str(path)}
        job = {
            "mode": "memory", "case_id": "bad", "model": use, "strategies": [use], "device": "cpu", "dtype": "fp32",
            "batch_size": 1, "sequence_length": None, "seed": 0, "steps": 1, "warmup": 0,
            "result_path": str(self.folder / "result.json"),
            "promise": {"promise": "bit_identical", "reference_case": "", "verdict": "not_checked"},
        }  # fmt: skip
        (self.folder / "job.json").write_text(json.dumps(job))
        subprocess.run([WORKER, self.folder / "job.json"], capture_output=True, check=True, timeout=300)
        result = json.loads((self.folder / "result.json").read_text())
        self.assertEqual(result["status"], "crashed")
        self.assertIn("plugin has 1.", result["reason"])


class Code(PluginTest):
    def test_code_that_goes_wrong_never_ends_the_run(self):
        here = str(BAD / "misbehaving.so")
        expected = {
            "throws": ("crashed", [here, "thrown on purpose"]),
            "throws-number": ("crashed", ["no std::exception"]),
            "throws-unsupported": ("unsupported", ["not with this model"]),
            "throws-in-backward": ("crashed", ["thrown on purpose at heads.head"]),
            "aborts": ("crashed", ["SIGABRT"]),
            "throws-long": ("crashed", [here, "threw in apply", "xxx... (", " bytes left out)"]),
            "exits": ("crashed", ["exited with code 0 without a result"]),
            "exits-at-once": ("crashed", ["exited with code 0 without a result"]),
            "raises": ("crashed", ["SIGFPE"]),
            "overflows-stack": ("crashed", ["SIGSEGV"]),
            "closes-streams": ("ok", []),
            "blocks-signals": ("ok", []),
            "changes-surroundings": ("ok", []),
            "spins-at-exit": ("ok", []),
            "floods-progress": ("ok", []),
            "reads-undeclared": ("crashed", [here, "option 'undeclared'", "manifest"]),
            "no-entry": ("crashed", [str(BAD / "no_entry.so"), "no entry", "PEAKBENCH_STRATEGY_PLUGIN"]),
            "makes-models": ("crashed", [str(BAD / "model_entry.so"), "makes no strategies"]),
            "foreach-off": ("ok", []),
        }
        cases = self.cases_of(list(expected), PATIENCE)
        for case, (name, (status, words)) in zip(cases, expected.items()):
            with self.subTest(name):
                self.assertEqual(case["status"], status)
                for word in words:
                    self.assertIn(word, case["reason"])
                self.assertLess(len(case["reason"]), 5000)
        self.assert_same_figures(cases, "floods-progress", "spins-at-exit")

    def test_code_that_hangs_is_ended(self):
        hangs, next_one = self.cases_of(["hangs", "foreach-off"], 10)
        self.assertEqual(hangs["status"], "timeout")
        self.assertIn("10 s", hangs["reason"])
        # It was begun; whether it ends in ten seconds is the machine's to say.
        self.assertIn(next_one["status"], ("ok", "timeout"), next_one["reason"])

    def cases_of(self, names, timeout):
        """What a run of these strategies has, one after another, each with so many seconds."""
        strategies = [text for name in names for text in ("--strategy", name)]
        self.peakbench("run", "--plugins", BAD, "--model", MODEL, *strategies, "--timeout", str(timeout), "--repetitions", "0",
                       "--no-report", "--out", "out")  # fmt: skip
        cases = json.loads((self.folder / "out/run.json").read_text())["cases"]
        self.assertEqual([case["strategies"][0]["id"] for case in cases], names)
        return cases

    def assert_same_figures(self, cases, one, other):
        """What a plugin writes on the pipe for progress costs its case nothing, as nothing of it is a figure."""
        one, other = (dict(next(case for case in cases if case["strategies"][0]["id"] == name)["memory"]) for name in (one, other))
        for memory in (one, other):
            memory.pop("worker_peak_rss_bytes")
        self.assertEqual(one, other)
