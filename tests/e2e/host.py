"""For tests of what the machine does to cases: what a run found, and a script that mends its ways."""
import json
import shutil
import subprocess

from installation import ProgramTest


def misbehaving(how, where="memory"):
    return f"misbehave,behaviour={how},in={where}"


def may_mount():
    return shutil.which("unshare") and subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"],
                                                      capture_output=True, check=False).returncode == 0


class HostTest(ProgramTest):
    def run_cases(self, *strategies, more=("--repetitions", "1"), out="out", exit_code=0, **options):
        arguments = [part for strategy in strategies for part in ("--strategy", strategy)]
        return self.peakbench("run", "--model", "tiny", *arguments, "--out", out, *more, exit_code=exit_code, **options)

    def reason(self, index, out="out"):
        return self.run_json(out)["cases"][index]["reason"]

    def slug(self, strategy):
        plan = json.loads(self.peakbench("run", "--model", "tiny", "--strategy", strategy, "--dry-run", "--json").stdout)
        return plan["cases"][0]["slug"]

    def well_behaved(self, how):
        """From now on the script does what is good where it would have done this."""
        worker = self.prefix / "installed/bin/peakbench-worker"
        text = worker.read_text(encoding="utf-8")
        self.addCleanup(worker.write_text, text, encoding="utf-8")
        worker.write_text(text.replace('    if how != "ok":', f'    if how not in ("ok", "{how}"):'), encoding="utf-8")

    def figures(self, out="out"):
        """What a run found, without what no two runs share: times of day and the clock's times."""
        run = self.run_json(out)
        for case in run["cases"]:
            for varying in ("wall_ns", "throughput"):
                case.pop(varying)
            for memory in [case["memory"], *(rank["memory"] for rank in case["ranks"])]:
                if memory:
                    memory.pop("worker_peak_rss_bytes")
        return run["cases"], run["pending"], run["status"]
