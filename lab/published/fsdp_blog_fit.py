#!/usr/bin/env python3
"""The largest batches of Hugging Face's blog on FSDP (2022), found anew by `peakbench fit` with fsdp_blog.py on emulated Titan RTX: each
row of the table in docs/how-to/fit.md, whose last column this fills in.

usage: fsdp_blog_fit.py PEAKBENCH [--only TEXT] [--check]

--only   rows whose first cells contain the text
--check  changes nothing, and fails where another batch was found than the page says

Exit code 77 without the oracle: ci/oracle makes stock Python PyTorch, PEAKBENCH_ORACLE names its Python.
"""

import argparse
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs/how-to/fit.md"
PYTHON = os.environ.get("PEAKBENCH_ORACLE")
# What the blog's message of out of memory leaves for what is not PyTorch's: 23.65 GiB in all, 22.76 reserved, 20.31 MiB free.
CONTEXT = "891MiB"
MODELS = {"GPT-2 Large": "large", "GPT-2 XL": "xl"}
METHODS = {
    "DDP": ["ddp"],
    "DDP + FP16": ["ddp-fp16"],
    "SHARD_GRAD_OP": ["shard-grad-op"],
    "FULL_SHARD, 1M": ["full-shard", "--min-num-params", "1000000"],
    "FULL_SHARD, 2K": ["full-shard"],
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def largest_batch(peakbench, model, method, cards):
    """0: not even one fits."""
    program = [PYTHON, "-m", "torch.distributed.run", "--master-port", free_port(), "--nproc-per-node", cards, str(HERE / "fsdp_blog.py"),
               "--model", MODELS[model], "--method", *METHODS[method], "--block", "128", "--batch", "{batch}"]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [peakbench, "fit", "--card", f"titan-rtx-24gb,count={cards},context={CONTEXT}", "--vary", "batch=1..64", "--check", "1",
             "--no-report", "--quiet", "--json", "--out", "fit", "--", *program],
            cwd=folder, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False)  # fmt: skip
    cell = json.loads(done.stdout)["cells"][0] if done.stdout else {"state": "unknown", "reason": done.stderr}
    if cell["state"] not in ("fits", "does_not_fit"):
        sys.exit(f"{model}, {method}: {cell['reason']}")
    return cell["largest"] or 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peakbench", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    if not PYTHON:
        print("SKIP: ci/oracle makes stock Python PyTorch, PEAKBENCH_ORACLE names its Python")
        sys.exit(77)
    page = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (GPT-2 \w+) \| ([^|]+) \| (\d) \| ([^|]*) \| ([^|]*) \|$", page, re.MULTILINE)
    if not rows:
        sys.exit(f"{PAGE}: the table of the blog's rows is not there")
    wrong = 0
    for model, method, cards, published, said in rows:
        if given.only not in f"{model}, {method}":
            continue
        found = str(largest_batch(given.peakbench.resolve(), model, method, cards) or "none")
        print(f"{model}, {method}, {cards}: published {published}, found {found}", flush=True)
        wrong += found != said
        if not given.check:
            row = "| {} | {} | {} | {} | {} |"
            page = PAGE.read_text(encoding="utf-8")
            page = page.replace(row.format(model, method, cards, published, said), row.format(model, method, cards, published, found))
            PAGE.write_text(page, encoding="utf-8")
    if given.check and wrong:
        sys.exit(f"{wrong} rows differ from {PAGE}")


if __name__ == "__main__":
    main()
