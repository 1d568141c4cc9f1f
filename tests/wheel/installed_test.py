"""The wheel as people install it, under several Pythons and with several releases of PyTorch.

PEAKBENCH_WHEEL names the wheel (otherwise ci/wheel makes it), PEAKBENCH_WHEEL_SCRATCH a folder of some gigabytes. PyTorch comes from the package
index, without the vendor's libraries that only a real card needs. Prints what took how long.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from given import BUILD

REPOSITORY = Path(__file__).resolve().parents[2]

# What goes with a release of PyTorch on a machine without a card.
BESIDE = {
    "2.8.0": ["nvidia-cuda-runtime-cu12==12.8.90", "nvidia-cuda-cupti-cu12==12.8.90"],
    "2.11.0": ["nvidia-cuda-runtime==13.0.96", "nvidia-cuda-cupti==13.0.85"],
    "2.15.0": ["nvidia-cuda-runtime==13.2.86", "nvidia-cuda-cupti==13.2.86"],
}
PURE = ["filelock", "fsspec", "jinja2", "networkx", "numpy", "setuptools<80", "sympy", "typing-extensions"]

PROGRAM = """import torch
model = torch.nn.Linear(1000, 1000, device="cuda")
model(torch.ones(8, 1000, device="cuda")).sum().backward()
"""


def python_of(version):
    """A Python of that version, or of that name; pyenv's shims are there for versions that are not."""
    if version.startswith("/"):
        return version if Path(version).exists() else None
    for file in filter(None, [shutil.which(f"python{version}"), *sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))]):
        if subprocess.run([file, "--version"], capture_output=True).returncode == 0:
            return str(file)
    return None


def timed(command, **more):
    began = time.monotonic()
    ran = subprocess.run(command, capture_output=True, text=True, **more)
    return ran, time.monotonic() - began


class Environment:
    """A virtual environment with the wheel, in a folder whose name has a space."""

    def __init__(self, python, torch, extra=(), packages=None):
        self.folder = Path(tempfile.mkdtemp(prefix=f"an environment {Path(python).name} {torch or 'without'} ", dir=os.environ.get("PEAKBENCH_WHEEL_SCRATCH")))
        found = python_of(python)
        if not found:
            raise unittest.SkipTest(f"no Python {python} on this machine")
        subprocess.run([found, "-m", "venv", self.folder / "venv"], check=True)
        self.python = self.folder / "venv/bin/python"
        self.cache = self.folder / "cache"
        if torch:
            self.pip("install", "--no-deps", f"torch=={torch}", *(BESIDE[torch] if packages is None else packages))
            self.pip("install", *PURE, *extra)
        _, self.seconds = timed([self.python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", WHEEL], check=True)

    def pip(self, *words):
        ran = subprocess.run([self.python, "-m", "pip", "--quiet", "--disable-pip-version-check", *words], capture_output=True, text=True)
        if ran.returncode:
            raise RuntimeError(f"pip {' '.join(map(str, words))}: {ran.stderr}")

    def command(self, *words, **variables):
        environment = {"PATH": f"{self.folder / 'venv/bin'}:/usr/bin:/bin", "HOME": str(self.folder), "XDG_CACHE_HOME": str(self.cache), **variables}
        environment = {name: value for name, value in environment.items() if value is not None}
        return timed([self.folder / "venv/bin/peakbench", *words], cwd=self.folder, env=environment)

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def peaks(run):
    """What the figures of a run are: case -> bytes."""
    record = json.loads((Path(run) / "run.json").read_text())
    sizes = ("peak_requested_bytes", "peak_allocated_bytes", "peak_reserved_bytes")
    return {case["id"]: (case["status"], *(case["memory"][size] for size in sizes)) for case in record["cases"] if case["memory"]}


class Installed(unittest.TestCase):
    def environment(self, python, torch, **more):
        environment = Environment(python, torch, **more)
        self.addCleanup(environment.remove)
        return environment

    def well(self, ran, seconds=None, what=""):
        self.assertEqual(ran.returncode, 0, ran.stdout[-3000:] + ran.stderr[-3000:])
        if seconds is not None:
            print(f"{what}: {seconds:.1f} s", file=sys.stderr)
        return ran.stdout

    def first_figures(self, environment, what):
        ran, seconds = environment.command("quickstart", "--out", "first")
        self.well(ran, environment.seconds + seconds, f"{what}: pip install {environment.seconds:.1f} s + quickstart {seconds:.1f} s")
        found = peaks(environment.folder / "first")
        self.assertEqual({status for status, *_ in found.values()}, {"ok"}, found)
        self.assertGreaterEqual(len(found), 10)
        self.assertTrue((environment.folder / "first/report/index.html").is_file())
        return found

    def emulate(self, environment):
        (environment.folder / "program.py").write_text(PROGRAM)
        ran, seconds = environment.command("emulate", "--card", "h100-80gb", "--json", "-", "--", str(environment.python), "program.py")
        self.well(ran, seconds, "emulate")
        return ran.stderr

    def trace(self, environment):
        """The peak by line; what there was to compile."""
        (environment.folder / "program.py").write_text(PROGRAM)
        ran, seconds = environment.command("trace", "--card", "h100-80gb", "--out", "traced", "--", str(environment.python), "program.py")
        self.well(ran, seconds, "trace")
        self.assertIn("program.py:", ran.stderr)
        return ran.stderr

    def test_2_11_on_3_10_is_the_build_from_source_to_the_byte(self):
        environment = self.environment("3.10", "2.11.0")
        found = self.first_figures(environment, "Python 3.10, PyTorch 2.11.0")
        own = environment.folder / "own"
        self.well(subprocess.run([BUILD / "bin/peakbench", "quickstart", "--out", own], capture_output=True, text=True))
        self.assertEqual(found, peaks(own))
        self.emulate(environment)
        self.plugin(environment)
        self.nothing_is_left(environment)

    def test_2_15_on_3_12(self):
        environment = self.environment("3.12", "2.15.0")
        self.first_figures(environment, "Python 3.12, PyTorch 2.15.0")
        self.assertNotIn("compiling", self.emulate(environment))  # the worker's values library is carried along
        self.assertNotIn("compiling", self.trace(environment))  # and its tracer

    def test_2_8_on_3_13_has_no_worker_until_one_is_needed(self):
        environment = self.environment("3.13", "2.8.0", extra=["cmake>=3.25,<4", "ninja"])
        self.assertNotIn("compiling", self.emulate(environment))
        self.assertNotIn("compiling", self.trace(environment))
        ran, seconds = environment.command("quickstart", "--out", "before")
        self.well(ran, seconds, "quickstart with a worker built for PyTorch 2.8.0")
        self.assertIn("Building the worker for PyTorch 2.8.0", ran.stderr)
        self.first_figures(environment, "Python 3.13, PyTorch 2.8.0")

    def test_the_oldest_without_nvidias_packages_is_traced_without_a_compiler(self):
        environment = self.environment("3.12", "2.6.0", packages=[])
        self.assertNotIn("compiling", self.emulate(environment))
        self.assertNotIn("compiling", self.trace(environment))

    def test_the_manual_page_and_completions_are_where_the_environments_are(self):
        environment = self.environment("3.12", None)
        share = environment.folder / "venv/share"
        for file in ("man/man1/peakbench.1", "bash-completion/completions/peakbench", "zsh/site-functions/_peakbench",
                     "fish/vendor_completions.d/peakbench.fish"):  # fmt: skip
            self.assertTrue((share / file).is_file(), file)
        self.nothing_is_left(environment)

    def test_without_pytorch(self):
        environment = self.environment("3.12", None)
        ran, _ = environment.command("quickstart")
        self.assertEqual(ran.returncode, 2, ran)
        self.assertIn("torch", ran.stderr)
        self.well(environment.command("--version")[0])
        own = environment.folder / "own"
        self.well(subprocess.run([BUILD / "bin/peakbench", "quickstart", "--out", own], capture_output=True, text=True))
        self.well(environment.command("report", str(own))[0])
        shutil.copytree(own, environment.folder / "again")
        self.well(environment.command("compare", str(own), "again")[0])

    def test_a_folder_that_nobody_may_write_to_and_no_home(self):
        environment = self.environment("/usr/bin/python3", "2.11.0")  # one that everybody may run
        subprocess.run(["chmod", "-R", "a-w", environment.folder / "venv"], check=True)
        self.addCleanup(subprocess.run, ["chmod", "-R", "u+w", environment.folder / "venv"])
        os.chmod(environment.folder, 0o777)
        command = [environment.folder / "venv/bin/peakbench", "quickstart", "--out", "first"]
        if os.geteuid() == 0:  # whom no mode stops
            command = ["setpriv", "--reuid=65534", "--clear-groups", *command]
        ran, _ = timed(command, cwd=environment.folder, env={"PATH": "/usr/bin:/bin"})
        self.well(ran)

    def test_the_archive_needs_no_python_of_its_own(self):
        environment = self.environment("3.10", "2.11.0")
        archive, = Path(WHEEL).parent.glob("peakbench-*-linux-x86_64.tar.gz")
        subprocess.run(["tar", "--extract", "--file", archive, "--directory", environment.folder], check=True)
        program, = environment.folder.glob("peakbench-*-linux-x86_64/bin/peakbench")
        ran, _ = timed([program, "quickstart", "--out", "first"], cwd=environment.folder,
                       env={"PATH": f"{environment.folder / 'venv/bin'}:/usr/bin:/bin", "HOME": str(environment.folder)})  # fmt: skip
        self.well(ran)
        self.assertEqual({status for status, *_ in peaks(environment.folder / "first").values()}, {"ok"})

    def plugin(self, environment):
        """examples/sgd, against the installed wheel."""
        package = self.well(environment.command("--cmake-dir")[0]).strip()
        build = environment.folder / "sgd"
        for words in (["-S", REPOSITORY / "examples/sgd", "-B", build, "-G", "Ninja", f"-DPeakbench_DIR={package}"], ["--build", build]):
            self.well(subprocess.run(["cmake", *words], capture_output=True, text=True))
        path = f"{environment.folder / 'venv/bin'}:{os.environ['PATH']}"
        self.well(subprocess.run(["ctest", "--test-dir", build, "-R", "promise", "--output-on-failure"], env={**os.environ, "PATH": path},
                                 capture_output=True, text=True))  # fmt: skip
        ran, _ = environment.command("run", "--plugins", str(build), "--model", "vit-b-16,layers=2", "--strategy", "my-sgd", "--device",
                                     "emulated:h100-80gb", "--out", "plugin")  # fmt: skip
        self.well(ran)

    def nothing_is_left(self, environment):
        packages = environment.folder / "venv/lib"
        environment.pip("uninstall", "--yes", "peakbench")
        self.assertEqual([str(path) for path in packages.rglob("*peakbench*")], [])
        self.assertEqual(list((environment.folder / "venv/bin").glob("*peakbench*")), [])
        self.assertEqual(list((environment.folder / "venv/share").rglob("*peakbench*")), [])


def wheel():
    if given := os.environ.get("PEAKBENCH_WHEEL"):
        return str(Path(given).resolve())
    made = subprocess.run([REPOSITORY / "ci/wheel"], stdout=subprocess.PIPE, text=True, check=True)
    return made.stdout.strip().splitlines()[-1]


WHEEL = wheel()
if not re.search(r"-py3-none-manylinux_2_\d+_x86_64\.whl$", WHEEL):
    raise ValueError(f"{WHEEL} is not named as a wheel of ours is")
