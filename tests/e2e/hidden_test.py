"""What the machine hides is said to be hidden, not to be absent: another user's folders, /proc."""
import os
import subprocess
import unittest

from host import may_mount
from installation import ProgramTest

ONE = ("run", "--model", "tiny", "--strategy", "baseline", "--repetitions", "0")
NOBODY = 65534


class OthersFolders(ProgramTest):
    def as_nobody(self, *arguments):
        """Exit code 2 of a user who may not enter the folder."""
        somebody = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        for folder in (self.prefix, self.folder):
            folder.chmod(0o755)
        done = subprocess.run([self.program, *arguments], cwd=self.folder, text=True, capture_output=True, env=self.environment(),
                              timeout=60, check=False, **somebody)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        return done.stderr

    def close(self, name):
        self.addCleanup((self.folder / name).chmod, 0o755)
        (self.folder / name).chmod(0o700 if os.geteuid() == 0 else 0)

    def test_a_run(self):
        self.peakbench(*ONE, "--out", "out")
        self.close("out")
        for command in (("report", "out"), ("export", "out"), ("compare", "out", "out"),
                        ("report", "out/run.json")):
            self.assertIn("out/run.json: cannot be read: Permission denied", self.as_nobody(*command))
        self.assertIn("none/run.json: no such file", self.as_nobody("report", "none/run.json"))

    def test_plugins(self):
        (self.folder / "closed/plugins").mkdir(parents=True)
        self.close("closed")
        self.assertIn("closed/plugins: the plugin folder cannot be read: Permission denied",
                      self.as_nobody("list", "strategies", "--plugins", "closed/plugins"))


@unittest.skipUnless(may_mount(), "nothing can be mounted here (unshare -m)")
class WithoutProc(ProgramTest):
    def without_proc(self, *arguments):
        script = 'mount -t tmpfs none /proc && exec "$@"'
        return subprocess.run(["unshare", "-m", "bash", "-c", script, "bash", self.program, *arguments], cwd=self.folder, text=True,
                              capture_output=True, env=self.environment(), timeout=60, check=False)

    def test_it_is_said(self):
        for command in (ONE, ("list", "strategies"), ("report", "out"), ("merge", "a", "b", "--out", "c"), ("emulate", "true")):
            done = self.without_proc(*command)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("peakbench: /proc/self/exe cannot be read: No such file or directory", done.stderr)
            self.assertIn("mount -t proc proc /proc", done.stderr)

    def test_help_needs_nothing(self):
        for option in ("--help", "--version"):
            self.assertEqual(self.without_proc(option).returncode, 0)
