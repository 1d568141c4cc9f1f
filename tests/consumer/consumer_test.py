"""The example strategy, built outside of the repository against the install tree, and run by the installed program.

usage: consumer_test.py BUILD_FOLDER EXAMPLE CMAKE
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, EXAMPLE, CMAKE = sys.argv[1:4]
MODEL = "vit-b-16,layers=2,width=48,mlp=64,image=32"


def run(*command, cwd):
    # Nothing of this build may help: the package says itself where everything is.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PEAKBENCH_", "LD_"))}
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=500)
    if done.returncode:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done.stdout


class Consumer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="peakbench-consumer-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        run(CMAKE, "--install", BUILD, "--prefix", cls.folder / "installed", cwd=cls.folder)
        # The tree stands on its own wherever it is moved.
        cls.prefix = (cls.folder / "installed").rename(cls.folder / "moved")
        shutil.copytree(EXAMPLE, cls.folder / "example")
        run(CMAKE, "-S", "example", "-B", "built", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
            f"-DCMAKE_PREFIX_PATH={cls.prefix}", cwd=cls.folder)  # fmt: skip
        run(CMAKE, "--build", "built", cwd=cls.folder)

    def peakbench(self, *arguments):
        return run(self.prefix / "bin/peakbench", *arguments, cwd=self.folder)

    def test_is_listed_from_its_manifest(self):
        self.assertIn("SGD with momentum", self.peakbench("list", "strategies", "--plugins", "built"))

    def test_installation_finds_everything(self):
        self.peakbench("doctor")

    def test_runs_beside_the_bundled_strategies(self):
        strategies = ["baseline", "sgd", "sgd,momentum=0", "sgd+fused-in-backward"]
        self.peakbench("run", "--plugins", "built", "--model", MODEL, *(t for s in strategies for t in ("--strategy", s)),
                       "--repetitions", "0", "--out", "out")  # fmt: skip
        cases = json.loads((self.folder / "out/run.json").read_text())["cases"]
        self.assertEqual([case["status"] for case in cases], ["ok"] * 4, [case["reason"] for case in cases])
        at_peak = [case["memory"]["at_peak"] for case in cases]
        parameters, tensors = at_peak[0]["parameter"], 2 + 2 + 12 * 2 + 2 + 2
        # Adam: two moments and a counter a parameter; SGD: one buffer, or nothing.
        state = [amount.get("optimizer_state", 0) for amount in at_peak]
        self.assertEqual(state, [2 * parameters + 4 * tensors, parameters, 0, parameters])
        self.assertTrue((self.folder / "out/report/index.html").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
