"""Cut, spoilt and hostile files through every command that reads them."""

import collections
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import threading
import xml.parsers.expat

import judge
from readers import all_readers, rng_of


def attack(workplace, counts, options):
    for reader in all_readers():
        if options.readers and reader.name not in options.readers:
            continue
        oddities(workplace, reader, counts, every=1 if options.count else 4)
        spoil_many(workplace, reader, counts, options.count or reader.quick, options)


# --- One reader's file, spoilt many times -------------------------------------------------------------------


def spoil_many(workplace, reader, counts, count, options):
    row = f"{reader.name}, commands"
    seeds = reader.seeds(workplace)
    benches = collections.deque(Bench(workplace, reader, f"{reader.in_bulk or 'x'}-{index}") for index in range(options.jobs))
    lock = threading.Lock()

    def one(index):
        with lock:
            bench = benches.pop()
        try:
            rng = rng_of(options.seed, reader.name, index)
            label, good = rng.choice(seeds)
            data = reader.spoil(rng, good, bench.scratch)
            bench.put(label, data)
            ended, faults = bench.try_command(rng.choice(reader.commands), data)
            counts.tried(row, ended.outcome, ended.seconds)
            for fault in faults:
                kept = bench.keep(options.keep, index)
                counts.found(row, fault, f"seed {options.seed}, file {index}: {ended.words[:500]}", kept)
        finally:
            with lock:
                benches.append(bench)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, range(options.first, options.first + count)))


class Bench:
    """A folder where one thread tries file after file."""

    def __init__(self, workplace, reader, name):
        self.workplace, self.reader = workplace, reader
        self.folder = workplace.trial(name)
        self.input, self.out = self.folder / "in", self.folder / "out"
        self.scratch = self.folder / "scratch"
        self.input.mkdir()
        reader.surroundings(workplace, self.input)
        self.path = None
        # So that a first look does not count as an appearance.
        workplace.run(), workplace.base(), workplace.timed(), workplace.history()

    def put(self, label, data):
        if self.path is not None:
            self.path.unlink(missing_ok=True)
        name = self.reader.file.replace("{}", label)
        if "TRACE" in name:
            trace = self.workplace.trace()
            name = name.replace("TRACE", str(trace.relative_to(self.workplace.run())))
        self.path = self.input / name
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        self.path.write_bytes(data)

    def words(self, command, data=b""):
        workplace = self.workplace
        places = {b"IN": self.input, b"OUT": self.out, b"RUN": workplace.run(), b"BASE": workplace.base(),
                  b"TIMED": workplace.timed(), b"HISTORY": workplace.history()}
        names = re.compile(rb"\b(IN|OUT|RUN|BASE|TIMED|HISTORY)(?=/|$)")
        words = command(data) if callable(command) else command
        # Words with bytes are the attack's own: taken as they are.
        return [workplace.real if self.reader.real else workplace.program] + [
            word if isinstance(word, bytes) else os.fsdecode(names.sub(lambda m: os.fsencode(places[m.group(1)]), word.encode()))
            for word in words]

    def try_command(self, command, data=b""):
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir()
        if self.reader.copy_to:
            copy = self.out / self.reader.copy_to
            copy.parent.mkdir(parents=True, exist_ok=True)
            if os.path.isfile(self.path):  # no link to itself either
                subprocess.run(["cp", "--sparse=always", str(self.path), str(copy)], check=True)  # some claim gigabytes
            else:
                os.symlink(self.path, copy)
        before = judge.state(self.folder.parent, besides=(str(self.out),))
        words = self.words(command, data)
        ended = judge.run(words, self.folder, self.workplace.environment())
        speaks = any(word in words for word in ("check", "doctor"))
        faults = judge.faults_of(ended, speaks=speaks)
        faults += judge.changed(before, judge.state(self.folder.parent, besides=(str(self.out),)))
        faults += [f"left behind: {path}" for path in judge.left_over(self.out)]
        faults += self.reader.judge_folder(self.out)
        if not ended.hung and ended.code in (0, 4, 5) and self.reader.well_formed:
            faults += written_wrong(self.out) + printed_wrong(ended, words)
        return ended, faults

    def keep(self, folder, index):
        if not folder:
            return ""
        kept = os.path.join(folder, re.sub(r"\W+", "-", self.reader.name), str(index))
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self.input, kept, symlinks=True)
        return kept


# --- What was written must be what it says it is ----------------------------------------------------------


def strict_json(text):
    def refuse(name):
        raise ValueError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def written_wrong(folder):
    faults = []
    for base, _, names in os.walk(folder):
        for name in names:
            faults += file_wrong(os.path.join(base, name))
    return faults


def file_wrong(path):
    kind = os.path.splitext(path)[1]
    if kind not in (".json", ".svg", ".xml", ".html", ".md"):
        return []
    with open(path, "rb") as file:
        data = file.read()
    try:
        if kind == ".json":
            strict_json(data.decode("utf-8"))
        elif kind in (".svg", ".xml"):
            xml.parsers.expat.ParserCreate().Parse(data, True)
        else:
            data.decode("utf-8")
        return []
    except (ValueError, xml.parsers.expat.ExpatError) as error:
        return [f"not {kind[1:]}: {os.path.basename(path)}: {error}"]


def printed_wrong(ended, words):
    if "--json" not in words:
        return []
    try:
        strict_json(judge.text(ended.out))
        return []
    except ValueError as error:
        return [f"not JSON on standard output: {error}"]


# --- What is no file of that kind at all ------------------------------------------------------------------


def make_fifo(path):
    os.mkfifo(path)


def make_endless(path):
    os.symlink("/dev/zero", path)


def make_huge(path):
    with open(path, "wb") as file:
        file.truncate(64 << 30)


def make_loop(path):
    os.symlink(path.name, path)


def make_missing(path):
    pass


def make_folder(path):
    path.mkdir()


def make_empty(path):
    path.touch()


def make_spaces(path):
    path.write_bytes(b" \n" * 500_000)


def make_deep(path):
    path.write_bytes(b'{"a":' * 200_000)


def make_closed_deep(path):
    path.write_bytes(b"[" * 200_000 + b"]" * 200_000)


def make_dotted(path):
    path.write_bytes(b"a" + b".a" * 100_000 + b" = 1\n")


def make_noise(path):
    path.write_bytes(rng_of(path.name).randbytes(100_000))


ODDITIES = (make_fifo, make_endless, make_huge, make_loop, make_missing, make_folder, make_empty, make_spaces, make_deep, make_closed_deep,
            make_dotted, make_noise)


def oddities(workplace, reader, counts, every):
    if reader.file == "unused":
        return
    row = f"{reader.name}, no such thing"
    bench = Bench(workplace, reader, "odd")
    label = reader.seeds(workplace)[0][0]
    for make in ODDITIES:
        bench.put(label, b"")
        bench.path.unlink()
        make(bench.path)
        for command in commands_for_oddities(reader)[::every]:
            ended, faults = bench.try_command(command)
            counts.tried(row, ended.outcome, ended.seconds)
            for fault in faults:
                counts.found(row, fault, f"{make.__name__[5:]}: {ended.words}")
            if ended.hung:
                break  # the others would take as long
        if bench.path.is_dir() and not bench.path.is_symlink():
            shutil.rmtree(bench.path)
        else:
            bench.path.unlink(missing_ok=True)
        bench.path = None


def commands_for_oddities(reader):
    """Without those that write to a copy: of nothing, or of everything, none is to be had."""
    if reader.copy_to.startswith("run"):
        return []
    return [one for one in reader.commands[:: 3 if reader.real else 1] if "OUT/h.sqlite" not in one[-1:]]
