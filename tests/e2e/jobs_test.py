"""--jobs: several cases on emulated cards at a time; the rows, run.json and report of one by one."""
import json
import re
import signal
import time

from installation import ProgramTest, wait_for, workers_of
from records import without_volatile

CARD = ("--device", "emulated:h100-80gb")
# The first is the slowest, so that others end before it.
SLOWEST_FIRST = ("run", "--model", "tiny,behaviour=slow", "--model", "tiny", "--strategy", "baseline", "--strategy", "slim",
                 "--batch", "1,2,3", *CARD, "--no-ablation")


class Jobs(ProgramTest):
    def pages(self, out):
        """The report's text, but for times, the command and what follows from them."""
        text = (self.folder / out / "report/report.md").read_text(encoding="utf-8")
        kept = [line for line in text.splitlines() if not re.search(r"--out|replaces it unless|UTC|\d{4}-\d\d-\d\d", line)]
        self.assertGreater(len(kept), 20)
        return kept

    def test_the_same_rows_and_files(self):
        one = self.peakbench(*SLOWEST_FIRST, "--jobs", 1, "--out", "one")
        several = self.peakbench(*SLOWEST_FIRST, "--jobs", 4, "--out", "four")
        rows = [line for line in one.stdout.splitlines() if line.startswith("[")]
        self.assertEqual(len(rows), 12)
        self.assertEqual([line for line in several.stdout.splitlines() if line.startswith("[")], rows)
        self.assertEqual(without_volatile(self.run_json("four")), without_volatile(self.run_json("one")))
        self.assertEqual(self.pages("four"), self.pages("one"))
        self.assertEqual(several.stderr.count("warning"), 0, several.stderr)

    def test_several_are_at_work(self):
        hang = ("run", "--model", "tiny,behaviour=hang", "--strategy", "baseline", "--batch", "1,2,3,4,5", *CARD, "--timeout", 4)
        process = self.start(*map(str, hang), "--jobs", "3", "--out", "out")
        wait_for(lambda: len(workers_of(self.folder)) == 3)
        process.communicate(timeout=60)
        self.assertEqual(self.statuses(), ["timeout"] * 5)
        self.assertEqual(workers_of(self.folder), [])

    def test_on_the_cpu_one_is(self):
        process = self.start("run", "--model", "tiny,behaviour=slow", "--strategy", "baseline", "--batch", "1,2,3", "--jobs", "3",
                             "--out", "out")
        most = 0
        while process.poll() is None:
            most = max(most, len(workers_of(self.folder)))
            time.sleep(0.01)
        process.communicate()
        self.assertEqual(most, 1)
        self.assertEqual(self.statuses(), ["ok"] * 3)

    def test_an_interrupt_keeps_what_ended_and_the_rest_is_resumed(self):
        cases = ("run", "--model", "tiny", "--model", "tiny,behaviour=hang_hard", "--strategy", "baseline", "--batch", "1,2,3,4",
                 *CARD)
        for signals in (1, 2):
            out = f"out-{signals}"
            process = self.start(*cases, "--jobs", "2", "--out", out)
            wait_for(lambda: len(workers_of(self.folder, "hang_hard|behaviour")) == 2)
            time.sleep(0.3)
            for _ in range(signals):
                process.send_signal(signal.SIGINT)
                time.sleep(0.2)
            process.communicate(timeout=20)
            self.assertEqual(process.returncode, 130)
            time.sleep(0.3)
            self.assertEqual(workers_of(self.folder), [])
            run = self.run_json(out)
            self.assertEqual(run["status"], "interrupted" if signals == 1 else "running")
            self.assertEqual(self.statuses(out), ["ok"] * 4)
            self.assertEqual(len(run["pending"]), 4)
        worker = self.prefix / "installed/bin/peakbench-worker"
        text = worker.read_text(encoding="utf-8")
        self.addCleanup(worker.write_text, text, encoding="utf-8")
        worker.write_text(text.replace('elif how in ("hang", "hang_hard"):',
                                       'elif how == "hang_hard":\n        write(job, json.dumps(good_result(job)))\n'
                                       '    elif how == "hang":'), encoding="utf-8")
        done = self.peakbench(*cases, "--jobs", 2, "--out", "out-1", "--resume")
        self.assertIn("4 cases are kept, 4 to run", done.stderr)
        self.assertEqual(self.statuses("out-1"), ["ok"] * 8)
        self.assertEqual(json.loads((self.folder / "out-1/run.json").read_text())["pending"], [])

    def test_numbers_that_are_none(self):
        for bad in ("0", "-1", "many", "1.5", "99999"):
            self.fails("run", "--model", "tiny", "--strategy", "baseline", "--jobs", bad, "--out", "out", says=["--jobs", bad])
