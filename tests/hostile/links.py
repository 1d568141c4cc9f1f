"""Links in a run's folder: nothing of what they lead to is read into another run, written, or deleted."""

import json
import os
import shutil

import judge
from readers import rng_of

SECRET = b"of somebody, and for nobody\n"
SCRIPT = ["--model", "tiny", "--strategy", "baseline", "--strategy", "slim", "--repetitions", "0", "--no-report", "--quiet"]
COMMANDS = {
    "merge, of a part": ["merge", "FOLDER", "OTHER", "--out", "OUT"],
    "merge, into": ["merge", "PART", "OTHER", "--out", "FOLDER"],
    "run --overwrite": ["run", *SCRIPT, "--out", "FOLDER", "--overwrite"],
    "run --overwrite, other cases": ["run", "--model", "tiny", "--strategy", "rival", "--repetitions", "0", "--no-report", "--quiet", "--out",
                                     "FOLDER", "--overwrite"],
    "run --resume": ["run", *SCRIPT, "--out", "FOLDER", "--resume"],
}
QUICK = 24


def attack(workplace, counts, options):
    works = [(name, place, target) for name in COMMANDS for place in PLACES for target in TARGETS]
    if not options.count:
        works = rng_of(options.seed, "links").sample(works, QUICK)
    for name, place, target in works:
        ended, faults = Trial(workplace, name).link(place, target)
        counts.tried(name, ended.outcome, ended.seconds)
        for fault in faults:
            counts.found(name, fault, f"{place} as {target}: {ended.words}")


# What is a link, below a run's folder; CASE: the folder of its last case.
PLACES = ("cases", "CASE", "CASE/trace.sqlite", "CASE/snapshot.pickle", "CASE/worker.log", "CASE/memory.job.json", "CASE/memory.result.json",
          "CASE/parameters.tmp", "incoming.tmp", "report")


def same_files(elsewhere, place):
    """What was there, at somebody's; of a file that was not, a secret."""
    path = elsewhere / "theirs"
    if place.exists():
        place.rename(path)
    else:
        path.write_bytes(SECRET)
    return path


def secret(elsewhere, _):
    path = elsewhere / "secret"
    path.write_bytes(SECRET)
    return path


def folder(elsewhere, _):
    path = elsewhere / "folder"
    (path / "trace.sqlite").parent.mkdir()
    for name in ("trace.sqlite", "worker.log", "parameters.tmp", "run.json"):
        (path / name).write_bytes(SECRET)
    return path


def nothing(elsewhere, _):
    return elsewhere / "nothing"


def itself(_, place):
    return place


TARGETS = {make.__name__: make for make in (same_files, secret, folder, nothing, itself)}


class Trial:
    def __init__(self, workplace, name):
        self.workplace, self.name = workplace, name
        self.folder = workplace.trial("links")
        self.run, self.elsewhere = self.folder / "run", self.folder / "elsewhere"
        self.elsewhere.mkdir()

    def _lay(self):
        """The run's folder, and that of a case."""
        if self.name == "merge, into":
            self.run.mkdir()
            return self.run / "cases/tiny-baseline"
        if self.name.startswith("merge"):
            shutil.copytree(self.workplace.part(1), self.run)
        else:
            self.workplace.must(self.workplace.program, "run", *SCRIPT, "--out", self.run)
        if self.name == "run --resume":
            self._forget_last_case()
        return sorted((self.run / "cases").iterdir())[-1]

    def _forget_last_case(self):
        run = json.loads((self.run / "run.json").read_text())
        run["status"], run["pending"] = "interrupted", [run["cases"].pop()["id"]]
        (self.run / "run.json").write_text(json.dumps(run))

    def link(self, place, target):
        case = self._lay()
        path = self.run / place.replace("CASE", str(case.relative_to(self.run)))
        path.parent.mkdir(parents=True, exist_ok=True)
        leads_to = TARGETS[target](self.elsewhere, path)
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.symlink_to(leads_to)
        before = judge.state(self.folder.parent, besides=(str(self.run), str(self.folder / "out")))
        ended = judge.run(self._words(), self.folder, self.workplace.environment(), limits={}, allowed_s=4 * judge.patience())
        faults = judge.faults_of(ended, {0, 2})
        faults += judge.changed(before, judge.state(self.folder.parent, besides=(str(self.run), str(self.folder / "out"))))
        faults += [f"copied: {file.relative_to(self.folder)}" for where in (self.folder / "out", self.run) for file in where.rglob("*")
                   if file.is_file() and not is_behind_link(file, self.run) and SECRET in file.read_bytes()]
        return ended, faults

    def _words(self):
        places = {"FOLDER": self.run, "OTHER": self.workplace.part(2), "PART": self.workplace.part(1), "OUT": self.folder / "out"}
        return [self.workplace.program, *(str(places.get(word, word)) for word in COMMANDS[self.name])]


def is_behind_link(path, top):
    return any(os.path.islink(one) for one in (path, *path.parents) if one.is_relative_to(top))
