"""The install tree, moved to another folder: the example strategy built against it, outside of the repository, and run by the
installed program, on the CPU and on an emulated card; a program of somebody else's on an emulated card; what `doctor` misses.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from given import BUILD, CMAKE, TORCH
from snippets import snippets_of

REPOSITORY = str(pathlib.Path(__file__).resolve().parents[2])
EXAMPLE = f"{REPOSITORY}/examples/sgd"
CARD = "emulated:h100-80gb"
MODEL = "vit-b-16,layers=2,width=48,mlp=64,image=32"


# Against the installed stand-in, so that neither a toolkit nor a driver is needed.
TAKES_A_GIBIBYTE = """
int cudaMalloc(void** at, unsigned long bytes);
int cudaFree(void* at);
int main(void) {
  void* at = 0;
  return cudaMalloc(&at, 1ul << 30) != 0 || cudaFree(at) != 0;
}
"""

# What is written in the example's manifest, what an author writes instead, and what the build says of it.
MISTAKES = [
    ('"slots"', '"slotz"', '/entries/0/slotz: unknown key; did you mean "slots"?'),
    ('"SGD with momentum"', '""', "/entries/0/title: is empty"),
    ('"minimum": 0, "maximum": 10', '"minimum": 11, "maximum": 10', "/entries/0/options/0/minimum: 11 is above the maximum, 10"),
    ('"default": 0.9', '"default": 9', "/entries/0/options/1/default: expected a number from 0 to 1, got 9"),
    ('"order": 50', '"order": 50, "needs": ["linears"]', '/entries/0/needs/0: unknown "linears"; did you mean "linear_layers"?'),
    ('"promise"', '"conflicts": [{"id": "my-sgd", "reason": "none"}], "promise"', '/entries/0/conflicts/0/id: "my-sgd" is this strategy itself'),
    ('"different_problem"', '"diferent_problem"', '/entries/0/promise: unknown "diferent_problem"; did you mean "different_problem"?'),
]  # fmt: skip


def attempt(*command, cwd):
    # Nothing of this build may help: the package says itself where everything is.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PEAKBENCH_", "LD_"))}
    return subprocess.run([str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=500)


def run(*command, cwd):
    done = attempt(*command, cwd=cwd)
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
        cls.configure("example", "built")
        run(CMAKE, "--build", "built", cwd=cls.folder)

    @classmethod
    def configure(cls, source, build, prefix=None, kind="Release"):
        run(CMAKE, "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_BUILD_TYPE={kind}",
            f"-DCMAKE_PREFIX_PATH={prefix or cls.prefix}", cwd=cls.folder)  # fmt: skip

    def peakbench(self, *arguments):
        return run(self.prefix / "bin/peakbench", *arguments, cwd=self.folder)

    def check(self, built, *arguments, code=0):
        """{question: what `peakbench check` found of the only entry}"""
        done = attempt(self.prefix / "bin/peakbench", "check", built, *arguments, "--quiet", "--json", "--out", f"check-{built}",
                       cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual(json.loads((self.folder / f"check-{built}/check.json").read_text()), said)
        self.assertEqual(said["passed"], code == 0)
        return {finding["question"]: finding for finding in said["findings"]}

    def test_a_new_plugin_builds_runs_and_passes_its_tests(self):
        for kind, name, run_with in (("strategy", "sign-sgd", ("--model", MODEL, "--strategy", "baseline", "--strategy", "sign-sgd")),
                                     ("model", "residual.mlp", ("--model", "residual.mlp,layers=2", "--strategy", "baseline", "--strategy",
                                                                "checkpointing", "--strategy", "lora"))):  # fmt: skip
            with self.subTest(kind):
                said = self.peakbench("new", kind, name)
                self.assertIn(f"cd {name}\n", said)
                files = [path for path in (self.folder / name).rglob("*") if path.is_file()]
                self.assertEqual(len(files), 6)
                for path in files:
                    self.assertNotRegex(path.read_text(), "@[A-Z]+@", path)
                self.configure(name, f"built-{name}")
                run(CMAKE, "--build", f"built-{name}", cwd=self.folder)
                self.peakbench("run", "--plugins", f"built-{name}", "--device", CARD, *run_with, "--no-report", "--out", f"run-{name}")
                cases = json.loads((self.folder / f"run-{name}/run.json").read_text())["cases"]
                self.assertEqual({case["status"] for case in cases}, {"ok"}, [case["reason"] for case in cases])
                ctest = ["ctest", "--test-dir", f"built-{name}", "--output-on-failure"]
                run("env", "PEAKBENCH_ACCEPT=1", *ctest, cwd=self.folder)
                self.assertIn("100% tests passed", run(*ctest, cwd=self.folder))
                with_small = ("--model", "residual.mlp,layers=2") if kind == "model" else ()
                self.check(f"built-{name}", *with_small)
                again = attempt(self.prefix / "bin/peakbench", "new", kind, name, cwd=self.folder)
                self.assertEqual((again.returncode, again.stderr), (
                    2, f"peakbench: {name} exists and is not empty; nothing was written. Choose another folder with --out\n"))
        # The rule of the new strategy has no state, and so half of Adam's memory and less.
        case = json.loads((self.folder / "run-sign-sgd/run.json").read_text())["cases"][1]
        self.assertNotIn("optimizer_state", case["memory"]["at_peak"])
        for kept in ("test", "list-install-components"):
            done = attempt(self.prefix / "bin/peakbench", "new", "strategy", kept, cwd=self.folder)
            self.assertEqual((done.returncode, f"\"{kept}\" is a target of CMake's own" in done.stderr), (2, True), done.stderr)
        for wrong in ("My-Plugin", "9lives", "", "a" * 61, "../up"):
            done = attempt(self.prefix / "bin/peakbench", "new", "strategy", wrong, cwd=self.folder)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f'"{wrong}" is no name for a plugin', done.stderr)

    def test_is_listed_from_its_manifest(self):
        self.assertIn("SGD with momentum", self.peakbench("list", "strategies", "--plugins", "built"))

    def test_plugins_are_the_builds_and_name_no_place_of_it(self):
        plugins = list((self.prefix / "lib/peakbench/plugins").glob("*.so"))
        self.assertGreater(len(plugins), 30)
        for installed in plugins:
            there = installed.read_bytes()
            self.assertEqual(there, (pathlib.Path(BUILD) / "lib/peakbench/plugins" / installed.name).read_bytes(), installed.name)
            for place in (REPOSITORY, BUILD, TORCH):
                self.assertNotIn(str(place).encode(), there, installed.name)

    def test_sources_for_other_releases_are_whole(self):
        """What is compiled for another PyTorch is installed with all that it includes of ours."""
        for library in ("emulator/values", "tracer"):
            sources = self.prefix / "lib/peakbench" / library / "source"
            files = {path.relative_to(sources) for path in sources.rglob("*.*")}
            self.assertIn(pathlib.Path(library).name + "/whole.cpp", map(str, files))
            for file in files:
                for included in re.findall(r'^#include "(.+)"', (sources / file).read_text(encoding="utf-8"), re.MULTILINE):
                    self.assertIn(pathlib.Path(included), files, f"{file} in {sources}")

    def test_installation_finds_everything(self):
        findings = {one["subject"]: one for one in json.loads(self.peakbench("doctor", "--json"))}
        self.assertEqual([one for one in findings.values() if not one["good"]], [])
        self.assertIn("the worker makes a tensor there", findings["cuda"]["found"])
        # Its own parts, not the build's.
        for subject, part in (("emulator", "lib/peakbench/emulator"), ("templates", "share/peakbench/templates")):
            self.assertIn(str(self.prefix / part), findings[subject]["found"])

    def test_the_quick_start_is_a_run(self):
        text = self.peakbench("quickstart", "--out", "quick", "--card", "a100-40gb")
        self.assertIn("peakbench open quick\n", text)
        cases = json.loads((self.folder / "quick/run.json").read_text(encoding="utf-8"))["cases"]
        self.assertEqual({(one["device"], one["status"]) for one in cases}, {("emulated:a100-40gb", "ok")})
        self.assertEqual(len(cases), 10)
        self.assertTrue((self.folder / "quick/report/index.html").is_file())

    def test_doctor_says_what_is_missing(self):
        """A part of the tree, which subject is bad without it, and what it says."""
        parts = {
            "lib/peakbench/libpeakbench_cuda.so": ("cuda", "libpeakbench_cuda.so: cannot open shared object file"),
            "lib/peakbench/emulator/libcudart.so.13": ("emulator", "libcudart.so.13"),
            "share/peakbench/templates/html/answer.mustache": ("templates", "answer"),
            "bin/peakbench-worker": ("worker", "bin/peakbench-worker"),
        }
        for part, (subject, words) in parts.items():
            with self.subTest(part):
                broken = self.folder / "broken"
                self.addCleanup(shutil.rmtree, broken, ignore_errors=True)
                shutil.copytree(self.prefix, broken, symlinks=True)
                (broken / part).unlink()
                done = attempt(broken / "bin/peakbench", "doctor", "--json", cwd=self.folder)
                self.assertEqual(done.returncode, 2, done.stderr)
                bad = {one["subject"]: one for one in json.loads(done.stdout) if not one["good"]}
                self.assertEqual(list(bad), [subject])
                self.assertIn(words, bad[subject]["found"])
                self.assertIn("cmake --install", bad[subject]["fix"])
                shutil.rmtree(broken)

    def test_nothing_points_into_the_build(self):
        files = [path for path in self.prefix.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
        self.assertGreater(len(files), 20)
        for path in files:
            dynamic = run("readelf", "-dW", path, cwd=self.folder)
            paths = [line for line in dynamic.splitlines() if "(RUNPATH)" in line or "(RPATH)" in line]
            self.assertNotIn(str(pathlib.Path(BUILD).resolve()), "".join(paths), path)

    def test_runs_on_an_emulated_card(self):
        self.peakbench("run", "--plugins", "built", "--model", MODEL, "--device", CARD, "--strategy", "baseline", "--strategy", "my-sgd",
                       "--out", "emulated")  # fmt: skip
        cases = json.loads((self.folder / "emulated/run.json").read_text())["cases"]
        self.assertEqual([case["status"] for case in cases], ["ok"] * 2, [case["reason"] for case in cases])
        self.assertEqual([case["emulation"]["refused_calls"] for case in cases], [[], []])
        for case in cases:
            self.assertEqual(sum(case["memory"]["at_peak"].values()), case["memory"]["peak_allocated_bytes"])

    def test_emulates_a_program(self):
        source, program = self.folder / "takes.c", self.folder / "takes"
        source.write_text(TAKES_A_GIBIBYTE)
        stand_ins = self.prefix / "lib/peakbench/emulator"
        for runtime in ("libcudart.so.13", "cuda12/libcudart.so.12"):
            run("cc", "-o", program, source, stand_ins / runtime, "-Wl,--allow-shlib-undefined", cwd=self.folder)
            done = attempt(self.prefix / "bin/peakbench", "emulate", "--card", "h100-80gb", "--", program, cwd=self.folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("reserves 1.000 GiB of 79.179 GiB", done.stderr)

    def test_a_wrong_manifest_ends_the_build_with_every_mistake(self):
        shutil.copytree(EXAMPLE, self.folder / "wrong")
        manifest = self.folder / "wrong/plugin.json"
        text = manifest.read_text()
        for right, wrong, _ in MISTAKES:
            self.assertIn(right, text)
            text = text.replace(right, wrong, 1)
        manifest.write_text(text)
        self.configure("wrong", "built-wrong")
        done = attempt(CMAKE, "--build", "built-wrong", cwd=self.folder)
        self.assertNotEqual(done.returncode, 0)
        said = [line for line in done.stdout.splitlines() if line.startswith(f"{manifest}: ")]
        self.assertEqual(sorted(said), sorted(f"{manifest}: error: {message}" for _, _, message in MISTAKES))
        self.assertFalse(list((self.folder / "built-wrong").rglob("sgd.so")))

    def ctest(self, build, *arguments, code=0, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PEAKBENCH_", "LD_"))}
        done = subprocess.run(["ctest", "--test-dir", build, "--output-on-failure", *arguments], cwd=self.folder,
                              env={**environment, **variables}, capture_output=True, text=True, timeout=500)  # fmt: skip
        self.assertEqual(done.returncode == 0, code == 0, done.stdout + done.stderr)
        return done.stdout

    def test_kit(self):
        """Its figures are as accepted; one byte more, a case more and none at all are told, and accepted again."""
        expected = self.folder / "example/sgd.expected.json"
        if f"LibTorch {json.loads(expected.read_text())['libtorch']} " not in self.peakbench("--version"):
            self.ctest("built", "-R", "bytes", PEAKBENCH_ACCEPT="1")  # figures are of one release
        kept = expected.read_text()
        self.addCleanup(expected.write_text, kept)
        self.ctest("built")
        accepted = json.loads(kept)
        case_id = next(one for one in accepted["cases"] if "my-sgd/" in one)
        figures = accepted["cases"][case_id]
        right = figures["at_peak"]["optimizer_state"]
        figures["at_peak"]["optimizer_state"] = right - 1
        accepted["cases"]["gone/case"] = {"status": "ok"}
        expected.write_text(json.dumps(accepted))
        said = self.ctest("built", "-R", "bytes", code=8)
        said = " ".join(said.split())
        for words in (f"{case_id}: at_peak.optimizer_state: expected {right - 1:,}, got {right:,} (+1)",
                      "gone/case: expected figures, got none", "run this again with --accept or PEAKBENCH_ACCEPT=1"):  # fmt: skip
            self.assertIn(words, said)
        self.ctest("built", "-R", "promise")
        expected.unlink()
        self.assertIn("no figures were accepted yet", self.ctest("built", "-R", "bytes", code=8))
        self.ctest("built", "-R", "bytes", PEAKBENCH_ACCEPT="1")
        self.assertEqual(json.loads(expected.read_text()), json.loads(kept))

    def test_kit_against_a_worker_alone(self):
        """As the wheel has it: the program is not in the worker's folder, but the command on PATH."""
        worker = self.folder / "workers/alone"
        run(CMAKE, "--install", BUILD, "--component", "worker", "--prefix", worker, cwd=self.folder)
        self.assertFalse((worker / "bin/peakbench").exists())
        self.configure("example", "built-alone", worker)
        run(CMAKE, "--build", "built-alone", cwd=self.folder)
        self.ctest("built-alone", "-R", "promise", PATH=f"{self.prefix / 'bin'}:{os.environ['PATH']}")
        without = ":".join(folder for folder in os.environ["PATH"].split(":") if not shutil.which("peakbench", path=folder))
        self.assertIn("Could not find executable peakbench", self.ctest("built-alone", "-R", "promise", code=8, PATH=without))

    def test_kit_on_a_plugin_that_breaks_its_promise(self):
        """The same strategy, promising the baseline's bits."""
        shutil.copytree(EXAMPLE, self.folder / "liar")
        manifest = self.folder / "liar/plugin.json"
        manifest.write_text(manifest.read_text().replace('"different_problem"', '"bit_identical"'))
        self.configure("liar", "built-liar")
        run(CMAKE, "--build", "built-liar", cwd=self.folder)
        said = self.ctest("built-liar", "-R", "promise", code=8)
        self.assertRegex(said, r"/my-sgd/cpu/fp32/b2:\s+promises\s+bit_identical: ")
        found = self.check("built-liar", code=5)
        self.assertEqual({question for question, one in found.items() if one["answer"] == "failed"}, {"options", "promise"}, found)
        self.assertEqual(found["stacks"]["answer"], "not checked")  # what breaks its promise alone is not run with others on the CPU
        self.assertIn(f"vit-b-16,image=32,layers=2,mlp=64,width=48/my-sgd/cpu/fp32/b2: promises bit_identical: ", found["promise"]["failures"][0])

    def test_precompiled_headers(self):
        """Two plugins share one, and are what they are without."""
        project = self.folder / "precompiled"
        shutil.copytree(EXAMPLE, project)
        (project / "more.cpp").write_text('#include "peakbench/plugin.h"\nvoid more(peakbench::Recipe&) {}\n')
        (project / "CMakeLists.txt").write_text("""cmake_minimum_required(VERSION 3.25)
project(Precompiled LANGUAGES CXX)
find_package(Peakbench REQUIRED)
peakbench_add_plugin(one MANIFEST plugin.json SOURCES sgd.cpp more.cpp PCH)
peakbench_add_plugin(two MANIFEST plugin.json SOURCES more.cpp PCH)
""")
        self.configure("precompiled", "built-precompiled")
        run(CMAKE, "--build", "built-precompiled", cwd=self.folder)
        headers = [path for path in (self.folder / "built-precompiled").rglob("*.gch")]
        self.assertEqual(len(headers), 1, headers)
        (self.folder / "built-precompiled/two.so").unlink()  # its id is the first's
        self.peakbench("run", "--plugins", "built-precompiled", "--model", MODEL, "--strategy", "my-sgd", "--repetitions", "0", "--no-report",
                       "--out", "precompiled-out")  # fmt: skip
        case = json.loads((self.folder / "precompiled-out/run.json").read_text())["cases"][0]
        self.assertEqual(case["status"], "ok", case["reason"])

    def test_snippets_of_cmake(self):
        """Each is configured, in a project that has what it names."""
        pages = [pathlib.Path(EXAMPLE).parents[1] / "docs" / name for name in ("how-to/plugins.md", "reference/models.md")]
        snippets = [one for page in pages for one in snippets_of(page) if one.language == "cmake"]
        for number, one in enumerate(snippets):
            with self.subTest(one.place()):
                project = self.folder / f"snippet-{number}"
                shutil.copytree(EXAMPLE, project)
                for name in set(re.findall(r"[\w/]+\.cpp", one.text)):
                    (project / name).write_text("")
                text = one.text
                if "project(" not in text:
                    text = f"cmake_minimum_required(VERSION 3.25)\nproject(Snippet LANGUAGES CXX)\nfind_package(Peakbench REQUIRED)\n{text}"
                (project / "CMakeLists.txt").write_text(text)
                self.configure(project.name, f"configured-snippet-{number}")

    def test_every_example_builds(self):
        """Without this build's precompiled header, which has more than an example includes; unoptimised, which is quicker. All of them at night."""
        at_night = os.environ.get("PEAKBENCH_NIGHTLY_TESTS") == "1"
        for example in sorted(path.parent for path in pathlib.Path(EXAMPLE).parent.glob("*/CMakeLists.txt")):
            with self.subTest(example.name):
                shutil.copytree(example, self.folder / "examples" / example.name)
                self.configure(f"examples/{example.name}", f"built-examples/{example.name}", kind="None")
                if at_night or example.name == "tiled_mlp":
                    run(CMAKE, "--build", f"built-examples/{example.name}", cwd=self.folder)

    def test_a_manifest_that_is_no_json(self):
        shutil.copytree(EXAMPLE, self.folder / "broken-json")
        manifest = self.folder / "broken-json/plugin.json"
        manifest.write_text('{"kind": "strategy",\n "entries" [')
        self.configure("broken-json", "built-broken")
        done = attempt(CMAKE, "--build", "built-broken", cwd=self.folder)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"{manifest}: error: not JSON: line 2, column 12", done.stdout)

    def test_runs_beside_the_bundled_strategies(self):
        strategies = ["baseline", "my-sgd", "my-sgd,momentum=0", "my-sgd+fused-in-backward"]
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
