"""What a machine or a person can do is no internal error: names, folders, limits and full disks end with a message and exit code 2,
and leave no half-written file."""
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import time

from given import PEAKBENCH
from installation import TIMEOUT, ProgramTest, wait_for, workers_of

ONE = ("run", "--model", "tiny", "--strategy", "baseline", "--repetitions", "0")


def unfinished(folder):
    return [str(path) for path in folder.rglob("*") if re.search(r"\.tmp|\.partial", path.name)]


class Bytes(ProgramTest):
    """Names as bytes, which Python's text arguments cannot all hold."""

    def ends(self, *arguments, **environment):
        return subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, stdin=subprocess.DEVNULL,
                              env=self.environment(**environment), timeout=TIMEOUT, check=False)

    def unusable(self, *arguments, says, **environment):
        done = self.ends(*arguments, **environment)
        self.assertEqual(done.returncode, 2, (arguments, done.stderr))
        self.assertTrue(done.stderr.startswith(b"peakbench: "), done.stderr)
        for part in says:
            self.assertIn(part.encode(), done.stderr)
        done.stderr.decode("utf-8")
        return done


class Names(Bytes):
    def test_long(self):
        self.peakbench(*ONE, "--out", "out")
        self.peakbench(*ONE, "--out", "other")
        name = "x" * 300
        for arguments in ((*ONE, "--out", name), (*ONE, "--out", name, "--overwrite"), ("report", "out", "--out", name),
                          ("report", name), ("compare", "out", "other", "--out", name), ("export", name), ("compare", name, "out"),
                          ("history", "add", name), ("history", "add", "out", "--history", name),
                          ("history", "list", "--history", name), ("run", name + ".toml"),
                          (*ONE, "--plugins", name), (*ONE, "--templates", name), ("report", "out", "--templates", name),
                          ("list", "models", "--plugins", name), ("ab", name, name, *ONE[1:5]),
                          ("ab", self.prefix / "installed", self.prefix / "installed", *ONE[1:5], "--pairs", "2", "--out", name)):
            self.unusable(*arguments, says=["x" * 100])
        self.peakbench("history", "add", "out")
        self.unusable("publish", "--out", name, says=[name])
        self.unusable("publish", "--templates", name, says=[name])
        self.unusable("history", "export", "--out", name, says=[name])
        self.unusable("history", "export", "--format", "folders", "--out", name, says=[name])
        self.unusable("emulate", "--json", name, "--", "true", says=[name])

    def test_not_utf8(self):
        """Results and jobs are JSON, which holds nothing else."""
        bad = b"r\xe9sultats"
        for arguments in ((*ONE, "--out", bad), (*ONE, "--model", b"tiny\xff"), (*ONE, "--device", b"emulated:\xff"),
                          (b"\xff",), ("list", b"\xff"), ("report", bad), ("run", b"\xff.toml"), (b"--\xff",),
                          ("history", "add", bad, "--json"), ("list", "models", "--plugins", bad)):
            self.unusable(*arguments, says=["not UTF-8", "\\x"])
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_working_folder_that_is_not_utf8(self):
        self.folder = pathlib.Path(os.fsdecode(os.fsencode(self.folder) + b"/r\xe9sultats"))
        self.folder.mkdir()
        self.unusable(*ONE, "--out", "out", says=["not UTF-8", "r\\xe9sultats"])
        self.assertEqual(list(self.folder.iterdir()), [])
        self.ends("doctor", "--json")
        json.loads(self.ends("doctor", "--json").stdout)

    def test_plugins_whose_path_is_not_utf8(self):
        bad = pathlib.Path(os.fsdecode(b"\xe9t\xe9"))
        shutil.copytree(self.prefix / "installed/lib/peakbench/plugins", self.folder / "more" / bad)
        done = self.ends("list", "models", "--json", "--plugins", "more")
        self.assertEqual(done.returncode, 0, done.stderr)
        json.loads(done.stdout)
        self.assertIn(b"not UTF-8", done.stderr)

    def test_a_working_folder_that_is_gone(self):
        def vanish():
            os.rmdir(self.folder)
        for arguments, code in (((*ONE, "--out", "out"), 2), (("list", "models"), 0), (("report", "out"), 2),
                                (("history", "list"), 2), (("doctor",), None)):
            self.folder.mkdir(exist_ok=True)
            done = subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, preexec_fn=vanish,
                                  timeout=TIMEOUT, check=False)
            self.assertIn(done.returncode, (0, 2) if code is None else (code,), done.stderr)

    def test_a_program_keeps_its_arguments(self):
        words = [b"\xff", b"[64,128]", b"[]", b"[a b]", b"\x01[1]", b"--", b"[[1,2],[3]]", b"{x}", b""]
        done = subprocess.run([PEAKBENCH, "emulate", "--", "printf", b"%s|", *words],
                              capture_output=True, check=False, timeout=TIMEOUT)
        self.assertEqual((done.returncode, done.stdout), (0, b"".join(word + b"|" for word in words)), done.stderr)


class Devices(Bytes):
    def test_cards_that_are_no_files(self):
        (self.folder / "empty.json").write_text("")
        (self.folder / "list.json").write_text("[]")
        (self.folder / "deep.json").write_text('{"id": "x", "title": "y", "values": {"name": 3}}')
        os.mkfifo(self.folder / "fifo.json")
        cards = ["/tmp", "/dev/null", "./nowhere.json", "./empty.json", "./list.json", "./deep.json", "./fifo.json", "/dev/zero",
                 "/" + "x" * 300]
        for card in cards:
            start = time.monotonic()
            self.unusable(*ONE, "--device", f"emulated:{card}", "--out", "out", says=[card])
            self.unusable("emulate", "--card", card, "--", "true", says=[card])
            self.assertLess(time.monotonic() - start, 10)

    def test_an_emulator_folder_that_is_none(self):
        (self.folder / "cut").mkdir()
        (self.folder / "cut/libtorch.json").write_text('{"libraries": 3}')
        (self.folder / "bare").mkdir()
        (self.folder / "bare/libtorch.json").write_text('{"libraries": [], "version": "2", "architectures": [90]}')
        for folder in ("cut", "bare", "nowhere", "x" * 300):
            for arguments in ((*ONE, "--device", "emulated:h100-80gb", "--out", "out"), ("emulate", "--", "true")):
                self.unusable(*arguments, says=[folder], PEAKBENCH_EMULATOR_DIR=str(self.folder / folder))
            done = self.ends("doctor", "--json", PEAKBENCH_EMULATOR_DIR=str(self.folder / folder))
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(folder, done.stdout.decode())


class TemporaryFolder(Bytes):
    def test_missing_or_no_folder(self):
        (self.folder / "file").write_text("")
        for folder in ("/nowhere/tmp", str(self.folder / "file"), "/proc", "x" * 300):
            done = self.ends("doctor", TMPDIR=folder)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            done = self.ends(*ONE, "--out", "out", "--overwrite", TMPDIR=folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            done = subprocess.run([PEAKBENCH, "emulate", "--", "true"], capture_output=True, text=True,
                                  env=self.environment(TMPDIR=folder), check=False, timeout=TIMEOUT)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("TMPDIR", done.stderr)


class FileSizes(ProgramTest):
    """ulimit -f: an error that says so, not a signal."""

    def limited(self, size, *arguments):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        return subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, text=True, preexec_fn=limit,
                              env=self.environment(), timeout=TIMEOUT, check=False)

    def test_every_writer(self):
        self.peakbench(*ONE, "--out", "out")
        self.peakbench(*ONE, "--out", "other")
        self.peakbench("history", "add", "out")
        history = (self.folder / "peakbench-history.sqlite").read_bytes()
        for arguments in ((*ONE, "--out", "new"), ("report", "out"), ("report", "out", "--out", "pages"),
                          ("compare", "out", "other", "--out", "pages"), ("gate", "out", "other", "--junit", "gate.xml"),
                          ("gate", "out", "other", "--summary", "gate.md"),
                          ("history", "export", "--out", "lines.jsonl"), ("publish", "--out", "site"),
                          ("history", "export", "--format", "folders", "--out", "folders"), ("history", "add", "other")):
            done = self.limited(200, *arguments)
            self.assertEqual(done.returncode, 2, (arguments, done.stderr))
            self.assertIn("ulimit -f", done.stderr, arguments)
            self.assertNotIn("damaged", done.stderr, arguments)
            self.assertEqual(unfinished(self.folder), [], arguments)
        self.assertEqual((self.folder / "peakbench-history.sqlite").read_bytes(), history)
        done = self.limited(100, "history", "add", "out", "--history", "new.sqlite")
        self.assertEqual(done.returncode, 2, done.stderr)


class SmallStack(ProgramTest):
    """ulimit -s: 128 KiB, of which the environment takes some."""

    def test_every_command_has_enough(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_STACK, (128 << 10, resource.RLIM_INFINITY))  # noqa: E731
        for arguments in ((*ONE, "--out", "out"), ("history", "add", "out"), ("history", "list"), ("history", "trend"), ("report", "out"),
                          ("compare", "out", "other"), ("gate", "out", "other"), ("publish", "--out", "site"), ("list", "models")):
            if "other" in arguments and not (self.folder / "other").exists():
                shutil.copytree(self.folder / "out", self.folder / "other")
            done = subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, text=True, preexec_fn=limit,
                                  env=self.environment(), timeout=TIMEOUT, check=False)  # fmt: skip
            self.assertEqual(done.returncode, 0, (arguments, done.stderr))


class FullDisk(ProgramTest):
    """A file system of a few pages, in a mount namespace of the test's own."""

    def on_disk(self, pages, *arguments, folder="disk"):
        """What a command does on such a disk, and the names that it leaves there."""
        script = (f"mount -t tmpfs -o size={pages * 4096} none {folder} && cp -r kept/. {folder} || exit 99; "
                  '"$@"; code=$?; (cd ' + folder + ' && find . > ../left); exit $code')
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", self.program, *arguments], cwd=self.folder, text=True,
                              capture_output=True, env=self.environment(), timeout=TIMEOUT, check=False)
        return done, (self.folder / "left").read_text().splitlines()

    def setUp(self):
        super().setUp()
        for name in ("disk", "kept"):
            (self.folder / name).mkdir()

    def test_every_writer_at_every_size(self):
        self.peakbench(*ONE, "--out", "out")
        self.peakbench(*ONE, "--out", "other")
        self.peakbench("history", "add", "out")
        ends = set()
        for arguments in ((*ONE, "--out", "disk/new"), ("report", "out", "--out", "disk/pages"),
                          ("compare", "out", "other", "--out", "disk/pages"), ("gate", "out", "other", "--junit", "disk/gate.xml"),
                          ("gate", "out", "other", "--summary", "disk/gate.md"),
                          ("history", "export", "--out", "disk/lines.jsonl"), ("publish", "--out", "disk/site"),
                          ("history", "export", "--format", "folders", "--out", "disk/folders"),
                          ("history", "add", "other", "--history", "disk/peakbench-history.sqlite")):
            if arguments[:2] == ("history", "add"):
                shutil.copy(self.folder / "peakbench-history.sqlite", self.folder / "kept")
            for pages in (1, 2, 3, 5, 8, 20, 25, 30, 40, 80):
                done, left = self.on_disk(pages, *arguments)
                if done.returncode == 99:  # too small for the history that is there
                    continue
                ends.add(done.returncode)
                self.assertIn(done.returncode, (0, 2), (arguments, pages, done.stderr))
                if done.returncode == 2:
                    self.assertRegex(done.stderr, "(?i)no space left on device|disk is full|disk refused")
                    self.assertNotIn("damaged", done.stderr)
                self.assertEqual([name for name in left if re.search(r"\.tmp|\.partial", name)], [], (arguments, pages))
        self.assertEqual(ends, {0, 2})

    def test_no_room_for_a_folder(self):
        done = subprocess.run(["unshare", "-m", "sh", "-c", "mount -t tmpfs -o nr_inodes=4 none disk && mkdir disk/out && "
                               '"$@"', "sh", self.program, *ONE, "--out", "disk/out"], cwd=self.folder, text=True,
                              capture_output=True, env=self.environment(), timeout=TIMEOUT, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("No space left on device", done.stderr)

    def test_emulate(self):
        done = subprocess.run([PEAKBENCH, "emulate", "--json", "/dev/full", "--", "true"],
                              capture_output=True, text=True, check=False, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("/dev/full: cannot write: No space left on device", done.stderr)
        self.assertTrue(pathlib.Path("/dev/full").is_char_device())


class Unfinished(ProgramTest):
    def test_a_second_interrupt_leaves_nothing(self):
        """At whatever moment it comes: run.json is being written for most of this run."""
        for tenth in range(12):
            run = [f"--model=tiny,layers={layers}" for layers in range(1, 40)]
            process = self.start("run", *run, "--strategy", "baseline", "--repetitions", "0", "--out", "out", "--overwrite")
            wait_for(lambda: (self.folder / "out/run.json").exists())
            time.sleep(0.2 + tenth * 0.013)
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=20)
            self.assertEqual(process.returncode, 130)
            self.assertEqual(unfinished(self.folder), [])
            wait_for(lambda: not workers_of(self.folder))

    def test_what_a_killed_one_left_goes_with_the_next(self):
        self.peakbench(*ONE, "--out", "out")
        left = self.folder / "out/run.json.tmp-999999-0"
        left.write_text("half")
        other = self.folder / "out/notes.tmp-999999-0"
        other.write_text("mine")
        page = self.folder / "out/report/index.html.tmp-999999-0"
        page.write_text("half")
        self.peakbench(*ONE, "--out", "out", "--resume")
        self.assertFalse(left.exists())
        self.assertFalse(page.exists())
        self.assertEqual(other.read_text(), "mine")

    def test_what_another_is_writing_stays(self):
        self.peakbench(*ONE, "--out", "out")
        page = self.folder / "out/report/index.html.tmp-999999-0"
        page.write_text("half")
        with subprocess.Popen(["flock", page, "sleep", "60"]) as writer:
            wait_for(lambda: subprocess.run(["flock", "-n", page, "true"], check=False).returncode)
            self.peakbench("report", "out")
            self.assertTrue(page.exists())
            writer.kill()
