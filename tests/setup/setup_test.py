"""The scripts of ci/ on machines that are not as they should be: each failure is a message that says what and what to do."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

CI = pathlib.Path(__file__).resolve().parents[2] / "ci"
VERSION_PY = "__version__ = '{}'\ncuda: Optional[str] = {}\ngit_version = '{}'\n"
GIT_VERSION = "70d99e998b4955e0049d13a98d77ae1b14db1f45"


class Folder(unittest.TestCase):
    def setUp(self):
        self._temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self._temporary.cleanup)
        self.folder = pathlib.Path(self._temporary.name)

    def program(self, name, text):
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)

    def run_script(self, script, *arguments, **environment):
        search = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "PEAKBENCH_CACHE": str(self.folder / "cache")}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PEAKBENCH_")}
        done = subprocess.run(
            [CI / script, *arguments], env=inherited | search | environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        return done.returncode, done.stdout, done.stderr


class Library(Folder):
    """What the scripts share (ci/lib.sh)."""

    def said(self, command, **environment):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PEAKBENCH_", "CCACHE_"))}
        return subprocess.run(["bash", "-c", f". {CI}/lib.sh; {command}"], env=inherited | environment, check=True, capture_output=True,
                              text=True).stdout.strip()

    def test_a_python_is_known_by_its_file(self):
        file = self.said("python_file")
        self.assertTrue(os.access(file, os.X_OK))
        link = self.folder / "a link"
        link.symlink_to(file)
        self.program("python3", f'exec "{file}" "$@"\n')  # as pyenv has one
        subprocess.run([file, "-m", "venv", "--without-pip", self.folder / "venv"], check=True)
        for called in (link, self.folder / "bin/python3", self.folder / "venv/bin/python"):
            self.assertEqual(self.said("python_file", PEAKBENCH_PYTHON=str(called)), file, called)

    def test_what_was_compiled_is_kept_where_a_cache_is(self):
        self.assertEqual(self.said('echo "${CCACHE_DIR-}"'), "")
        self.assertEqual(self.said('echo "$CCACHE_DIR"', PEAKBENCH_CACHE="/kept"), "/kept/ccache")
        self.assertEqual(self.said('echo "$CCACHE_DIR"', PEAKBENCH_CACHE="/kept", CCACHE_DIR="/own"), "/own")


    def test_how_long_a_build_still_takes(self):
        left = lambda seconds, line: self.said(f"time_left {seconds} '{line}'")  # noqa: E731
        self.assertEqual(left(60, "[120/322] Building CXX object"), ", about 2 min left")
        self.assertEqual(left(100, "[300/322] Linking"), ", less than a minute left")
        for line in ("[20/322] too early to say", "[322/322] Linking", "[20/x]", "Building"):
            self.assertEqual(left(60, line), "", line)


class Checks(Folder):
    def test_changed_since_what(self):
        status, _, error = self.run_script("checks", "--changed", "nowhere", "format")
        self.assertEqual((status, error), (1, "error: ci/checks: --changed: nowhere is no commit.\n"))


class Repository(Folder):
    """A repository of its own, with scripts of ci/ that look at theirs."""

    def git(self, *arguments):
        subprocess.run(["git", "-C", self.folder, *arguments], check=True, capture_output=True)

    def commit(self, files):
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (self.folder / ".gitignore").write_text("build\n__pycache__\ntests.json\n")
        self.git("init", "--quiet")
        self.commit_all()

    def commit_all(self, *options):
        self.git("add", "--all")
        self.git("-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--quiet", "--message=all", *options)


class Headers(Repository):
    """ci/compile_checks.py headers"""

    def test_what_does_not_compile_alone(self):
        large = "nlohmann/json.hpp"
        self.commit({
            "ci/compile_checks.py": (CI / "compile_checks.py").read_text(),
            "source/main.cpp": '#include "source/used.h"\n#include "source/own.h"\n',
            "source/used.h": f'#pragma once\n#include "source/lowest.h"\n#ifndef WHERE\n#error\n#endif\n#include <{large}>\nLARGE json;\n',
            "source/lowest.h": "#pragma once\n#include <string>\n",
            "source/own.h": "#pragma once\nstd::string alone();\n",  # wrong
            "source/by_another.h": '#pragma once\n#include "source/used.h"\ninline std::string text(LARGE) { return WHERE; }\n',
            "source/by_two.h": '#pragma once\n#include "source/by_another.h"\n',
            "source/without.h": "#pragma once\nLARGE json;\n",  # wrong: the large header is the others'
            "other/used.h": "#pragma once\n",
            "other/beside.h": '#pragma once\n#include "used.h"\nLARGE json;\n',  # wrong: the header beside it does not include that
            f"libraries/{large}": "#pragma once\nstruct LARGE {};\n",
        })  # fmt: skip
        command = {"directory": str(self.folder), "file": str(self.folder / "source/main.cpp"),
                   "command": f"c++ -DWHERE='\"a \\\"folder\\\"\"' -I{self.folder} -isystem {self.folder}/libraries -O2 -fPIC -std=gnu++20 -include"
                              f" {self.folder}/source/lowest.h -o main.o -c {self.folder}/source/main.cpp"}  # fmt: skip
        (self.folder / "build/checks").mkdir(parents=True)
        (self.folder / "build/checks/compile_commands.json").write_text(json.dumps([command]))

        def checked(*arguments, status=0):
            done = subprocess.run([sys.executable, self.folder / "ci/compile_checks.py", "headers", *arguments], capture_output=True, text=True)
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
            return done.stderr.splitlines()[-1], sorted(re.findall(r"^(\S+[.]h):$", done.stdout, re.MULTILINE))

        self.assertEqual(checked(status=1), ("8 files, 3 with findings", ["other/beside.h", "source/own.h", "source/without.h"]))
        self.assertEqual(len(list((self.folder / "build/checks/alone").glob("*.pch"))), 1)
        self.assertEqual(checked("source/used.h"), ("1 files, 0 with findings", []))  # nothing is precompiled for one
        self.assertEqual(checked("source/own.h", status=1), ("1 files, 1 with findings", ["source/own.h"]))
        self.assertIn("--changed is of tidy", checked("--changed", "HEAD", status=2)[0])
        (self.folder / "source/lowest.h").write_text("#pragma once\n")
        self.assertEqual(checked(status=1), ("8 files, 5 with findings",
                         ["other/beside.h", "source/by_another.h", "source/by_two.h", "source/own.h", "source/without.h"]))


class Unchanged(Repository):
    """ci/unchanged_tests.py in a repository of its own: a program of two sources and a header, a library that nothing names."""

    NINJA = """rule compile
  command = cc -MMD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
rule link
  command = cc $in -o $out
build main.o: compile ../source/main.c
build other.o: compile ../source/other.c
build program: link main.o
build strange: phony
"""

    def setUp(self):
        super().setUp()
        self.commit({
            "ci/compile_checks.py": (CI / "compile_checks.py").read_text(),
            "ci/unchanged_tests.py": (CI / "unchanged_tests.py").read_text(),
            "ci/summarise_tests.py": (CI / "summarise_tests.py").read_text(),
            "source/main.c": '#include "used.h"\nint main(void) { return USED; }\n',
            "source/used.h": "#define USED 0\n",
            "source/other.c": "int other;\n",
            "data/of a test/one.txt": "",
            "cmake/how.cmake": "",
            "build/build.ninja": self.NINJA,
        })  # fmt: skip
        subprocess.run(["ninja", "-C", self.folder / "build"], check=True, capture_output=True)

    def left_out(self, *needs, status=0):
        """Of a test that needs these, one that needs another source, and one that does not say."""
        (self.folder / "tests.json").write_text(json.dumps({"tests": [
            {"name": "one", "properties": [{"name": "REQUIRED_FILES", "value": [str(self.folder / path) for path in needs]}]},
            {"name": "other", "properties": [{"name": "REQUIRED_FILES", "value": [str(self.folder / "build/other.o")]}]},
            {"name": "any", "properties": []}]}))
        done = subprocess.run([sys.executable, self.folder / "ci/unchanged_tests.py", self.folder / "build", "HEAD",
                               self.folder / "tests.json"], capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout.split() if status == 0 else done.stderr

    def test_what_needs_nothing_that_changed_is_left_out(self):
        self.assertEqual(self.left_out("build/program", "data"), ["one", "other"])
        for changed in ("source/main.c", "source/used.h", "data/of a test/one.txt"):
            with self.subTest(changed):
                (self.folder / changed).write_text("/* another */\n")
                self.assertEqual(self.left_out("build/program", "data"), ["other"])
                self.git("checkout", "--", changed)
        (self.folder / "data/new.txt").touch()
        self.assertEqual(self.left_out("build/program", "data"), ["other"])
        self.assertEqual(self.left_out("build/program"), ["one", "other"])
        (self.folder / "data/of a test/one.txt").unlink()
        (self.folder / "data/new.txt").unlink()
        self.assertEqual(self.left_out("build/program", "data"), ["other"])

    def test_how_things_are_compiled_is_everybodys(self):
        (self.folder / "cmake/how.cmake").write_text("another\n")
        self.assertEqual(self.left_out("build/program"), [])

    def test_through_a_link(self):
        (self.folder / "a link").symlink_to(self.folder)
        (self.folder / "source/used.h").write_text("#define USED 1\n")
        self.assertEqual(self.left_out("a link/build/program"), ["other"])

    def test_what_ninja_does_not_know_is_an_error(self):
        self.assertIn("unknown target", self.left_out("build/nothing", status=1))
        self.assertIn("holds nothing that was built", self.left_out("build/", status=1))
        self.assertIn("nothing of this repository that strange was made from", self.left_out("build/strange", status=1))


class Sanitizers(Repository):
    """ci/checks --changed in a repository of its own, whose build says that it was asked for."""

    def setUp(self):
        super().setUp()
        scripts = {name: (CI / name).read_text() for name in ("checks", "lib.sh")}
        scripts |= {"packages": "#!/bin/sh\n", "build": "#!/bin/sh\necho asked for >&2\nexit 1\n"}
        releases = {"cmake/libtorch_releases.txt": "2.11.0 cu130\n"}
        self.commit({f"ci/{name}": text for name, text in scripts.items()} | releases
                    | {"harness/one.cpp": "", "docs/page.md": "", "python/one.py": ""})  # fmt: skip
        for name in scripts:
            (self.folder / "ci" / name).chmod(0o755)
        self.git("config", "core.fileMode", "false")

    def said(self):
        done = subprocess.run([self.folder / "ci/checks", "--changed", "HEAD", "sanitizers"], capture_output=True, text=True)
        return done.returncode, done.stderr.splitlines()[-1]

    def test_they_are_left_out_where_nothing_of_theirs_changed(self):
        left_out, built = (0, "sanitizers: left out"), (1, "error: failed: sanitizers")
        self.assertEqual(self.said(), left_out)
        for changed, expected in (("docs/page.md", left_out), ("python/two.py", left_out), ("harness/one.cpp", built), ("harness/two.h", built)):
            with self.subTest(changed):
                (self.folder / changed).write_text("another\n")
                self.assertEqual(self.said(), expected)
                self.git("checkout", "--", ".")
                self.git("clean", "-d", "--force")
                self.assertEqual(self.said(), left_out)

    def test_they_are_compared_with_the_commit_of_which_they_passed(self):
        cache = {"PEAKBENCH_CACHE": str(self.folder / ".git/cache")}

        def run(*command):
            done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, env=os.environ | cache)
            return done.returncode, done.stderr.splitlines()[-1:]

        of_today = (1, ["error: failed: sanitizers"])
        self.assertEqual(run("ci/checks", "--changed", "sanitizers"), of_today)
        run("bash", "-c", "source ci/lib.sh; remember_passed sanitizers $(clean_commit)")
        self.assertEqual(run("ci/checks", "--changed", "sanitizers"), (0, ["sanitizers: left out"]))
        (self.folder / "harness/one.cpp").write_text("another\n")
        self.assertEqual(run("ci/checks", "--changed", "sanitizers"), of_today)


class Prose(Repository):
    """ci/checks prose in a repository of its own."""

    def test_it_is_a_part(self):
        scripts = {f"ci/{name}": (CI / name).read_text() for name in ("checks", "check_prose.py", "lib.sh")} | {"ci/packages": "#!/bin/sh\n"}
        self.commit(scripts | {"cmake/libtorch_releases.txt": "2.11.0 cu130\n", "README.md": "It is short.\n", "CONTRIBUTING.md": "", "docs/page.md": ""})
        for name in scripts:
            (self.folder / name).chmod(0o755)
        for page, status, line in (("It is short.", 0, "prose: passed in "), ("word " * 40, 1, "error: failed: prose")):
            (self.folder / "docs/page.md").write_text(page)
            done = subprocess.run([self.folder / "ci/checks", "prose"], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr.splitlines()[-1][: len(line)]), (status, line), done.stderr)


class Passed(Repository):
    """What --changed compares with, and what is left out: in a repository of its own, with a CTest of its own."""

    def setUp(self):
        super().setUp()
        scripts = {f"ci/{name}": (CI / name).read_text() for name in ("lib.sh", "test", "summarise_tests.py", "unchanged_tests.py", "compile_checks.py")}
        for name in ("packages", "oracle", "linters", "build"):
            scripts[f"ci/{name}"] = "#!/bin/sh\nmkdir -p build/release\n"
        self.program("ctest", f"""case "$*" in
  *--show-only*) cat "{self.folder}/build/tests";;
  *)
    echo "$*" >"{self.folder}/build/asked"
    cat "{self.folder}/build/junit" >"{self.folder}/build/release/tests.xml"
    exit "$(cat "{self.folder}/build/status")";;
esac
""")
        self.program("ninja", "")  # knows of no headers
        self.commit({**scripts, "cmake/libtorch_releases.txt": "2.11.0 cu130\n", "one.txt": "1\n", "two.txt": "2\n"})
        for name in scripts:
            (self.folder / name).chmod(0o755)
        self.git("config", "core.fileMode", "false")
        (self.folder / "build").mkdir(exist_ok=True)
        self.registered()
        self.results()

    def registered(self, command="run"):
        """Tests that need a file each."""
        tests = [{"name": name, "command": [command], "properties": [{"name": "LABELS", "value": ["unit"]},
                                                                     {"name": "REQUIRED_FILES", "value": [str(self.folder / needs)]}]}
                 for name, needs in (("card", "one.txt"), ("shape", "two.txt"))]  # fmt: skip
        (self.folder / "build/tests").write_text(json.dumps({"tests": tests}))

    def results(self, card="run", said="", status=0):
        (self.folder / "build/junit").write_text(f'<testsuite><testcase name="card" status="{card}"><system-out>{said}</system-out></testcase>'
                                                 '<testcase name="shape" status="run"/></testsuite>')  # fmt: skip
        (self.folder / "build/status").write_text(str(status))

    def left_out(self, *arguments, status=0):
        """The expression of CTest for the tests that were left out."""
        done = subprocess.run([self.folder / "ci/test", *arguments], capture_output=True, text=True, env=self.environment())
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return re.findall(r" -E (\S+)", (self.folder / "build/asked").read_text())

    def environment(self):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PEAKBENCH_")}
        return inherited | {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "PEAKBENCH_CACHE": str(self.folder / "build/cache")}

    def passed(self):
        script = "source ci/lib.sh; passed_commit tests"
        done = subprocess.run(["bash", "-c", script], cwd=self.folder, capture_output=True, text=True, env=self.environment(), check=True)
        return done.stdout.strip()

    def head(self):
        return subprocess.run(["git", "-C", self.folder, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()

    def change(self, name):
        (self.folder / name).write_text("another\n")
        self.commit_all()

    def test_what_passed_is_left_out_until_what_it_needs_changes(self):
        self.assertEqual((self.left_out(), self.passed()), ([], self.head()))
        self.assertEqual(self.left_out("--changed"), ["^(card|shape)$"])
        self.change("one.txt")
        self.assertEqual(self.left_out("--changed"), ["^(shape)$"])
        self.assertEqual(self.passed(), self.head())
        self.assertEqual(self.left_out("--changed"), ["^(card|shape)$"])

    def test_of_the_day_before_nobody_knows(self):
        """What it left out by that has not passed here."""
        with unittest.mock.patch.dict(os.environ, GIT_COMMITTER_DATE="2026-01-01T00:00:00Z"):
            self.commit_all("--amend")
        self.change("one.txt")
        (self.folder / "build/junit").write_text('<testsuite><testcase name="card" status="run"/></testsuite>')
        self.assertEqual(self.left_out("--changed"), ["^(shape)$"])
        self.results()
        self.assertEqual(self.left_out("--changed"), ["^(card)$"])
        self.assertEqual(self.left_out("--changed"), ["^(card|shape)$"])

    def test_only_a_whole_run_that_passed_of_a_commit_counts(self):
        self.left_out("-L", "unit")
        self.left_out("--changed", "HEAD")
        self.results(status=8)
        self.left_out(status=8)
        self.results()
        (self.folder / "one.txt").write_text("2\n")
        self.left_out()
        self.assertEqual(self.passed(), "")

    def test_what_was_skipped_is_not_left_out(self):
        for result in ({"card": "notrun"}, {"said": "OK (skipped=1)"}, {"said": "[  SKIPPED ] 1 test, listed below:"}):
            with self.subTest(result):
                self.results(**result)
                self.left_out()
                self.assertEqual(self.left_out("--changed"), ["^(shape)$"])
        self.results()
        self.assertEqual(self.left_out("--changed"), ["^(shape)$"])
        self.assertEqual(self.left_out("--changed"), ["^(card|shape)$"])

    def test_what_is_run_otherwise_is_not_left_out(self):
        self.left_out()
        self.registered("run --more")
        self.assertEqual(self.left_out("--changed"), [])
        self.assertEqual(self.left_out("--changed"), ["^(card|shape)$"])


class LibTorch(Folder):
    def torch(self, version="2.11.0+cu130", cuda="'13.0'", git_version=GIT_VERSION, whole=True):
        folder = self.folder / "site-packages/torch"
        for part in ("include", "lib"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / "version.py").write_text(VERSION_PY.format(version, cuda, git_version))
        if whole:
            for file in ("lib/libcudart.so.13", "lib/libcupti.so.13", "include/cuda_runtime_api.h"):
                path = folder.parent / "nvidia/cu13" / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
        return str(folder)

    def reason(self, **which):
        """What is said of a LibTorch that is not used; the script then stops for want of pip."""
        self.program("python-without-pip", 'case "$*" in *"import pip"*) exit 1;; esac\nexec python3 -I "$@"\n')
        status, out, error = self.run_script(
            "libtorch", PEAKBENCH_TORCH_DIR=self.torch(**which), PEAKBENCH_PYTHON="python-without-pip"
        )
        if status == 0:
            return out.strip()
        self.assertIn("has no module pip", error)
        self.assertIn("ci/packages installs python3-pip", error)
        return error.splitlines()[0]

    def test_the_right_one_is_used(self):
        self.assertEqual(self.reason(), str(self.folder / "site-packages/torch"))

    def test_why_another_is_not(self):
        self.assertIn("it is version 2.10.0+cu130; version 2.11.0 is needed", self.reason(version="2.10.0+cu130"))
        self.assertIn("a build for CUDA none (CPU only); the build for CUDA 13.0", self.reason(cuda="None"))
        self.assertIn(f"built from revision abc; revision {GIT_VERSION} is needed", self.reason(git_version="abc"))

    def test_what_must_stand_beside_it(self):
        self.assertIn("nvidia/cu13/lib/libcudart.so.13 is not beside it", self.reason(whole=False))

    def test_a_folder_that_is_none(self):
        self.program("python-without-pip", 'case "$*" in *"import pip"*) exit 1;; esac\nexec python3 -I "$@"\n')
        _, _, error = self.run_script("libtorch", PEAKBENCH_TORCH_DIR="/usr", PEAKBENCH_PYTHON="python-without-pip")
        self.assertIn("LibTorch of PEAKBENCH_TORCH_DIR in /usr is not used: it is not the folder of a LibTorch wheel", error)


class Quickstart(Repository):
    """ci/quickstart: what is asked of which program, in turn."""

    def setUp(self):
        super().setUp()
        said = f'echo "$*" >>"{self.folder}/build/said"\n'
        fake = "#!/bin/sh\n" + said
        run = 'case $1 in quickstart) mkdir -p "$3"; touch "$3/run.json";; esac\n'
        self.commit({"ci/quickstart": (CI / "quickstart").read_text(), "ci/lib.sh": (CI / "lib.sh").read_text(), "ci/packages": "#!/bin/sh\n",
                     "cmake/libtorch_releases.txt": "2.11.0\n", "ci/libtorch": "#!/bin/sh\necho /somewhere/site-packages/torch\n",
                     "ci/build": fake.replace('"$*"', '"build $*"')})
        for script in ("quickstart", "packages", "libtorch", "build"):
            (self.folder / "ci" / script).chmod(0o755)
        self.commit_all()
        self.put("build/release/bin/peakbench-quickstart", "#!/bin/sh\n" + said.replace('"$*"', '"built: $*"') + run)
        self.made = said.replace('"$*"', '"archived ($PYTHONPATH): $*"') + run

    def put(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def archive(self, commit):
        name = "peakbench-1.0-linux-x86_64"
        self.put(f"build/{name}/bin/peakbench",
                 f'#!/bin/sh\n[ "$1" != --version ] || {{ echo "peakbench 1.0 (commit {commit}), for LibTorch"; exit; }}\n' + self.made)
        (self.folder / "build/wheel/dist").mkdir(parents=True, exist_ok=True)
        subprocess.run(["tar", "-C", self.folder / "build", "-czf", self.folder / f"build/wheel/dist/{name}.tar.gz", name], check=True)

    def said(self):
        done = subprocess.run([self.folder / "ci/quickstart"], capture_output=True, text=True, check=False,
                              env={name: value for name, value in os.environ.items() if not name.startswith("PEAKBENCH_")})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        out = self.folder / "results/quickstart"
        return (self.folder / "build/said").read_text().replace(str(out), "OUT").splitlines()

    def commit_name(self):
        return subprocess.run(["git", "-C", self.folder, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout[:12]

    REST = ["built: run quickstart --device emulated:h100-80gb --device auto --out OUT --resume", "build --programs release"]

    def test_the_archive_of_this_commit_gives_the_first_table(self):
        self.archive(self.commit_name())
        self.assertEqual(self.said(), ["archived (/somewhere/site-packages): quickstart --out OUT", "build --programs release quickstart",
                                       *self.REST])

    def test_of_another_commit_it_is_built(self):
        self.archive("0123456789ab")
        self.assertEqual(self.said(), ["build --programs release quickstart", "built: quickstart --out OUT", *self.REST])

    def test_what_an_earlier_call_made_is_kept(self):
        self.archive(self.commit_name())
        self.put("results/quickstart/run.json", "{}")
        self.assertEqual(self.said(), ["build --programs release quickstart", *self.REST])


class Machine(Folder):
    def test_another_architecture(self):
        self.program("uname", '[ "$1" = -m ] && echo aarch64 || echo Linux\n')
        for script in ("libtorch", "packages", "quickstart", "test", "oracle"):
            status, _, error = self.run_script(script)
            self.assertEqual(status, 1)
            self.assertIn("this machine is Linux aarch64; Peakbench is built and tested on Linux x86_64", error)

    def test_a_full_disk(self):
        self.program("df", 'echo header; echo "/dev/x 100 90 10 90% /"\n')
        status, _, error = self.run_script("libtorch", PEAKBENCH_PYTHON=self.venv())
        self.assertEqual(status, 1)
        self.assertIn("Installing LibTorch needs 4 GiB of disk", error)
        self.assertIn("PEAKBENCH_CACHE", error)

    def test_no_network(self):
        status, _, error = self.run_script(
            "libtorch", PEAKBENCH_PYTHON=self.venv(), PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_FIND_LINKS=""
        )
        self.assertEqual(status, 1)
        self.assertIn("could not reach the package index", error)
        self.assertEqual(list((self.folder / "cache").glob("torch-*/site-packages")), [])

    def venv(self):
        """A Python that has pip and no torch."""
        subprocess.run([sys.executable, "-m", "venv", self.folder / "venv"], check=True)
        return str(self.folder / "venv/bin/python")


class Site(Folder):
    def test_a_folder_of_something_else_is_not_emptied(self):
        (self.folder / "mine").mkdir()
        (self.folder / "mine/notes.txt").write_text("")
        status, _, error = self.run_script("site", "--out", str(self.folder / "mine"))
        self.assertEqual((status, (self.folder / "mine/notes.txt").exists()), (1, True))
        self.assertIn("mine is no site of an earlier call, and mkdocs would empty it.", error)


class Summary(Folder):
    def test_counts_by_label_and_reasons(self):
        junit = self.folder / "tests.xml"
        junit.write_text(
            '<testsuite><testcase name="a" status="run" time="61.5"/>'
            '<testcase name="b" status="fail" time="0.9"><failure/></testcase>'
            '<testcase name="c" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out>SKIP: no card</system-out></testcase>'
            '<testcase name="d" status="notrun"><skipped/><system-out>x.cpp:1: Skipped\nno oracle\n</system-out></testcase></testsuite>'
        )
        labels = {"a": ["unit"], "b": ["unit"], "c": ["gpu"]}
        tests = [{"name": n, "properties": [{"name": "LABELS", "value": v}]} for n, v in labels.items()]
        (self.folder / "tests.json").write_text(json.dumps({"tests": tests + [{"name": "d"}]}))
        done = subprocess.run(
            [sys.executable, CI / "summarise_tests.py", junit, self.folder / "tests.json", self.folder / "passed"], capture_output=True, text=True
        )
        self.assertEqual([line.split(" ", 1)[1] for line in (self.folder / "passed").read_text().splitlines()], ["a"])
        self.assertEqual(done.returncode, 1)
        self.assertEqual(
            done.stdout.strip().splitlines(),
            [
                "(no label)      0 s  1 skipped",
                "gpu             0 s  1 skipped",
                "unit           62 s  1 passed, 1 failed",
                "slowest: a 62 s, b 1 s, c 0 s, d 0 s",
                "skipped, no card: c",
                "skipped, no oracle: d",
                "failed: b",
                "1 passed, 1 failed, 2 skipped",
            ],
        )
