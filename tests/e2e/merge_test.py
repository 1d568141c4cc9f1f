"""`peakbench merge`: all of the joined run is there or none of it, whatever ends it, and nothing but files of the parts comes into it."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

from host import may_mount
from installation import ProgramTest, wait_for

MEGABYTE = 1 << 20
NOBODY = 65534


def contents(folder):
    """Every file below a folder with its bytes; links as where they lead."""
    return {str(path.relative_to(folder)): os.readlink(path) if path.is_symlink() else path.read_bytes()
            for path in sorted(folder.rglob("*")) if path.is_symlink() or path.is_file()}


class MergeTest(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.parts = cls.prefix / "parts"
        for name, batch in (("a", "1"), ("b", "4")):
            subprocess.run([cls.program, "run", "--model", "tiny", "--strategy", "baseline", "--batch", batch, "--repetitions", "0",
                            "--no-report", "--quiet", "--out", cls.parts / name], check=True, capture_output=True, timeout=60)

    def setUp(self):
        super().setUp()
        for name in "ab":
            shutil.copytree(self.parts / name, self.folder / name)
            self.give_trace(name, f"trace of {name}\n".encode())

    def case(self, part):
        return self.run_json(part)["cases"][0]

    def give_trace(self, part, data):
        """The worker is a script and leaves none."""
        slug = self.case(part)["slug"]
        path = self.folder / part / "cases" / slug / "trace.sqlite"
        path.write_bytes(data)
        path.with_name("snapshot.pickle").write_bytes(b"snapshot of " + part.encode())
        self.change(part, lambda run: run["cases"][0]["ranks"][0].update(trace=f"cases/{slug}/trace.sqlite"))
        return path

    def trace(self, part):
        return self.folder / part / self.case(part)["ranks"][0]["trace"]

    def change(self, part, how):
        run = self.run_json(part)
        how(run)
        (self.folder / part / "run.json").write_text(json.dumps(run), encoding="utf-8")

    def merge(self, **options):
        return self.peakbench("merge", "a", "b", "--out", "all", **options)

    def refused(self, *says):
        """Exit code 2 and its reason; the target is empty, the parts are as they were, and mended it works there."""
        before = {part: contents(self.folder / part) for part in "ab"}
        done = self.fails("merge", "a", "b", "--out", "all", says=says)
        self.assertEqual(contents(self.folder / "all"), {})
        self.assertEqual({part: contents(self.folder / part) for part in "ab"}, before)
        return done

    def is_whole(self, out="all"):
        run = self.run_json(out)
        self.assertEqual(run["status"], "complete")
        for case, part in zip(run["cases"], "ab"):
            folder = self.folder / out / "cases" / case["slug"]
            self.assertEqual(case["ranks"][0]["trace"], f"cases/{case['slug']}/trace.sqlite")
            self.assertEqual({path.name: path.read_bytes() for path in folder.iterdir()},
                             {path.name: path.read_bytes() for path in self.trace(part).parent.iterdir()
                              if path.name in ("trace.sqlite", "snapshot.pickle", "worker.log")})
        self.assertEqual({path.name for path in (self.folder / out).iterdir()}, {"run.json", "cases"})


class WhatIsCopied(MergeTest):
    def test_traces_snapshots_and_logs(self):
        self.assertEqual(self.merge().stdout, "all/run.json: 2 cases, 0 pending\n")
        self.is_whole()

    def test_a_trace_is_where_its_run_says(self):
        trace = self.trace("a")
        (self.folder / "a/elsewhere").mkdir()
        trace.rename(self.folder / "a/elsewhere/t.sqlite")
        self.change("a", lambda run: run["cases"][0]["ranks"][0].update(trace="elsewhere/t.sqlite"))
        self.merge()
        run = self.run_json("all")
        self.assertEqual((self.folder / "all" / run["cases"][0]["ranks"][0]["trace"]).read_bytes(), b"trace of a\n")

    def test_links_are_refused(self):
        secret = self.folder / "secret"
        secret.write_text("of somebody\n")
        for name in ("trace.sqlite", "snapshot.pickle", "worker.log"):
            path = self.trace("b").with_name(name)
            kept = path.read_bytes()
            for target in (secret, pathlib.Path("/etc/shadow"), path.with_name("nothing"), path, path.with_name("other")):
                path.unlink()
                path.with_name("other").write_text("inside\n")
                path.symlink_to(target)
                self.refused(str(path.relative_to(self.folder)), "is a link")
            path.unlink()
            path.write_bytes(kept)
        self.merge()
        self.is_whole()

    def test_linked_folders_are_refused(self):
        for folder in (self.trace("b").parent, self.folder / "b/cases"):
            elsewhere = self.folder / f"elsewhere-{folder.name}"
            folder.rename(elsewhere)
            folder.symlink_to(elsewhere)
            self.refused(str(folder.relative_to(self.folder)), "is a link")
            folder.unlink()
            elsewhere.rename(folder)
        self.merge()
        self.is_whole()

    def test_what_is_no_file_is_refused(self):
        path = self.trace("b")
        for make, words in ((os.mkfifo, "a pipe or a device"), (os.mkdir, "is a folder")):
            path.unlink()
            make(path)
            self.refused(str(path.relative_to(self.folder)), words)
            (path.rmdir if path.is_dir() else path.unlink)()
            path.write_text("trace of b\n")
        self.merge()
        self.is_whole()

    def test_a_trace_that_is_not_there_is_said(self):
        name = str(self.trace("a").relative_to(self.folder))
        self.trace("a").unlink()
        done = self.merge()
        self.assertIn(f"note: {name} is not there, though run.json names it", done.stderr)
        shutil.rmtree(self.folder / "all")
        self.trace("b").unlink()
        self.assertIn(f"note: {name} and 1 more traces are not there", self.merge().stderr)
        self.assertEqual(len(self.run_json("all")["cases"]), 2)

    def test_two_cases_with_one_slug(self):
        slug = self.case("a")["slug"]
        (self.trace("b").parent).rename(self.folder / "b/cases" / slug)
        self.change("b", lambda run: (run["cases"][0].update(slug=slug),
                                      run["cases"][0]["ranks"][0].update(trace=f"cases/{slug}/trace.sqlite")))
        self.refused(self.case("a")["id"], self.case("b")["id"], f"one slug, {slug}")

    def test_holes_stay_holes(self):
        """40 GiB of which a megabyte is on the disk."""
        trace = self.trace("a")
        with trace.open("wb") as file:
            file.write(b"begin")
            file.seek(20 << 30)
            file.write(os.urandom(MEGABYTE))
            file.truncate(40 << 30)
        began = time.monotonic()
        self.merge()
        self.assertLess(time.monotonic() - began, 20)
        copy = self.folder / "all/cases" / trace.parent.name / "trace.sqlite"
        self.assertEqual(copy.stat().st_size, 40 << 30)
        self.assertLess(copy.stat().st_blocks * 512, 16 * MEGABYTE)
        with trace.open("rb") as one, copy.open("rb") as other:
            for at in (0, 20 << 30, (40 << 30) - 100):
                one.seek(at)
                other.seek(at)
                self.assertEqual(one.read(2 * MEGABYTE), other.read(2 * MEGABYTE))

    def test_permissions_stay(self):
        self.trace("a").chmod(0o600)
        self.merge()
        self.assertEqual((self.folder / "all/cases" / self.case("a")["slug"] / "trace.sqlite").stat().st_mode & 0o777, 0o600)


class WhereItGoes(MergeTest):
    def test_a_linked_folder_of_cases_is_refused(self):
        (self.folder / "elsewhere").mkdir()
        (self.folder / "all").mkdir()
        (self.folder / "all/cases").symlink_to(self.folder / "elsewhere")
        self.fails("merge", "a", "b", "--out", "all", says=["all/cases", "is a link"])
        self.assertEqual(contents(self.folder / "elsewhere"), {})
        self.assertEqual(os.listdir(self.folder / "all"), ["cases"])

    def test_somebodys_files_are_refused(self):
        (self.folder / "all/cases").mkdir(parents=True)
        (self.folder / "all/cases/notes.txt").write_text("mine\n")
        self.fails("merge", "a", "b", "--out", "all", says=["all/cases", "no run"])
        shutil.rmtree(self.folder / "all/cases")
        (self.folder / "all/incoming.tmp").write_text("mine\n")
        self.fails("merge", "a", "b", "--out", "all", says=["all/incoming.tmp", "not written by Peakbench"])
        self.assertEqual(contents(self.folder / "all"), {"incoming.tmp": b"mine\n"})


class Ended(MergeTest):
    """With a trace so large that it is ended while it is copied."""

    SIZE = 256 * MEGABYTE

    def begin(self):
        process = self.start("merge", "a", "b", "--out", "all")
        copy = self.folder / "all/cases" / self.case("b")["slug"] / "trace.sqlite"
        wait_for(lambda: (copy.exists() and copy.stat().st_size > 0) or process.poll() is not None)
        return process

    def setUp(self):
        super().setUp()
        self.give_trace("b", os.urandom(MEGABYTE) * (self.SIZE // MEGABYTE))

    def test_by_a_signal(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = self.begin()
            process.send_signal(number)
            _, err = process.communicate(timeout=20)
            self.assertEqual(process.returncode, 130, err)
            self.assertIn("nothing is written", err)
            self.assertEqual(contents(self.folder / "all"), {})
            self.assertEqual(os.listdir(self.folder / "all"), [])
        self.merge()
        self.is_whole()

    def test_by_sigkill(self):
        for again in (self.merge, lambda: self.peakbench("run", "--model", "tiny", "--strategy", "rival", "--repetitions", "0",
                                                        "--out", "all", "--no-report")):
            process = self.begin()
            process.kill()
            process.communicate(timeout=20)
            self.assertEqual(process.returncode, -signal.SIGKILL)
            self.assertNotEqual(contents(self.folder / "all"), {})
            self.assertFalse((self.folder / "all/run.json").exists())
            (self.folder / "all/cases/notes.txt").write_text("mine\n")
            if again == self.merge:
                # What is not of the merge is not touched, and said to be in the way.
                self.fails("merge", "a", "b", "--out", "all", says=["all/cases", "no run"])
                self.assertEqual(contents(self.folder / "all"), {"cases/notes.txt": b"mine\n"})
            (self.folder / "all/cases/notes.txt").unlink()
            again()
            if again == self.merge:
                self.is_whole()
            self.assertFalse((self.folder / "all/incoming.tmp").exists())
            shutil.rmtree(self.folder / "all")

    def test_by_an_unreadable_trace(self):
        if os.geteuid() == 0:
            self.skipTest("root reads everything")
        self.trace("b").chmod(0)
        self.refused("trace.sqlite", "Permission denied")

    def test_by_a_full_disk(self):
        if not may_mount():
            self.skipTest("a file system of its own cannot be mounted here (unshare -m, tmpfs)")
        (self.folder / "all").mkdir()
        script = 'mount -t tmpfs -o size=8m none all && "$@"; code=$?; cp -a all after; exit $code'
        done = subprocess.run(["unshare", "-m", "bash", "-c", script, "bash", self.program, "merge", "a", "b", "--out", "all"],
                              cwd=self.folder, text=True, capture_output=True, env=self.environment(), timeout=60, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        slug = self.case("b")["slug"]
        self.assertIn(f"all/cases/{slug}/trace.sqlite: cannot write: No space left on device; free some space", done.stderr)
        self.assertEqual(list((self.folder / "after").iterdir()), [])

    def test_as_a_user_who_may_not_read_a_trace(self):
        """The one of another user; the program is started as nobody."""
        if os.geteuid() != 0:
            self.skipTest("only root can become somebody else")
        self.trace("b").chmod(0o600)
        (self.folder / "all").mkdir()
        os.chown(self.folder / "all", NOBODY, NOBODY)
        for folder in (self.prefix, self.folder):
            folder.chmod(0o755)
        done = subprocess.run([self.program, "merge", "a", "b", "--out", "all"], cwd=self.folder, text=True, capture_output=True,
                              env=self.environment(), timeout=60, check=False, user=NOBODY, group=NOBODY, extra_groups=[])
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("trace.sqlite: cannot be read: Permission denied", done.stderr)
        self.assertEqual(os.listdir(self.folder / "all"), [])
        self.trace("b").chmod(0o644)
        self.merge()
        self.is_whole()
