"""Peakbench's own figures against stock PyTorch's, as cpu_peaks.json records them: within 0.1%, the difference printed in bytes.

usage: recorded_peaks_test.py PEAKBENCH MODEL DTYPE [STACK...]    as cpu_peaks.json spells them; without stacks all that it has

One run for each shape that was recorded, memory workers only.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

RECORD = pathlib.Path(__file__).resolve().parent / "cpu_peaks.json"
TOLERANCE = 0.001


def shapes(cases, model, dtype):
    """(device, dtype, batch, seq) -> {stack: recorded}, of the cases of one model in one dtype."""
    found = {}
    for case, recorded in cases.items():
        name, stack, *shape = case.split("/")
        if name == model and dtype in shape:
            found.setdefault(tuple(shape), {})[stack] = recorded
    return found


def measure(peakbench, model, shape, stacks, folder):
    device, dtype, batch, *sequence = shape
    command = [peakbench, "run", "--model", model, "--device", device, "--dtype", dtype, "--batch", batch.removeprefix("b")]
    command += ["--repetitions", "0", "--no-report", "--quiet", "--out", folder]
    command += [part for length in sequence for part in ("--seq", length.removeprefix("s"))]
    command += [part for stack in stacks for part in ("--strategy", stack)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr[-2000:]}")
    return {case["id"]: case for case in json.loads(pathlib.Path(folder, "run.json").read_text())["cases"]}


def compare(case_id, ours, recorded):
    """Prints one line; says whether it is within the tolerance."""
    if ours["status"] != "ok":
        print(f"{case_id}: {ours['status']}: {ours.get('reason', '')}")
        return False
    here = recorded.get("by_cpu_capability", {}).get(ours["environment"]["cpu_capability"], {})
    stock, mine = {**recorded, **here}["peak_allocated_bytes"], ours["memory"]["peak_allocated_bytes"]
    good = abs(mine - stock) <= TOLERANCE * stock
    where = f"{ours['memory']['peak_phase']} of step {ours['memory']['peak_step']}"
    print(f"{case_id}: {mine:,} bytes, stock {stock:,} ({mine - stock:+,}, {(mine - stock) / stock:+.4%}), {where}{'' if good else '  TOO FAR'}")
    return good


def main(peakbench, model, dtype, *wanted):
    cases = json.loads(RECORD.read_text())["cases"]
    held = []
    for shape, recorded in shapes(cases, model, dtype).items():
        stacks = {stack: recorded[stack] for stack in wanted or recorded}
        with tempfile.TemporaryDirectory() as folder:
            ours = measure(peakbench, model, shape, stacks, folder + "/run")
        for stack, expected in stacks.items():
            case_id = "/".join((model, stack, *shape))
            if case_id not in ours:
                print(f"{case_id}: not among {', '.join(ours)}")
            held.append(case_id in ours and compare(case_id, ours[case_id], expected))
    return 0 if held and all(held) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
