"""What this machine lacks is said to be the machine's, by real workers: never the card's out of memory, never a trace that does
not add up; and --resume ends with the figures of a run that nothing disturbed.
"""

import json
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile
import unittest

from given import PEAKBENCH

MIB, GIB = 1 << 20, 1 << 30
CARD = ["--model", "vit-b-16,layers=1", "--device", "emulated:h100-80gb"]
CPU = ["--model", "vit-b-16,layers=1", "--steps", "1", "--warmup", "0", "--threads", "1"]


def limited(which, bytes_):
    return lambda: resource.setrlimit(which, (bytes_, bytes_))


def may_mount():
    return shutil.which("unshare") and subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"],
                                                      capture_output=True, check=False).returncode == 0


class HostTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="peakbench-host-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def run_case(self, *arguments, out="out", codes=(0, 3), before=("",), **options):
        command = [*before, PEAKBENCH, "run", "--strategy", "baseline", "--out", out, "--no-report", *arguments]
        done = subprocess.run([str(word) for word in command if word], cwd=self.folder, capture_output=True, text=True, check=False,
                              **options)
        self.assertIn(done.returncode, codes, done.stdout + done.stderr)
        self.output = done.stdout + done.stderr
        path = self.folder / out / "run.json"
        return json.loads(path.read_text(encoding="utf-8"))["cases"][0] if path.exists() else None

    def failed_by_host(self, case, *words):
        self.assertEqual(case["status"], "host_failure", case["reason"])
        self.assertIsNone(case["out_of_memory"])
        for word in words:
            self.assertIn(word, case["reason"])

    def figures(self, case):
        """But for times, and what the process took of this machine."""
        memory = {**case["memory"], "worker_peak_rss_bytes": 0}
        return case["status"], case["reason"], memory, case["losses"], case["emulation"], case["settings"]

    def test_a_limit_on_the_size_of_files(self):
        case = self.run_case(*CARD, preexec_fn=limited(resource.RLIMIT_FSIZE, 96 << 10))
        self.failed_by_host(case, "trace.sqlite: the trace cannot be written: File too large; raise the limit on the size of files")
        left = [path.name for path in self.folder.rglob("*") if ".partial" in path.name or ".tmp" in path.name]
        self.assertEqual(left, [])
        again = self.run_case(*CARD, "--resume")
        self.assertEqual(self.figures(again), self.figures(self.run_case(*CARD, out="undisturbed")))

    def test_limits_on_the_address_space_of_a_card(self):
        """However little there is: the whole figures, or the machine is to blame."""
        whole = self.figures(self.run_case(*CARD, out="undisturbed"))
        seen = set()
        for limit in (200 * MIB, 600 * MIB, 1200 * MIB, 2 * GIB, 3 * GIB, 4 * GIB, 6 * GIB, 8 * GIB, 64 * GIB):
            with self.subTest(limit=limit):
                case = self.run_case(*CARD, out=f"out-{limit}", preexec_fn=limited(resource.RLIMIT_AS, limit))
                seen.add(case["status"])
                if case["status"] == "ok":
                    self.assertEqual(self.figures(case), whole)
                else:
                    self.failed_by_host(case)
        self.assertEqual(seen, {"ok", "host_failure"})

    def test_a_card_of_which_the_machine_has_not_the_addresses(self):
        case = self.run_case("--model", "vit-l-16", "--device", "emulated:h100-80gb", "--batch", "64",
                             preexec_fn=limited(resource.RLIMIT_AS, 8 * GIB))
        self.failed_by_host(case, "the emulated card had enough memory", "ulimit -v")

    def test_limits_on_the_address_space_of_the_cpu(self):
        for limit in (1500 * MIB, 2 * GIB):
            with self.subTest(limit=limit):
                case = self.run_case(*CPU, "--batch", "512", "--repetitions", "0", "--memory-limit", "64GiB", out=f"out-{limit}",
                                     preexec_fn=limited(resource.RLIMIT_AS, limit))
                self.failed_by_host(case)

    def test_a_worker_that_is_timed(self):
        """It has no allocator of ours: LibTorch's own says what it did not get."""
        self.run_case(*CPU, "--repetitions", "1", codes=(0,))
        job = json.loads(next(self.folder.glob("out/cases/*/throughput.job.json")).read_text(encoding="utf-8"))
        job.update(batch_size=512, result_path=str(self.folder / "result.json"))
        (self.folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        told, tell = os.pipe()
        done = subprocess.run([PEAKBENCH.parent / "peakbench-worker", self.folder / "job.json"], pass_fds=[tell], check=False,
                              capture_output=True, env={**os.environ, "PEAKBENCH_PROGRESS_FD": str(tell)},
                              preexec_fn=limited(resource.RLIMIT_AS, 1500 * MIB))
        os.close(tell)
        with open(told, encoding="utf-8") as progress:
            last = json.loads(progress.read().splitlines()[-1])
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertIn("the machine gave no memory; the address space is limited to 1.46 GiB (ulimit -v)", last["host_failure"])
        self.assertFalse((self.folder / "result.json").exists())

    def test_a_budget_is_the_cases_own(self):
        case = self.run_case(*CPU, "--repetitions", "0", "--memory-limit", "16MiB")
        self.assertEqual(case["status"], "out_of_memory", case["reason"])

    @unittest.skipUnless(may_mount(), "a file system of its own cannot be mounted here (unshare -m, tmpfs)")
    def test_a_full_disk(self):
        """The snapshot does not fit beside the trace; run.json does. Then there is room, and the run goes on."""
        (self.folder / "out").mkdir()
        script = 'mount -t tmpfs -o size=164k none out; "$@"; code=$?; cp -a out after; exit $code'
        self.run_case(*CARD, before=["unshare", "-m", "bash", "-c", script, "bash"])
        case = json.loads((self.folder / "after/run.json").read_text(encoding="utf-8"))["cases"][0]
        self.failed_by_host(case, "No space left on device; free some space")
        again = self.run_case(*CARD, "--resume", out="after")
        self.assertEqual(self.figures(again), self.figures(self.run_case(*CARD, out="undisturbed")))
