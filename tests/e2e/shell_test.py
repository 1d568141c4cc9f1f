"""What people expect of a command: help that fits a window, a manual page, completion in their shell, `open`."""

import csv
import io
import json
import os
import pathlib
import re
import shutil
import subprocess

from installation import ProgramTest

RUN = ("run", "--model", "tiny", "--strategy", "baseline", "--repetitions", "0")


class Shell(ProgramTest):
    def commands(self, *parents):
        """Every command with its parts, from the lists that `--help` prints."""
        text = self.peakbench(*parents, "--help").stdout
        found = [parents]
        for name in re.findall(r"^  ([a-z_]+)  ", text.partition("\nExamples:\n")[0], re.MULTILINE):
            found += self.commands(*parents, name)
        return found

    def test_every_help_fits_80_columns(self):
        commands = self.commands()
        self.assertIn(("history", "trend"), commands)
        self.assertGreater(len(commands), 25)
        for command in [*commands, ("--help-all",)]:
            text = self.peakbench(*command, *(() if command == ("--help-all",) else ("--help",))).stdout
            self.assertEqual([line for line in text.splitlines() if len(line) > 80], [], command)
            self.assertNotIn("…", text, command)

    def test_the_manual_page_is_well_formed(self):
        page = self.peakbench("man").stdout
        groff = shutil.which("groff")
        if groff is None:
            self.skipTest("no groff")
        done = subprocess.run([groff, "-man", "-Tutf8", "-ww", "-rLL=80n"], input=page, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        shown = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout)
        for command in self.commands()[1:]:
            self.assertRegex(shown, rf"(?m)^ +{re.escape(' '.join(('peakbench', *command)))}$")
        self.assertIn("peakbench run tutorial", shown)
        self.assertEqual([line for line in shown.splitlines() if len(line) > 80], [])

    def replies(self, line):
        """What bash offers at the end of a line."""
        script = ('eval "$("$1" completion bash)"; COMP_LINE=$2; COMP_POINT=${#2}; _peakbench; printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", script, "bash", str(self.program), line], env=self.environment(), cwd=self.folder,
                              capture_output=True, text=True, timeout=60, check=True)  # fmt: skip
        return done.stdout.split()

    def test_bash_completes(self):
        program = str(self.program)
        self.assertIn("emulate", self.replies(f"{program} e"))
        self.assertEqual(self.replies(f"{program} run --mod"), ["--model"])
        self.assertIn("tiny", self.replies(f"{program} run --model ti"))
        self.assertIn("baseline", self.replies(f"{program} run --model tiny --strategy base"))
        self.assertEqual(self.replies(f"{program} list "), ["devices", "models", "strategies"])
        # bash takes what follows a colon or an equals sign for a word of its own.
        self.assertEqual(self.replies(f"{program} run --model=tin"), ["tiny", "tiny-lm"])

    def test_other_shells_take_their_scripts(self):
        for shell, check in (("zsh", ["-n"]), ("fish", ["--no-execute"])):
            script = self.peakbench("completion", shell).stdout
            with self.subTest(shell):
                if shutil.which(shell) is None:
                    self.skipTest(f"no {shell}")
                file = pathlib.Path(self.folder) / f"completion.{shell}"
                file.write_text(script, encoding="utf-8")
                subprocess.run([shell, *check, file], check=True, timeout=60, capture_output=True)
        self.assertIn("csh", self.peakbench("completion", "csh", exit_code=2).stderr)

    def test_fish_completes(self):
        if shutil.which("fish") is None:
            self.skipTest("no fish")
        script = "peakbench completion fish | source; for line in $argv; complete -C $line; echo ---; end"
        lines = ["peakbench list ", "peakbench run --mod", "peakbench run --model ti"]
        done = subprocess.run(["fish", "-c", script, *lines], cwd=self.folder, text=True, capture_output=True, timeout=60, check=True,
                              env=self.environment(PATH=f"{pathlib.Path(self.program).parent}:{os.environ['PATH']}"))  # fmt: skip
        self.assertEqual([part.split() for part in done.stdout.split("---\n")[:-1]],
                         [["devices", "models", "strategies"], ["--model"], ["tiny", "tiny-lm"]])  # fmt: skip

    def rows(self, *arguments):
        return list(csv.DictReader(io.StringIO(self.peakbench(*arguments).stdout), strict=True))

    def test_tables_as_csv(self):
        for out in ("one", "two"):
            self.peakbench(*RUN, "--strategy", "misbehave,behaviour=crash", "--out", out, "--no-report")
        case, failed = self.run_json("one")["cases"]
        row, bad = self.rows("report", "one", "--format", "csv")
        self.assertEqual((row["id"], row["status"], bad["status"]), (case["id"], "ok", "crashed"))
        self.assertEqual(int(row["memory.peak_allocated_bytes"]), case["memory"]["peak_allocated_bytes"])
        self.assertEqual(sum(int(bytes_ or 0) for name, bytes_ in row.items() if name.startswith("memory.at_peak.")),
                         case["memory"]["peak_allocated_bytes"])  # fmt: skip
        self.assertEqual((bad["reason"], bad["memory.peak_allocated_bytes"]), (failed["reason"], ""))
        figures = self.rows("compare", "one", "two", "--format", "csv")
        self.assertIn(("peak", "0"), {(one["where"], one["difference_bytes"]) for one in figures if one["id"] == case["id"]})
        self.assertEqual({one["id"] for one in self.rows("list", "strategies", "--format", "csv")},
                         {one["id"] for one in json.loads(self.peakbench("list", "strategies", "--json").stdout)})  # fmt: skip
        self.peakbench("history", "add", "one", "two")
        self.assertEqual([one["number"] for one in self.rows("history", "list", "--format", "csv")], ["2", "1"])
        points = self.rows("history", "trend", "baseline", "--format", "csv")
        self.assertEqual([(one["run"], int(one["peak_allocated_bytes"])) for one in points],
                         [(number, case["memory"]["peak_allocated_bytes"]) for number in ("1", "2")])  # fmt: skip
        for arguments in (["list", "models", "--format", "xml"], ["list", "models", "--format", "csv", "--json"],
                          ["report", "one", "--format", "csv", "--out", "x"]):  # fmt: skip
            self.assertIn("--format", self.peakbench(*arguments, exit_code=2).stderr)

    def test_run_prints_its_record(self):
        done = self.peakbench(*RUN, "--out", "out", "--json")
        self.assertEqual(json.loads(done.stdout), self.run_json("out"))
        self.assertIn("out/report/index.html", done.stderr)

    def browser(self):
        """A browser that says what it was given, and ends with 7."""
        program = pathlib.Path(self.folder) / "browser"
        program.write_text('#!/bin/sh\necho "shows $1"\nexit 7\n', encoding="utf-8")
        program.chmod(0o755)
        return str(program)

    def opens(self, browser, *arguments, exit_code):
        done = subprocess.run([self.program, "open", *arguments], cwd=self.folder, env=self.environment(BROWSER=browser), text=True,
                              capture_output=True, timeout=60, check=False)  # fmt: skip
        self.assertEqual(done.returncode, exit_code, done.stderr)
        return done

    def test_open_shows_the_report(self):
        browser = self.browser()
        message = self.peakbench("open", exit_code=2).stderr
        self.assertIn("no run.json here, and no run in results/", message)
        self.peakbench(*RUN, "--out", "results/old")
        self.peakbench(*RUN, "--out", "results/new", "--no-report")
        os.utime(pathlib.Path(self.folder) / "results/old/run.json", (1, 1))
        shown = self.opens(browser, exit_code=7).stdout.splitlines()
        page = os.path.realpath(os.path.join(self.folder, "results/new/report/index.html"))
        self.assertEqual([os.path.realpath(shown[0]), shown[1]], [page, "shows results/new/report/index.html"])
        self.assertTrue(os.path.exists(page), "the report was made")
        self.assertIn("results/old/report/index.html", self.peakbench("open", "results/old/run.json", "--print").stdout)

    def test_open_says_what_is_missing(self):
        self.peakbench(*RUN, "--out", "results/one")
        self.assertIn("no-such-browser", self.opens("no-such-browser", exit_code=2).stderr)
        self.assertIn("there is no such page", self.peakbench("open", "page.html", exit_code=2).stderr)
        self.assertIn("nowhere", self.peakbench("open", "nowhere", exit_code=2).stderr)
