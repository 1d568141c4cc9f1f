"""Killed at random moments: nothing filed is lost, what is there is whole, and `--resume` ends where an undisturbed run does."""

import concurrent.futures
import json
import os
import shutil
import signal
import subprocess
import time

import judge
from figures import figures
from readers import rng_of
from workplace import CARD, MODEL, is_sound_sqlite

SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT", "SIGINT twice")
QUICK = 4
STRANGERS = "years of work\n"


def attack(workplace, counts, options):
    count = options.count or QUICK
    scenes = [
        ("run of a script, resumed", count, ScriptRun(workplace)),
        ("run on the card, resumed", max(1, count // 4), CardRun(workplace)),
        ("history add", count, Add(workplace)),
        ("history prune", max(1, count // 4), Prune(workplace)),
        ("publish", max(1, count // 2), Writer(workplace, ["publish", "--history", "HISTORY", "--out", "OUT"])),
        ("report", max(1, count // 2), Writer(workplace, ["report", "RUN", "--out", "OUT"])),
        ("compare", max(1, count // 4), Writer(workplace, ["compare", "BASE", "RUN", "--out", "OUT"])),
        ("export", max(1, count // 4), Writer(workplace, ["export", "RUN", "foreach-off", "--out", "OUT/trace.pickle"])),
        ("merge", max(1, count // 2), Merge(workplace)),
        ("history export", max(1, count // 4), Writer(workplace, ["history", "export", "--history", "HISTORY", "--out", "OUT/h.jsonl"])),
    ]
    for _, _, scene in scenes:
        scene.prepare()

    def one(work):
        row, number, scene = work
        rng = rng_of(options.seed, row, number)
        folder = workplace.trial(f"{row.replace(' ', '-').replace(',', '')}-{number}")
        how = rng.choice(SIGNALS)
        try:
            faults = scene.kill(folder, rng, how)
        except Exception as error:  # noqa: BLE001  an attack that cannot be judged is a finding
            faults = [f"not judged: {error!r}"]
        counts.tried(row, how)
        for fault in faults:
            counts.found(row, f"{fault} (after {how})", f"seed {options.seed}, kill {number}", keep(options.keep, row, number, folder))
        shutil.rmtree(folder.parent, ignore_errors=True)

    works = [(row, number, scene) for row, times, scene in scenes for number in range(options.first, options.first + times)]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, works))


def keep(folder, row, number, trial):
    if not folder:
        return ""
    kept = os.path.join(folder, f"{row.split(',')[0].replace(' ', '-')}-{number}")
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(trial, kept)
    return kept


# --- Killing ----------------------------------------------------------------------------------------------


def killed(command, cwd, env, rng, within, how):
    """Starts it, sends the signal at a moment of `within` seconds. Faults of how it ended, None where it had ended before."""
    process = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True)
    time.sleep(rng.uniform(0, within))
    ended_before = process.poll() is not None
    number = getattr(signal, how.split()[0])
    began = time.monotonic()
    process.send_signal(number)
    if how.endswith("twice"):
        time.sleep(rng.uniform(0, 0.2))
        process.send_signal(number)
    try:
        _, err = process.communicate(timeout=3 + judge.patience())
    except subprocess.TimeoutExpired:
        judge.end_session(process)
        process.communicate()
        return [f"hang: not gone {time.monotonic() - began:.1f} s after the signal"]
    if ended_before:
        return [] if process.returncode == 0 else [f"undisturbed, exit code {process.returncode}: {judge.text(err)[-300:]}"]
    if process.returncode in (0, 130, -number):
        return []
    return [f"exit code {process.returncode} after the signal: {judge.text(err)[-300:]}"]


def processes_below(folder):
    """Ids of processes with the folder in their command."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                command = file.read()
        except OSError:
            continue
        if os.fsencode(folder) + b"/" in command:
            found.append(int(entry))
    return found


def strangers_faults(folder):
    """The files beside what we write are somebody's."""
    paths = [folder.parent / "thesis.txt", folder / "thesis.txt", folder.parent / "report/index.html"]
    return [f"touched: {path.name}" for path in paths if not path.exists() or path.read_text() != STRANGERS]


# --- Runs -------------------------------------------------------------------------------------------------


class Run:
    """A run that is killed, once or several times, and gone on with until it is done."""

    def __init__(self, workplace, program, arguments):
        self.workplace, self.program, self.arguments = workplace, program, arguments

    def prepare(self):
        began = time.monotonic()
        self.undisturbed = self.workplace.root / f"undisturbed-{type(self).__name__}"
        self.workplace.must(*self.command(self.undisturbed))
        self.seconds = time.monotonic() - began
        self.expected = figures(self.undisturbed)

    def command(self, out, *more):
        return [self.program, "run", *self.arguments, "--out", str(out), "--quiet", *more]

    def kill(self, folder, rng, how):
        out = folder / "out"
        out.mkdir()
        (out / "notes.txt").write_text(STRANGERS)
        env = self.workplace.environment()
        faults = killed(self.command(out), folder, env, rng, 1.1 * self.seconds, how)
        faults += self.after_kill(out, how)
        while rng.random() < 0.3:
            faults += killed(self.command(out, "--resume"), folder, env, rng, self.seconds, how)
        ended = judge.run(self.command(out, "--resume"), folder, env, limits={}, allowed_s=60)
        if ended.code != 0:
            return faults + [f"resume: {ended.outcome}: {judge.text(ended.err)[-400:]}"]
        return faults + self.after_resume(out) + strangers_faults(folder)

    def after_kill(self, out, how):
        faults = []
        if (out / "run.json").exists():
            try:
                json.loads((out / "run.json").read_text())
            except ValueError as error:
                faults.append(f"half a run.json: {error}")
        deadline = time.monotonic() + 2
        while (left := processes_below(out)) and time.monotonic() < deadline:
            time.sleep(0.05)
        if left:
            faults.append(f"processes left: {left}")
        if how != "SIGKILL":
            faults += [f"left behind: {path}" for path in judge.left_over(out)]
        return faults

    def after_resume(self, out):
        faults = []
        found = figures(out)
        if found != self.expected:
            faults.append(f"other figures than an undisturbed run: {difference(self.expected, found)}")
        if not (out / "notes.txt").exists():
            faults.append("touched: out/notes.txt is gone")
        if list(out.rglob("parameters.tmp")):
            faults.append("left behind: parameters.tmp")
        for page in ("report/index.html", "report/report.md"):
            if not (out / page).exists():
                faults.append(f"no {page}")
        return faults


def difference(expected, found, where=""):
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in expected.keys() | found.keys():
            if expected.get(key) != found.get(key):
                return difference(expected.get(key), found.get(key), f"{where}/{key}")
    if isinstance(expected, (list, tuple)) and isinstance(found, (list, tuple)) and len(expected) == len(found):
        for index, (one, other) in enumerate(zip(expected, found)):
            if one != other:
                return difference(one, other, f"{where}/{index}")
    return f"{where}: {str(expected)[:100]} became {str(found)[:100]}"


class ScriptRun(Run):
    def __init__(self, workplace):
        super().__init__(workplace, workplace.program, ["--model", "tiny", "--strategy", "baseline", "--strategy", "slim", "--strategy",
                                                        "paced,slower=5", "--repetitions", "2"])


class CardRun(Run):
    def __init__(self, workplace):
        super().__init__(workplace, workplace.real, ["--model", MODEL, "--strategy", "baseline", "--strategy", "foreach-off", "--device",
                                                     CARD, "--steps", "1"])


# --- Histories --------------------------------------------------------------------------------------------


class Add:
    """Runs are filed while the program is killed: those that were there stay, each of the new ones is whole or absent."""

    RUNS = 3

    def __init__(self, workplace):
        self.workplace = workplace

    def prepare(self):
        self.history = self.workplace.history()
        self.runs = []
        for number in range(self.RUNS):
            folder = self.workplace.good / f"more-{number}"
            shutil.copytree(self.workplace.run(), folder, ignore=shutil.ignore_patterns("report", "snapshot.pickle"), dirs_exist_ok=True)
            run = json.loads((folder / "run.json").read_text())
            run["created"] = f"2026-05-0{number + 1}T00:00:00Z"
            (folder / "run.json").write_text(json.dumps(run))
            self.runs.append(folder)
        shutil.copy(self.history, self.workplace.root / "try.sqlite")
        began = time.monotonic()
        self.workplace.must(*self.command(self.workplace.root / "try.sqlite"))
        self.seconds = time.monotonic() - began
        self.before = self.records(self.history)
        self.after = self.records(self.workplace.root / "try.sqlite")

    def command(self, history):
        return [self.workplace.program, "history", "add", *map(str, self.runs), "--branch", "main", "--history", str(history)]

    def records(self, history):
        lines = self.workplace.must(self.workplace.program, "history", "export", "--history", history).splitlines()
        kept = []
        for line in map(json.loads, lines):
            line.pop("added", None)
            kept.append(line)
        return kept

    def kill(self, folder, rng, how):
        history = folder / "h.sqlite"
        shutil.copy(self.history, history)
        faults = killed(self.command(history), folder, self.workplace.environment(), rng, 1.2 * self.seconds, how)
        self.workplace.must(self.workplace.program, "history", "check", "--history", history)
        found = self.records(history)
        if found[: len(self.before)] != self.before:
            faults.append("lost: what was filed before is not as it was")
        if found != self.after[: len(found)]:
            faults.append("half a run: what was filed is not as it would be undisturbed")
        self.workplace.must(*self.command(history))
        if self.records(history) != self.after:
            faults.append("filed again, the history is not as it would be undisturbed")
        if not is_sound_sqlite(history):
            faults.append("the file is not sound")
        return faults + strangers_faults(folder) + [f"left behind: {path}" for path in judge.left_over(folder)]


class Prune(Add):
    """All that are to go are gone, or none."""

    def prepare(self):
        super().prepare()
        self.history = self.workplace.root / "try.sqlite"
        self.before = self.records(self.history)
        shutil.copy(self.history, self.workplace.root / "pruned.sqlite")
        self.workplace.must(*self.command(self.workplace.root / "pruned.sqlite"))
        self.after = self.records(self.workplace.root / "pruned.sqlite")

    def command(self, history):
        if history.name == "try.sqlite":
            return super().command(history)
        return [self.workplace.program, "history", "prune", "--keep", "2", "--history", str(history)]

    def kill(self, folder, rng, how):
        history = folder / "h.sqlite"
        shutil.copy(self.history, history)
        faults = killed(self.command(history), folder, self.workplace.environment(), rng, 1.2 * self.seconds, how)
        self.workplace.must(self.workplace.program, "history", "check", "--history", history)
        if self.records(history) not in (self.before, self.after):
            faults.append("half pruned")
        self.workplace.must(*self.command(history))
        if self.records(history) != self.after:
            faults.append("pruned again, the history is not as it would be undisturbed")
        return faults + strangers_faults(folder)


# --- What writes files ------------------------------------------------------------------------------------


MARK = b"Written by Peakbench, which replaces it unless it was changed: "


def marked(text, rest=b"\n"):
    """As Peakbench marks what it wrote (harness/base/own_file.h)."""
    value = 14695981039346656037
    for byte in text:
        value = (value ^ byte) * 1099511628211 % (1 << 64)
    return text + MARK + b"%016x" % value + rest


def of_another_day(data):
    """The same output with one more line."""
    text, mark, rest = data.rpartition(MARK)
    return marked(b"\n" + text, rest[16:]) if mark else data + b"\n"


def to_another_day(folder):
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.startswith("."):
            path.write_bytes(of_another_day(path.read_bytes()))


class Writer:
    """Writes over an earlier output: each file is the old one or the new one, and a second time all are new."""

    def __init__(self, workplace, words):
        self.workplace, self.words = workplace, words

    def prepare(self):
        self.whole = self.workplace.root / f"whole-{'-'.join(self.words[:2])}"
        self.whole.mkdir(exist_ok=True)
        began = time.monotonic()
        self.workplace.must(*self.command(self.whole))
        self.seconds = time.monotonic() - began
        self.expected = contents(self.whole)

    def command(self, out):
        workplace = self.workplace
        places = {"RUN": workplace.run(), "BASE": workplace.base(), "HISTORY": workplace.history()}
        words = [str(places.get(word, word)) for word in self.words]
        return [workplace.program, *(word.replace("OUT", str(out)) if word.startswith("OUT") else word for word in words)]

    def kill(self, folder, rng, how):
        out = folder / "out"
        earlier = self.earlier(out)
        faults = killed(self.command(out), folder, self.workplace.environment(), rng, 1.2 * self.seconds, how)
        faults += wholes(out, earlier, self.expected)
        self.workplace.must(*self.command(out))
        found = contents(out)
        faults += [f"not renewed: {name}" for name, data in self.expected.items() if found.get(name) != data]
        if found.get("notes.txt") != STRANGERS.encode():
            faults.append("touched: notes.txt")
        return faults + strangers_faults(folder)

    def earlier(self, out):
        """The same output, of another day."""
        shutil.copytree(self.whole, out)
        to_another_day(out)
        (out / "notes.txt").write_text(STRANGERS)
        return contents(out)


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def wholes(out, *versions):
    """Of every file the content is one of the versions'."""
    faults = []
    for name, data in contents(out).items():
        if judge.LEFT_OVER.search("/" + name):
            continue  # of a process that was killed
        if all(version.get(name) != data for version in versions):
            faults.append(f"half a file: {name} has {len(data)} bytes")
    return faults + [f"lost: {name}" for name in versions[0] if not (out / name).exists()]


class Merge:
    """The joined run is there whole or not at all, and once more it is there whole."""

    def __init__(self, workplace):
        self.workplace = workplace

    def prepare(self):
        self.parts = [self.large(number) for number in (1, 2)]
        whole = self.workplace.root / "whole-merge"
        began = time.monotonic()
        self.workplace.must(*self.command(whole))
        self.seconds = time.monotonic() - began
        self.expected = contents(whole)

    def large(self, number):
        """With a trace that takes a while to copy."""
        folder = self.workplace.root / f"large-part-{number}"
        if not folder.exists():
            shutil.copytree(self.workplace.part(number), folder)
            (trace,) = folder.rglob("trace.sqlite")
            with trace.open("ab") as file:
                file.write(os.urandom(1 << 20) * 16)
        return folder

    def command(self, out):
        return [self.workplace.program, "merge", *map(str, self.parts), "--out", str(out)]

    def kill(self, folder, rng, how):
        out = folder / "out"
        out.mkdir()
        (out / "notes.txt").write_text(STRANGERS)
        faults = killed(self.command(out), folder, self.workplace.environment(), rng, 1.2 * self.seconds, how)
        found = contents(out)
        del found["notes.txt"]
        if how != "SIGKILL":
            faults += [f"left behind: {path}" for path in judge.left_over(out)]
            faults += [f"half a merge: {', '.join(found)}"] if found and "run.json" not in found else []
        if "run.json" not in found:
            self.workplace.must(*self.command(out))
            found = contents(out)
            del found["notes.txt"]
        found.pop("incoming.tmp", None)  # killed between run.json and its end
        faults += [f"not as undisturbed: {name}" for name in found.keys() | self.expected.keys()
                   if name != "run.json" and found.get(name) != self.expected.get(name)]  # fmt: skip
        if json.loads(found["run.json"])["cases"] != json.loads(self.expected["run.json"])["cases"]:
            faults.append("other cases than undisturbed")
        if (out / "notes.txt").read_text() != STRANGERS:
            faults.append("touched: notes.txt")
        return faults + strangers_faults(folder)
