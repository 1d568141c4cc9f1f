"""Cases that are compared take turns at being timed; what noise may have made is not claimed."""
import re
import signal
import time

from installation import ProgramTest, wait_for, workers_of


class Rounds(ProgramTest):
    def run_cases(self, *strategies, more=()):
        arguments = [part for strategy in strategies for part in ("--strategy", strategy)]
        return self.peakbench("run", "--model", "tiny", *arguments, "--out", "out", *more)

    def report(self):
        return (self.folder / "out/report/report.md").read_text(encoding="utf-8")

    def rows(self, text):
        """The terminal's table: strategy -> what stands under `time`, without the interval."""
        lines = text[text.index("strategy"):].splitlines()
        place = lines[0].index("time") + len("time")
        return {line.split()[0]: line[:place].split(" \u00b1")[0].split()[-1] for line in lines[1:]
                if line.startswith("paced")}

    def test_three_rounds_in_turn(self):
        self.run_cases("baseline", "slim", "paced")
        cases = self.run_json()["cases"]
        places = [[one["place"] for one in case["throughput"]["rounds"]] for case in cases]
        self.assertEqual(places, [[0, 2, 2], [1, 1, 0], [2, 0, 1]])
        for case in cases:
            self.assertEqual([one["round"] for one in case["throughput"]["rounds"]], [0, 1, 2])
            steps = [step for one in case["throughput"]["rounds"] for step in one["step_times_ns"]]
            self.assertEqual(case["throughput"]["step_times_ns"], steps)
            for one in case["throughput"]["rounds"]:
                self.assertGreaterEqual(one["other_busy_cores"], 0)
        self.assertEqual(self.run_json()["settings"]["repetitions"], 3)

    def test_a_planted_difference_is_told_and_noise_is_not(self):
        seen = self.run_cases("baseline", "paced,slower=30,noise=1", "paced,slower=2,noise=20",
                              "paced,slower=-30,noise=1").stdout
        times = self.rows(seen)
        self.assertEqual(times["paced,noise=1,slower=30"], "+30.0%")
        self.assertEqual(times["paced,noise=20,slower=2"], "~")
        self.assertEqual(times["paced,noise=1,slower=-30"], "\u221230.0%")
        self.assertIn("~ not distinguishable from noise", seen)
        report = self.report()
        self.assertRegex(report, r"\+30\.0 % \(\+24\.\d to \+35\.\d\) \|")
        self.assertRegex(report, r"\(\u2212\d\d\.\d to \+\d+\.\d\), not distinguishable from noise \|")
        page = (self.folder / "out/report/index.html").read_text(encoding="utf-8")
        cells = re.findall(r'data-label="Time"><span class="(\w+)">([^&<]*)&nbsp;%', page)
        self.assertEqual([kind for kind, _ in cells], ["more", "noise", "less"])

    def test_one_round_claims_nothing(self):
        seen = self.run_cases("baseline", "paced,slower=30", more=["--repetitions", "1"]).stdout
        self.assertEqual(self.rows(seen)["paced,slower=30"], "?")
        self.assertIn("? no interval", seen)
        self.assertIn("+30.0 % (one round: no interval) |", self.report())
        self.assertNotIn("Fastest", self.report())
        self.assertNotIn("Fastest", (self.folder / "out/report/index.html").read_text(encoding="utf-8"))

    def test_interrupted_in_a_round_and_resumed(self):
        arguments = ("run", "--model", "tiny", "--strategy", "baseline", "--strategy", "paced", "--strategy",
                     "misbehave,behaviour=hang_hard,in=throughput", "--out", "out")
        process = self.start(*arguments)
        wait_for(lambda: workers_of(self.folder, "misbehave.*/throughput"))
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130)
        run = self.run_json()
        self.assertEqual([len((case["throughput"] or {"rounds": []})["rounds"]) for case in run["cases"]], [1, 1, 0])
        self.assertEqual(len(run["pending"]), 3)
        kept = run["cases"][0]["throughput"]["rounds"][0]

        worker = self.prefix / "installed/bin/peakbench-worker"
        text = worker.read_text(encoding="utf-8")
        self.addCleanup(worker.write_text, text, encoding="utf-8")
        worker.write_text(text.replace('elif how in ("hang", "hang_hard"):',
                                       'elif how == "hang_hard":\n        write(job, json.dumps(good_result(job)))\n'
                                       '    elif how == "hang":'), encoding="utf-8")
        done = self.peakbench(*arguments, "--resume")
        run = self.run_json()
        self.assertEqual(run["status"], "complete")
        self.assertEqual(run["cases"][0]["throughput"]["rounds"][0], kept)
        for case in run["cases"]:
            self.assertEqual([one["round"] for one in case["throughput"]["rounds"]], [0, 1, 2])
        # Of the nine workers two had been; one line a round.
        self.assertIn("timing, round 1 of 3: 3 cases in turn, 7 workers left", done.stderr)
        self.assertIn("timing, round 3 of 3: 3 cases in turn, 3 workers left", done.stderr)

    def test_a_worker_that_fails_in_a_later_round(self):
        worker = self.prefix / "installed/bin/peakbench-worker"
        text = worker.read_text(encoding="utf-8")
        self.addCleanup(worker.write_text, text, encoding="utf-8")
        worker.write_text(text.replace("    noise = options", "    if count == 1 and options.get('noise') == 7:\n"
                                       "        os.kill(os.getpid(), signal.SIGSEGV)\n    noise = options"),
                          encoding="utf-8")
        self.run_cases("baseline", "paced,noise=7", "slim")
        run = self.run_json()
        self.assertEqual(self.statuses(), ["ok", "crashed", "ok"])
        self.assertIn("in the throughput worker of round 2 of 3 (memory was measured)", run["cases"][1]["reason"])
        self.assertEqual([len(case["throughput"]["rounds"]) for case in run["cases"]], [3, 1, 3])
