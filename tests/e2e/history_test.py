"""`peakbench history` and `peakbench publish` end to end: several writers, kills, full disks, files that cannot be used."""
import json
import os
import pwd
import random
import re
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import time

from installation import SOURCE, ProgramTest, wait_for

HISTORY = "h.sqlite"


class HistoryTest(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # One measured run for all tests; others are made of it by changing when it was made.
        subprocess.run([cls.program, "run", "--model", "tiny", "--strategy", "baseline", "--strategy", "slim", "--out",
                        str(cls.prefix / "measured"), "--quiet", "--no-report"], check=True, capture_output=True)

    def environment(self, **more):
        ours = super().environment(**more)
        return {name: value for name, value in ours.items() if not re.match("(GITHUB|CI|GIT|BUILDKITE)_", name)}

    def make_run(self, day, peak=None, status="ok"):
        folder = self.folder / f"run{day}"
        folder.mkdir(exist_ok=True)
        run = json.loads((self.prefix / "measured/run.json").read_text(encoding="utf-8"))
        run["created"] = f"2026-{1 + day // 28:02}-{1 + day % 28:02}T00:00:00Z"
        if peak:
            run["cases"][0]["memory"]["peak_allocated_bytes"] = peak
        if status != "ok":
            run["cases"][0].update(status=status, reason="it did", memory=None, throughput=None)
        (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
        return folder.name

    def history(self, *arguments, **options):
        return self.peakbench("history", *arguments, "--history", HISTORY, **options)

    def add(self, *runs, **options):
        return self.history("add", *runs, "--branch", "main", "--commit", "c0ffee", **options)

    def numbers(self):
        return [run["number"] for run in json.loads(self.history("list", "--all", "--json").stdout)]

    def assert_sound(self, runs):
        self.assertIn(f"sound, {runs} runs", self.history("check").stdout)
        self.assertFalse((self.folder / f"{HISTORY}-journal").exists())


class Commands(HistoryTest):
    def test_add_list_show_trend(self):
        self.assertIn("run1: run 1", self.add(self.make_run(1)).stdout)
        self.assertIn("run2: run 2", self.add(self.make_run(2, peak=200_000_000)).stdout)
        again = self.add("run1")
        self.assertIn("already there as run 1; nothing was added", again.stdout)
        listed = self.history("list").stdout
        self.assertRegex(listed, r"(?m)^ +2 +2026-01-03 00:00 UTC +main +c0ffee")
        self.assertIn("tiny", self.history("show", 1).stdout)
        self.assertEqual(json.loads(self.history("show", 1, "--json").stdout)["run"]["title"], "tiny")
        self.assertIn("+95,142,400 B", self.history("trend", "baseline").stdout)
        points = json.loads(self.history("trend", "baseline", "--json").stdout)["series"][0]["points"]
        self.assertEqual([point["peak_allocated_bytes"] for point in points], [104_857_600, 200_000_000])
        self.assertRegex(self.history("trend").stdout, r"tiny/slim/cpu/fp32/b1 .* 0 ")

    def test_help_has_examples(self):
        for arguments in (["history", "--help"], ["history", "add", "--help"], ["publish", "--help"]):
            self.assertIn("Examples:", self.peakbench(*arguments).stdout)

    def test_what_was_meant(self):
        self.fails("history", "ad", says=['no command "history ad"', "did you mean"])
        self.fails("history", says=["history needs a command: add, list"])
        self.fails("history", "list", "--brnach", "x", says=["no option --brnach of `peakbench history list`", "--branch"])
        self.add(self.make_run(1))
        self.fails("history", "show", "7", "--history", HISTORY, says=["no run 7", "history list"])
        self.fails("history", "trend", "nothing", "--history", HISTORY, says=['no case on branch "main"', "nothing"])
        self.fails("history", "trend", "--metric", "alocated", "--history", HISTORY, says=['did you mean "allocated"?'])
        self.fails("history", "prune", "--history", HISTORY, says=["name the runs to remove"])
        self.fails("history", "add", "nowhere", "--history", HISTORY, says=["nowhere"])

    def test_continuous_integration_says_commit_and_branch(self):
        environment = {**self.environment(), "GITHUB_SHA": "0123abc", "GITHUB_REF_NAME": "7/merge", "GITHUB_HEAD_REF": "topic"}
        subprocess.run([self.program, "history", "add", self.make_run(1), "--history", HISTORY], cwd=self.folder, check=True,
                       capture_output=True, env=environment)
        run = json.loads(self.history("list", "--json").stdout)[0]
        self.assertEqual((run["branch"], run["commit"]), ("topic", "0123abc"))

    def test_a_clock_that_goes_backwards_is_noted_and_changes_no_order(self):
        self.add(self.make_run(9))
        self.assertIn("note: created 2026-01-03T00:00:00Z, earlier than the previous run 1", self.add(self.make_run(2)).stderr)
        points = json.loads(self.history("trend", "baseline", "--json").stdout)["series"][0]["points"]
        self.assertEqual([(point["run"], point["clock_went_back"]) for point in points], [(1, False), (2, True)])

    def test_prune(self):
        self.add(*[self.make_run(day) for day in range(6)])
        self.assertIn("3 of 6 runs would go", self.history("prune", "--keep", 3, "--dry-run").stdout)
        self.assertEqual(self.numbers(), [6, 5, 4, 3, 2, 1])
        self.assertIn("3 of 6 runs removed", self.history("prune", "--keep", 3).stdout)
        self.assertEqual(self.numbers(), [6, 5, 4])
        self.history("prune", "--run", 5)
        self.assertEqual(self.numbers(), [6, 4])
        self.history("prune", "--older-than", "2020-01-01")
        self.assertEqual(self.numbers(), [6, 4])
        self.assert_sound(2)

    def test_export_and_back(self):
        self.add(self.make_run(1), self.make_run(2), "--verdict", "passed")
        self.history("export", "--out", "saved.jsonl")
        self.peakbench("history", "add", "saved.jsonl", "--history", "other.sqlite")
        self.peakbench("history", "export", "--out", "again.jsonl", "--history", "other.sqlite")
        lines = [re.sub(r'"added":"[^"]*"', "", (self.folder / name).read_text()) for name in ("saved.jsonl", "again.jsonl")]
        self.assertEqual(lines[0], lines[1])
        self.history("export", "--format", "folders", "--out", "folders")
        self.assertIn("already there as run 1", self.add("folders/000001-2026-01-02t00-00-00z").stdout)

    def test_the_documented_queries(self):
        self.add(self.make_run(1), self.make_run(2, peak=200_000_000))
        text = (SOURCE / "docs/how-to/history.md").read_text(encoding="utf-8")
        queries = re.findall(r"```sql\n(.*?)\n```", text, re.DOTALL)
        self.assertGreaterEqual(len(queries), 4)
        rows = []
        with sqlite3.connect(f"file:{self.folder / HISTORY}?mode=ro", uri=True) as database:
            for query in queries:
                self.assertNotIn("\n", query, "one line")
                rows.append(database.execute(query).fetchall())
                self.assertTrue(rows[-1], query)
        self.assertEqual(rows[0], [("2026-01-03T00:00:00Z", "c0ffee", "c0ffee", "tiny/baseline/cpu/fp32/b1", 95_142_400)])

    def test_publish_twice(self):
        self.add(*[self.make_run(day) for day in range(4)])
        first = self.peakbench("publish", "--history", HISTORY, "--out", "site").stdout
        self.assertIn("site/index.html", first)
        self.assertIn(" 0 removed", first)
        self.assertIn("0 files written", self.peakbench("publish", "--history", HISTORY, "--out", "site").stdout)
        self.history("prune", "--run", 2)
        self.assertIn("1 removed", self.peakbench("publish", "--history", HISTORY, "--out", "site").stdout)


class Writers(HistoryTest):
    def test_at_once_lose_nothing(self):
        runs = [self.make_run(day) for day in range(24)]
        shared = runs[:4]
        writers = [self.start("history", "add", *part, *shared, "--history", HISTORY, "--branch", "main")
                   for part in (runs[4:14], runs[14:])]
        for writer in writers:
            out, err = writer.communicate(timeout=60)
            self.assertEqual(writer.returncode, 0, out + err)
        self.assertEqual(len(self.numbers()), 24)
        self.assert_sound(24)

    def test_a_locked_history_is_waited_for_and_then_said(self):
        self.add(self.make_run(1))
        with sqlite3.connect(self.folder / HISTORY, isolation_level=None) as other:
            other.execute("BEGIN EXCLUSIVE")
            self.fails("history", "add", self.make_run(2), "--history", HISTORY, "--wait", "0.2",
                       says=["another program is writing", "Nothing was changed", "--wait"])
            waiting = self.start("history", "add", "run2", "--history", HISTORY, "--wait", "60")
            time.sleep(0.3)
            self.assertIsNone(waiting.poll())
            other.execute("ROLLBACK")
        waiting.communicate(timeout=60)
        self.assertEqual(waiting.returncode, 0)
        self.assert_sound(2)

    def test_killed_in_the_middle_of_a_commit(self):
        self.add(self.make_run(1))
        journal = self.folder / f"{HISTORY}-journal"
        with sqlite3.connect(self.folder / HISTORY, isolation_level=None) as reader:
            # A reader keeps the writer from committing: what it wrote is in the journal and in its memory.
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM runs").fetchone()
            writer = self.start("history", "add", self.make_run(2), "--history", HISTORY, "--wait", "60")
            wait_for(journal.exists)
            time.sleep(0.3)
            writer.kill()
            writer.wait()
            self.assertEqual(writer.returncode, -signal.SIGKILL)
            reader.execute("ROLLBACK")
        self.assertEqual(self.numbers(), [1])
        self.assertIn("run2: run 2", self.add("run2").stdout)
        self.assert_sound(2)

    def test_killed_at_any_moment(self):
        runs = [self.make_run(day) for day in range(40)]
        chance = random.Random(7)
        for _ in range(8):
            writer = self.start("history", "add", *runs, "--history", HISTORY)
            time.sleep(chance.uniform(0.005, 0.08))
            writer.kill()
            writer.wait()
        self.add(*runs)
        self.assertEqual(len(self.numbers()), 40)
        self.assert_sound(40)

    def test_a_file_that_may_not_grow(self):
        self.add(self.make_run(1))
        before = (self.folder / HISTORY).read_bytes()
        runs = [self.make_run(day) for day in range(2, 26)]

        def limited():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 4096, resource.RLIM_INFINITY))

        self.fails_with(["history", "add", *runs, "--history", HISTORY], says=["the disk", "the history is as it was before"],
                        preexec_fn=limited, restore_signals=False)
        kept = len(self.numbers())
        self.assertLess(kept, 25)
        self.assert_sound(kept)
        self.add(*runs)
        self.assert_sound(25)

    def fails_with(self, arguments, says, **options):
        done = subprocess.run([self.program, *arguments], cwd=self.folder, text=True, capture_output=True, timeout=60,
                              env=self.environment(), check=False, **options)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        for part in says:
            self.assertIn(part, done.stderr)

    def test_a_full_disk(self):
        disk = self.folder / "disk"
        disk.mkdir()
        script = f"mount -t tmpfs -o size=128k tmpfs {disk} && exec \"$@\""
        probe = subprocess.run(["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", "true"],
                               capture_output=True, check=False)
        if probe.returncode != 0:
            self.skipTest(f"no file system of a test's own: {probe.stderr.decode().strip()}")
        runs = [self.make_run(day) for day in range(40)]
        # The small disk lives as long as this shell: fill it, look at what is there, all inside.
        inner = (f"{self.program} history add {' '.join(runs)} --history disk/h.sqlite; echo exit $?; "
                 f"{self.program} history check --history disk/h.sqlite")
        done = subprocess.run(["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", "sh", "-c", inner],
                              cwd=self.folder, text=True, capture_output=True, env=self.environment(), check=False)
        self.assertIn("exit 2", done.stdout)
        self.assertIn("the disk is full", done.stderr)
        added = done.stdout.count(": run ")
        self.assertGreater(added, 0)
        self.assertIn(f"sound, {added} runs", done.stdout)


class Files(HistoryTest):
    def sql(self, text):
        with sqlite3.connect(self.folder / HISTORY) as database:
            database.execute(text)

    def refused_everywhere(self, *says):
        before = (self.folder / HISTORY).read_bytes()
        for command in (["history", "list"], ["history", "trend"], ["history", "add", "run1"], ["history", "prune", "--keep", "1"],
                        ["history", "accept", "1"], ["publish", "--out", "site"]):
            self.fails(*command, "--history", HISTORY, says=says)
        self.assertEqual((self.folder / HISTORY).read_bytes(), before)
        self.assertFalse((self.folder / "site").exists())

    def test_newer(self):
        self.add(self.make_run(1))
        self.sql("PRAGMA user_version = 99")
        self.refused_everywhere("written by a newer Peakbench", "history version 99", "Nothing was changed")

    def test_corrupt(self):
        self.add(*[self.make_run(day) for day in range(20)])
        content = bytearray((self.folder / HISTORY).read_bytes())
        content[8 * 4096:] = random.Random(3).randbytes(len(content) - 8 * 4096)
        (self.folder / HISTORY).write_bytes(content)
        done = self.history("check", exit_code=2)
        self.assertIn("damaged", done.stderr)
        self.assertIn("history export", done.stderr)

    def test_damaged_runs_are_left_out_of_an_export_and_the_others_saved(self):
        self.add(*[self.make_run(day) for day in range(5)])
        self.sql("UPDATE records SET run_json = x'00' WHERE run IN (2, 4)")
        done = self.history("export", "--out", "saved.jsonl", exit_code=2)
        self.assertIn("2 of 5 runs are damaged and were left out: 2, 4", done.stderr)
        self.peakbench("history", "add", "saved.jsonl", "--history", "new.sqlite")
        self.assertEqual(len(json.loads(self.peakbench("history", "list", "--json", "--history", "new.sqlite").stdout)), 3)

    def test_read_only(self):
        self.add(self.make_run(1))
        self.make_run(2)
        where = self.folder / "read only"
        where.mkdir()
        shutil.move(self.folder / HISTORY, where / HISTORY)
        (where / HISTORY).chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
        where.chmod(0o555)
        self.addCleanup(where.chmod, 0o755)
        user = {}
        if os.geteuid() == 0:  # whom nothing is read-only for
            user = {"user": pwd.getpwnam("nobody").pw_uid, "group": pwd.getpwnam("nobody").pw_gid}
            self.prefix.chmod(0o755)
            self.folder.chmod(0o755)
        self.assertIn("c0ffee", self.peakbench("history", "list", "--history", where / HISTORY, **user).stdout)
        done = self.peakbench("history", "add", "run2", "--history", where / HISTORY, exit_code=2, **user)
        self.assertIn("cannot be written: Permission denied; choose a folder that you may write to. Nothing was changed", done.stderr)
        done = self.peakbench("history", "add", "run2", "--history", where / "new.sqlite", exit_code=2, **user)
        self.assertIn("cannot be written: Permission denied; choose a folder that you may write to. Nothing was changed", done.stderr)
        where.chmod(0o755)
        self.assertEqual(len(json.loads(self.peakbench("history", "list", "--json", "--history", where / HISTORY).stdout)), 1)

    def test_publish_where_one_may_not_write(self):
        self.add(self.make_run(1))
        (self.folder / "taken").write_text("a file")
        self.fails("publish", "--history", HISTORY, "--out", "taken", says=["taken", "--out"])
        (self.folder / "site").mkdir()
        (self.folder / "site/index.html").write_text("somebody's")
        self.fails("publish", "--history", HISTORY, "--out", "site", says=["index.html", "in the way"])
        self.assertEqual((self.folder / "site/index.html").read_text(), "somebody's")

    def test_runs_of_different_cards_are_kept_apart(self):
        self.add(self.make_run(1))
        run = json.loads((self.folder / self.make_run(2) / "run.json").read_text())
        run["environment"]["cpu"] = "Another processor"
        (self.folder / "run2/run.json").write_text(json.dumps(run))
        self.add("run2")
        series = json.loads(self.history("trend", "baseline", "--json").stdout)["series"]
        self.assertEqual(len(series), 2)
        self.assertEqual([len(one["points"]) for one in series], [1, 1])
        self.assertIn("Another processor", self.history("trend").stdout)
