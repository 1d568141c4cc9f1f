"""`peakbench run --executor slurm` where a cluster does what a real one does not do when it is asked to: Slurm's commands are stand-ins, workers
a script. slurm_test.py has the real Slurm."""
import json
import os
import pathlib
import signal
import time

from installation import ProgramTest, wait_for
from standin import StandIn

os.umask(0o022)

CARD = ("--device", "emulated:h100-80gb", "--no-ablation", "--no-report")
SLURM = ("--executor", "slurm", "--shared-delay", "1", "--out", "out")
ONE = ("run", "--model", "tiny", "--strategy", "baseline", *CARD, *SLURM)


class OnAStandIn(ProgramTest):
    def setUp(self):
        super().setUp()
        self.slurm = StandIn(self.folder / "slurm")
        self.addCleanup(self.slurm.close)

    def environment(self, **more):
        return super().environment(PATH=self.slurm.path(), **more)

    def queue(self, name):
        return self.folder / "out/queue/1" / name

    def begun(self, *arguments):
        """A call and its job."""
        process = self.start(*arguments)
        return process, int(wait_for(lambda: self.queue("job.json").exists() and json.loads(self.queue("job.json").read_text())["job"]))

    def until_at_work(self, task, attempt=0):
        def cases():
            try:
                return json.loads(self.queue(f"task/{task}/{attempt}/at_work.json").read_text(encoding="utf-8"))["cases"]
            except OSError:
                return None
        return wait_for(cases)

    def ends(self, process, exit_code=0, within=60):
        out, err = process.communicate(timeout=within)
        self.assertEqual(process.returncode, exit_code, f"{out}\n{err}")
        return err


class Attempts(OnAStandIn):
    SLOW = ("run", "--model", "tiny,behaviour=slow", "--strategy", "baseline", *CARD, *SLURM)

    def test_a_node_that_is_lost_and_goes_on_ends_itself(self):
        process, job = self.begun(*self.SLOW, "--batch", "1,2,3,4,5,6", "--cases-per-task", "3")
        self.until_at_work(0)
        self.slurm.tell(job, 0, "lose", "goes_on")
        self.ends(process)
        self.assertEqual(self.statuses(), ["ok"] * 6)
        end = json.loads(self.queue("ended/0-0.json").read_text(encoding="utf-8"))
        self.assertEqual((end["how"], end["why"]), ("stopped", "a later attempt"))
        self.assertEqual(self.slurm.jobs(), [job], "nothing was submitted again")

    def test_preempted_begun_again_and_then_out_of_memory(self):
        process, job = self.begun("run", "--model", "tiny,behaviour=hang", "--strategy", "baseline", "--device", "cpu", "--no-ablation", "--no-report",
                                  "--repetitions", "0", *SLURM)
        self.until_at_work(0)
        self.slurm.tell(job, 0, "preempt")
        wait_for(self.queue("ended/0-0.json").exists)
        self.until_at_work(0, attempt=1)
        self.slurm.tell(job, 0, "end", "OUT_OF_MEMORY")
        self.ends(process, exit_code=3)
        case = self.run_json()["cases"][0]
        self.assertEqual(case["status"], "out_of_memory", case["reason"])

    def test_a_time_in_which_no_case_ends(self):
        process, job = self.begun("run", "--model", "tiny,behaviour=hang", "--strategy", "baseline", "--batch", "1,2", *CARD, *SLURM, "--time", "0:10",
                                  "--cases-per-task", "1")
        for task in (0, 1):
            self.until_at_work(task)
            self.slurm.tell(job, task, "end", "TIMEOUT")
        err = self.ends(process, exit_code=3)
        self.assertEqual(self.statuses(), ["timeout"] * 2)
        self.assertEqual(err.count("no case ended within the job's time limit (--time 0:10)"), 1, err)


class Answers(OnAStandIn):
    HANGS = ("run", "--model", "tiny,behaviour=hang", "--strategy", "baseline", *CARD, *SLURM)

    def test_rows_of_other_jobs_end_no_wait(self):
        self.slurm.noise("strangers", "nonsense", "twice")
        process, job = self.begun(*self.HANGS)
        self.until_at_work(0)
        time.sleep(4)  # looks at squeue, and more than --shared-delay
        self.assertIsNone(process.poll(), "it waits for its own job")
        self.slurm.tell(job, 0, "end", "CANCELLED")
        self.ends(process, exit_code=130)

    def test_long_ranges_take_no_time(self):
        self.slurm.noise("ranges")
        began = time.monotonic()
        self.peakbench(*ONE)
        self.assertLess(time.monotonic() - began, 20)
        self.assertEqual(self.statuses(), ["ok"])

    def test_a_ctrl_c_is_heard_while_squeue_hangs(self):
        process, job = self.begun(*self.HANGS)
        self.until_at_work(0)
        self.slurm.noise("hang")
        wait_for(lambda: any(b"squeue" in path.read_bytes() for path in pathlib.Path("/proc").glob("[0-9]*/cmdline")
                             if path.exists() and str(self.slurm.folder).encode() in path.read_bytes()))
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        self.assertIn(f"job {job} continues", self.ends(process, exit_code=130, within=15))
        began = self.start(*self.HANGS, "--resume")
        time.sleep(2)  # it asks what became of the job
        began.send_signal(signal.SIGINT)
        self.ends(began, exit_code=130, within=15)
        self.assertEqual(self.slurm.jobs(), [job], "nothing was submitted meanwhile")


class Earlier(OnAStandIn):
    """What a call that was killed has left."""

    def left(self, behaviour="hang"):
        arguments = ("run", "--model", f"tiny,behaviour={behaviour}", "--strategy", "baseline", *CARD, *SLURM)
        process, job = self.begun(*arguments)
        self.until_at_work(0)
        process.kill()
        process.communicate()
        return arguments, job

    def test_a_suspended_job_whose_number_was_lost_is_found(self):
        arguments, job = self.left("slow")
        self.slurm.tell(job, 0, "suspend")
        self.queue("job.json").unlink()
        process = self.start(*arguments, "--resume")
        wait_for(self.queue("job.json").exists)
        self.slurm.tell(job, 0, "resume")
        self.assertIn(f"job {job} of an earlier call is waited for", self.ends(process))
        self.assertEqual((self.statuses(), self.slurm.jobs()), (["ok"], [job]))

    def test_files_that_cannot_be_read_are_named_and_nothing_is_submitted(self):
        arguments, job = self.left()
        for name, texts in {"tasks.json": ("", "null", '{"tasks": 7}'), "job.json": ("", "null", '{"job": "--user=me"}')}.items():
            good = self.queue(name).read_text(encoding="utf-8")
            for text in texts:
                self.queue(name).write_text(text, encoding="utf-8")
                self.fails(*arguments, "--resume", says=[f"out/queue/1/{name}"])
            self.queue(name).write_text(good, encoding="utf-8")
        self.assertEqual(self.slurm.jobs(), [job])
        self.assertEqual(self.slurm.task(job)["state"], "RUNNING", "nor is the job cancelled")


class Asked(OnAStandIn):
    def test_times_that_sbatch_takes(self):
        for time_limit in ("UNLIMITED", "infinite", "-1", "0", "90", "1:30", "1:30:00", "2-", "2-12", "2-12:30", "2-12:30:10"):
            printed = self.peakbench(*ONE, f"--time={time_limit}", "--dry-run").stdout
            self.assertIn(f'#SBATCH --time="{time_limit}"\n', printed)
        self.peakbench(*ONE, "--time", "UNLIMITED")
        self.assertEqual(self.statuses(), ["ok"])

    def test_a_dry_run_says_how_many_cases_go_into_which_task(self):
        cases = ("run", "--model", "tiny", "--strategy", "baseline", "--batch", "1,2,3,4,5,6,7", *CARD, *SLURM, "--cases-per-task", "3")
        printed = self.peakbench(*cases, "--dry-run").stdout
        self.assertIn("# 7 cases in 3 tasks:\n#   task 0: 3 cases\n#   tasks 1-2: 2 cases each\n", printed)
        self.peakbench(*cases)
        self.assertEqual(self.queue("job.sh").read_text(encoding="utf-8"), printed)
        tasks = json.loads(self.queue("tasks.json").read_text(encoding="utf-8"))["tasks"]
        self.assertEqual([len(task) for task in tasks], [3, 2, 2])
