"""Ctrl-C: what was measured is kept and reported, and the run can be continued."""
import pathlib
import signal
import time

from installation import ProgramTest, wait_for, workers_of

CASES = ("run", "--model", "tiny", "--strategy", "baseline", "--strategy", "slim", "--out", "out")
SLOW = ("run", "--model", "tiny", "--strategy", "baseline", "--strategy", "misbehave,behaviour=hang_hard,in={}",
        "--strategy", "slim", "--out", "out")


class Interrupt(ProgramTest):
    def start_hanging(self, where):
        process = self.start(*[part.format(where) for part in SLOW])
        wait_for(lambda: workers_of(self.folder, f"misbehave.*/{where}"))
        time.sleep(0.5)
        return process

    def test_results_and_report_are_kept_and_resumed(self):
        process = self.start_hanging("memory")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("Interrupted: 0 of 3 cases are done", err)  # of one the memory is measured
        self.assertIn("--out out --resume", err)
        run = self.run_json()
        self.assertEqual(run["status"], "interrupted")
        self.assertEqual(self.statuses(), ["ok"])
        self.assertEqual(len(run["pending"]), 3)
        self.assertTrue((self.folder / "out/report/index.html").exists())
        self.assertIn("Report:", out)
        self.assertEqual(workers_of(self.folder), [])
        # The reference's parameters wait for the cases that need them.
        self.assertEqual(len(list((self.folder / "out").rglob("parameters.tmp"))), 1)

        worker = self.prefix / "installed/bin/peakbench-worker"
        text = worker.read_text(encoding="utf-8")
        self.addCleanup(worker.write_text, text, encoding="utf-8")
        worker.write_text(text.replace('elif how in ("hang", "hang_hard"):', 'elif how == "hang_hard":\n'
                                       '        write(job, json.dumps(good_result(job)))\n'
                                       '    elif how == "hang":'), encoding="utf-8")
        done = self.peakbench(*[part.format("memory") for part in SLOW], "--resume")
        self.assertNotIn("[1/3] tiny/baseline", done.stderr)  # its memory is not measured again
        self.assertEqual(self.statuses(), ["ok", "ok", "ok"])
        self.assertEqual(self.run_json()["pending"], [])
        self.assertEqual(self.run_json()["cases"][2]["equivalence"]["verdict"], "held")
        self.assertEqual(list((self.folder / "out").rglob("parameters.tmp")), [])

    def test_memory_measured_before_the_throughput_was_interrupted(self):
        process = self.start_hanging("throughput")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(len(self.run_json()["cases"]), 3)
        self.assertEqual(len(self.run_json()["cases"][0]["throughput"]["rounds"]), 1)
        case = self.run_json()["cases"][1]
        self.assertIsNotNone(case["memory"])
        self.assertEqual(case["throughput_reason"], "interrupted before the throughput was measured")
        self.assertIn(case["id"], self.run_json()["pending"])

    def test_a_second_one_ends_at_once(self):
        process = self.start_hanging("memory")
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)  # the worker ignores SIGTERM; the first waits for its grace
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        self.assertLess(time.monotonic() - start, 1.5)
        self.assertEqual(process.returncode, 130)
        time.sleep(0.2)
        self.assertEqual(workers_of(self.folder), [])
        self.assertEqual(self.statuses(), ["ok"])

    def test_workers_die_with_the_program(self):
        process = self.start_hanging("memory")
        self.assertNotEqual(workers_of(self.folder), [])
        process.kill()
        process.communicate(timeout=20)
        time.sleep(0.3)
        self.assertEqual(workers_of(self.folder), [])
        # What it had written can be continued.
        self.assertEqual(self.run_json()["status"], "running")
        self.fails(*[part.format("memory") for part in SLOW], says=["--resume"])

    def test_what_left_its_session_dies_with_the_program(self):
        for ended_by in (signal.SIGKILL, signal.SIGTERM):
            process = self.start("run", "--model", "tiny", "--strategy", "misbehave,behaviour=daemon_and_hang",
                                 "--out", f"out-{ended_by}")
            (log,) = wait_for(lambda: [path for path in (self.folder / f"out-{ended_by}").rglob("*/worker.log")
                                       if "child " in path.read_text(encoding="utf-8")])
            child = pathlib.Path("/proc", log.read_text(encoding="utf-8").split("child ")[1].split()[0])
            self.assertTrue(child.exists())
            process.send_signal(ended_by)
            process.communicate(timeout=20)
            wait_for(lambda: not child.exists())

    def test_two_at_once(self):
        self.start_hanging("memory")
        self.fails(*CASES, "--resume", says=["another peakbench is writing"])
