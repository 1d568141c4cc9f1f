"""A disk so full that run.json itself cannot be written: what was measured is kept, and the run can be continued."""
import os
import subprocess

import pytest

from host import HostTest, may_mount, misbehaving

pytestmark = pytest.mark.skipif(not may_mount(), reason="a file system of its own cannot be mounted here (unshare -m, tmpfs)")


class FullDisk(HostTest):
    SCRIPT = """mount -t tmpfs -o size=2m none out && cp -a before/. out/ 2>/dev/null; "$@"; code=$?; rm -f out/cases/*/large;
        cp -a out after; exit $code"""

    def on_small_disk(self, *arguments, exit_code):
        """Runs with `out` on a file system of two megabytes, whose content is `after` then."""
        (self.folder / "out").mkdir(exist_ok=True)
        done = subprocess.run(["unshare", "-m", "bash", "-c", self.SCRIPT, "bash", self.program, *arguments],
                              cwd=self.folder, text=True, capture_output=True, env=self.environment(), timeout=60, check=False)
        self.assertEqual(done.returncode, exit_code, done.stdout + done.stderr)
        return done

    def measured(self, out):
        """On so small a disk promises are never checked, which the results say (docs/reference/cli/run.md)."""
        cases, *rest = self.figures(out)
        return [dict(case, equivalence=None) for case in cases], rest

    def test_what_was_measured_is_kept_and_continued(self):
        run = ["run", "--model", "tiny", "--repetitions", "1", "--strategy", "baseline", "--strategy", misbehaving("fill_disk"),
               "--strategy", "slim", "--out", "out"]
        done = self.on_small_disk(*run, exit_code=2)
        self.assertIn("out/run.json: cannot write: No space left on device; free some space", done.stderr)
        self.assertIn("--out out --resume", done.stderr)
        self.assertEqual(self.statuses("after"), ["ok"])  # as it was after the last worker that could be written
        self.assertEqual(list((self.folder / "after").glob("*.tmp*")), [])
        os.rename(self.folder / "after", self.folder / "before")
        self.well_behaved("fill_disk")
        self.on_small_disk(*run, "--resume", exit_code=0)
        self.peakbench(*run[:-1], "undisturbed")
        self.assertEqual(self.measured("after"), self.measured("undisturbed"))
