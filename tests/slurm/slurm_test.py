"""`peakbench run --executor slurm` on a Slurm of two nodes that the test starts: what tasks measure, and what becomes of them when
machines, time, disks and people intervene. Workers are a script, but for the suite of 60 cases in suite_test.py."""
import json
import os
import re
import signal
import subprocess

import cluster
from installation import ProgramTest
from records import without_volatile

CARD = ("--device", "emulated:h100-80gb", "--no-ablation")
SLURM = ("--executor", "slurm", "--shared-delay", 2)


class OnSlurm(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.slurm = cluster.Cluster(cls.prefix / "slurm")
        cls.addClassCleanup(cls.slurm.close)

    def environment(self, **more):
        return super().environment(**self.slurm.environment, **more)

    def submitted(self, out="out"):
        """The newest job of a run; its number, once it has one."""
        def job():
            files = sorted((self.folder / out / "queue").glob("*/job.json"), key=lambda path: int(path.parent.name))
            return files and json.loads(files[-1].read_text(encoding="utf-8"))["job"]
        return cluster.wait_until(job, 20, "a job")

    def queues(self, out="out"):
        return sorted(path.name for path in (self.folder / out / "queue").iterdir())

    def run_and(self, what, *arguments, exit_code=0):
        """Runs, does something with the job meanwhile, and waits for the end."""
        process = self.start("run", *map(str, arguments), *map(str, SLURM), "--out", "out")
        what(self.submitted())
        out, err = process.communicate(timeout=150)
        self.assertEqual(process.returncode, exit_code, f"{out}\n{err}")
        return out, err

    def until_runs(self, task, node=None):
        return cluster.wait_until(lambda: self.slurm.busy_nodes().get(task) in ((node,) if node else cluster.NODES)
                                  and self.slurm.busy_nodes()[task], 30, f"{task} to run")

    def until_at_work(self, task, out="out"):
        def at_work():
            try:
                text = (self.folder / out / f"queue/1/task/{task}/0/at_work.json").read_text(encoding="utf-8")
            except OSError:
                return None
            return json.loads(text)["cases"]
        return cluster.wait_until(at_work, 30, f"task {task} to measure")


class Results(OnSlurm):
    CASES = ("--model", "tiny", "--strategy", "baseline", "--strategy", "slim", "--batch", "1,2,3,4", *CARD)

    def test_the_same_as_here_and_nothing_the_second_time(self):
        self.peakbench("run", *self.CASES, "--out", "here")
        first = self.peakbench("run", *self.CASES, *SLURM, "--cases-per-task", 3, "--out", "out")
        self.assertEqual(without_volatile(self.run_json()), without_volatile(self.run_json("here")))
        rows = [line for line in first.stdout.splitlines() if line.startswith("[")]
        self.assertEqual(len(rows), 8)
        second = self.peakbench("run", *self.CASES, *SLURM, "--resume", "--out", "out")
        self.assertEqual(self.queues(), ["1"], second.stderr)
        self.assertEqual(without_volatile(self.run_json()), without_volatile(self.run_json("here")))

    def test_a_group_that_is_timed_stays_together(self):
        cases = ("--model", "tiny", "--strategy", "baseline", "--strategy", "slim", "--batch", "1,2", "--repetitions", 2)
        self.peakbench("run", *cases, *SLURM, "--out", "out")
        run = self.run_json()
        self.assertEqual([len(case["throughput"]["rounds"]) for case in run["cases"]], [2] * 4)
        self.assertEqual([case["equivalence"]["verdict"] for case in run["cases"]], ["not_checked", "held"] * 2)
        tasks = json.loads((self.folder / "out/queue/1/tasks.json").read_text(encoding="utf-8"))["tasks"]
        self.assertEqual([len(task) for task in tasks], [2, 2])
        self.assertEqual(list((self.folder / "out").rglob("parameters.tmp")), [])

    def test_what_dry_run_prints_is_what_is_submitted(self):
        options = ("--partition", "all", "--time", "10", "--constraint", "", "--at-once", 1, "--prefix", "env A=b", *SLURM)
        printed = self.peakbench("run", *self.CASES, *options, "--out", "out", "--dry-run").stdout
        self.assertFalse((self.folder / "out").exists())
        self.peakbench("run", *self.CASES, *options, "--out", "out")
        self.assertEqual((self.folder / "out/queue/1/job.sh").read_text(encoding="utf-8"), printed)
        for line in ('--partition="all"', '--time="10"', '--array="0-0%1"', '--signal="B:USR2@60"', "exec env A=b "):
            self.assertIn(line, printed)

    def test_the_shells_orders_to_sbatch_are_not_taken(self):
        os.environ["SBATCH_PARTITION"] = "nowhere"
        self.addCleanup(os.environ.pop, "SBATCH_PARTITION")
        self.peakbench("run", *self.CASES, *SLURM, "--out", "out")


class Ends(OnSlurm):
    SLOW = ("--model", "tiny,behaviour=slow", "--strategy", "baseline", *CARD, "--no-report")

    def test_a_killed_node_costs_a_retry_and_no_result(self):
        def kill(job):
            self.until_at_work(0)
            node = self.until_runs(f"{job}_0")
            self.killed = node
            self.slurm.kill_node(node)
        self.addCleanup(lambda: (self.slurm.start_node(self.killed), cluster.wait_until(self.slurm.is_ready, 40, "the node")))
        self.run_and(kill, *self.SLOW, "--batch", ",".join(map(str, range(1, 9))), "--cases-per-task", 4)
        self.assertEqual(self.statuses(), ["ok"] * 8)
        attempts = [path.name for path in (self.folder / "out/queue/1/ended").iterdir()]
        self.assertIn("0-1.json", attempts, "the task was begun a second time")

    def test_a_task_that_is_requeued_is_pending(self):
        def requeue(job):
            self.until_at_work(0)
            self.until_runs(f"{job}_0")
            self.slurm.call("scontrol", "requeue", f"{job}_0")
        self.run_and(requeue, *self.SLOW, "--batch", "1,2,3", "--cases-per-task", 3)
        self.assertEqual(self.statuses(), ["ok"] * 3)
        self.assertIn("0-1.json", [path.name for path in (self.folder / "out/queue/1/ended").iterdir()])

    def test_the_time_limit_is_the_outcome_of_the_case_that_had_it_whole(self):
        cases = ("--model", "tiny,behaviour=hang", "--model", "tiny", "--strategy", "baseline", *CARD, "--no-report")
        _, err = self.run_and(lambda job: None, *cases, "--time", "0:30", "--cases-per-task", 2)
        run = self.run_json()
        self.assertEqual(self.statuses(), ["timeout", "ok"], err)
        self.assertIn("time limit (--time 0:30)", run["cases"][0]["reason"])
        self.assertEqual((run["status"], run["pending"]), ("complete", []))

    def test_a_cancelled_task_is_pending(self):
        def cancel(job):
            self.until_runs(f"{job}_1")
            self.slurm.call("scancel", f"{job}_1")
        cases = (*self.SLOW, "--batch", "1,2,3,4", "--cases-per-task", 2)
        _, err = self.run_and(cancel, *cases, exit_code=130)
        self.assertIn("CANCELLED", err)
        self.assertEqual(len(self.run_json()["pending"]), 2)
        self.peakbench("run", *cases, *SLURM, "--resume", "--out", "out")
        self.assertEqual(self.statuses(), ["ok"] * 4)
        self.assertEqual(self.queues(), ["1", "2"])

    def test_an_interrupted_call_leaves_the_job_and_the_next_takes_its_results(self):
        here = (*self.SLOW, "--batch", "1,2,3,4")
        cases = (*here, "--cases-per-task", 2)
        process = self.start("run", *map(str, cases), *map(str, SLURM), "--out", "out")
        job = self.submitted()
        self.until_runs(f"{job}_1")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn(f"job {job} continues", err)
        self.assertIn(f"{job}_1", self.slurm.busy_nodes())
        for how in ("--resume", "--overwrite"):
            self.fails("run", *here, how, "--out", "out", says=[f"job {job} still measures for out", f"scancel {job}"])
        self.assertEqual(self.queues(), ["1"])
        (self.folder / "out/queue/1/job.json").unlink()  # as of a call that died just after sbatch
        done = self.peakbench("run", *cases, *SLURM, "--resume", "--out", "out")
        self.assertIn(f"job {job} of an earlier call is waited for", done.stderr)
        self.assertEqual((self.statuses(), self.queues()), (["ok"] * 4, ["1"]))
        self.peakbench("run", *here, "--overwrite", "--out", "out")
        self.assertFalse((self.folder / "out/queue").exists(), "of the run that was overwritten")

    def test_a_person_is_asked_whether_to_cancel(self):
        for answer, cancelled in (("n", False), ("y", True)):
            person, terminal = os.openpty()
            self.addCleanup(os.close, person)
            with os.fdopen(terminal) as stdin:
                process = self.start("run", *self.SLOW, "--batch", "1,2,3,4,5,6", *map(str, SLURM), "--out", answer, stdin=stdin)
            job = self.submitted(answer)
            self.until_runs(f"{job}_0")
            process.send_signal(signal.SIGINT)
            os.write(person, answer.encode() + b"\n")
            _, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, err)
            self.assertIn(f"Cancel job {job}?", err)
            left = self.slurm.call("squeue", "--noheader", "--states=pending,running", f"--jobs={job}", check=False).stdout
            self.assertEqual(left.strip() == "", cancelled, left)

    def test_the_warning_before_the_time_limit_ends_a_task_cleanly(self):
        def warn(job):
            cluster.wait_until(lambda: any(case["before"] for case in self.until_at_work(0)), 30, "the second case")
            self.slurm.call("scancel", "--batch", "--signal=USR2", f"{job}_0")
        _, err = self.run_and(warn, *self.SLOW, "--batch", "1,2,3", "--cases-per-task", 3)
        self.assertEqual((self.statuses(), self.queues()), (["ok"] * 3, ["1", "2"]), err)
        ends = [json.loads(path.read_text(encoding="utf-8")) for path in (self.folder / "out/queue/1/ended").iterdir()]
        self.assertEqual([end["how"] for end in ends], ["stopped"], ends)
        self.assertTrue(ends[0]["run"]["cases"], "what it had measured is kept")

    def test_a_full_disk(self):
        folder = self.folder / "small"
        folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", folder], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", folder], check=True)
        cases = ("run", *self.SLOW, "--batch", "1,2", *SLURM, "--out", "small/out")
        process = self.start(*map(str, cases))
        self.submitted("small/out")
        self.until_at_work(0, "small/out")
        with open(folder / "filler", "wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(b"x" * 4096)
            except OSError:
                pass
        _, err = process.communicate(timeout=120)
        self.assertIn(process.returncode, (2, 3), err)
        self.assertIn("No space left on device", err + (folder / "out/run.json").read_text(encoding="utf-8"))
        (folder / "filler").unlink()
        cluster.wait_until(lambda: not self.slurm.busy_nodes(), 30, "the job's end")
        self.peakbench(*cases, "--resume")
        self.assertEqual(self.statuses("small/out"), ["ok"] * 2)


class Refused(OnSlurm):
    def refused(self, *arguments, says):
        """One error, the last thing that is said, after the job was named."""
        done = self.peakbench(*arguments, exit_code=2)
        self.assertEqual(done.stderr.count("peakbench: "), 1, done.stderr)
        message = done.stderr[done.stderr.index("peakbench: "):]
        for part in says:
            self.assertIn(part, message)
        self.assertLess(len(message.splitlines()), 3, done.stderr)
        cluster.wait_until(lambda: not self.slurm.call("squeue", "--noheader", "--states=pending,running").stdout, 20, "no job left")
        return message

    ONE = ("run", "--model", "tiny", "--strategy", "baseline", *CARD, *SLURM, "--out", "out")

    def test_no_sbatch(self):
        os.environ["PATH"], path = str(self.folder), os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        self.slurm.environment["PATH"], path2 = str(self.folder), self.slurm.environment["PATH"]
        self.addCleanup(self.slurm.environment.__setitem__, "PATH", path2)
        self.fails(*self.ONE, says=["no sbatch on PATH", "login node"])

    def test_a_partition_that_there_is_not_or_that_refuses(self):
        self.fails(*self.ONE, "--partition", "nowhere", says=["sbatch refused", "invalid partition"])
        self.refused(*self.ONE, "--partition", "guarded", "--account", "me", "--overwrite", says=["will not begin", "guarded"])

    def test_a_time_that_is_none_and_options_without_slurm(self):
        self.fails(*self.ONE, "--time", "soon", says=["--time soon", "hours:minutes:seconds"])
        self.fails("run", "--model", "tiny", "--strategy", "baseline", "--partition", "all", says=["--partition", "--executor slurm"])
        self.fails("run", "--model", "tiny", "--strategy", "baseline", "--device", "auto", *SLURM, says=["auto", "Name the device"])

    def test_another_build_on_a_node(self):
        other = self.prefix / "other"
        if not other.exists():
            subprocess.run(["cp", "-r", self.prefix / "installed", other], check=True)
        program = (other / "bin/peakbench").read_bytes()
        commit = re.search(rb"commit ([0-9a-f]{12}[a-z-]*)", subprocess.run(
            [self.program, "--version"], capture_output=True, check=True).stdout)[1]
        (other / "bin/peakbench").write_bytes(program.replace(commit, b"0" * len(commit)))
        said = subprocess.run([other / "bin/peakbench", "--version"], capture_output=True, text=True, check=True).stdout
        self.assertIn("000000000000", said)
        # The prefix makes the node run the other one, as an installation of its own would.
        script = self.prefix / "swap"
        script.write_text(f'#!/bin/sh\nshift\nexec {other}/bin/peakbench "$@"\n', encoding="utf-8")
        script.chmod(0o755)
        self.refused(*self.ONE, "--prefix", script, says=["the build on n", "commit", "000000000000"])

    def test_a_folder_that_nodes_do_not_have(self):
        script = self.prefix / "elsewhere"  # in a mount namespace where the folder is another, empty one
        script.write_text(f'#!/bin/sh\nexec unshare -m sh -c \'mount -t tmpfs none {self.folder}; exec "$@"\' sh "$@"\n',
                          encoding="utf-8")
        script.chmod(0o755)
        self.refused(*self.ONE, "--prefix", script, says=["left nothing in", "write"])
