"""Where attacks happen: an installation with a script as its worker, good inputs of every kind, folders with strangers' files."""

import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/support"))

import given  # noqa: E402
from installation import install  # noqa: E402

MODEL = "vit-b-16,layers=1,width=48,mlp=64,image=32"
CARD = "emulated:t4-16gb"
SUITE = """
title = "Good"
models = ["tiny", "tiny,layers=3", "tiny-lm"]
strategies = ["baseline", "slim,rank=4", "blocky", "slim+blocky"]
devices = ["cpu", "emulated:t4-16gb,memory=8GiB"]
dtypes = ["fp32", "bf16"]
batch_sizes = [1, 4]
sequence_lengths = [16]
steps = 3
warmup = 1
repetitions = 3
timeout_s = 60
memory_limit = "2GiB"
threads = 1
seed = 7

[model_options.tiny]
layers = 4
[strategy_options.slim]
rank = 16
[device_options]
tf32 = true
expandable_segments = true
max_split_size_mb = 64
[[exclude]]
model = "tiny-lm"
strategy = "*slim*"
batch_size = 4
[[include]]
strategy = "rival"
dtype = "fp32"
[[published]]
model = "tiny"
strategy = "slim,rank=4"
metric = "peak_memory"
value = 4.8
unit = "GB"
source = "A source"
url = "https://example.org"
note = "a note"
[gate]
allocated = "1MiB"
reserved = "5%"
throughput = "2%"
failed = "pass"
"""


class Workplace:
    """Made once; everything in it is gone at the end."""

    def __init__(self, program, fake_plugins):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="peakbench-hostile-"))
        self.real = str(program)
        given.PEAKBENCH, given.FAKE_PLUGINS = program, fake_plugins
        install(self.root / "installed")
        self.program = str(self.root / "installed/bin/peakbench")
        self.plugins = pathlib.Path(fake_plugins)
        self.good = self.root / "good"
        self.good.mkdir()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Mounts and read-only folders are the attack's own to undo.
        shutil.rmtree(self.root, ignore_errors=True)

    def environment(self, **more):
        """Ours, without what a continuous integration or a user would add."""
        plain = {"PATH": os.environ["PATH"], "HOME": str(self.root), "TERM": "xterm", "LANG": "C.UTF-8", "TMPDIR": str(self.root),
                 "PYTHONDONTWRITEBYTECODE": "1"}
        return {**plain, **more}

    def must(self, *command, cwd=None, env=None):
        done = subprocess.run(list(map(str, command)), cwd=cwd or self.good, env=env or self.environment(), check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(f"{command} ended with {done.returncode}, and nothing was wrong yet:\n{done.stdout}{done.stderr}")
        return done.stdout

    # --- Good inputs, each made when it is first asked for ------------------------------------------------

    def _made(self, name, make):
        path = self.good / name
        if not path.exists():
            make(path)
        return path

    def run(self):
        """A run on the emulated card with two cases and their traces."""
        return self._made("run", lambda path: self.must(
            self.real, "run", "--model", MODEL, "--strategy", "baseline", "--strategy", "foreach-off", "--device", CARD,
            "--steps", 1, "--out", path, "--quiet"))

    def part(self, batch):
        """A case on the emulated card with its trace: a run that was made apart, for `merge`."""
        return self._made(f"part-{batch}", lambda path: self.must(
            self.real, "run", "--model", MODEL, "--strategy", "baseline", "--device", CARD, "--batch", batch, "--steps", 1, "--out", path,
            "--quiet", "--no-report"))

    def base(self):
        """The same cases, measured on another day, with one more block."""
        def make(path):
            shutil.copytree(self.run(), path)
            run = json.loads((path / "run.json").read_text())
            run["created"] = "2026-01-01T00:00:00Z"
            run["cases"][0]["memory"]["peak_allocated_bytes"] -= 512
            (path / "run.json").write_text(json.dumps(run, indent=2))

        return self._made("base", make)

    def fresh(self):
        """The same cases, measured on a day that no history has."""
        def make(path):
            shutil.copytree(self.run(), path)
            run = json.loads((path / "run.json").read_text())
            run["created"] = "2026-02-02T00:00:00Z"
            (path / "run.json").write_text(json.dumps(run, indent=2))

        return self._made("fresh", make)

    def timed(self):
        """A run of the script: with times, an outcome of each kind, and no traces."""
        return self._made("timed", lambda path: self.must(
            self.program, "run", "--model", "tiny", "--strategy", "baseline", "--strategy", "paced,slower=5,noise=3", "--strategy",
            "misbehave,behaviour=out_of_memory", "--strategy", "misbehave,behaviour=abort", "--out", path, "--quiet"))

    def history(self):
        def make(path):
            for number, run in enumerate((self.base(), self.run(), self.timed())):
                self.must(self.program, "history", "add", run, "--branch", "main", "--commit", f"c0ffee{number}", "--history", path)
            self.must(self.program, "history", "accept", 2, "--note", "why not", "--history", path)

        return self._made("history.sqlite", make)

    def exported(self):
        return self._made("saved.jsonl", lambda path: self.must(
            self.program, "history", "export", "--out", path, "--history", self.history()))

    def suite(self):
        return self._made("suite.toml", lambda path: path.write_text(SUITE))

    def card(self):
        return self._made("card.json", lambda path: shutil.copy(SOURCE / "emulator/cards/t4-16gb.json", path))

    def took(self):
        return self._made("took.json", lambda path: shutil.copy(SOURCE / "tests/hostile/seeds/took.json", path))

    def programs(self):
        return self._made("programs.toml", lambda path: shutil.copy(SOURCE / "tests/hostile/fuzz/seeds/suite/programs.toml", path))

    def strategies(self):
        return self.plugins / "fake_strategies.so"

    def trace(self):
        return next((self.run() / "cases").glob("*foreach*/trace.sqlite"))

    # --- A folder for one trial ---------------------------------------------------------------------------

    def trial(self, name):
        """A working folder among strangers' files."""
        folder = self.root / "trials" / name
        shutil.rmtree(folder, ignore_errors=True)
        for stranger in ("thesis.txt", "report/index.html", "cases/notes.txt", "work/thesis.txt"):
            path = folder / stranger
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("years of work\n")
        return folder / "work"


# What `history add` files and others change.
FILED = "SELECT id, created, verdict, note FROM runs ORDER BY id"


def is_sound_sqlite(path):
    """After what a journal left beside it undoes, as whoever opens it next does."""
    return asked(path, "PRAGMA integrity_check")[0][0] == "ok"


def asked(path, question):
    database = sqlite3.connect(path)
    try:
        return database.execute(question).fetchall()
    finally:
        database.close()
