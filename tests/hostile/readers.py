"""What Peakbench reads that others wrote: a good file of each kind, how it is spoilt, where it lies, which commands read it.

In a command IN is the folder with the spoilt file, OUT a folder for what the command writes; both are new to it.
"""

import dataclasses
import functools
import json
import random
import shutil
import struct
import typing

import mutations
from workplace import MODEL, SOURCE

TINY = ("run", "--model", "tiny", "--strategy", "baseline", "--strategy", "slim", "--repetitions", "0", "--quiet", "--no-report")


@dataclasses.dataclass(frozen=True)
class Reader:
    name: str
    seeds: typing.Callable  # workplace -> [(label, bytes)]
    spoil: typing.Callable  # (rng, bytes, scratch file) -> bytes
    file: str  # the spoilt file, below IN; {} is the seed's label
    commands: list  # of argument lists, or callables of the file's bytes
    surroundings: typing.Callable = lambda workplace, folder: None  # what else must lie in IN
    copy_to: str = ""  # a second copy below OUT, for commands that write to what they read
    real: bool = False  # with the worker on LibTorch
    judge_folder: typing.Callable = lambda folder: []  # what is wrong with what a command has written
    in_bulk: str = ""  # the reader's name in peakbench-read-many, where it has one
    well_formed: bool = True  # what is written is what its name says; not where the user's own template makes it
    quick: int = 12  # spoilt files of a short round


def text(rng, data, scratch):
    return mutations.of_text(rng, data)


def binary(rng, data, scratch):
    return mutations.of_bytes(rng, data)


def seed_of(*methods):
    return lambda workplace: [(method, getattr(workplace, method)().read_bytes()) for method in methods]


# --- A run, its traces ------------------------------------------------------------------------------------


def run_seeds(workplace):
    return [("emulated", (workplace.run() / "run.json").read_bytes()), ("timed", (workplace.timed() / "run.json").read_bytes())]


def cases_of_run(workplace, folder):
    shutil.copytree(workplace.run() / "cases", folder / "run/cases")


def whole_run(workplace, folder):
    shutil.copytree(workplace.run(), folder / "run", ignore=shutil.ignore_patterns("report"))


def trace_place(workplace):
    return str(workplace.trace().relative_to(workplace.run()))


READING_A_RUN = [
    ["report", "IN/run", "--out", "OUT/report"],
    ["report", "IN/run", "BASE", "--format", "markdown", "--out", "OUT/report"],
    ["export", "IN/run", "foreach-off", "--out", "OUT/x.pickle"],
    ["export", "IN/run", "foreach-off", "--format", "chrome", "--out", "OUT/x.json"],
    ["compare", "BASE", "IN/run"],
    ["compare", "IN/run", "BASE", "--json"],
    ["compare", "BASE", "IN/run", "--out", "OUT/comparison"],
    ["gate", "BASE", "IN/run", "--junit", "OUT/gate.xml"],
    ["history", "add", "IN/run", "--history", "OUT/h.sqlite"],
]


def taken_up(workplace):
    path = workplace._made("tiny", lambda path: workplace.must(workplace.program, *TINY, "--out", path))
    return [("tiny", (path / "run.json").read_bytes())]


def snapshot_seeds(workplace):
    return [("snapshot", workplace.trace().with_name("snapshot.pickle").read_bytes())]


# --- A history --------------------------------------------------------------------------------------------

READING_A_HISTORY = [
    ["history", "list", "--all"],
    ["history", "list", "--json"],
    ["history", "show", "1"],
    ["history", "show", "2", "--json"],
    ["history", "trend"],
    ["history", "trend", "baseline", "--json"],
    ["history", "check"],
    ["history", "export"],
    ["history", "export", "--format", "folders", "--out", "OUT/folders"],
    ["publish", "--out", "OUT/site"],
    ["compare", "history:main@previous", "TIMED"],
    ["gate", "history:@1", "history:@2"],
]
WRITING_A_HISTORY = [
    ["history", "add", "TIMED"],
    ["history", "prune", "--keep", "1"],
    ["history", "accept", "1", "--note", "so be it"],
]


def on(history, commands):
    return [[*command, "--history", history] for command in commands]


# --- A plugin's manifest ----------------------------------------------------------------------------------


def spoilt_plugin(rng, data, scratch):
    """The manifest in its section more often than the ELF file around it."""
    if not data.startswith(b"\x7fELF"):
        return mutations.of_text(rng, data)
    if rng.random() < 0.3:
        return mutations.of_bytes(rng, data)
    begin = data.rindex(b"{", 0, data.index(b'"stamp"'))
    return mutations.within(rng, data, begin, data.index(b"\0", begin))


def both_plugins(workplace, folder):
    (folder / "plugins").mkdir()


# --- Templates, weights, words --------------------------------------------------------------------------------


def template_seeds(workplace):
    names = ("markdown/report.md.mustache", "markdown/peak.svg.mustache", "html/table.mustache", "html/index.html.mustache",
             "site/index.html.mustache", "junit/gate.xml.mustache")
    return [(name, (SOURCE / "templates" / name).read_bytes()) for name in names]


def weights(workplace):
    tensors = {"class_token": [1, 1, 48], "conv_proj.weight": [48, 3, 16, 16], "conv_proj.bias": [48], "encoder.ln.weight": [48]}
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors.items():
        size = 4 * functools.reduce(int.__mul__, shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    head = json.dumps(header).encode()
    return [("weights", struct.pack("<Q", len(head)) + head + bytes(at))]


def spoilt_weights(rng, data, scratch):
    if rng.random() < 0.3:
        return mutations.of_bytes(rng, data)
    size = struct.unpack("<Q", data[:8])[0]
    head = mutations.of_text(rng, data[8 : 8 + size])
    claimed = rng.choice((len(head), len(head), len(head), 0, len(head) + 1, 1 << 63, (1 << 64) - 1))
    return struct.pack("<Q", claimed) + head + data[8 + size :]


def policy_seeds(workplace):
    return [(text, text.encode()) for text in ("1MiB", "0.5%", "20MiB", "off", "fail", "512", "2%")]


def word_seeds(workplace):
    words = ("tiny,layers=3", "slim,rank=4+blocky", "emulated:t4-16gb,memory=8GiB,count=2", "cpu", "1,2,4", "bf16", "2GiB",
             'tiny,behaviour="a,b"', "history:main@latest,suite=x.toml,card=h100")
    return [(word, word.encode()) for word in words]


def argument(data):
    """As a shell can pass it: without zeros, not endless."""
    return data.replace(b"\0", b"")[:100_000]


def policy_commands():
    options = ("--requested", "--allocated", "--reserved", "--throughput", "--false-alarms", "--failed", "--missing")
    return [lambda data, option=option: ["gate", "BASE", "RUN", option, argument(data)] for option in options]


def word_commands():
    start = ["run", "--model", "tiny", "--strategy", "baseline", "--dry-run"]
    options = ("--model", "--strategy", "--device", "--dtype", "--batch", "--seq", "--seed", "--steps", "--timeout", "--memory-limit",
               "--threads", "--repetitions", "--plugins")
    found = [lambda data, option=option: [*start, f"{option}=".encode() + argument(data)] for option in options]
    found.append(lambda data: ["compare", argument(data) or "-", "RUN"])
    found.append(lambda data: ["history", "trend", b"x" + argument(data), "--history", "HISTORY"])
    found.append(lambda data: ["history", "list", b"--branch=" + argument(data), "--history", "HISTORY"])
    found.append(lambda data: [argument(data)])
    found.append(lambda data: ["report", argument(data) or "-"])
    return found


def all_readers():
    return [
        Reader("suite", seed_of("suite", "programs"), text, "suite.toml",
               [["run", "IN/suite.toml", "--dry-run"], ["run", "IN/suite.toml", "--dry-run", "--json"],
                ["run", "IN/suite.toml", "--model", "tiny", "--out", "OUT/run", "--dry-run"]], in_bulk="suite"),
        Reader("run.json", run_seeds, text, "run/run.json", READING_A_RUN, surroundings=cases_of_run, in_bulk="run"),
        Reader("run.json, resumed", taken_up, text, "run.json", [[*TINY, "--resume", "--out", "OUT/run"]],
               copy_to="run/run.json", quick=4),
        Reader("trace", lambda workplace: [("trace", workplace.trace().read_bytes())], mutations.of_sqlite, "run/TRACE", READING_A_RUN,
               surroundings=whole_run, in_bulk="trace", quick=20),
        Reader("snapshot", snapshot_seeds, binary, "s.pickle", [["import", "IN/s.pickle", "--output", "OUT/run"]]),
        Reader("history", seed_of("history"), mutations.of_sqlite, "h.sqlite",
               on("IN/h.sqlite", READING_A_HISTORY) + on("OUT/h.sqlite", WRITING_A_HISTORY), copy_to="h.sqlite", in_bulk="history",
               quick=20),
        Reader("history, exported", seed_of("exported"), text, "saved.jsonl",
               [["history", "add", "IN/saved.jsonl", "--history", "OUT/h.sqlite"]], quick=6),
        Reader("plugin manifest", seed_of("strategies"), spoilt_plugin, "plugins/p.so",
               [["list", "strategies", "--plugins", "IN/plugins"], ["list", "strategies", "--json", "--plugins", "IN/plugins"],
                ["run", "--model", "tiny", "--strategy", "baseline", "--plugins", "IN/plugins", "--dry-run"],
                ["doctor", "--plugins", "IN/plugins"]], surroundings=both_plugins, in_bulk="manifest"),
        Reader("card", seed_of("card"), text, "card.json",
               [["run", "--model", "vit-b-16", "--strategy", "baseline", "--device", "emulated:IN/card.json", "--dry-run"],
                ["emulate", "--card", "IN/card.json", "--", "true"]], real=True, in_bulk="card"),
        Reader("template", template_seeds, text, "templates/{}",
               [["report", "RUN", "--templates", "IN/templates", "--out", "OUT/report"],
                ["compare", "BASE", "RUN", "--templates", "IN/templates", "--out", "OUT/comparison"],
                ["gate", "BASE", "RUN", "--templates", "IN/templates", "--junit", "OUT/gate.xml"],
                ["publish", "--history", "HISTORY", "--templates", "IN/templates", "--out", "OUT/site"]], in_bulk="template", well_formed=False),
        Reader("emulated program", seed_of("took"), text, "took.json",
               [["gate", "IN/good.json", "IN/took.json"], ["compare", "IN/took.json", "IN/good.json", "--json"]],
               surroundings=lambda workplace, folder: shutil.copy(workplace.took(), folder / "good.json")),
        Reader("gate policy", policy_seeds, text, "unused", policy_commands(), in_bulk="policy", quick=14),
        Reader("command line", word_seeds, text, "unused", word_commands(), quick=20),
        Reader("safetensors", weights, spoilt_weights, "w.safetensors",
               [["run", "--model", MODEL + ",weights=IN/w.safetensors", "--strategy", "baseline", "--steps", "1", "--repetitions", "0",
                 "--quiet", "--no-report", "--out", "OUT/run"]], real=True, judge_folder=lambda folder: crashed_cases(folder / "run"),
               in_bulk="safetensors", quick=2),
    ]


def crashed_cases(folder):
    """A file must not end the worker that reads it."""
    if not (folder / "run.json").exists():
        return []
    cases = json.loads((folder / "run.json").read_text())["cases"]
    return [f"case crashed: {case['reason'][:300]}" for case in cases if case["status"] == "crashed"]


def rng_of(*words):
    return random.Random("/".join(map(str, words)))
