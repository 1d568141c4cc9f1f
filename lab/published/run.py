#!/usr/bin/env python3
"""Published figures whose configuration needs the publisher's own way: each record of the JSON files beside this names a program, which is
run by `peakbench emulate`, and keeps what it took there beside the published figure.

usage: run.py [FILE...] [--only TEXT] [--missing] [--check] [--peakbench PROGRAM]

FILE       records, such as liger.json; otherwise all files of this folder
--only     records whose source, program or packages contain the text
--missing  records that have no result yet, or one without a figure that --check compares
--check    changes nothing, and fails where a result is another than the recorded one

A record may have `steps`: the same program with more `arguments` each, in an order in which each changes one more thing (`changed`) on the way
from the publisher's program to our case of the same figure. Their `bytes` and `phase` are kept and checked as the record's result is.

A program is called as its record says, from the repository's root, by the Python of ci/oracle ($PEAKBENCH_ORACLE). The last line that it
prints is JSON: `bytes`, `phase` (forward, backward, optimizer_step, build or evaluation) and, where it helps, `at_peak`. The packages of a
record are installed once each, without what they depend on, in $PEAKBENCH_CACHE/published, and come first on PYTHONPATH. Packages with
a `torch` are run by an environment of their own, without the oracle's packages.
Exit code 77 without the oracle, 1 where a program failed or, with --check, gave something else.
"""

import argparse
import datetime
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(1, str(ROOT / "lab"))
import record_file  # noqa: E402

CACHE = pathlib.Path(os.environ.get("PEAKBENCH_CACHE") or ROOT / ".cache") / "published"
SCHEMA = "peakbench.fidelity/1"
PHASES = ("forward", "backward", "optimizer_step", "build", "evaluation")
COMPARED = ("bytes", "phase", "peak_used_bytes", "verdict", "versions")
COMPARED_OF_STEP = ("bytes", "phase")
SECONDS = 3600
# What `import torch` needs, for a torch that a record names, and where that torch's CUDA headers are.
BESIDE_TORCH = ("filelock", "typing-extensions", "sympy", "mpmath", "networkx", "jinja2", "markupsafe", "fsspec", "numpy", "setuptools")
HEADERS_OF_TORCH = "nvidia-cuda-runtime"


class Failure(Exception):
    """What went wrong with a record, in words for whoever keeps it."""


# --- Records ------------------------------------------------------------------------------------------


def read(path):
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Failure(f"{path}: {error}") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA or not isinstance(document.get("records"), list):
        raise Failure(f'{path}: expected an object with "schema": "{SCHEMA}" and a list "records"')
    for number, record in enumerate(document["records"], 1):
        if objection := objection_to(record):
            raise Failure(f"{path}: record {number}: {objection}")
    return document


def objection_to(record):
    """Why a record cannot be run, or None."""
    program = record.get("configuration", {}).get("program")
    if not program or not all(isinstance(word, str) for word in program):
        return '"configuration" has no "program", a list of the program and its arguments'
    if not (ROOT / program[0]).is_file():
        return f"there is no program {program[0]} in the repository"
    if not record.get("card"):
        return '"card" is missing; `peakbench list devices` has their names'
    if not record.get("source", {}).get("name"):
        return '"source" has no "name"'
    for step in record.get("steps", []):
        if not step.get("changed") or not step.get("arguments") or not all(isinstance(word, str) for word in step["arguments"]):
            return 'a step has no "changed" or no "arguments", a list of words'
    unpinned = [name for name, version in packages_of(record).items() if not isinstance(version, str) or not version]
    return f"no version of the package {unpinned[0]}" if unpinned else None


def packages_of(record):
    return record["configuration"].get("packages", {})


def words_of(record):
    packages = [f"{name}=={version}" for name, version in packages_of(record).items()]
    return " ".join([record["source"]["name"], *record["configuration"]["program"], *packages])


# --- Packages -----------------------------------------------------------------------------------------


def oracle():
    return os.environ["PEAKBENCH_ORACLE"]


def installed(requirement):
    """The folder of one package, which is installed on the first call. Several runs may share the cache: a folder appears whole."""
    folder = CACHE / re.sub(r"[^\w.+-]+", "-", requirement)
    if folder.is_dir():
        return folder
    CACHE.mkdir(parents=True, exist_ok=True)
    making = pathlib.Path(tempfile.mkdtemp(prefix=".making-", dir=CACHE))
    command = [oracle(), "-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--no-deps", "--no-compile", "--target", making, requirement]
    print(f"installing {requirement}", file=sys.stderr, flush=True)
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        shutil.rmtree(making, ignore_errors=True)
        raise Failure(f"pip install {requirement}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
    making.chmod(0o755)
    try:
        making.rename(folder)
    except OSError:  # another run was quicker
        shutil.rmtree(making, ignore_errors=True)
    return folder


def python_and_path(packages):
    """The Python that runs a record, and the folders that come first on its path."""
    folders = [installed(f"{name}=={version}") for name, version in packages.items()]
    if "torch" not in packages:
        return oracle(), folders
    cuda = re.search(r"^cuda\b.*?'(\d+)", (installed(f"torch=={packages['torch']}") / "torch/version.py").read_text(), re.MULTILINE)[1]
    headers = HEADERS_OF_TORCH + ("-cu12" if cuda == "12" else f"=={cuda}.*")
    named = {name.lower() for name in packages}
    return bare_python(), folders + [installed(each) for each in (*BESIDE_TORCH, headers) if each not in named]


def bare_python():
    """A Python without any packages, of the oracle's version."""
    folder = CACHE / "bare-python"
    if not (folder / "bin/python").exists():
        subprocess.run([oracle(), "-m", "venv", "--without-pip", folder], check=True)
    return str(folder / "bin/python")


@functools.cache
def version_of_oracles_torch():
    found = subprocess.run([oracle(), "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True, check=True)
    return found.stdout.strip().partition("+")[0]


# --- Runs ---------------------------------------------------------------------------------------------


def environment(folders):
    """Nothing is downloaded, and nothing of the caller's settings of PyTorch counts."""
    own = {key: value for key, value in os.environ.items() if not key.startswith(("PYTORCH_", "TORCH", "CUDA", "CUBLAS_", "NVIDIA_"))}
    path = os.pathsep.join(map(str, folders))
    return {**own, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONWARNINGS": "ignore"}


def said_by(stdout):
    """The program's last line."""
    try:
        said = json.loads((stdout.strip().splitlines() or [""])[-1])
        said = {"bytes": said["bytes"], "phase": said["phase"], **({"at_peak": said["at_peak"]} if said.get("at_peak") else {})}
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(f'its last line is not {{"bytes": N, "phase": "..."}}: {stdout.strip()[-200:]!r}') from error
    if not isinstance(said["bytes"], int) or said["bytes"] <= 0 or said["phase"] not in PHASES:
        raise Failure(f"it said {said}; bytes is a positive integer, phase one of {', '.join(PHASES)}")
    return said


def cards_of(record):
    """One for each rank that the program starts, with the record's streams."""
    program, streams = record["configuration"]["program"], record["configuration"].get("streams")
    ranks = program[program.index("--ranks") + 1] if "--ranks" in program else "1"
    return record["card"] + ("" if ranks == "1" else f",count={ranks}") + (f",streams={streams}" if streams else "")


def failure_of(done):
    return Failure(f"exit code {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")


def emulated(peakbench, record, card, more_environment=None):
    """-> how the record's program ended on that card, and what --json says of it; None where nothing was written"""
    python, folders = python_and_path(packages_of(record))
    with tempfile.TemporaryDirectory(prefix="peakbench-published-") as scratch:
        took = pathlib.Path(scratch, "took.json")
        command = [peakbench, "emulate", "--card", card, "--json", took, "--", python, *record["configuration"]["program"]]
        try:
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=ROOT, timeout=SECONDS,
                                  env={**environment(folders), **(more_environment or {})})
        except subprocess.TimeoutExpired as error:
            raise Failure(f"it did not end within {SECONDS} s") from error
        written = took.is_file() and took.stat().st_size
        return done, json.loads(took.read_text(encoding="utf-8")) if written else None


def measure(peakbench, record):
    said, took = said_of_run(peakbench, record)
    versions = packages_of(record) if "torch" in packages_of(record) else {"torch": version_of_oracles_torch(), **packages_of(record)}
    used = [card["peak_used_bytes"] for card in took["cards"]]
    if record["figure"]["metric"].startswith("nccl"):
        said = {"bytes": calls_of(record["figure"]["metric"], took), "phase": ""}
    return {**said, "peak_used_bytes": used, "verdict": took["verdict"]["kind"], "versions": versions,
            "date": datetime.date.today().isoformat()}


def calls_of(function, took):
    """-> bytes of all calls of a function of NCCL, by all processes"""
    found = [one["bytes"] for process in took["processes"] for one in process["nccl_calls"] if one["call"] == function]
    if None in found:
        raise Failure(f"the bytes of {function} are unknown")
    return sum(found)


def measure_step(peakbench, record, step):
    configuration = record["configuration"]
    changed = {**record, "configuration": {**configuration, "program": [*configuration["program"], *step["arguments"]]}}
    said, _ = said_of_run(peakbench, changed)
    return {key: said[key] for key in COMPARED_OF_STEP}


def said_of_run(peakbench, record):
    done, took = emulated(peakbench, record, cards_of(record))
    if done.returncode:
        raise failure_of(done)
    return said_by(done.stdout), took


def differences(was, now):
    """What --check minds. A date is none."""
    minded = [key for key in COMPARED if key in now]
    return [f"{key} was {was.get(key)}, is {now[key]}" for key in minded if was.get(key) != now[key]]


def runs_of(given, record):
    """Of a record and its steps: a name, the result that it has ({} for none), what is compared of it, what measures it, and where that is kept."""
    name, peakbench = words_of(record), given.peakbench
    yield name, record.get("emulated") or {}, COMPARED, functools.partial(measure, peakbench, record), lambda now: record.update(emulated=now)
    for step in record.get("steps", []):
        has = {key: step[key] for key in COMPARED_OF_STEP if key in step}
        yield f"{name} {' '.join(step['arguments'])}", has, COMPARED_OF_STEP, functools.partial(measure_step, peakbench, record, step), step.update


def run_file(path, given):
    """How many results failed or changed."""
    document, failed = read(path), 0
    chosen = [record for record in document["records"] if not given.only or given.only in words_of(record)]
    for name, was, compared, measured, keep in (each for record in chosen for each in runs_of(given, record)):
        if given.missing and was.keys() >= set(compared):
            continue
        try:
            now = measured()
        except Failure as failure:
            failed += 1
            print(f"FAILED   {path.name}: {name}: {failure}", flush=True)
            continue
        changes = differences(was, now)
        print(f"{'as before' if not changes else 'CHANGED ' if given.check else 'measured'} {now['bytes']:>14,}  {name}", flush=True)
        if given.check and changes:
            failed += 1
            print(f"         {'; '.join(changes)}", flush=True)
        if changes and not given.check:
            keep(now)
            record_file.write(path, document)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--only")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--check", action="store_true")
    default = os.environ.get("PEAKBENCH_PROGRAM") or ROOT / "build/release/bin/peakbench"
    parser.add_argument("--peakbench", type=pathlib.Path, default=default)
    given = parser.parse_args()
    if "PEAKBENCH_ORACLE" not in os.environ:
        print("SKIP: no oracle; ci/oracle makes one, and PEAKBENCH_ORACLE names its Python")
        return 77
    given.peakbench = pathlib.Path(given.peakbench).resolve()
    try:
        failed = sum(run_file(path, given) for path in given.files or sorted(HERE.glob("*.json")))
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
