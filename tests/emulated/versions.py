"""The releases of PyTorch on the package index under `peakbench emulate`: each is downloaded, trains a small model, and gives a row of the
table in docs/evidence/emulator.md. Half a gigabyte to a gigabyte a release, and a minute or two: for the night.

usage: versions.py PEAKBENCH [--torch VERSION ...] [--python PYTHON ...] [--folder FOLDER]

--torch   these releases; otherwise the last patch of every one from 2.6 on that the index has
--python  the first runs every release; the others the oldest and the newest of them
--folder  where releases are unpacked and kept; otherwise each goes when it has run

A row is printed only for what ran: PyTorch's own count of the reserved memory is what the stand-ins were asked for, every function that the
release links is there (LD_BIND_NOW), and a size that depends on values is the right one. `peakbench trace` runs the same program, its tracer
compiled for the release: the peak it tells is PyTorch's own, and every event adds up. Exit code 1 where one did not.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PROGRAM = pathlib.Path(__file__).resolve().with_name("versions_program.py")
OLDEST = (2, 6)
# What `import torch` needs besides the vendor's packages, which the stand-ins take the place of.
BESIDE = ("filelock", "typing-extensions", "sympy", "networkx", "jinja2", "fsspec", "numpy")
HEADERS = "nvidia-cuda-runtime"
HEADING = "| PyTorch | built for CUDA | Python | peak reserved (bytes) | verdict |\n|---|---|---|---|---|"


def pip(python, *arguments):
    command = [python, "-m", "pip", *map(str, arguments), "--disable-pip-version-check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    if done.returncode:
        raise RuntimeError(f"pip {arguments[0]} {arguments[-1]}: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout


def asked(python, program):
    return subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def releases(python):
    """The last patch of every release from 2.6 on, oldest first."""
    listed = re.search(r"Available versions: (.*)", pip(python, "index", "versions", "torch"))[1].split(", ")
    latest = {}
    for version in listed:
        parts = tuple(map(int, version.split(".")))
        if parts[:2] >= OLDEST:
            latest[parts[:2]] = max(latest.get(parts[:2], parts), parts)
    return [".".join(map(str, latest[release])) for release in sorted(latest)]


def install(python, version, folder):
    """torch alone and what its import needs, once, and CUDA's headers for the values; returns the folders for PYTHONPATH."""
    tag = asked(python, "import sys; print(sys.implementation.cache_tag)")
    torch, beside = folder / f"torch-{version}-{tag}", folder / f"beside-{tag}"
    if not (beside / "fsspec").exists():
        pip(python, "install", "--quiet", "--no-cache-dir", "--target", beside, *BESIDE)
    if not (torch / "torch/version.py").exists():
        pip(python, "install", "--quiet", "--no-cache-dir", "--no-compile", "--no-deps", "--target", torch, f"torch=={version}")
        cuda = re.search(r"^cuda\b.*?'(\d+)", (torch / "torch/version.py").read_text(), re.MULTILINE)[1]
        headers = HEADERS + ("-cu12" if cuda == "12" else f"=={cuda}.*")
        pip(python, "install", "--quiet", "--no-cache-dir", "--no-deps", "--target", torch, headers)
    return torch, beside


def run(peakbench, python, version, folder):
    """What the program said under `emulate` and under `trace`, and the figures of both."""
    torch, beside = install(python, version, folder)
    out, traced = folder / "took.json", folder / "traced"
    environment = {**os.environ, "PYTHONPATH": f"{torch}:{beside}", "XDG_CACHE_HOME": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    said = []
    for verb in (["emulate", "--json", out], ["trace", "--overwrite", "--out", traced]):
        command = [peakbench, *verb, "--card", "h100-80gb", "--", python, PROGRAM]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=900, env={**environment, "LD_BIND_NOW": "1"})
        if done.returncode or "differs from" in done.stderr:
            raise RuntimeError(f"{verb[0]}: exit code {done.returncode}:\n{done.stdout}{done.stderr}")
        said.append(json.loads(done.stdout.splitlines()[-1]))
    (case,) = json.loads((traced / "run.json").read_text())["cases"]
    return said, json.loads(out.read_text()), case


def objections(version, said, took, case):
    said, traced = said
    device = took["processes"][0]["devices"][0]
    wanted = {
        "the version": (said["torch"].partition("+")[0], version),
        "the card": (said["card"], ["NVIDIA H100 80GB HBM3", 132, 9, 0]),
        "rows of nonzero": (said["rows"], 3),
        "reserved bytes": (said["reserved"], device["peak_malloc_bytes"] + device["peak_virtual_bytes"]),
        "refused calls": (took["processes"][0]["refused"], []),
        "notes": (took["verdict"]["notes"], []),
        "allocated bytes of the trace": (case["memory"]["peak_allocated_bytes"], traced["allocated"]),
        "reserved bytes of the trace": (case["memory"]["peak_reserved_bytes"], said["reserved"]),
        "bytes by category": (sum(case["memory"]["at_peak"].values()), traced["allocated"]),
        "steps": (case["memory"]["steps"], 3),
    }
    return [f"{name}: {was}, expected {expected}" for name, (was, expected) in wanted.items() if was != expected]


def row(peakbench, python, version, folder):
    said, took, case = run(peakbench, python, version, folder)
    wrong = objections(version, said, took, case)
    if wrong:
        raise RuntimeError("; ".join(wrong))
    python_version = asked(python, "import platform; print(platform.python_version())")
    return f"| {version} | {said[0]['cuda']} | {python_version} | {said[0]['reserved']:,} | {took['verdict']['kind']} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peakbench", type=pathlib.Path)
    parser.add_argument("--torch", nargs="+", default=[])
    parser.add_argument("--python", nargs="+", default=[sys.executable])
    parser.add_argument("--folder", type=pathlib.Path)
    given = parser.parse_args()
    first, *others = given.python
    versions = given.torch or releases(first)
    plan = [(first, version) for version in versions] + [(other, version) for other in others for version in (versions[0], versions[-1])]
    print(f"{datetime.date.today()}, card h100-80gb\n\n{HEADING}", flush=True)
    failed = 0
    for python, version in plan:
        folder = given.folder or pathlib.Path(tempfile.mkdtemp(prefix="peakbench-versions-"))
        folder.mkdir(parents=True, exist_ok=True)
        try:
            print(row(given.peakbench.resolve(), python, version, folder.resolve()), flush=True)
        except (RuntimeError, subprocess.SubprocessError) as error:
            failed += 1
            print(f"PyTorch {version} with {python} failed: {error}", file=sys.stderr, flush=True)
        finally:
            if not given.folder:
                shutil.rmtree(folder, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
