"""PyTorch's OpInfo table on an emulated card, operator by operator: which run, and which give the sizes, numbers and values that the
CPU's own run of the same samples gives. Writes docs/reference/operators.md and the record beside this file.

usage: operators.py PEAKBENCH --update             all operators; writes the record and the page
       operators.py PEAKBENCH --check              all operators; exit code 1 where the record says otherwise
       operators.py PEAKBENCH --check --quick      some operators, as a test of every change
       operators.py PEAKBENCH --only NAME,NAME     prints what is found

Exit code 77 without the oracle: ci/oracle makes stock Python PyTorch, PEAKBENCH_ORACLE names its Python.
"""

import argparse
import datetime
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parents[1] / "lab"))
import record_file  # noqa: E402

CHILD = HERE / "operators_child.py"
RECORD = HERE / "operators.json"
PAGE = HERE.parents[1] / "docs/reference/operators.md"
PYTHON = os.environ.get("PEAKBENCH_ORACLE")
CARD = "h100-80gb"
BATCH = 40
# A batch's time, and that of an operator alone.
SECONDS, SECONDS_ALONE = 600, 120
QUICK_SAMPLES = 4
# Of every kind of operator some: with sizes that depend on data, with workspaces of every library, and those that went wrong once.
QUICK = ("add", "nonzero", "unique", "masked_select", "linalg.cholesky", "linalg.svd", "fft.rfft2", "nn.functional.conv2d",
         "nn.functional.ctc_loss", "nn.functional.embedding_bag", "sparse.mm.reduce", "to_sparse", "repeat_interleave", "multinomial",
         "nn.functional.grid_sample", "histogramdd", "bincount", "tril_indices", "searchsorted", "istft", "equal", "item")  # fmt: skip

# What is wrong with an operator, the worst first: of each the word, and what it means.
KINDS = {
    "crashed": "the process ended by a signal, or did not end",
    "refused": "called a function of a vendor's library that is not emulated",
    "failed": "ended in an error, unlike the run on the CPU",
    "values": "a value marked as known is not the CPU's",
    "numbers": "a known number or boolean that it returned to the host is not the CPU's",
    "sizes": "a result has another size, dtype or layout than on the CPU",
    "unknown size": "a size depends on unknown values; the verdict reports it",
    "only on the CPU": "PyTorch has it for the CPU only: a real card would not run it either",
}


def run_child(peakbench, out, samples, names, seconds):
    command = [peakbench, "emulate", "--card", CARD, "--", PYTHON, "-B", CHILD, out, str(samples), *names]
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=seconds, errors="replace")
        return done.returncode
    except subprocess.TimeoutExpired:
        return f"did not end within {seconds} s"


def run_batch(peakbench, samples, names, seconds):
    """What was found of these, and the first that the process did not come back from, with how it ended."""
    with tempfile.TemporaryDirectory(prefix="peakbench-operators-") as folder:
        out = pathlib.Path(folder) / "found.jsonl"
        ended = run_child(peakbench, out, samples, names, seconds)
        lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] if out.exists() else []
    found = {line.pop("name"): line for line in lines if len(line) > 1}
    culprit = next((line["name"] for line in lines if line.get("name") and line["name"] not in found), None)
    return found, culprit, ended


def ending(code):
    return code if isinstance(code, str) else f"signal {code - 128}" if code > 128 else f"exit code {code}"


def run_alone(peakbench, samples, name):
    found, _, ended = run_batch(peakbench, samples, [name], SECONDS_ALONE)
    return found.get(name) or {"crashed": ending(ended)}


def run_all(peakbench, samples, names, say=lambda text: None):
    """Each operator's findings. One that ends its process, or goes wrong in company, is run again alone."""
    results = {}
    left = list(names)
    while left:
        batch, left = left[:BATCH], left[BATCH:]
        found, culprit, ended = run_batch(peakbench, samples, batch, SECONDS)
        if not found and not culprit:
            raise SystemExit(f"operators.py: the batch from {batch[0]} on did not begin ({ending(ended)})")
        results.update(found)
        missing = [name for name in batch if name not in found]
        if culprit or missing:
            alone = culprit or missing[0]
            results[alone] = run_alone(peakbench, samples, alone)
            left = [name for name in missing if name != alone] + left
        say(f"{len(results)} of {len(names)}")
    for name in names:
        if outcome(results[name]) in ("refused", "failed"):
            say(f"{name} alone")
            results[name] = run_alone(peakbench, samples, name)
    return {name: results[name] for name in names}


def outcome(result):
    return next((kind for kind in KINDS if kind in result), "ran")


def all_names():
    """In the order of the table; operators that it has twice stand in it once."""
    done = subprocess.run([PYTHON, "-B", CHILD, "--list"], capture_output=True, text=True, check=True)
    return list(dict.fromkeys(done.stdout.split()))


def row_of(result):
    """What the record keeps: nothing that differs from run to run."""
    kind = outcome(result)
    row = {"outcome": kind}
    if kind != "ran":
        row["reason"] = result[kind]
    if layout := result.get("sizes of PyTorch") or result.get("strides"):
        row["layout"] = layout
    return row


def compact(results):
    return {name: row_of(result) for name, result in results.items()}


def compare_with_record(results):
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))["operators"]
    wrong = []
    for name, now in compact(results).items():
        if name not in recorded:
            wrong.append(f"{name}: not in the record")
        elif now["outcome"] != recorded[name]["outcome"]:
            wrong.append(f"{name}: {now['outcome']} ({now.get('reason', '')}); the record has {recorded[name]['outcome']}")
    for line in wrong:
        print(line)
    print(f"{len(results)} operators, {len(wrong)} not as recorded")
    return 1 if wrong else 0


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def page(record):
    operators = record["operators"]
    of_kind = {kind: {name: row["reason"] for name, row in operators.items() if row["outcome"] == kind} for kind in KINDS}
    ran = [name for name, row in operators.items() if row["outcome"] == "ran"]
    lines = [HEAD.format(total=len(operators), ran=len(ran), exact_share=f"{100 * len(ran) / len(operators):.1f}", **record)]
    lines += ["| Outcome | Operators | Meaning |", "|:--|--:|:--|", f"| ran | {len(ran)} | {RAN} |"]
    lines += [f"| {kind} | {len(of_kind[kind])} | {meaning} |" for kind, meaning in KINDS.items()]
    lines += ["", "## What did not run, or is not exact", "", "| Operator | Outcome | Why |", "|:--|:--|:--|"]
    lines += [f"| `{name}` | {kind} | {cell(why)} |" for kind, rows in of_kind.items() for name, why in rows.items()]
    layouts = [name for name, row in operators.items() if "layout" in row]
    lines += ["", LAYOUT.format(count=len(layouts)), ", ".join(f"`{name}`" for name in layouts)]
    lines += ["", "## What ran", "", ", ".join(f"`{name}`" for name in ran), ""]
    return "\n".join(lines)


LAYOUT = """## What is laid out otherwise

For these {count} operators PyTorch's own code, which runs unchanged, returns other strides or another size on a card than on the CPU.
PyTorch's tensors without memory (`FakeTensor`) have the same size when they are placed on a card.
The record has the details of each operator.
"""
RAN = "ran, with the same sizes as on the CPU; every value marked as known is the CPU's"
HEAD = """# PyTorch's operators on an emulated card

Which of PyTorch's operators run on an emulated card, and are their results right?

```sh
python3 tests/emulated/operators.py build/release/bin/peakbench --only nonzero,linalg.svd
```

PyTorch tests its operators with a table of sample inputs (`torch.testing._internal.common_methods_invocations.op_db`).
Peakbench runs every operator of the table under `peakbench emulate --card {card}`, and on the CPU with the same inputs.
It runs forward and, if the operator has one, backward, on at most {samples} samples in the operator's first dtype (float32 for most).

Of {total} operators, {ran} ran ({exact_share}%), on {date} with PyTorch {torch}.
`tests/emulated/operators.py PEAKBENCH --update` writes this page and `tests/emulated/operators.json`.
"""


@functools.cache
def torch_version():
    command = [PYTHON, "-c", "import torch; print(torch.__version__)"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def update(results, samples):
    record = {"torch": torch_version(), "card": CARD, "date": datetime.date.today().isoformat(), "samples": samples,
              "operators": compact(results)}  # fmt: skip
    record_file.write(RECORD, record)
    PAGE.write_text(page(record), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("peakbench", type=pathlib.Path)
    parser.add_argument("--only", type=lambda text: text.split(","), help="these operators, and print what is found")
    parser.add_argument("--samples", type=int, default=6, help="of an operator, at most")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--json", type=pathlib.Path, help="all findings, to this file")
    request = parser.parse_args()
    names = request.only or (QUICK if request.quick else all_names())
    samples = QUICK_SAMPLES if request.quick else request.samples
    say = lambda text: print(text, file=sys.stderr, flush=True)  # noqa: E731
    results = run_all(request.peakbench.resolve(), samples, names, say)
    if request.json:
        request.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    if request.update:
        update(results, samples)
    if request.only:
        print(json.dumps(results, indent=1))
    return compare_with_record(results) if request.check else 0


if __name__ == "__main__":
    if not PYTHON:
        print("SKIP: no oracle; ci/oracle makes one, and PEAKBENCH_ORACLE names its Python")
        sys.exit(77)
    sys.exit(main())
