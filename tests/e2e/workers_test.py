"""An installation without a worker of its own: folders of workers, one for each PyTorch, and who chooses among them.

Its PyTorchs are folders that hold what is looked at (version.py, two libraries), its Pythons scripts that say when they are started.
"""

import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys

from given import FAKE_PLUGINS, PEAKBENCH
from installation import SOURCE, ProgramTest, wait_for

RUN = ("run", "--model", "tiny", "--strategy", "baseline", "--repetitions", "0", "--device", "cpu", "--out", "out")
WITHOUT = "Commands that need no worker: emulate, trace, fit -- PROGRAM, import, report, compare, gate, history, publish."


def of_length(text, length):
    return (text * length)[:length]


class Workers(ProgramTest):
    """`here` is the PyTorch that the program was built with, `there` a made-up one; the carried workers are for these two."""

    def setUp(self):
        super().setUp()
        self.root = self.folder / "site-packages/peakbench"
        (self.root / "bin").mkdir(parents=True)
        shutil.copy(PEAKBENCH, self.root / "bin/peakbench")
        shutil.copytree(SOURCE / "templates", self.root / "share/peakbench/templates")
        self.program = str(self.root / "bin/peakbench")
        self.stamp = self.built_stamp()
        here = self.stamp["libtorch_version"]
        self.here = (here, self.stamp["libtorch_git_version"])
        self.there = (of_length("9", len(here.split(".")[0])) + here[len(here.split(".")[0]):], of_length("c0ffee", 40))
        for version, git in (self.here, self.there):
            self.make_worker(self.root / "workers", version, git)
        self.cache = self.folder / "cache"
        self.variables = {"XDG_CACHE_HOME": str(self.cache), "PATH": f"{self.folder / 'env/bin'}:/usr/bin:/bin",
                          "PEAKBENCH_TORCH": "", "PEAKBENCH_PYTHON": ""}  # fmt: skip

    def environment(self, **more):
        return {**super().environment(), **self.variables, **more}

    @staticmethod
    def built_stamp():
        library = next(FAKE_PLUGINS.glob("*.so")).read_bytes()
        return json.loads(re.search(rb'"stamp": (\{[^}]*\})', library).group(1))

    def make_worker(self, workers, version, git, **facts):
        folder = workers / f"torch-{version}"
        (folder / "bin").mkdir(parents=True)
        script = (SOURCE / "tests/support/fake_worker.py").read_text(encoding="utf-8").split("\n", 1)[1]
        script = script.replace('{"libtorch": "fake"}', '{"loads": os.environ.get("LD_LIBRARY_PATH", ""), "told": os.environ.get("PEAKBENCH_WORKER_LIBTORCH")}')
        (folder / "bin/peakbench-worker").write_text(f"#!{sys.executable}\n{script}", encoding="utf-8")
        (folder / "bin/peakbench-worker").chmod(0o755)
        (folder / "lib/peakbench/plugins").mkdir(parents=True)
        (folder / "lib/libpeakbench_sdk.so").write_bytes(b"")
        (folder / "lib/cmake/Peakbench").mkdir(parents=True)
        (folder / "lib/cmake/Peakbench/PeakbenchConfig.cmake").write_text("", encoding="utf-8")
        for plugin in FAKE_PLUGINS.glob("*.so"):
            changed = plugin.read_bytes()
            for old, new in zip(self.here, (version, git), strict=True):
                changed = changed.replace(old.encode(), new.encode())
            cuda = f'"libtorch_cuda": "{self.stamp["libtorch_cuda"]}"'
            new = cuda.replace(self.stamp["libtorch_cuda"], facts.get("libtorch_cuda", self.stamp["libtorch_cuda"]))
            self.assertEqual(len(cuda), len(new), "the plugins' stamps keep their length")
            changed = changed.replace(cuda.encode(), new.encode())
            (folder / "lib/peakbench/plugins" / plugin.name).write_bytes(changed)
        self.assertEqual({len(one) for one in (version, self.here[0])}, {len(version)}, "the plugins' stamps keep their length")
        said = {"schema": "peakbench-worker/1", "peakbench": self.peakbench_version(), **self.stamp,
                "libtorch_version": version, "libtorch_git_version": git, **facts}  # fmt: skip
        (folder / "worker.json").write_text(json.dumps(said), encoding="utf-8")
        return folder

    @staticmethod
    def peakbench_version():
        return re.search(r"project\(Peakbench VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text(encoding="utf-8")).group(1)

    def make_torch(self, version, git, cuda="13.0", hip=None, folder="env/site-packages"):
        torch = self.folder / folder / "torch"
        shutil.rmtree(torch, ignore_errors=True)
        (torch / "lib").mkdir(parents=True)
        (torch / "include/ATen").mkdir(parents=True)
        (torch / "include/ATen/ATen.h").write_text("", encoding="utf-8")
        (torch / "__init__.py").write_text("raise ImportError('PyTorch is not imported')", encoding="utf-8")
        (torch / "version.py").write_text(f"__version__ = '{version}'\ncuda = {cuda!r}\nhip = {hip!r}\ngit_version = '{git}'\n",
                                          encoding="utf-8")  # fmt: skip
        library = next(FAKE_PLUGINS.glob("*.so"))
        for name in ("libtorch_cpu.so", "libc10.so", *(("libtorch_cuda.so", "libc10_cuda.so") if cuda else ())):
            shutil.copy(library, torch / "lib" / name)
        return torch

    def make_python(self, name="python3", beside="env"):
        """One that has what lies in env/site-packages, and that leaves a mark where it is started."""
        program = self.folder / beside / "bin" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f'#!/bin/sh\ntouch "{self.folder}/python-was-started"\n'
                           f'PYTHONPATH="{self.folder}/env/site-packages" exec "{sys.executable}" -S "$@"\n', encoding="utf-8")  # fmt: skip
        program.chmod(0o755)
        return program

    def environment_of(self, version, git, **more):
        self.make_python()
        return self.make_torch(version, git, **more)

    def was_started(self):
        return (self.folder / "python-was-started").exists()

    def listed(self):
        return json.loads(self.peakbench("workers", "list", "--json").stdout)

    def chosen(self):
        return [pathlib.Path(one["folder"]).name for one in self.listed() if one["chosen"]]


class Choosing(Workers):
    def test_the_environments_pytorch_has_its_worker_run(self):
        for version, git in (self.here, self.there):
            torch = self.environment_of(version, git)
            shutil.rmtree(self.folder / "out", ignore_errors=True)
            self.peakbench(*RUN)
            run = self.run_json()
            self.assertEqual(run["environment"]["libtorch"], version)
            self.assertEqual(run["environment"]["libtorch_git_version"], git)
            self.assertEqual(run["environment"]["loads"], str(torch / "lib"))
            self.assertEqual(run["environment"]["told"], f"{version} {git} 13.0")  # for the worker to hold what it loads to it
            self.assertEqual(self.statuses(), ["ok"])

    def test_another_build_of_the_release_is_what_the_record_says(self):
        release = self.there[0].partition("+")[0]
        self.environment_of(release + "+cpu", self.there[1], cuda=None)
        self.peakbench(*RUN)
        environment = self.run_json()["environment"]
        self.assertEqual((environment["libtorch"], environment["libtorch_cuda"]), (release + "+cpu", "none"))

    def test_without_cuda_cases_on_cards_are_refused_in_one_sentence(self):
        release = self.here[0].partition("+")[0]
        self.environment_of(release + "+cpu", self.here[1], cuda=None)
        for device in ("cuda:0", "emulated:h100-80gb"):
            self.fails(*(device if word == "cpu" else word for word in RUN),
                       says=[f'device "{device}', f"PyTorch {release}+cpu", "built without CUDA", "--device cpu"])  # fmt: skip

    def test_a_worker_without_cuda_runs_no_case_on_a_card(self):
        self.make_worker(self.cache, *self.here, libtorch_cuda="none")
        shutil.rmtree(self.root / "workers")
        (self.cache).rename(self.root / "workers")
        self.environment_of(*self.here)
        self.peakbench(*RUN)
        self.fails(*("emulated:h100-80gb" if word == "cpu" else word for word in RUN), "--overwrite",
                   says=["without CUDA, so it runs no case on a card", f"compiles one for PyTorch {self.here[0]}"])

    def test_a_version_that_is_typed_chooses(self):
        self.environment_of(*self.there)
        self.peakbench(*RUN, "--torch", self.there[0].partition("+")[0])
        self.assertEqual(self.run_json()["environment"]["libtorch"], self.there[0])
        here = self.here[0].partition("+")[0]
        self.fails(*RUN, "--torch", here, says=[f"--torch {here}: there is a worker for PyTorch {self.here[0]}",
                                                "no such PyTorch for it to load", f"pip install torch=={here}"])  # fmt: skip
        self.variables["PEAKBENCH_TORCH"] = "7.7"
        self.fails(*RUN, says=["PEAKBENCH_TORCH 7.7: there is no worker for that PyTorch", self.here[0], self.there[0]])
        self.peakbench(*RUN, "--torch", self.there[0], "--overwrite")

    def test_several_are_rows_of_one_table(self):
        self.environment_of(*self.here)
        other = self.make_torch(*self.there, folder="other")
        facts = self.root / f"workers/torch-{self.there[0]}/worker.json"
        facts.write_text(json.dumps({**json.loads(facts.read_text(encoding="utf-8")), "torch": str(other)}), encoding="utf-8")
        releases = [version.partition("+")[0] for version, _ in (self.here, self.there)]
        done = self.peakbench(*RUN, "--torch", releases[0], "--torch", "newest")
        self.assertEqual(done.stdout.count("strategy "), 1, done.stdout)
        run = self.run_json()
        self.assertEqual([case["torch"] for case in run["cases"]], releases)
        self.assertEqual([case["environment"]["libtorch"] for case in run["cases"]], [self.here[0], self.there[0]])
        self.assertEqual([case["environment"]["loads"].split(":")[0] for case in run["cases"]],
                         [str(self.folder / "env/site-packages/torch/lib"), str(other / "lib")])  # fmt: skip
        self.assertNotIn("libtorch", run["environment"])
        before = run["cases"]
        self.peakbench(*RUN, "--torch", f"{releases[0]},newest", "--resume")
        self.assertEqual(self.run_json()["cases"], before)
        self.fails(*RUN, "--torch", releases[0], "--resume", says=["torch-"])
        self.fails(*RUN, "--torch", f"{releases[0]},{self.here[0]}", "--overwrite", says=[f"it is PyTorch {self.here[0]}, which {releases[0]} names already"])
        self.fails(*RUN, "--torch", f"{releases[0]},7.7", "--overwrite", says=["--torch 7.7: there is no worker for that PyTorch"])

    def test_it_stands_behind_the_command(self):
        self.environment_of(*self.there)
        for typed in (["--torch", "2.15"], ["--torch=2.15"]):
            said = " ".join(typed)
            self.fails(*typed, "workers", says=[f"--torch must follow the command: peakbench workers {said}"])
            self.fails(*typed, "workers", "list", says=[f"peakbench workers list {said}"])
            self.fails(*typed, *RUN, says=[f"--torch must follow the command: peakbench run {said}"])
            self.fails(*typed, "debug", "suite.toml", "--", "-ex", "run", says=[f"peakbench debug {said}"])
            self.fails(*typed, "report", "out", says=["no option --torch of `peakbench report`"])
            self.fails(*typed, "workers", "build", says=['no option --torch of `peakbench workers build`; did you mean "--torch-dir"?'])
        self.assertIn(self.there[0], self.peakbench("--torch", self.there[0], "--cmake-dir").stdout)
        self.assertIn(self.there[0], self.peakbench("--cmake-dir", "--torch", self.there[0]).stdout)

    def test_a_build_that_is_not_here_is_never_replaced_by_another(self):
        release = self.here[0].partition("+")[0]
        torch = self.environment_of(*self.here)
        self.fails(*RUN, "--torch", release + "+cu128",
                   says=[f"--torch {release}+cu128: that build of PyTorch is not installed, {self.here[0]} in {torch} is",
                         f"use --torch {release}.", WITHOUT])  # fmt: skip
        self.environment_of(release + "+cu128", self.here[1], cuda="12.8")
        self.peakbench(*RUN, "--torch", release + "+cu128")
        self.assertEqual(self.run_json()["environment"]["libtorch"], release + "+cu128")
        self.fails(*RUN, "--torch", self.here[0], "--overwrite", says=[f"{self.here[0]}: that build of PyTorch is not installed"])

    def test_a_worker_beside_the_program_has_the_build_that_it_was_made_with(self):
        self.make_python()
        shutil.move(self.root / f"workers/torch-{self.here[0]}/lib/peakbench/plugins", self.root / "lib/peakbench/plugins")
        shutil.move(self.root / f"workers/torch-{self.here[0]}/bin/peakbench-worker", self.root / "bin/peakbench-worker")
        shutil.rmtree(self.root / "workers")
        release = self.here[0].partition("+")[0]
        self.fails(*RUN, "--torch", release + "+cu128", says=[f"that build of PyTorch is not installed, {self.here[0]} is", f"Use --torch {release}, or"])
        self.fails(*RUN, "--torch", "7.7", says=["there is no worker for that PyTorch", f"There is a worker for {self.here[0]}"])
        self.peakbench(*RUN, "--torch", release)

    def test_a_pytorch_beside_the_installation_is_found(self):
        self.make_python()
        self.make_torch(*self.here, folder="site-packages")
        self.peakbench(*RUN, "--torch", self.here[0])
        self.assertEqual(self.run_json()["environment"]["libtorch"], self.here[0])

    def test_the_python_that_is_named_has_the_say(self):
        self.make_torch(*self.here)
        self.variables["PEAKBENCH_PYTHON"] = str(self.make_python(beside="named"))
        self.assertEqual(self.chosen(), [f"torch-{self.here[0]}"])
        self.variables["PEAKBENCH_PYTHON"] = str(self.folder / "gone/python3")
        self.fails(*RUN, says=["PEAKBENCH_PYTHON=", "there is no such program"])
        for no_python in (pathlib.Path("/bin/cat"), pathlib.Path("/bin/true"), self.folder):
            self.variables["PEAKBENCH_PYTHON"] = str(no_python)
            self.fails(*RUN, says=[f"PEAKBENCH_PYTHON={no_python}: that is no Python 3 that starts"])

    def test_the_wheels_own_python_comes_after_the_named_one_and_before_the_paths(self):
        self.make_torch(*self.here)
        self.variables["PEAKBENCH_ENVIRONMENT_PYTHON"] = str(self.make_python(name="any name", beside="wheel"))
        self.assertEqual(self.chosen(), [f"torch-{self.here[0]}"])
        self.variables["PEAKBENCH_PYTHON"] = str(self.folder / "gone/python3")
        self.fails(*RUN, says=["PEAKBENCH_PYTHON=", "there is no such program"])

    def test_a_python_that_adds_no_folder_of_its_own_is_asked_as_it_is(self):
        self.environment_of(*self.here)
        other = self.make_torch(*self.there, folder="safe")
        self.variables["PYTHONSAFEPATH"] = "1"
        python = self.folder / "env/bin/python3"
        python.write_text(python.read_text(encoding="utf-8").replace("env/site-packages", "safe"), encoding="utf-8")
        self.assertEqual(self.chosen(), [f"torch-{self.there[0]}"])
        self.assertIn(str(other), [one["loads"] for one in self.listed()])

    def test_a_folder_torch_where_one_works_is_not_the_environments(self):
        self.environment_of(*self.here)
        self.make_torch(*self.there, folder=".")
        self.assertEqual(self.chosen(), [f"torch-{self.here[0]}"])

    def test_a_run_is_resumed_with_its_own_pytorch_only(self):
        self.environment_of(*self.here)
        self.peakbench(*RUN)
        self.environment_of(*self.there)
        self.fails(*RUN, "--resume", says=["libtorch", self.here[0], self.there[0]])

    def test_plugins_are_held_to_the_workers_stamp(self):
        self.environment_of(*self.there)
        built = FAKE_PLUGINS
        said = self.peakbench("list", "models", "--plugins", built).stderr
        self.assertIn(f"libtorch_version: plugin has {self.here[0]}, this Peakbench needs {self.there[0]}", said)
        self.assertIn("tiny", self.peakbench("list", "models").stdout)

    def test_a_worker_beside_the_program_is_taken_and_nobody_asked(self):
        self.make_python()
        shutil.copytree(self.root / f"workers/torch-{self.here[0]}/lib/peakbench/plugins", self.root / "lib/peakbench/plugins")
        shutil.copy(self.root / f"workers/torch-{self.here[0]}/bin/peakbench-worker", self.root / "bin/peakbench-worker")
        self.peakbench(*RUN)
        self.assertFalse(self.was_started())
        self.assertEqual(self.run_json()["environment"]["libtorch"], self.here[0])
        self.make_torch(*self.there)
        self.peakbench(*RUN, "--overwrite", "--torch", self.there[0])
        self.assertEqual(self.run_json()["environment"]["libtorch"], self.there[0])

    def test_doctor_says_which(self):
        torch = self.environment_of(*self.there)
        found = {one["subject"]: one for one in json.loads(self.peakbench("doctor", "--json").stdout)}
        self.assertIn(f"for LibTorch {self.there[0]} ({self.there[1]}", found["peakbench"]["found"])
        self.assertIn(str(self.root / f"workers/torch-{self.there[0]}/bin/peakbench-worker"), found["worker"]["found"])
        self.assertTrue(found["plugins"]["good"], found)
        shutil.rmtree(torch)
        found = {one["subject"]: one for one in json.loads(self.peakbench("doctor", "--json", exit_code=2).stdout)}
        self.assertFalse(found["worker"]["good"])
        self.assertIn("has no PyTorch", found["worker"]["found"])

    def test_the_version_names_every_worker_and_asks_nobody(self):
        self.environment_of(*self.here)
        self.assertIn(f"for LibTorch {self.here[0]}, {self.there[0]} and", self.peakbench("--version").stdout)
        self.assertFalse(self.was_started())

    def test_cmake_finds_the_chosen_workers_package(self):
        self.environment_of(*self.there)
        folder = self.root / f"workers/torch-{self.there[0]}/lib/cmake/Peakbench"
        self.assertEqual(self.peakbench("--cmake-dir").stdout, f"{folder}\n")
        shutil.rmtree(folder)
        self.fails("--cmake-dir", says=[str(folder), "there is no CMake package"])
        shutil.rmtree(self.root / "workers")
        self.fails("--cmake-dir", says=["There is no worker yet"])


class NoWorker(Workers):
    def test_a_pytorch_of_another_release(self):
        torch = self.environment_of("2.8.0+cu128", of_length("8", 40))
        self.variables["PEAKBENCH_SOURCE_DIR"] = str(self.folder)
        self.fails(*RUN, says=[f"no worker can be built for PyTorch 2.8.0+cu128 in {torch}", f"the sources are not in {self.folder}"])
        self.assertFalse((self.folder / "out").exists())
        found = {one["subject"]: one for one in json.loads(self.peakbench("doctor", "--json", exit_code=2).stdout)}
        for part in (f"there is no worker for PyTorch 2.8.0+cu128 in {torch}", self.here[0], self.there[0], "compiles one", WITHOUT):
            self.assertIn(part, found["worker"]["found"])

    def test_another_build_of_a_release(self):
        self.environment_of(self.here[0], of_length("abc", 40))
        self.fails("--cmake-dir", says=["there is no worker for PyTorch " + self.here[0], "workers build"])

    def test_no_pytorch(self):
        python = self.make_python()
        self.fails(*RUN, says=[f"the environment of {python} has no PyTorch", "pip install torch (5 GB)", "pip install --no-deps torch", WITHOUT])

    def test_no_python(self):
        (self.folder / "empty").mkdir()
        self.variables["PATH"] = str(self.folder / "empty")
        self.fails(*RUN, says=["there is no python3 or python on PATH", WITHOUT])

    def test_a_broken_pytorch(self):
        torch = self.environment_of(*self.here)
        (torch / "lib/libtorch_cpu.so").unlink()
        self.fails(*RUN, says=[f"the PyTorch in {torch} cannot be used: lib/libtorch_cpu.so is missing", WITHOUT])
        (torch / "version.py").unlink()
        self.fails(*RUN, says=[f"the PyTorch in {torch} cannot be used", "version.py"])
        torch = self.make_torch(*self.here)
        (torch / "lib/libtorch_cuda.so").unlink()
        self.fails(*RUN, says=["lib/libtorch_cuda.so is missing; install PyTorch again", WITHOUT])
        torch = self.make_torch(*self.here)
        (torch / "version.py").write_text(f"__version__ = '{self.here[0]}'\ncuda = '13.0'\n", encoding="utf-8")
        self.fails(*RUN, says=["its version.py names no git revision; install PyTorch again", WITHOUT])

    def test_plugins_are_looked_at_without_a_pytorch(self):
        self.make_python()
        self.assertIn("tiny", self.peakbench("list", "models").stdout)
        self.fails("list", "models", "--torch", "7.7", says=["--torch 7.7: there is no worker for that PyTorch"])
        shutil.rmtree(self.root / "workers")
        self.fails("list", "models", says=["There is no worker yet", WITHOUT])

    def test_a_pytorch_for_another_processor(self):
        torch = self.environment_of(*self.here)
        library = bytearray((torch / "lib/libc10.so").read_bytes())
        library[18] = 183  # e_machine: AArch64
        (torch / "lib/libc10.so").write_bytes(library)
        self.fails(*RUN, says=["lib/libc10.so cannot be loaded", "for this machine"])

    def test_a_pytorch_for_musl(self):
        torch = self.environment_of(*self.here)
        for name in ("libc10.so", "libtorch_cpu.so"):
            library = pathlib.Path(self.program).read_bytes()
            self.assertIn(b"libc.so.6\0", library)
            (torch / "lib" / name).write_bytes(library.replace(b"libc.so.6\0", b"libc.musl\0"))
        self.fails(*RUN, says=["built for musl", "glibc"])

    def test_a_pytorch_for_rocm(self):
        self.environment_of(self.here[0].partition("+")[0] + "+rocm6.4", self.here[1], cuda=None, hip="6.4")
        self.fails(*RUN, says=["built for ROCm 6.4", WITHOUT])

    def test_what_needs_none_does_not_ask(self):
        self.environment_of("2.8.0+cu128", of_length("8", 40))
        self.peakbench("list", "devices")
        self.peakbench("man")
        self.peakbench("--help")
        self.peakbench("report", "nothing", exit_code=2)
        self.assertIn("tiny", self.peakbench("__complete", "--", "run", "--model", "ti").stdout)
        self.assertFalse(self.was_started())


class Listing(Workers):
    def test_each_says_what_it_is(self):
        self.environment_of(*self.here)
        text = self.peakbench("workers").stdout
        self.assertRegex(text, rf"(?m)^\* {re.escape(str(self.root))}/workers/torch-{re.escape(self.here[0])}$")
        self.assertRegex(text, rf"(?m)^  {re.escape(str(self.root))}/workers/torch-{re.escape(self.there[0])}$")
        self.assertIn(f"there is no PyTorch {self.there[0]} for it to load", text)
        self.assertIn(f"The environment's PyTorch is {self.here[0]}", text)
        rows = self.listed()
        self.assertEqual([one["serves_environment"] for one in rows], [True, False])
        self.assertEqual([one["can_be_removed"] for one in rows], [False, False])
        self.assertGreater(rows[0]["size_bytes"], 0)

    def test_what_was_asked_for_is_marked_or_why_nothing_is(self):
        torch = self.environment_of(*self.here)
        for words in (["workers"], ["workers", "list"]):
            self.assertIn(f"* {self.root}/workers/torch-{self.here[0]}\n", self.peakbench(*words, "--torch", self.here[0]).stdout)
            text = self.peakbench(*words, "--torch", "7.7").stdout
            self.assertNotRegex(text, r"(?m)^\*")
            self.assertIn("No worker is chosen: --torch 7.7: there is no worker for that PyTorch", text)
            self.assertIn(str(torch), text)
            self.assertEqual(len(json.loads(self.peakbench(*words, "--json", "--torch", "7.7").stdout)), 2)
        for option in (["--torch", "7.7"], ["--json"]):
            self.fails("workers", *option, "build", says=[option[0]])
            self.fails("workers", *option, "remove", "7", says=[option[0]])
        self.assertFalse(self.cache.exists())

    def test_one_that_others_may_write_to_is_not_used(self):
        torch = self.environment_of("2.11.0+cu999", of_length("d", 40), folder="elsewhere")
        shutil.rmtree(self.root / "workers")
        cached = self.make_worker(self.cache / "peakbench/workers", *self.here)
        for part in [self.cache / "peakbench", self.cache / "peakbench/workers", cached, *cached.rglob("*")]:
            part.chmod(part.stat().st_mode & ~0o022)
        self.make_torch(*self.here)
        self.assertEqual(self.chosen(), [cached.name])
        for part in (cached / "bin/peakbench-worker", cached / "lib", cached, cached.parent):
            mode = part.stat().st_mode
            part.chmod(mode | 0o002)
            self.assertEqual(self.chosen(), [], part)
            self.assertIn(f"{part} can be written by others", self.peakbench("workers").stdout)
            part.chmod(mode)
        self.assertTrue(torch.exists())

    def test_of_another_peakbench_it_is_listed_and_not_chosen(self):
        self.environment_of(*self.here)
        path = self.root / f"workers/torch-{self.here[0]}/worker.json"
        facts = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps({**facts, "peakbench": "0.0.1"}), encoding="utf-8")
        self.assertEqual(self.chosen(), [])
        self.assertIn("not used: it belongs to Peakbench 0.0.1", self.peakbench("workers").stdout)

    def test_only_what_was_built_is_removed(self):
        self.make_python()
        built = self.make_worker(self.cache / "peakbench/workers", *self.there)
        self.fails("workers", "remove", self.here[0], says=["is a part of the installation"])
        self.fails("workers", "remove", "7", says=["no worker for 7 was built here", self.there[0]])
        major, release = self.there[0].partition(".")[0], self.there[0].partition("+")[0]
        self.fails("workers", "remove", major, says=[f'"{major}" names no release of PyTorch; say which: {self.there[0]}'])
        self.peakbench("workers", "remove", release)
        self.assertEqual(sorted(built.parent.iterdir()), [])
        self.assertTrue((self.root / f"workers/torch-{self.there[0]}").exists())


BUILDER = """#!{python}
import os, pathlib, shutil, sys, time
words = sys.argv[1:]
root = pathlib.Path({root!r})
with open(root / "calls", "a", encoding="utf-8") as calls:
    calls.write(" ".join(words) + "\\n")
behaviour = (root / "behaviour").read_text(encoding="utf-8").strip()
if words == ["--version"]:
    print("cmake version", "3.22.1" if behaviour == "old" else "3.25.1")
elif words[0] == "-S":
    pathlib.Path(words[words.index("-B") + 1]).mkdir(exist_ok=True)
elif words[0] == "--build":
    compiled = pathlib.Path(words[1]) / "compiled"
    if compiled.exists():
        (root / "went-on").touch()
    compiled.touch()
    print("[1/2] Building CXX object one", flush=True)
    if behaviour == "hang":
        (root / "hangs").write_text(str(os.getpid()), encoding="utf-8")
        time.sleep(600)
    if behaviour == "slow":
        time.sleep(1.5)
    if behaviour == "fail":
        print("worker.cpp:7:1: error: no such thing", flush=True)
        sys.exit(3)
    if behaviour == "full":
        print("fatal error: error writing to /tmp/a.s: No space left on device", flush=True)
        sys.exit(1)
elif words[0] == "--install":
    shutil.copytree(root / "made", words[words.index("--prefix") + 1])
    os.chmod(words[words.index("--prefix") + 1], 0o777)
"""


# Has every torch 7.x that is asked for; the newest is 7.9.0.
PIP = """import json, os, pathlib, re, sys
root = pathlib.Path("{root}")
words = sys.argv[1:]
if "--requirement" in words and "none" in pathlib.Path(words[words.index("--requirement") + 1]).read_text(encoding="utf-8"):
    print("ERROR: No matching distribution found for none", flush=True)
    sys.exit(1)
with open(root / "pip-calls", "a", encoding="utf-8") as calls:
    print(*words, file=calls)
wanted = [word for word in words if re.match("torch(==|$)", word)]
version = (wanted[0].partition("==")[2].replace(".*", ".1") or "7.9.0") if wanted else ""
if wanted and not version.startswith("7."):
    print(f"ERROR: No matching distribution found for {{wanted[0]}}", flush=True)
    sys.exit(1)
if "--report" in words:
    report = dict(install=[dict(metadata=dict(name="torch", version=version))])
    pathlib.Path(words[words.index("--report") + 1]).write_text(json.dumps(report), encoding="utf-8")
elif (root / "full").exists():
    print("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", flush=True)
    sys.exit(1)
elif wanted:
    torch = pathlib.Path(words[words.index("--target") + 1]) / "torch"
    torch.mkdir(parents=True)
    (torch / "version.py").write_text(f"__version__ = '{{version}}+cu130'\\ncuda = '13.0'\\nhip = None\\ngit_version = 'g'\\n", encoding="utf-8")
"""


class Releases(Workers):
    """Programs with several PyTorchs, which a pip of our own installs."""

    def setUp(self):
        super().setUp()
        self.make_python()
        pip = self.folder / "env/site-packages/pip"
        pip.mkdir(parents=True)
        (pip / "__init__.py").write_text("", encoding="utf-8")
        (pip / "__main__.py").write_text(PIP.format(root=self.folder), encoding="utf-8")
        (self.folder / "train.py").write_text("", encoding="utf-8")
        self.releases = self.cache / "peakbench/releases"

    def run_it(self, *arguments):
        """The program uses no PyTorch; its cases, and what was said."""
        done = self.peakbench("releases", "--out", "out", "--overwrite", *arguments, exit_code=3)
        return json.loads((self.folder / "out/run.json").read_text(encoding="utf-8"))["cases"], done

    def calls(self):
        calls = (self.folder / "pip-calls").read_text(encoding="utf-8").splitlines()
        (self.folder / "pip-calls").unlink()
        return calls

    def test_each_is_installed_once(self):
        cases, done = self.run_it("--torch", "7.2,7.5.3", "--", "python3", "train.py", "--torch", "x")
        self.assertEqual([case["id"] for case in cases],
                         [f"program/train.py/emulated:h100-80gb/torch-{version}" for version in ("7.2.1", "7.5.3")])  # fmt: skip
        self.assertIn("Installing PyTorch 7.2.1 without NVIDIA's packages", done.stderr)
        calls = self.calls()
        self.assertEqual([call.count("--dry-run") for call in calls], [1, 0, 0, 1, 0, 0])
        self.assertIn("--no-deps", calls[1])
        self.assertIn("nvidia-cuda-runtime==13.*", calls[2])
        self.run_it("--torch", "7.2,7.5", "train.py")
        self.assertFalse((self.folder / "pip-calls").exists(), "both are there")
        self.run_it("--torch", "7.2,newest", "train.py")
        self.assertIn(" torch", self.calls()[0])
        self.assertEqual(len(list(self.releases.glob("torch-*/site-packages/torch/version.py"))), 3)

    def test_one_alone_is_imported_too(self):
        (case,), _ = self.run_it("--torch", "7.2", "train.py")
        self.assertEqual(case["id"], "program/train.py/emulated:h100-80gb")
        (folder,) = self.releases.glob("torch-7.2.1-*")
        self.assertEqual(case["settings"]["environment"]["PYTHONPATH"], str(folder / "site-packages"))

    def test_the_environments_is_taken_as_it_is(self):
        self.environment_of(*self.here)
        self.run_it("--torch", f"{self.here[0].partition('+')[0]},7.2", "--", "python3", "train.py")
        self.assertEqual(len(self.calls()), 3)
        self.run_it("--", "python3", "train.py")
        self.assertIn("--report", self.calls()[0], "the environment's and the newest")

    def test_requirements_are_beside_each(self):
        (self.folder / "more.txt").write_text("timm\n", encoding="utf-8")
        self.run_it("--torch", "7.2,7.5", "--requirements", "more.txt", "--", "python3", "train.py")
        self.assertEqual(sum("--requirement more.txt" in call for call in self.calls()), 4, "asked for first, then installed")
        self.run_it("--torch", "7.2", "--", "python3", "train.py")
        self.assertEqual(len(self.calls()), 3, "without them it is another environment")

    def test_what_cannot_be_had_is_said_and_nothing_is_left(self):
        self.fails("releases", "--torch", "8.1,7.2", "train.py", says=["PyTorch 8.1 could not be installed", "No matching distribution", "install.log"])
        (self.folder / "full").touch()
        done = self.peakbench("releases", "--torch", "7.2", "train.py", exit_code=2)
        self.assertIn("peakbench: PyTorch 7.2 could not be installed", done.stderr)
        self.assertIn("No space left on device", done.stderr)
        self.assertEqual([one.name for one in self.releases.iterdir() if one.is_dir()], [])
        (self.folder / "full").unlink()
        done = self.peakbench("releases", "--torch", "7.2,7.2.1", "train.py", exit_code=2)
        self.assertIn("--torch 7.2.1: it is PyTorch 7.2.1, which 7.2 names already", done.stderr)
        self.fails("releases", "train.py", says=["has no PyTorch: name the releases: --torch 2.6,2.11,newest"])
        self.fails("releases", "one.toml", "two.toml", says=["one suite at a time"])
        self.fails("releases", says=["there is no worker for any PyTorch that is here"])
        self.fails("releases", "--torch", "7.2", "--build", "x", "train.py", says=["no option --build of `peakbench releases`"])
        self.fails("releases", "--torch", "7.2;rm", "train.py", says=["--torch 7.2;rm: expected a version, like 2.15 or newest"])
        self.fails("releases", "--torch", "7.2", "--device", "cpu", "train.py", says=["--device cpu: with several releases of PyTorch, programs run on emulated cards only"])
        (self.folder / "more.txt").write_text("none\n", encoding="utf-8")
        self.fails("releases", "--torch", "7.5", "--requirements", "more.txt", "train.py", says=["PyTorch 7.5, or more.txt could not be installed", "-m pip"])
        done = self.peakbench("releases", "--torch", "7.5,newest", "--dry-run", "train.py")
        self.assertIn("torch-newest", done.stdout)
        self.assertEqual(len(list(self.releases.glob("torch-*"))), 1, "a dry run installs nothing")


class Building(Workers):
    """With a script in the place of CMake, that installs what lies in `made`."""

    def setUp(self):
        super().setUp()
        self.tools = self.folder / "tools"
        self.tools.mkdir()
        (self.tools / "cmake").write_text(BUILDER.format(python=sys.executable, root=str(self.tools)), encoding="utf-8")
        (self.tools / "cmake").chmod(0o755)
        for name in ("ninja", "c++"):
            (self.tools / name).write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
            (self.tools / name).chmod(0o755)
        self.behave("well")
        self.variables["PATH"] = f"{self.tools}:{self.folder}/env/bin:/usr/bin:/bin"
        (self.root / "source").mkdir()
        (self.root / "source/CMakeLists.txt").write_text("", encoding="utf-8")
        self.there = (of_length("8", len(self.here[0].split(".")[0])) + self.there[0][len(self.here[0].split(".")[0]):], of_length("8", 40))
        self.torch = self.environment_of(*self.there, cuda=None)
        shutil.move(self.make_worker(self.tools, *self.there), self.tools / "made")
        self.workers = self.cache / "peakbench/workers"

    def build_fails(self, says):
        """It says first what it is about to do."""
        done = self.peakbench("workers", "build", exit_code=2)
        for part in says:
            self.assertIn(part, done.stderr)
        self.assertRegex(done.stderr, r"\ABuilding the worker for .*\npeakbench: ")

    def behave(self, how):
        (self.tools / "behaviour").write_text(how, encoding="utf-8")

    def left(self):
        return sorted(path.name for path in self.workers.iterdir()) if self.workers.exists() else []

    def test_a_command_that_needs_one_builds_it_first(self):
        self.assertIn("tiny", self.peakbench("list", "models").stdout)
        self.assertEqual(self.left(), [], "a command that only lists builds none")
        done = self.peakbench(*RUN, "--json")
        self.assertIn("Building the worker for PyTorch " + self.there[0], done.stderr)
        self.assertEqual(json.loads(done.stdout)["environment"]["libtorch"], self.there[0])
        self.assertEqual(self.chosen(), [f"torch-{self.there[0]}"])
        self.assertNotIn("Building", self.peakbench(*RUN, "--overwrite").stderr)

    def test_a_command_that_needs_one_is_interrupted_or_says_why_there_is_none(self):
        self.behave("fail")
        done = self.peakbench(*RUN, exit_code=2)
        self.assertIn("worker.cpp:7:1: error: no such thing", done.stderr)
        self.behave("hang")
        process = self.start(*RUN)
        wait_for(lambda: (self.tools / "hangs").exists() and (self.tools / "hangs").read_text(encoding="utf-8"))
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, said)
        self.assertIn("Interrupted: nothing is left of the build.", said)
        self.assertFalse((self.folder / "out").exists())

    def make_quickstart_suite(self):
        suites = self.root / "share/peakbench/suites"
        suites.mkdir(exist_ok=True)
        (suites / "quickstart.toml").write_text('models = ["tiny"]\nstrategies = ["baseline"]\n', encoding="utf-8")

    def quickstart(self):
        self.make_quickstart_suite()
        self.make_torch(*self.there)
        (self.folder / "cuda/include").mkdir(parents=True, exist_ok=True)
        (self.folder / "cuda/include/cuda_runtime_api.h").write_text("", encoding="utf-8")
        self.variables["CUDA_HOME"] = str(self.folder / "cuda")
        return self.peakbench("quickstart")

    def test_the_quick_start_compiles_what_it_needs_and_the_whole_goes_on_from_there(self):
        name = f"torch-{self.there[0]}"
        done = self.quickstart()
        self.assertIn(f"{self.torch}, with what is needed here: some minutes", done.stderr)
        self.assertIn("-DPEAKBENCH_QUICKSTART=ON", (self.tools / "calls").read_text(encoding="utf-8"))
        self.assertEqual(self.left(), [f"build-{name}", f"quickstart-{name}", f"{name}.log"])
        self.assertEqual(self.chosen(), [], "no other command takes it for a worker")
        self.assertNotIn("Building", self.quickstart().stderr)
        self.assertFalse((self.tools / "went-on").exists())
        self.assertNotIn("with what is needed here", self.peakbench(*RUN).stderr)
        self.assertIn("-DPEAKBENCH_QUICKSTART=OFF", (self.tools / "calls").read_text(encoding="utf-8"))
        self.assertTrue((self.tools / "went-on").exists())
        self.assertEqual(self.left(), [name, f"{name}.log"])
        self.assertNotIn("Building", self.quickstart().stderr)

    def test_the_quick_start_compiles_nothing_for_a_pytorch_without_cuda(self):
        self.make_quickstart_suite()
        self.fails("quickstart", says=["is built without CUDA", "Take --device cpu, or install a build for CUDA"])
        self.assertEqual(self.left(), [])

    def test_a_build_goes_on_from_the_same_sources_alone(self):
        self.quickstart()
        (self.root / "source/more.cpp").write_text("", encoding="utf-8")
        self.peakbench("workers", "build")
        self.assertFalse((self.tools / "went-on").exists())

    def test_it_is_built_for_the_environments_pytorch_and_chosen(self):
        done = self.peakbench("workers", "build")
        folder = self.workers / f"torch-{self.there[0]}"
        self.assertEqual(done.stdout, f"{folder}\n")
        self.assertIn("some minutes", done.stderr)
        calls = (self.tools / "calls").read_text(encoding="utf-8")
        for word in (f"-S {self.root}/source", "-G Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DPEAKBENCH_WORKER_ONLY=ON",
                     f"-DPEAKBENCH_TORCH_DIR={self.torch}"):  # fmt: skip
            self.assertIn(word, calls)
        self.assertEqual(self.left(), [folder.name, folder.name + ".log"])
        self.assertEqual(json.loads((folder / "worker.json").read_text(encoding="utf-8"))["torch"], str(self.torch))
        self.assertEqual(self.chosen(), [folder.name])
        self.peakbench(*RUN)
        self.assertEqual(self.run_json()["environment"]["libtorch"], self.there[0])
        self.assertIn("It is there already", self.peakbench("workers", "build").stdout)
        self.assertEqual((self.tools / "calls").read_text(encoding="utf-8"), calls)

    def test_where_the_installation_has_one_none_is_built(self):
        self.make_torch(*self.here)
        done = self.peakbench("workers", "build")
        self.assertEqual(done.stdout, f"It is there already: {self.root}/workers/torch-{self.here[0]}\n")
        self.assertFalse((self.tools / "calls").exists())

    def test_it_is_used_with_the_pytorch_that_it_was_built_for(self):
        self.peakbench("workers", "build")
        self.torch.rename(self.torch.parent / "moved")
        self.make_torch(*self.here)
        self.fails(*RUN, "--torch", self.there[0], says=["no such PyTorch for it to load"])
        (self.torch.parent / "moved").rename(self.folder / "torch")
        shutil.rmtree(self.workers)
        self.peakbench("workers", "build", "--torch-dir", "torch")
        self.peakbench(*RUN, "--torch", self.there[0])
        self.assertEqual(self.run_json()["environment"]["loads"], str(self.folder / "torch/lib"))

    def test_the_folder_must_be_a_pytorch(self):
        self.fails("workers", "build", "--torch-dir", "tools", says=["cannot be used", "version.py"])
        shutil.rmtree(self.torch)
        self.fails("workers", "build", says=["has no PyTorch", "--torch-dir"])

    def test_what_is_missing_is_said_all_at_once(self):
        (self.tools / "c++").unlink()
        (self.tools / "ninja").unlink()
        (self.root / "source/CMakeLists.txt").unlink()
        shutil.rmtree(self.torch / "include")
        self.behave("old")
        for name in ("touch", "sh"):
            (self.tools / name).symlink_to(f"/bin/{name}")
        self.variables["PATH"] = f"{self.tools}:{self.folder}/env/bin"
        done = self.fails("workers", "build", says=["there is no C++ compiler", "is CMake 3.22; install 3.25 or later: pip install cmake",
                                                    "neither ninja nor make; pip install ninja", "the sources are not in", "has no headers"])  # fmt: skip
        self.assertEqual(len(done.stderr.splitlines()), 6)
        self.assertEqual(self.left(), [])
        (self.tools / "cmake").unlink()
        self.fails("workers", "build", says=["there is no cmake; install 3.25 or later: pip install cmake"])

    def test_a_compiler_that_is_named_and_not_there_is_one_sentence(self):
        self.variables["CXX"] = "no-such-c++"
        done = self.fails("workers", "build", says=["CXX=no-such-c++: there is no such compiler; name yours, or unset it"])
        self.assertEqual(len(done.stderr.splitlines()), 2)
        self.assertFalse((self.tools / "calls").exists() and "-S" in (self.tools / "calls").read_text(encoding="utf-8"))
        self.assertEqual(self.left(), [])
        self.variables["CXX"] = f"env {self.tools / 'c++'}"  # as "ccache g++" is
        self.peakbench("workers", "build")

    def test_cuda_needs_its_headers(self):
        self.make_torch(*self.there, cuda="12.8")
        self.variables["CUDA_HOME"] = str(self.folder)
        hide = []
        if pathlib.Path("/usr/local/cuda/include/cuda_runtime_api.h").exists():
            hide = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /usr/local/cuda && exec "$@"', "sh"]
            if subprocess.run([*hide, "true"], capture_output=True, check=False).returncode != 0:
                self.skipTest("CUDA's headers are installed here, and there is no mount namespace to hide them in")
        done = subprocess.run([*hide, self.program, "workers", "build"], cwd=self.folder, env=self.environment(), capture_output=True,
                              text=True, timeout=60, check=False)  # fmt: skip
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("no cuda_runtime_api.h", done.stderr)
        self.assertIn("pip install nvidia-cuda-runtime", done.stderr)

    def test_a_small_disk_is_said_before_the_build(self):
        self.cache.mkdir()
        small = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=64k none {self.cache} && exec "$@"', "sh"]
        if subprocess.run([*small, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no mount namespace here (unshare -m, mount -t tmpfs): no disk can be made small")
        done = subprocess.run([*small, self.program, "workers", "build"], cwd=self.folder, env=self.environment(), capture_output=True,
                              text=True, timeout=60, check=False)  # fmt: skip
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(f"0.0 GiB are free in {self.cache}, and the build takes up to 1", done.stderr)
        self.assertIn("XDG_CACHE_HOME", done.stderr)

    def test_a_compiler_that_fails_leaves_its_words_and_nothing_else(self):
        self.behave("fail")
        log = self.workers / f"torch-{self.there[0]}.log"
        self.build_fails(["cmake --build: exit code 3", "worker.cpp:7:1: error: no such thing", str(log)])
        self.assertEqual(self.left(), [log.name])
        self.assertIn("error: no such thing", log.read_text(encoding="utf-8"))
        self.behave("full")
        self.build_fails(["No space left on device"])
        self.assertEqual(self.left(), [log.name])

    def test_what_is_built_must_be_a_worker_for_that_pytorch(self):
        path = self.tools / "made/worker.json"
        facts = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps({**facts, "libtorch_version": "1.0"}), encoding="utf-8")
        self.build_fails(["what was built is no worker for PyTorch", "it is for 1.0"])
        path.unlink()
        self.build_fails(["worker.json"])
        self.assertEqual(self.left(), [f"torch-{self.there[0]}.log"])

    def test_an_interrupt_ends_the_build_and_leaves_nothing(self):
        self.behave("hang")
        process = self.start("workers", "build")
        worker = int(wait_for(lambda: (self.tools / "hangs").exists() and (self.tools / "hangs").read_text(encoding="utf-8")))
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, said)
        self.assertIn("Interrupted: nothing is left of the build.", said)
        self.assertFalse(pathlib.Path(f"/proc/{worker}").exists())
        self.assertEqual([name for name in self.left() if not name.endswith(".log")], [])

    def test_of_two_at_once_one_builds(self):
        self.behave("slow")
        first = self.start("workers", "build")
        wait_for(lambda: "--build" in (self.tools / "calls").read_text(encoding="utf-8") if (self.tools / "calls").exists() else False)
        second = self.start("workers", "build")
        ends = [one.communicate(timeout=60) for one in (first, second)]
        self.assertEqual([first.returncode, second.returncode], [0, 0], ends)
        self.assertIn("Waiting for another process, which builds a worker.", ends[1][1])
        self.assertIn("It is there already", ends[1][0])
        self.assertEqual((self.tools / "calls").read_text(encoding="utf-8").count("--build"), 1)

    def test_what_a_killed_build_left_is_taken_away(self):
        (self.workers / ".build-abcdef/build").mkdir(parents=True)
        self.peakbench("workers", "build")
        self.assertNotIn(".build-abcdef", self.left())

    def test_on_a_terminal_it_is_one_line(self):
        self.behave("slow")
        script = shutil.which("script")
        if script is None:
            self.skipTest("no `script`, which makes a terminal")
        done = subprocess.run([script, "-qec", f"{self.program} workers build", "/dev/null"], cwd=self.folder, env=self.environment(),
                              capture_output=True, timeout=60, check=True, stdin=subprocess.DEVNULL)  # fmt: skip
        self.assertRegex(done.stdout, rb"\r\x1b\[K1 s  \[1/2\] Building CXX object one\r\x1b\[K")
