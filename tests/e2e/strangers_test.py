"""Nothing of anyone's is lost: a folder that is not ours is refused, and of one that is, only what Peakbench wrote goes."""
import json
import os
import pathlib
import shutil
import subprocess

from given import PEAKBENCH
from installation import ProgramTest

ONE = ("run", "--model", "tiny", "--strategy", "baseline")
TWO = (*ONE, "--strategy", "slim", "--repetitions", "0")


def contents(folder):
    """Every file below a folder with its bytes, but for a history, which may be new; links as where they lead."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.name.startswith("peakbench-history.sqlite"):
            continue
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_file():
            found[name] = path.read_bytes()
    return found


class Strangers(ProgramTest):
    def put(self, name, text="mine\n"):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def refused(self, *arguments, says):
        """Exit code 2, and every file is as it was."""
        before = contents(self.folder)
        done = self.fails(*arguments, says=says)
        self.assertEqual(contents(self.folder), before)
        return done

    def finished(self, *arguments):
        self.peakbench(*(arguments or ONE), "--out", "out")


    def linked(self, name):
        """From now on the folder is a link to one with the same files, somebody's."""
        path, elsewhere = self.folder / name, self.folder / f"elsewhere-{pathlib.Path(name).name}"
        path.rename(elsewhere)
        path.symlink_to(elsewhere)


class RunFolders(Strangers):
    def test_a_folder_without_a_run_is_not_cleared(self):
        self.put("out/report/thesis.md")
        self.put("out/cases/smith-v-jones.txt")
        for more in (["--overwrite"], [], ["--resume"]):
            self.refused(*ONE, "--out", "out", *more, says=["out/cases", "no run", "--out"])

    def test_a_page_of_somebody_is_not_replaced(self):
        for page in ("index.html", "report.md"):
            path = self.put(f"out/report/{page}")
            for more in (["--overwrite"], [], ["--resume"]):
                self.refused(*ONE, "--out", "out", *more, says=[f"out/report/{page}", "not written by Peakbench", "--out"])
            path.unlink()
        self.put("out/report/thesis.md")
        self.finished()  # nothing is replaced
        self.assertEqual((self.folder / "out/report/thesis.md").read_text(), "mine\n")

    def test_a_run_json_that_is_none_of_ours(self):
        for text in ('{"jog": "10 km"}', "not JSON", '{"schema_version": "99.0.0"}', ""):
            self.put("out/run.json", text)
            self.put("out/cases/a.txt")
            self.refused(*ONE, "--out", "out", "--overwrite", says=["out/run.json", "--overwrite", "--out"])
            self.refused(*ONE, "--out", "out", "--resume", says=["out/run.json"])
            self.refused(*ONE, "--out", "out", says=["out", "--out"])

    def test_overwrite_deletes_what_the_run_wrote_and_nothing_else(self):
        self.finished(*TWO)
        slugs = [case["slug"] for case in self.run_json()["cases"]]
        kept = {name: b"mine\n" for name in ("out/notes.txt", "out/cases/why.txt", f"out/cases/{slugs[1]}/notes.txt",
                                             "out/report/thesis.md", "out/report/peak-of-everest.svg")}
        for name in kept:
            self.put(name)
        os.symlink(self.put("elsewhere/run.json").parent, self.folder / "out/cases/link")
        self.peakbench("run", "--model", "tiny", "--strategy", "misbehave,behaviour=no_result", "--out", "out", "--overwrite",
                       "--no-report", exit_code=3)
        left = contents(self.folder)
        for name, text in kept.items():
            self.assertEqual(left.get(name), text, name)
        self.assertEqual(left["elsewhere/run.json"], b"mine\n")
        self.assertFalse((self.folder / "out/cases" / slugs[0]).exists())
        self.assertEqual([path.name for path in (self.folder / "out/cases" / slugs[1]).iterdir()], ["notes.txt"])
        self.assertEqual({path.name for path in (self.folder / "out/report").iterdir()}, {"thesis.md", "peak-of-everest.svg"})

    def test_a_report_that_somebody_wrote_on_is_not_ours_any_more(self):
        self.finished()
        page = self.folder / "out/report/report.md"
        page.write_text(page.read_text(encoding="utf-8") + "\n## What I think of it\n", encoding="utf-8")
        self.refused(*ONE, "--out", "out", "--overwrite", says=["report.md", "changed", "--out"])
        self.refused("report", "out", says=["report.md", "changed", "--out"])
        page.write_text(page.read_text(encoding="utf-8").replace("tiny", "huge"), encoding="utf-8")
        self.refused("report", "out", says=["report.md"])

    def test_pending_cases_of_a_run_that_was_killed_go_too(self):
        self.finished(*TWO)
        run = self.run_json()
        gone = run["cases"].pop()
        run["pending"] = [gone["id"]]
        self.put("out/run.json", json.dumps(run))
        self.peakbench(*ONE, "--out", "out", "--overwrite")
        self.assertFalse((self.folder / "out/cases" / gone["slug"]).exists())

    def test_pages_behind_a_link_are_not_deleted(self):
        self.finished()
        self.put("pages/index.html")
        report = self.folder / "out/report"
        report.rename(self.folder / "was_report")
        report.symlink_to(self.folder / "pages")
        self.refused(*ONE, "--out", "out", "--overwrite", says=["out/report: is a link"])
        (self.folder / "pages/index.html").unlink()
        shutil.copy(self.folder / "was_report/report.md", self.folder / "pages/of_ours.md")
        self.peakbench(*ONE, "--out", "out", "--overwrite", "--no-report")
        self.assertTrue((self.folder / "pages/of_ours.md").exists())

    def test_no_run_goes_through_a_link(self):
        """It would delete what is there of an earlier attempt, and write beside somebody's files."""
        self.finished(*TWO)
        self.linked("out/cases")
        for command in (TWO, ("run", "--model", "tiny", "--strategy", "rival")):
            self.refused(*command, "--out", "out", "--overwrite", says=["out/cases: is a link"])
        self.refused(*TWO, "--out", "out", "--resume", says=["out/cases: is a link"])
        (self.folder / "out/run.json").unlink()
        self.refused(*TWO, "--out", "out", says=["out/cases: is a link"])
        (self.folder / "empty").mkdir()
        (self.folder / "new").mkdir()
        (self.folder / "new/cases").symlink_to(self.folder / "empty")
        self.refused(*ONE, "--out", "new", says=["new/cases: is a link"])
        self.assertEqual(list((self.folder / "empty").iterdir()), [])

    def test_no_case_goes_through_a_link(self):
        self.finished(*TWO)
        slug = self.run_json()["cases"][1]["slug"]
        self.linked(f"out/cases/{slug}")
        self.put(f"out/cases/{slug}/parameters.tmp")
        # Nothing of the first case is deleted either.
        self.refused(*TWO, "--out", "out", "--overwrite", says=[f"out/cases/{slug}: is a link"])
        run = self.run_json()
        run["status"], run["pending"] = "interrupted", [run["cases"].pop()["id"]]
        self.put("out/run.json", json.dumps(run))
        elsewhere = contents(self.folder / f"elsewhere-{slug}")
        self.peakbench(*TWO, "--out", "out", "--resume", "--no-report")
        self.assertEqual(contents(self.folder / f"elsewhere-{slug}"), elsewhere)
        self.assertEqual(self.statuses(), ["ok", "host_failure"])
        self.assertIn(f"out/cases/{slug}: is a link", self.run_json()["cases"][1]["reason"])

    def test_no_page_goes_through_a_link(self):
        self.finished()
        (self.folder / "pages").mkdir()
        shutil.rmtree(self.folder / "out/report")
        for target in ("pages", "nothing", "out/report"):
            (self.folder / "out/report").symlink_to(self.folder / target)
            for command in (("report", "out"), ("open", "out"), (*ONE, "--out", "out", "--overwrite"), (*ONE, "--out", "out", "--resume")):
                self.refused(*command, says=["out/report: is a link"])
            (self.folder / "out/report").unlink()
        # A name that somebody types leads where it leads.
        (self.folder / "typed").symlink_to(self.folder / "pages")
        self.peakbench("report", "out", "--out", "typed")
        self.assertTrue((self.folder / "pages/index.html").exists())

    def test_again_and_again(self):
        for _ in range(3):
            self.peakbench(*ONE, "--out", "out", "--overwrite")
        self.peakbench("report", "out")
        self.assertEqual(self.statuses(), ["ok"])


class Submissions(Strangers):
    """Of jobs that nobody can be asked about: there is no Slurm on PATH."""

    def environment(self, **more):
        return super().environment(PATH="", **more)

    def refused(self, *arguments, says):
        """Exit code 2 after the warning that Slurm cannot be asked, and every file is as it was."""
        before = contents(self.folder)
        self.assertIn(says, self.peakbench(*arguments, exit_code=2).stderr)
        self.assertEqual(contents(self.folder), before)

    def submitted(self, number=1):
        """What a job that has ended leaves."""
        queue = f"out/queue/{number}"
        own = ("job.sh", "tasks.json", "job.json", "log/0.txt", "ended/0-0.json", "task/0/order.json", "task/0/0/run.json", "task/0/0/at_work.json")
        for name in own:
            self.put(f"{queue}/{name}")

    def test_overwrite_deletes_what_jobs_wrote_and_nothing_else(self):
        self.finished()
        self.submitted()
        kept = {self.put(name) for name in ("out/queue/notes.txt", "out/queue/7", "out/queue/1/ended/why.json", "out/queue/1/task/0/0/notes.txt",
                                            "out/queue/07/job.sh", "out/queue/2147483647/job.sh")}  # fmt: skip
        self.peakbench(*ONE, "--out", "out", "--overwrite")
        self.assertEqual({path for path in (self.folder / "out/queue").rglob("*") if path.is_file()}, kept)

    def test_no_submission_is_deleted_through_a_link(self):
        for place in ("queue", "queue/1", "queue/2", "queue/1/ended", "queue/1/log", "queue/1/task", "queue/1/task/0", "queue/1/task/0/0"):
            with self.subTest(place):
                shutil.rmtree(self.folder / "out", ignore_errors=True)
                shutil.rmtree(self.folder / f"elsewhere-{pathlib.Path(place).name}", ignore_errors=True)
                self.finished()
                self.submitted(1)
                self.submitted(2)
                self.linked(f"out/{place}")
                self.refused(*ONE, "--out", "out", "--overwrite", says=f"out/{place}: is a link")

    def test_a_link_among_the_cases_spares_the_submissions_too(self):
        self.finished()
        self.submitted()
        self.linked("out/cases")
        self.refused(*ONE, "--out", "out", "--overwrite", says="out/cases: is a link")


class OtherFolders(Strangers):
    def test_report(self):
        self.finished()
        for page in ("site/index.html", "site/report.md"):
            path = self.put(page)
            self.refused("report", "out", "--out", "site", says=[page, "not written by Peakbench", "--out"])
            path.unlink()
        # Names that a file beside the page had on the way.
        self.put("site/index.html.tmp")
        self.peakbench("report", "out", "--out", "site")
        self.assertEqual((self.folder / "site/index.html.tmp").read_text(), "mine\n")
        self.peakbench("report", "out", "--out", "site")

    def test_compare_and_gate(self):
        self.peakbench(*ONE, "--out", "a", "--repetitions", "0")
        self.peakbench(*ONE, "--out", "b", "--repetitions", "0")
        formats = "html,markdown,json,text"
        for name in ("html", "md", "json", "txt"):
            page = f"pages/comparison.{name}"
            path = self.put(page)
            for command in ("compare", "gate"):
                self.refused(command, "a", "b", "--out", "pages", "--format", formats,
                             says=[page, "not written by Peakbench", "--out"])
            path.unlink()
        for _ in range(2):
            self.peakbench("compare", "a", "b", "--out", "pages", "--format", formats)
            self.peakbench("gate", "a", "b", "--out", "pages", "--format", formats)
        json.loads((self.folder / "pages/comparison.json").read_text(encoding="utf-8"))

    def test_history_export_to_folders(self):
        self.finished()
        self.peakbench("history", "add", "out")
        self.peakbench("history", "export", "--format", "folders", "--out", "saved")
        self.peakbench("history", "export", "--format", "folders", "--out", "saved")
        (run,) = (self.folder / "saved").iterdir()
        for name in ("run.json", "history.json"):
            kept = (run / name).read_text(encoding="utf-8")
            (run / name).write_text("mine\n")
            self.refused("history", "export", "--format", "folders", "--out", "saved", says=[name, "--out"])
            (run / name).write_text(kept, encoding="utf-8")

    def test_devices_and_links_as_files(self):
        """A file that is named is written to, not replaced, where it is a device or a link."""
        self.peakbench(*ONE, "--out", "a", "--repetitions", "0")
        self.peakbench(*ONE, "--out", "b", "--repetitions", "0")
        self.put("real.xml")
        os.symlink("real.xml", self.folder / "link.xml")
        self.peakbench("gate", "a", "b", "--junit", "link.xml")
        self.assertTrue((self.folder / "link.xml").is_symlink())
        self.assertIn("<testsuite", (self.folder / "real.xml").read_text())
        os.mkfifo(self.folder / "fifo")
        with subprocess.Popen(["cat", "fifo"], cwd=self.folder, stdout=subprocess.PIPE, text=True) as reader:
            self.peakbench("gate", "a", "b", "--junit", "fifo")
            self.assertTrue((self.folder / "fifo").is_fifo())
            self.assertIn("<testsuite", reader.communicate(timeout=20)[0])


class Exports(Strangers):
    def hostile(self, **changes):
        self.finished()
        run = self.run_json()
        run["cases"][0].update(changes)
        self.put("out/run.json", json.dumps(run))
        return run["cases"][0]

    def test_slugs(self):
        self.put("settings.json")
        for slug in ("../settings", "/tmp/settings", "..", ".", "", "a/b", ".bashrc", "-rf", "a\nb", "a\0b", "\x1b[2J", "x" * 300):
            case = self.hostile(slug=slug, ranks=[{"rank": 0, "memory": None, "trace": "cases/x/trace.sqlite"}])
            for command in (["export", "out", "--format", "chrome"], ["report", "out"], ["history", "add", "out"],
                            ["run", *ONE[1:], "--out", "out", "--overwrite"]):
                self.refused(*command, says=["run.json", "/cases/0/slug"])
            self.assertTrue(case)
            (self.folder / "out/run.json").unlink()
            for path in (self.folder / "out").rglob("*"):
                if path.is_file():
                    path.unlink()
            for path in sorted((self.folder / "out").rglob("*"), reverse=True):
                path.rmdir()

    def test_a_slug_that_is_somebodys_file(self):
        self.traced(slug="settings")
        self.put("settings.json")
        self.put("settings.pickle")
        for name in ("chrome", "snapshot"):
            self.refused("export", "out", "--format", name, says=["settings", "the file exists", "--out"])
        self.peakbench("export", "out", "--out", "settings.pickle")  # named: replaced
        self.assertNotEqual((self.folder / "settings.pickle").read_bytes(), b"mine\n")

    def traced(self, trace=None, **changes):
        """A run of one case on the emulated card, which has a trace."""
        program = PEAKBENCH
        if not (self.prefix / "traced").exists():
            subprocess.run([program, "run", "--model", "vit-b-16,layers=1", "--strategy", "baseline", "--device", "emulated:h100-80gb",
                            "--repetitions", "0", "--out", self.prefix / "traced"], check=True, capture_output=True)
        subprocess.run(["cp", "-r", self.prefix / "traced/.", self.folder / "out"], check=True)
        run = self.run_json()
        run["cases"][0].update(changes)
        if trace is not None:
            run["cases"][0]["ranks"][0]["trace"] = trace
        self.put("out/run.json", json.dumps(run))
        return run["cases"][0]["ranks"][0]["trace"]

    def test_trace_paths(self):
        for path in ("../secret.sqlite", "/etc/passwd", "cases/../../secret.sqlite", "..", "a\0b"):
            self.traced(trace=path)
            for command in (["export", "out", "--out", "x"], ["report", "out"], ["history", "add", "out"],
                            ["compare", "out", "out2"]):
                self.refused(*command, says=["/cases/0/ranks/0/trace"])
            subprocess.run(["rm", "-r", self.folder / "out"], check=True)

    def test_traces_that_are_elsewhere_or_no_files(self):
        trace = self.folder / "out" / self.traced()
        trace.rename(self.folder / "secret.sqlite")
        os.symlink(self.folder / "secret.sqlite", trace)
        self.refused("export", "out", "--out", "x", says=[str(trace.name), "outside"])
        trace.unlink()
        os.mkfifo(trace)
        self.refused("export", "out", "--out", "x", says=[str(trace.name), "file"])
        self.peakbench("report", "out")  # says so beside the case
        self.assertIn("a named pipe", (self.folder / "out/report/report.md").read_text(encoding="utf-8"))
        done = self.peakbench("history", "add", "out")
        self.assertIn("note: ", done.stderr)
        trace.unlink()
        self.fails("export", "out", "--out", "x", says=["no such file"])
