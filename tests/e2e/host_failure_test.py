"""What the machine does to a case is an outcome of its own, which says nothing of the case: shown as not measured, never
compared, never filed, and run again by --resume."""
import os
import resource
import signal

from host import HostTest, misbehaving
from installation import wait_for, workers_of


def alone():
    """Before the program starts: no further process for this user. The superuser, whom no such limit holds, becomes nobody."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))


class HostFailures(HostTest):
    def test_shown_as_not_measured_and_run_again(self):
        strategies = ["baseline", misbehaving("host_failure"), "slim"]
        done = self.run_cases(*strategies)
        self.assertEqual(self.statuses(), ["ok", "host_failure", "ok"])
        self.assertEqual(self.reason(1), "the disk of the script is full")
        self.assertIn("Not measured, as the machine failed it: 1 of 3 cases", done.stderr)
        self.assertIn("--out out --resume", done.stderr)
        self.assertIn("not measured: the disk of the script is full", done.stdout)
        page = (self.folder / "out/report/index.html").read_text(encoding="utf-8")
        self.assertIn('<span class="badge host_failure">not measured</span> the disk of the script is full', page)

        self.well_behaved("host_failure")
        done = self.run_cases(*strategies, more=["--repetitions", "1", "--resume"])
        self.assertEqual(self.statuses(), ["ok", "ok", "ok"])
        started = [line for line in done.stderr.splitlines() if "tiny/" in line]
        self.assertTrue(all("misbehave" in line for line in started), started)
        self.run_cases(*strategies, out="undisturbed")
        self.assertEqual(self.figures(), self.figures("undisturbed"))

    def test_the_number_alone_says_nothing(self):
        self.run_cases(misbehaving("exit_75"), "baseline")
        self.assertEqual(self.statuses(), ["crashed", "ok"])

    def test_in_a_round_of_timing_the_memory_is_kept(self):
        strategies = ["baseline", misbehaving("host_failure", "throughput")]
        self.run_cases(*strategies)
        self.assertEqual(self.statuses(), ["ok", "host_failure"])
        self.assertIsNotNone(self.run_json()["cases"][1]["memory"])
        self.assertIn("memory was measured", self.reason(1))
        self.well_behaved("host_failure")
        self.run_cases(*strategies, more=["--repetitions", "1", "--resume"])
        self.assertEqual(self.statuses(), ["ok", "ok"])
        self.assertEqual(self.reason(1), "")
        self.assertEqual(len(self.run_json()["cases"][1]["throughput"]["rounds"]), 1)

    def test_a_reference_that_the_machine_failed(self):
        """Promises that could not be checked without it are checked when it is there."""
        reference = ["tiny,behaviour=host_failure"]
        run = ["run", "--model", *reference, "--strategy", "baseline", "--strategy", "slim", "--repetitions", "1"]
        worker = self.prefix / "installed/bin/peakbench-worker"
        text = worker.read_text(encoding="utf-8")
        self.addCleanup(worker.write_text, text, encoding="utf-8")
        worker.write_text(text.replace('    if how != "ok":', '    if how != "ok" and len(job["strategies"]) == 1:'),
                          encoding="utf-8")
        self.peakbench(*run, "--out", "out")
        self.assertEqual(self.statuses(), ["host_failure", "ok"])
        self.assertEqual(self.run_json()["cases"][1]["equivalence"]["verdict"], "not_checked")
        times = self.run_json()["cases"][1]["throughput"]["rounds"]
        worker.write_text(text.replace('    if how != "ok":', '    if False:'), encoding="utf-8")
        self.peakbench(*run, "--out", "out", "--resume")
        self.assertEqual(self.statuses(), ["ok", "ok"])
        self.assertEqual(self.run_json()["cases"][1]["equivalence"]["verdict"], "held")
        self.assertEqual(self.run_json()["cases"][1]["throughput"]["rounds"], times)
        self.peakbench(*run, "--out", "undisturbed")
        self.assertEqual(self.figures(), self.figures("undisturbed"))

    def test_a_worker_that_cannot_be_started(self):
        worker = self.prefix / "installed/bin/peakbench-worker"
        self.addCleanup(lambda: os.path.exists(f"{worker}.away") and os.rename(f"{worker}.away", worker))
        strategies = [misbehaving("worker_away"), "slim", "paced"]
        self.run_cases(*strategies, more=["--repetitions", "0"])
        self.assertEqual(self.statuses(), ["ok", "host_failure", "host_failure"])
        self.assertIn("cannot start", self.reason(1))
        self.assertIn("`peakbench doctor` says what is missing", self.reason(1))
        os.rename(f"{worker}.away", worker)
        self.run_cases(*strategies, more=["--repetitions", "0", "--resume"])
        self.assertEqual(self.statuses(), ["ok", "ok", "ok"])

    def test_a_program_that_is_being_written(self):
        with open(self.prefix / "installed/bin/peakbench-worker", "ab"):
            self.run_cases("baseline", exit_code=3)
        self.assertEqual(self.statuses(), ["host_failure"])
        self.assertIn("Text file busy", self.reason(0))

    def test_no_more_processes(self):
        for folder in (self.prefix, self.folder):
            folder.chmod(0o777)
        self.run_cases("baseline", exit_code=3, preexec_fn=alone)
        self.assertEqual(self.statuses(), ["host_failure"])
        self.assertIn("cannot start a process: Resource temporarily unavailable; end some processes, or raise the limit on them "
                      "(ulimit -u)", self.reason(0))

    def test_too_few_files_may_be_open(self):
        self.run_cases("baseline", exit_code=3, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (7, 7)),
                       more=["--repetitions", "1", "--no-report"])
        self.assertEqual(self.statuses(), ["host_failure"])
        self.assertIn("Too many open files; close some files, or raise the limit on them (ulimit -n)", self.reason(0))

    def test_folders_that_are_in_the_way(self):
        slug = self.slug("slim")
        self.run_cases("baseline")
        (self.folder / "out/cases" / slug).write_text("a file", encoding="utf-8")
        self.run_cases("baseline", "slim", more=["--repetitions", "1", "--overwrite"])
        self.assertEqual(self.statuses(), ["ok", "host_failure"])
        self.assertIn(slug, self.reason(1))

    def test_a_log_that_cannot_be_written(self):
        self.run_cases("baseline")
        (self.folder / "out/cases" / self.slug("slim") / "worker.log/in the way").mkdir(parents=True)
        self.run_cases("baseline", "slim", more=["--repetitions", "1", "--overwrite"])
        self.assertEqual(self.statuses(), ["ok", "host_failure"])
        self.assertIn("worker.log", self.reason(1))

    def test_a_result_that_is_no_file_is_the_plugins_doing(self):
        self.run_cases(misbehaving("result_unreadable"), "baseline")
        self.assertEqual(self.statuses(), ["crashed", "ok"])
        self.assertIn("memory.result.json is no file", self.reason(0))

    def test_killed_from_outside(self):
        strategies = [misbehaving("hang"), "baseline"]
        process = self.start("run", "--model", "tiny", "--repetitions", "1", "--out", "out",
                             *[part for strategy in strategies for part in ("--strategy", strategy)])
        (worker,) = wait_for(lambda: workers_of(self.folder, "misbehave"))
        os.kill(worker, signal.SIGKILL)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.statuses(), ["host_failure", "ok"])
        self.assertIn("SIGKILL (killed)", self.reason(0))
        self.well_behaved("hang")
        self.run_cases(*strategies, more=["--repetitions", "1", "--resume"])
        self.assertEqual(self.statuses(), ["ok", "ok"])

    def test_not_compared_and_not_filed(self):
        self.run_cases("baseline", "slim", out="whole")
        self.well_behaved("ok")
        worker = self.prefix / "installed/bin/peakbench-worker"
        text = worker.read_text(encoding="utf-8")
        worker.write_text(text.replace("    how = behaviour(job)", '    how = "host_failure" if len(job["strategies"]) > 1 else "ok"')
                          .replace('    if how not in ("ok", "ok"):', '    if how != "ok":'), encoding="utf-8")
        self.run_cases("baseline", "slim", out="failed")
        self.assertEqual(self.statuses("failed"), ["ok", "host_failure"])

        done = self.peakbench("gate", "whole", "failed", "--junit", "gate.xml", "--out", "pages", "--format", "json,markdown",
                              exit_code=5)
        said = " ".join(done.stdout.split())
        self.assertIn("not measured: the machine failed it in NEW (the disk of the script is full); the same `peakbench run` "
                      "with --resume runs it again", said)
        self.assertNotIn("worse", said)
        self.assertIn("not measured", (self.folder / "pages/comparison.md").read_text(encoding="utf-8"))
        self.assertIn("not measured", (self.folder / "gate.xml").read_text(encoding="utf-8"))
        # What BASE lacks is new, and said to be.
        self.peakbench("gate", "failed", "whole", "--junit", "new.xml", exit_code=0)
        self.assertIn("new: the machine failed it in BASE", (self.folder / "new.xml").read_text(encoding="utf-8"))

        self.peakbench("history", "add", "failed", "--history", "h.sqlite")
        self.peakbench("history", "check", "--history", "h.sqlite")
        shown = self.peakbench("history", "trend", "--history", "h.sqlite", "tiny/*").stdout
        self.assertIn("tiny/baseline", shown)
        self.assertNotIn("slim", shown)
        self.peakbench("publish", "--history", "h.sqlite", "--out", "site")
        worker.write_text(text.replace("    how = behaviour(job)", '    how = "host_failure"')
                          .replace('    if how not in ("ok", "ok"):', '    if how != "ok":'), encoding="utf-8")
        self.run_cases("baseline", out="nothing", exit_code=3)
        self.fails("history", "add", "nothing", "--history", "h.sqlite", says=["the machine failed every case"])

    def test_a_limit_on_the_size_of_files(self):
        """run.json itself is too large: said, and not the end by a signal."""
        done = self.run_cases("baseline", exit_code=2,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)))
        self.assertIn("File too large; raise the limit on the size of files (ulimit -f)", done.stderr)
        self.assertEqual(list((self.folder / "out").glob("*.tmp*")), [])
