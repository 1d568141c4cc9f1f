"""What people type: good and bad input, lists, plans, folders."""
import json
import shutil

from installation import ProgramTest

ONE = ("--model", "tiny", "--strategy", "baseline")


class Help(ProgramTest):
    def test_help_has_examples_and_exit_codes(self):
        for arguments in (["--help"], ["help"], [], ["run", "--help"], ["help", "run"], ["report", "--help"],
                          ["list", "--help"], ["doctor", "--help"], ["export", "--help"]):
            out = self.peakbench(*arguments).stdout
            self.assertIn("Examples:", out, arguments)
            self.assertRegex(out, "Exit codes?:", arguments)

    def test_version(self):
        self.assertRegex(self.peakbench("--version").stdout, r"^peakbench \d+\.\d+\.\d+ \(commit .+\), for LibTorch 2\.")


class Lists(ProgramTest):
    def test_models(self):
        out = self.peakbench("list", "models").stdout
        self.assertRegex(out, r"(?m)^tiny-lm +2,000 +16  ")
        out = self.peakbench("describe", "tiny-lm").stdout
        for part in ("tiny-lm", "Stands in for a language model.", "2,000 parameters, --seq 16"):
            self.assertIn(part, out)
        self.assertIn("layers=2  (1..48)", self.peakbench("describe", "tiny").stdout)
        self.assertEqual(json.loads(self.peakbench("describe", "tiny", "--json").stdout)["parameters"], 1000)

    def test_models_as_json(self):
        models = json.loads(self.peakbench("list", "models", "--json").stdout)
        self.assertEqual([model["id"] for model in models], ["tiny", "tiny-lm"])
        self.assertEqual(models[0]["options"][0]["maximum"], 48)
        self.assertEqual(models[1]["default_sequence_length"], 16)

    def test_strategies(self):
        strategies = json.loads(self.peakbench("list", "strategies", "--json").stdout)
        self.assertEqual([one["id"] for one in strategies], ["baseline", "slim", "rival", "misbehave", "paced", "blocky"])
        self.assertRegex(self.peakbench("list", "strategies").stdout, r"(?m)^baseline +bit_identical +")

    def test_devices(self):
        devices = json.loads(self.peakbench("list", "devices", "--json").stdout)
        self.assertEqual(devices[0]["id"], "cpu")
        self.assertIn("GiB available", devices[0]["title"])
        self.assertIn("cpu", self.peakbench("list", "devices").stdout)


class Doctor(ProgramTest):
    def test_all_is_well(self):
        out = self.peakbench("doctor").stdout
        self.assertNotIn("PROBLEM", out)
        self.assertIn("2 models and 6 strategies from 2 plugins", out)

    def test_what_is_missing_and_what_to_do(self):
        broken = self.folder / "broken"
        shutil.copytree(self.prefix / "installed", broken)
        (broken / "bin/peakbench-worker").write_text("#!/bin/sh\necho libtorch.so: cannot open >&2\nexit 127\n")
        (broken / "lib/peakbench/plugins/other.so").write_text("not a library")
        self.program = str(broken / "bin/peakbench")
        done = self.peakbench("doctor", "--json", exit_code=2)
        bad = {one["subject"]: one for one in json.loads(done.stdout) if not one["good"]}
        self.assertEqual(set(bad), {"worker", "plugin"})
        self.assertIn("libtorch.so: cannot open", bad["worker"]["found"])
        self.assertIn("ci/libtorch", bad["worker"]["fix"])
        self.assertIn("other.so", bad["plugin"]["found"])
        self.assertIn("PROBLEM  worker", self.peakbench("doctor", exit_code=2).stdout)

    def test_options_of_the_context_need_it(self):
        for words, says in ((["--device", "1"], "--context"), (["--to", "mine.json"], "--context"), (["--context", "--plugins", "."], "--plugins"),
                            (["--context", "--device", "first"], "first")):
            self.fails("doctor", *words, says=[says])
        self.assertFalse((self.folder / "mine.json").exists())

    def test_a_run_without_worker(self):
        broken = self.folder / "broken"
        shutil.copytree(self.prefix / "installed", broken)
        (broken / "bin/peakbench-worker").unlink()
        self.program = str(broken / "bin/peakbench")
        self.fails("run", *ONE, "--out", "out", says=["no worker program", "doctor"])
        self.assertFalse((self.folder / "out").exists())


class BadInput(ProgramTest):
    def test_unknown_names(self):
        (self.folder / "train.py").write_text("import torch\n", encoding="utf-8")
        (self.folder / "mine.toml").write_text("", encoding="utf-8")
        for line, said in (
            ("run train.py", "train.py is a script, and `run` takes a suite or --model: peakbench train.py"),
            ("mine.toml", "mine.toml is a suite: peakbench run mine.toml"),
            ("sh train.sh", 'no command "sh"; to run that program: peakbench -- sh train.sh'),
            ("trian.py", 'trian.py: there is no such file; did you mean "train.py"?'),
            ("list crads", 'what: "crads" is none of models, strategies, devices'),
            ("list strategie", 'did you mean "strategies"?'),
            ("completion sh", 'shell: "sh" is none of bash, zsh, fish'),
            ("advise", "`peakbench advise` needs RUN (Run folder, or its run.json): peakbench advise RUN; see"),
            ("gate x", "`peakbench gate` needs NEW (New run, given like BASE): peakbench gate BASE NEW; see `peakbench gate --help`"),
            ("history show", "`peakbench history show` needs NUMBER"),
            ("-v", 'no option -v of `peakbench`; did you mean "--version"?'),
            ("--card t4-16gb", "no program to run; expected: peakbench --card t4-16gb train.py"),
            ("--quiet run", "--quiet must follow the command: peakbench run --quiet"),
            ("emulate --memory 24GB -- true", "no option --memory of `peakbench emulate`: it is part of the card, as in"),
            ("emulate --gpu t4-16gb -- true", 'did you mean "--card"?'),
            ("emulate", "no program to run; expected: peakbench emulate --card h100-80gb -- python3 train.py"),
        ):  # fmt: skip
            self.fails(*line.split(), says=[said])
        for line in ("list", "list cards", "list model"):
            self.assertTrue(self.peakbench(*line.split()).stdout, line)
        self.fails("rnu", says=['no command "rnu"', 'did you mean "run"?'])
        self.fails("run", "--model", "tinny", "--strategy", "baseline", says=["tinny", '"tiny"'])
        self.fails("run", "--model", "tiny", "--strategy", "basline", says=["basline", '"baseline"'])
        self.fails("run", *ONE, "--device", "cpuu", says=["cpuu", '"cpu"'])
        self.fails("run", *ONE, "--dtype", "fp23", says=["fp23", "fp32"])
        self.fails("run", *ONE, "--stpes", "3", says=["--stpes", "--steps"])
        self.fails("run", "--model", "tiny,layer=3", "--strategy", "baseline", says=["layer", '"layers"'])
        self.fails("list", "modles", says=["modles"])

    def test_values_out_of_range(self):
        self.fails("run", *ONE, "--steps", "0", says=["--steps", "1 to "])
        self.fails("run", *ONE, "--warmup", "-1", says=["--warmup"])
        self.fails("run", *ONE, "--timeout", "soon", says=["--timeout", "soon"])
        for seed in ("-1", "18446744073709551616", "1e3"):
            for command in (["run", *ONE], ["ab", "base", "new", *ONE]):
                self.fails(*command, "--seed", seed, says=["--seed", seed, "0 to 9223372036854775807"])
        (self.folder / "seed.toml").write_text('models = ["tiny"]\nstrategies = ["baseline"]\nseed = -1\n', encoding="utf-8")
        self.fails("run", "seed.toml", says=["seed.toml:3:8: seed: expected an integer of 0 or more, got -1"])
        for number in ("-1", "99999999999999999999"):
            for command in (["show"], ["accept"]):
                self.fails("history", *command, number, says=[number, "not in range 1 to"])
        self.fails("run", *ONE, "--batch", "0", says=["--batch", '"0"'])
        self.fails("run", *ONE, "--batch", "1,,2", says=["--batch", "empty value"])
        self.fails("run", *ONE, "--batch", "2x", says=["--batch", '"2x"'])
        self.fails("run", *ONE, "--memory-limit", "12XB", says=["--memory-limit", '"12XB"', "60GiB"])
        self.fails("run", "--model", "tiny,layers=49", "--strategy", "baseline", says=["layers", "48", "49"])
        self.fails("run", "--model", "tiny", "--strategy", "slim,rank=many", says=["rank", "many"])

    def test_what_is_missing(self):
        self.fails("run", "--strategy", "baseline", says=["no model", "list models"])
        self.fails("run", "no.toml", says=["no.toml"])
        self.fails("report", says=["`peakbench report` needs RUNS", "see `peakbench report --help`"])
        self.fails("report", "nowhere", says=["nowhere"])

    def test_names_as_people_write_them(self):
        plan = json.loads(self.peakbench("run", "--model", "Somebody/Tiny", "--dtype", "bfloat16", "--batch", "1..2", "--dry-run", "--json").stdout)
        self.assertEqual([case["id"] for case in plan["cases"]], ["tiny/baseline/cpu/bf16/b1", "tiny/baseline/cpu/bf16/b2"])
        self.fails("run", *ONE, "--batch-size", "4", says=['did you mean "--batch"?'])
        self.fails("run", *ONE, "--device", "rtx4090", says=['unknown device "rtx4090"', '"emulated:rtx-4090-24gb"'])
        self.fails("run", *ONE, "--card", "h100-80gb", says=["--card h100-80gb", "--device auto"])
        self.fails("run", "--model", "tinny", "--strategy", "silm", says=["2 mistakes:", '"tiny"', '"slim"'])

    def test_a_strategy_twice(self):
        self.fails("run", "--model", "tiny", "--strategy", "slim+slim", says=["slim", "twice"])

    def test_a_malformed_suite(self):
        (self.folder / "bad.toml").write_text('title = "x"\nmodels = [\n')
        self.fails("run", "bad.toml", says=["bad.toml:"])

    def test_every_case_conflicts(self):
        done = self.fails("run", "--model", "tiny", "--strategy", "slim+rival", "--out", "out",
                          says=["nothing can run", "slim", "rival"])
        self.assertEqual(done.stdout, "")
        self.assertFalse((self.folder / "out").exists())

    def test_plugin_folders(self):
        (self.folder / "empty").mkdir()
        self.fails("run", *ONE, "--plugins", "empty", says=["empty", "no plugin"])
        self.fails("run", *ONE, "--plugins", "nowhere", says=["nowhere", "--plugins"])


class Describe(ProgramTest):
    def test_a_strategy_in_words(self):
        text = self.peakbench("describe", "slim").stdout
        for part in ("slim: ", "Promise about training", "are bit-identical to", "Options", "Does not stack with", "rival", "Source"):
            self.assertIn(part, text)

    def test_as_json(self):
        described = json.loads(self.peakbench("describe", "slim", "--json").stdout)
        self.assertEqual(described["id"], "slim")
        self.assertEqual([one["id"] for one in described["conflicts_with"]], ["rival"])
        self.assertNotIn("rival", described["stacks_with"])
        listed = json.loads(self.peakbench("list", "strategies", "--json").stdout)
        others = {one["id"] for one in listed} - {"slim", "baseline", "rival"}
        self.assertEqual(set(described["stacks_with"]), others)

    def test_a_wrong_name(self):
        self.fails("describe", "slimm", says=['unknown strategy "slimm"', 'did you mean "slim"'])
        self.fails("describe", says=["strategy"])


class Folders(ProgramTest):
    def test_not_writable(self):
        (self.folder / "file").write_text("in the way")
        self.fails("run", *ONE, "--out", "file", says=["file", "--out"])
        self.fails("run", *ONE, "--out", "file/below", says=["file/below", "--out"])
        self.fails("run", *ONE, "--out", "/proc/out", says=["/proc/out", "--out"])

    def test_holds_a_run(self):
        self.peakbench("run", *ONE, "--out", "out")
        self.fails("run", *ONE, "--out", "out", says=["holds a run already", "--resume", "--overwrite", "--out"])
        self.fails("run", "--model", "tiny", "--strategy", "slim", "--out", "out", "--resume", says=["different run"])
        self.peakbench("run", *ONE, "--strategy", "slim", "--out", "out", "--resume")
        self.assertEqual(len(self.run_json()["cases"]), 2)
        self.fails("run", *ONE, "--out", "out", "--resume", "--overwrite", says=["--resume", "--overwrite"])
        self.peakbench("run", "--model", "tiny", "--strategy", "slim", "--out", "out", "--overwrite")
        self.assertEqual(self.run_json()["reference"], "slim")

    def test_a_run_cut_short(self):
        self.peakbench("run", *ONE, "--out", "out")
        path = self.folder / "out/run.json"
        path.write_text(path.read_text()[:200])
        self.fails("report", "out", says=["run.json", "cut short"])
        self.fails("run", *ONE, "--out", "out", "--resume", says=["run.json"])

    def test_default_folder(self):
        self.peakbench("run", *ONE)
        (found,) = (self.folder / "results").iterdir()
        self.assertRegex(found.name, r"^tiny-\d{8}T\d{6}Z$")


class Plans(ProgramTest):
    def test_dry_run(self):
        done = self.peakbench("run", "--model", "tiny,layers=4", "--model", "tiny-lm", "--strategy", "baseline",
                              "--strategy", "rival+slim", "--strategy", "blocky", "--batch", "1,2", "--seq", "8",
                              "--dry-run")
        self.assertEqual(done.stdout.count("tiny,layers=4/"), 6)
        self.assertIn("tiny-lm/baseline/cpu/fp32/b2/s8", done.stdout)
        self.assertEqual(done.stdout.count("    conflict: "), 4)
        self.assertEqual(done.stdout.count("    unsupported: "), 2)
        self.assertIn("12 cases, 6 of them will not run. Differences are shown against baseline.", done.stdout)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_dry_run_ends_as_the_run_would(self):
        nothing = ("run", "--model", "tiny", "--strategy", "slim,rank=4+rival", "--out", "out")
        run = self.peakbench(*nothing, exit_code=2)
        dry = self.peakbench(*nothing, "--dry-run", exit_code=2)
        self.assertEqual(dry.stderr + dry.stdout, run.stderr)
        self.assertIn("nothing can run", dry.stderr)
        plan = json.loads(self.peakbench(*nothing, "--dry-run", "--json", exit_code=2).stdout)
        self.assertEqual([case["decided"] for case in plan["cases"]], ["conflict"])
        self.peakbench(*nothing, "--dry-run", "--executor", "slurm", exit_code=2)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_dry_run_as_json(self):
        plan = json.loads(self.peakbench("run", "--model", "tiny", "--strategy", "slim,rank=4,", "--dry-run", "--json",
                                         exit_code=2).stdout or "null")
        self.assertIsNone(plan)
        plan = json.loads(self.peakbench("run", "--model", "tiny", "--strategy", "baseline,slim", "--strategy",
                                         "slim,rank=4+rival", "--dry-run", "--json").stdout)
        self.assertEqual([case["decided"] for case in plan["cases"]], [None, None, "conflict"])
        self.assertEqual(plan["cases"][2]["strategies"][0], {"id": "slim", "options": {"rank": 4}})
        self.assertEqual(plan["reference"], "baseline")

    def test_a_suite_and_what_is_typed_beside_it(self):
        (self.folder / "suite.toml").write_text(
            'title = "A suite"\nmodels = ["tiny"]\nstrategies = ["baseline", "slim"]\nbatch_sizes = [1]\n')
        ids = [case["id"] for case in json.loads(
            self.peakbench("run", "suite.toml", "--batch", "4", "--dry-run", "--json").stdout)["cases"]]
        self.assertEqual(ids, ["tiny/baseline/cpu/fp32/b4", "tiny/slim/cpu/fp32/b4"])
        self.fails("run", "suite.toml", "--model", "tinny", says=["peakbench: unknown model"])
