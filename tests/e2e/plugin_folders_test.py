"""Folders of plugins: --plugins, PEAKBENCH_PLUGINS, and the key `plugins` of a suite; who named which, and how a run is repeated."""
import json
import shutil
import subprocess

from installation import ProgramTest


class PluginFolders(ProgramTest):
    def setUp(self):
        super().setUp()
        # An installation that has models alone; the strategies are elsewhere.
        self.bare = self.folder / "bare"
        shutil.copytree(self.prefix / "installed", self.bare)
        self.program = str(self.bare / "bin/peakbench")
        (self.folder / "mine").mkdir()
        (self.bare / "lib/peakbench/plugins/fake_strategies.so").rename(self.folder / "mine/fake_strategies.so")

    def environment(self, **more):
        return super().environment(**getattr(self, "variables", {}), **more)

    def suite(self, plugins, path="suites/one.toml"):
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'plugins = {json.dumps(plugins)}\nmodels = ["tiny"]\nstrategies = ["baseline"]\n')
        return path

    def test_the_variable_is_one_more_option(self):
        self.assertNotIn("baseline", self.peakbench("list", "strategies").stdout)
        self.variables = {"PEAKBENCH_PLUGINS": ":mine:"}
        self.assertIn("baseline", self.peakbench("list", "strategies").stdout)
        self.assertIn("baseline", self.peakbench("describe", "baseline").stdout)
        self.assertIn("mine (PEAKBENCH_PLUGINS)", self.peakbench("doctor").stdout)

    def test_the_recorded_command_needs_no_variable(self):
        self.variables = {"PEAKBENCH_PLUGINS": "mine"}
        arguments = ["run", "--model", "tiny", "--strategy", "baseline", "--repetitions", "0", "--no-report", "--out", "out"]
        self.peakbench(*arguments)
        recorded = json.loads((self.folder / "out/run.json").read_text())["command"]
        self.assertEqual(recorded, ["peakbench", *arguments, "--plugins", "mine"])
        self.variables = {}
        self.peakbench(*recorded[1:-3], "again", "--plugins", "mine")

    def test_a_suite_names_folders_beside_itself(self):
        suite = self.suite(["../mine"])
        self.peakbench("run", suite, "--repetitions", "0", "--no-report", "--out", "out")
        # From anywhere.
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        done = subprocess.run([self.program, "run", "../suites/one.toml", "--dry-run"], cwd=elsewhere, env=self.environment(),
                              capture_output=True, text=True, timeout=60)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Plugins also from ../mine (../suites/one.toml:1:12: plugins).", done.stdout)

    def test_a_check_says_what_is_not_kept(self):
        """Five strategies that keep all, and a library that is none."""
        (self.folder / "mine/broken.so").write_text("no library")
        arguments = ("check", "mine", "--model", "tiny", "--out", "checked", "--quiet")
        done = self.peakbench(*arguments, exit_code=5)
        self.assertIn("  failed       build       mine/broken.so: not a shared library (no ELF header)\n", done.stdout)
        self.assertIn("  passed       promise     1 case on the CPU: losses and parameters are the baseline's, bit for bit\n", done.stdout)
        self.assertIn("\n27 passed, 1 failed, 6 not checked\n", done.stdout)
        self.assertIn("| mine | build | failed | mine/broken.so: not a shared library", (self.folder / "checked/check.md").read_text())
        self.assertTrue((self.folder / "checked/cpu/report/index.html").is_file())
        self.assertIn("--overwrite", self.peakbench(*arguments, exit_code=2).stderr)
        (self.folder / "mine/broken.so").unlink()
        said = json.loads(self.peakbench(*arguments, "--overwrite", "--json").stdout)
        self.assertEqual({one["answer"] for one in said["findings"] if one["id"] == "slim"}, {"passed", "not checked"})
        self.assertRegex(said["plugins"]["slim"]["sha256"], "^[0-9a-f]{64}$")
        for wrong, sentence in ((("nowhere",), "nowhere: no such plugin folder"), (("mine", "--model", "tny"), 'did you mean "tiny"'),
                                (("mine", "--card", "h1000"), "h1000")):  # fmt: skip
            self.assertIn(sentence, self.peakbench("check", *wrong, "--out", "wrong", exit_code=2).stderr)

    def test_a_check_compares_with_accepted_figures(self):
        (self.folder / "mine/broken.so").write_text("no library")  # beside the one that is checked
        accepted = self.folder / "accepted.json"
        check = ("check", "mine/fake_strategies.so", "--model", "tiny", "--quiet", "--overwrite", "--out", "checked")
        expect, stacks = (*check, "--expect", "accepted.json"), ("--", "--strategy", "slim", "--strategy=slim,rank=4")
        for text, words in ((None, "no figures were accepted yet; to accept what is measured"), ('{"cases": {', "cut short"), ("[]", 'has no object "cases"')):
            if text:
                accepted.write_text(text)
            self.assertIn(f"accepted.json: {words}", " ".join(self.peakbench(*expect, *stacks, exit_code=2).stderr.split()))
        for more, words in ((("--accept",), "accepted in"), ((), "as accepted in")):
            self.assertIn(f"  passed       bytes       {words} accepted.json\n", self.peakbench(*expect, *more, *stacks).stdout)
        right = accepted.read_text()
        _, slim, least = ids = [f"tiny/{stack}/emulated:h100-80gb/fp32/b2" for stack in ("baseline", "slim", "slim,rank=4")]
        wrong = json.loads(right)
        self.assertEqual((wrong["libtorch"], list(wrong["cases"])), ("fake", sorted(ids)))
        self.assertEqual(wrong["cases"][slim], {
            "status": "ok", "peak_allocated_bytes": 94371840, "peak_requested_bytes": 94371840, "peak_reserved_bytes": None,
            "at_peak": {"parameter": 41943040, "temporary": 52428800}})  # fmt: skip
        wrong["cases"][slim].update(status="out_of_memory", at_peak={"parameter": 41943041, "input": 5})
        wrong["cases"]["gone"] = wrong["cases"].pop(least)
        accepted.write_text(json.dumps(wrong))
        failures = json.loads(self.peakbench(*expect, "--json", *stacks, exit_code=5).stdout)["findings"][1]["failures"]
        self.assertEqual(sorted(failures), sorted([
            "gone: expected figures, got none", f"{least}: expected none, got figures", f"{slim}: status: expected out_of_memory, got ok",
            f"{slim}: at_peak.parameter: expected 41,943,041, got 41,943,040 (\u22121)", f"{slim}: at_peak.input: expected 5, got none",
            f"{slim}: at_peak.temporary: expected none, got 52,428,800"]))  # fmt: skip
        self.variables = {"PEAKBENCH_ACCEPT": "1"}
        self.peakbench(*expect, *stacks)
        # A crash is not accepted, and cases that are all refused test nothing.
        for stack, words in (("misbehave,behaviour=crash", "failed       runs"), ("slim+rival", "not checked  runs        no case")):
            self.assertIn(words, self.peakbench(*expect, "--", "--strategy", stack, exit_code=5).stdout)
        self.assertEqual(accepted.read_text(), right)
        self.peakbench(*check, "--promise", "--", "--batch", "4")
        cases = json.loads((self.folder / "checked/promise/run.json").read_text())["cases"]
        self.assertIn("tiny/slim/cpu/fp32/b4", [one["id"] for one in cases])
        self.assertIn("failed       runs", self.peakbench(*check, "--promise", "--", "--strategy=misbehave,behaviour=crash", exit_code=5).stdout)
        self.peakbench(*check, "--accept", exit_code=2)
        self.peakbench(*expect, "--promise", exit_code=2)

    def test_a_dry_run_says_who_named_them(self):
        self.variables = {"PEAKBENCH_PLUGINS": "mine"}
        for name in ("second", "third"):
            (self.folder / name).mkdir()
            shutil.copy(self.bare / "lib/peakbench/plugins/fake_models.so", self.folder / name / "other.so")
        suite = self.suite(["../second"])
        done = self.peakbench("run", suite, "--plugins", "third", "--dry-run", "--json")
        self.assertEqual(json.loads(done.stdout)["plugin_folders"], [
            {"path": "mine", "named_by": "PEAKBENCH_PLUGINS"},
            {"path": "second", "named_by": "suites/one.toml:1:12: plugins"},
            {"path": "third", "named_by": "--plugins"}])  # fmt: skip

    def test_an_error_names_who_named_the_folder(self):
        one = ["run", "--model", "tiny", "--strategy", "baseline", "--out", "out"]
        words = ": no such plugin folder (named by {}); build the plugins, or name another folder there"
        said = self.peakbench(*one, "--plugins", "absent", exit_code=2).stderr
        self.assertIn("absent" + words.format("--plugins"), said)
        self.variables = {"PEAKBENCH_PLUGINS": f"mine:{self.folder}/gone"}
        said = self.peakbench(*one, exit_code=2).stderr
        self.assertIn(f"{self.folder}/gone" + words.format("PEAKBENCH_PLUGINS"), said)
        self.variables = {}
        said = self.peakbench("run", self.suite(["nowhere"]), exit_code=2).stderr
        self.assertIn("suites/nowhere" + words.format("suites/one.toml:1:12: plugins"), said)
        (self.folder / "suites/nowhere").mkdir()
        said = self.peakbench("run", "suites/one.toml", exit_code=2).stderr
        self.assertIn("suites/nowhere: the folder holds no plugin (*.so; named by suites/one.toml:1:12: plugins)", said)
        self.assertIn('plugins: expected a folder, got ""', self.peakbench("run", self.suite([""]), exit_code=2).stderr)
