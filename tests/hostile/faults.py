"""Every call that changes a file fails once, one at a time: full disk, broken disk, quota.

A library that is preloaded (shim/fail_nth.c) counts the calls of a command, then makes the n-th fail.
"""

import concurrent.futures
import errno
import json
import os
import shutil

import judge
from kills import contents, marked, to_another_day
from readers import rng_of
from workplace import CARD, FILED, MODEL, asked, is_sound_sqlite

ERRORS = (errno.ENOSPC, errno.EIO, errno.EDQUOT)
# Calls of which nothing depends: a folder that is flushed after the rename (of a file it is another matter), a probe that is removed, a
# file that was only read.
FORGIVEN = ("unlink", "rmdir", "close", "fsync")
QUICK = 6

SCRIPT = ["--model", "tiny", "--strategy", "baseline", "--strategy", "slim", "--repetitions", "1"]
COMMANDS = {
    "run": ["run", *SCRIPT, "--out", "OUT/run"],
    "run --resume": ["run", *SCRIPT, "--out", "OUT/half", "--resume"],
    "run --overwrite": ["run", *SCRIPT, "--out", "OUT/tiny", "--overwrite"],
    "report": ["report", "RUN", "--out", "OUT/report"],
    "export": ["export", "RUN", "foreach-off", "--out", "OUT/x.pickle"],
    "export --format chrome": ["export", "RUN", "foreach-off", "--format", "chrome", "--out", "OUT/x.json"],
    "compare": ["compare", "BASE", "RUN", "--out", "OUT/comparison"],
    "gate": ["gate", "BASE", "RUN", "--junit", "OUT/gate.xml", "--summary", "OUT/summary.md", "--out", "OUT/gate"],
    "ab": ["ab", "BUILD", "BUILD", "--model", "tiny", "--strategy", "baseline", "--pairs", "2", "--quiet", "--out", "OUT/ab"],
    "history add": ["history", "add", "FRESH", "--history", "OUT/h.sqlite"],
    "history add, first": ["history", "add", "RUN", "TIMED", "--history", "OUT/new.sqlite"],
    "history accept": ["history", "accept", "1", "--note", "so be it", "--history", "OUT/h.sqlite"],
    "history prune": ["history", "prune", "--keep", "1", "--history", "OUT/h.sqlite"],
    "history export": ["history", "export", "--out", "OUT/h.jsonl", "--history", "HISTORY"],
    "history export, folders": ["history", "export", "--format", "folders", "--out", "OUT/folders", "--history", "HISTORY"],
    "publish": ["publish", "--history", "HISTORY", "--out", "OUT/site"],
    "merge": ["merge", "PART", "OTHER", "--out", "OUT/all"],
    "merge, after a killed one": ["merge", "PART", "OTHER", "--out", "OUT/killed"],
    "report, again": ["report", "RUN", "--out", "OUT/again"],
    "publish, again": ["publish", "--history", "HISTORY", "--out", "OUT/again"],
    "worker": ["run", "--model", MODEL, "--strategy", "baseline", "--strategy", "foreach-off", "--steps", "1", "--repetitions", "1",
               "--out", "OUT/real", "--quiet"],
    "worker on the card": ["run", "--model", MODEL, "--strategy", "baseline", "--device", CARD, "--steps", "1", "--out", "OUT/real",
                           "--quiet"],
}
EXPECTED = {"gate": (0, 4)}
# What went wrong once, tried in the short form too: the last such call, how it fails.
REMEMBERED = {
    "gate": ("write", "summary.md", errno.ENOSPC, "once"),  # the half of a page stayed in a job's summary
    "history add": ("open", "h.sqlite", errno.ENOSPC, "from"),  # "read-only", which it was not
    "history prune": ("fdatasync", "h.sqlite-journal", errno.ENOSPC, "from"),  # "nothing was changed", and the runs were gone
}


def attack(workplace, counts, options):
    if options.shim is None:
        return counts.skip("all", "no library to preload was named (--shim)")
    works = []
    for name in COMMANDS:
        command = Command(workplace, options.shim.resolve(), name)
        calls = command.count()
        if not calls:
            counts.found(name, "no call was counted: the library was not loaded")
        works += [(command, number, error, "once") for number, error in chosen(options, name, calls)]
        works += [(command, number, errno.ENOSPC, "from") for number, _ in chosen(options, name + " full", calls, 2)]
        works += [(command, number, 0, "short") for number, _ in chosen(options, name + " short", calls, 1)
                  if calls[number - 1][0] in ("write", "pwrite")]
        works += [work for work in command.remembered() if work not in works]
    counts.expected = len(works)

    def one(work):
        command, number, error, mode = work
        outcome, faults, seconds = command.fail(number, error, mode)
        counts.tried(command.name, outcome, seconds)
        for fault in faults:
            name, path = command.calls[number - 1]
            counts.found(command.name, fault, f"call {number} of {len(command.calls)} ({name} {os.path.basename(path)}) failed "
                         f"({mode}) with {errno.errorcode.get(error, 'one byte less')}")

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, works))


def is_folder(path):
    return "." not in os.path.basename(path) and "#" not in path  # files have an ending, or no name (O_TMPFILE)


def is_json(data):
    try:
        json.loads(data)
        return True
    except ValueError:
        return False


def chosen(options, name, calls, quick=QUICK):
    """Numbers of calls with an error each: all of them, or a sample."""
    rng = rng_of(options.seed, name)
    numbers = list(range(1, len(calls) + 1))
    most = options.count or (1 if name.startswith("worker") else quick)
    if most < len(numbers):
        numbers = sorted(rng.sample(numbers, most))
    return [(number, rng.choice(ERRORS)) for number in numbers]


class Command:
    def __init__(self, workplace, shim, name):
        self.workplace, self.shim, self.name = workplace, shim, name
        self.calls = []
        self.in_worker = name.startswith("worker")
        places = {"RUN": workplace.run(), "BASE": workplace.base(), "TIMED": workplace.timed(), "HISTORY": workplace.history(),
                  "FRESH": workplace.fresh(), "PART": workplace.part(1), "OTHER": workplace.part(2),
                  "BUILD": workplace.root / "installed"}
        self.words = [str(places.get(word, word)) for word in COMMANDS[name]]
        # What the command finds there, by name.
        self._earlier = {}
        if "resume" in name:
            self._earlier["half"] = self._half_run()
        elif "overwrite" in name:
            self._earlier["tiny"] = workplace._made("faults-tiny", lambda path: workplace.must(workplace.program, "run", *SCRIPT, "--out", path))
        elif "killed" in name:
            self._earlier["killed"] = self._killed_merge()
        elif "again" in name:
            self._earlier["again"] = self._output_of_another_day()

    def _output_of_another_day(self):
        def make(path):
            self.workplace.must(self.workplace.program, *(str(path) if word == "OUT/again" else word for word in self.words))
            to_another_day(path)

        return self.workplace._made(f"faults-{self.words[0]}", make)

    def _killed_merge(self):
        """What a merge leaves that is killed before its run.json is there."""
        def make(path):
            self.workplace.must(self.workplace.program, "merge", self.workplace.part(1), self.workplace.part(2), "--out", path)
            slugs = sorted(folder.name for folder in (path / "cases").iterdir())
            (path / "run.json").unlink()
            (path / "incoming.tmp").write_bytes(marked("".join(slug + "\n" for slug in slugs).encode()))

        return self.workplace._made("faults-killed-merge", make)

    def _half_run(self):
        """A run that has its first case."""
        def make(path):
            self.workplace.must(self.workplace.program, "run", *SCRIPT, "--out", path, "--quiet", "--no-report")
            run = json.loads((path / "run.json").read_text())
            run["status"], run["pending"] = "interrupted", [run["cases"][1]["id"]]
            del run["cases"][1:]
            (path / "run.json").write_text(json.dumps(run))

        return self.workplace._made("faults-half", make)

    def _environment(self, out, number=0, error=0, mode="once", log=None):
        more = {"LD_PRELOAD": str(self.shim), "PEAKBENCH_FAULT_PROGRAM": "peakbench-worker"[:15] if self.in_worker else "peakbench",
                "PEAKBENCH_FAULT_BELOW": str(out), "PEAKBENCH_FAULT_AT": str(number), "PEAKBENCH_FAULT_ERROR": str(error),
                "PEAKBENCH_FAULT_MODE": mode}
        if log:
            more["PEAKBENCH_FAULT_LOG"] = str(log)
        return self.workplace.environment(**more)

    def _lay(self, folder):
        out = folder / "out"
        out.mkdir()
        shutil.copy(self.workplace.history(), out / "h.sqlite")
        (out / "notes.txt").write_text("years of work\n")
        for name, folder in self._earlier.items():
            shutil.copytree(folder, out / name)
        return out

    def _run(self, out, env):
        program = self.workplace.real if self.in_worker else self.workplace.program
        words = [word.replace("OUT", str(out)) if word.startswith("OUT/") else word for word in self.words]
        return judge.run([program, *words], out.parent, env, limits={}, allowed_s=4 * judge.patience())

    def count(self):
        folder = self.workplace.trial(f"count-{abs(hash(self.name))}")
        out, log = self._lay(folder), folder / "calls.log"
        ended = self._run(out, self._environment(out, log=log))
        if ended.code not in EXPECTED.get(self.name, (0,)):
            raise RuntimeError(f"{self.name}: {ended.outcome}, and nothing has failed yet: {judge.text(ended.err)}")
        if log.exists():
            self.calls = [tuple(line.split(" ", 2)[1:]) for line in log.read_text().splitlines()]
        if self.in_worker:  # each worker counts its own: those of the longest
            self.calls = self.calls[: max(int(line.split(" ")[0]) for line in log.read_text().splitlines())]
        self.whole = contents(out)
        self.code = ended.code
        shutil.rmtree(folder.parent)
        return self.calls

    def remembered(self):
        if self.name not in REMEMBERED:
            return []
        call, file, error, mode = REMEMBERED[self.name]
        number = max(index for index, (name, path) in enumerate(self.calls, 1) if name == call and os.path.basename(path) == file)
        return [(self, number, error, mode)]

    def fail(self, number, error, mode):
        folder = self.workplace.trial(f"{abs(hash(self.name))}-{number}-{error}-{mode}")
        out = self._lay(folder)
        before = contents(out)
        others = judge.state(folder.parent, besides=(str(out),))
        ended = self._run(out, self._environment(out, number, error, mode))
        call, path = self.calls[number - 1]
        codes = {2, *EXPECTED.get(self.name, (0,))} | ({3} if self.in_worker or self.name == "ab" else set())
        faults = judge.faults_of(ended, codes)
        if mode == "short" and ended.code != self.code:
            faults.append(f"a short write was taken for a failure: {ended.outcome}: {judge.text(ended.err)[-200:]}")
        # SQLite tries to open for reading what it could not open for writing, and with that forgets why; asked again, the system has no
        # objection, as the call failed only once.
        forgotten = mode == "once" and call == "open" and ".sqlite" in path and "the disk refused it for a moment" in judge.text(ended.err)
        if ended.code == 2 and mode != "short" and not forgotten and not judge.gives_reason(ended, error):
            faults.append(f"no reason given: {judge.text(ended.err)[-300:]}")
        said = "Not measured, as the machine failed" in judge.text(ended.err)
        if ended.code == self.code and mode == "once" and call not in FORGIVEN and not self.in_worker and not said:
            faults.append(f"went unnoticed: exit code {ended.code}, and a {call} had failed") if self._differs(out) else None
        if ended.code == self.code and mode == "once" and call == "fsync" and not is_folder(path) and not self.in_worker and not said:
            faults.append(f"went unnoticed: exit code {ended.code}, and a file was not flushed")
        faults += judge.changed(others, judge.state(folder.parent, besides=(str(out),)))
        if call not in ("unlink", "rmdir"):
            # A journal that could not be played back, for want of room, is kept for whoever opens the history next.
            faults += [f"left behind: {os.path.relpath(path, out)}" for path in judge.left_over(out)
                       if (mode != "from" or not path.endswith("-journal")) and os.path.relpath(path, out) not in before]
        faults += self._half_files(out, before, ended)
        if self.name.startswith("merge") and ended.code == 2 and call not in ("unlink", "rmdir"):
            faults += self._half_merge(out, self.words[-1].split("/")[-1], before)
        if self.in_worker and ended.code in (0, 3):
            faults += self._blamed_on_case(out / "real/run.json", error)
        shutil.rmtree(folder.parent)
        return f"{mode}: {ended.outcome}", faults, ended.seconds

    def _differs(self, out):
        """Output that is not there, though the exit code says so."""
        now = contents(out)
        return any(name not in now for name in self.whole)

    def _half_files(self, out, before, ended):
        faults = []
        now = contents(out)
        for name, data in before.items():
            if name in now or name.startswith(("tiny/", "half/", "killed/")):
                continue
            faults.append(f"lost: {name}")
        if now.get("notes.txt") != before["notes.txt"]:
            faults.append("touched: notes.txt")
        for name, data in now.items():
            if name.endswith(".sqlite") and (out / name).stat().st_size and not is_sound_sqlite(out / name):
                faults.append(f"half a file: {name} is not sound")
            elif name.endswith(("run.json", "ab.json", "gate.xml", ".svg", ".html", ".md", ".pickle", ".jsonl", "x.json")):
                faults += self._half_file(name, data, before)
        if self.name.startswith("history") and ended.code == 2 and "h.sqlite" in before:
            if asked(out / "h.sqlite", FILED) != asked(self.workplace.history(), FILED):
                faults.append("changed: the call failed, and the history is another")
        return faults

    def _half_merge(self, out, name, before):
        """None of it, or what was there is still known to be half of one; and a second time, all of it."""
        now = contents(out)
        left = [path for path in now if path.startswith(f"{name}/")]
        faults = []
        if left and f"{name}/incoming.tmp" not in before:
            faults.append(f"left behind: {', '.join(left)}")
        again = self._run(out, self.workplace.environment())
        if again.code != 0:
            faults.append(f"cannot be repeated: {again.outcome}: {judge.text(again.err)[-300:]}")
        elif {path for path in contents(out) if path.startswith(name)} != {path for path in self.whole if path.startswith(name)}:
            faults.append("repeated, the files are others")
        return faults

    def _half_file(self, name, data, before):
        """It is as it was, or as it becomes undisturbed; a file that tells the time, whole by its end."""
        if data in (before.get(name), self.whole.get(name)):
            return []
        if name.endswith(".json"):  # grows as the run goes
            return [] if is_json(data) else [f"half a file: {name} is no JSON"]
        if name.endswith(".md") and self.name.startswith(("run", "worker")):
            return [] if data else [f"half a file: {name} is empty"]  # says what became of the case
        whole = self.whole.get(name, b"")
        same_end = data.rstrip().endswith((b"}", b"</html>", b"</svg>", b"</testsuites>", b" -->")) or whole[-20:] == data[-20:]
        return [] if same_end and len(data) > len(whole) // 2 else [f"half a file: {name} has {len(data)} bytes, whole {len(whole)}"]

    def _blamed_on_case(self, path, error):
        """What the machine did is the machine's: host_failure, not the case's own outcome."""
        if not path.exists():
            return []
        wrong = [case for case in json.loads(path.read_text())["cases"] if case["status"] not in ("ok", "host_failure")]
        return [f"blamed on the case: {case['status']}: {case['reason'][:200]}" for case in wrong]
