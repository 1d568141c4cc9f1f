#!/usr/bin/env python3
"""Writes docs/evidence/releases.md: what the releases of PyTorch changed, as `peakbench releases` says it.

  lab/releases.py build/release/bin/peakbench --out docs/evidence/releases.md

Models run with every release that there is a worker for (`peakbench workers build`), programs with those of --programs, which pip installs.
A release that cannot be had is said on the page and passed over; exit code 1 where nothing could be run.
"""
import argparse
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CARD = "h100-80gb"
STRATEGIES = ("baseline", "foreach-off", "fused-in-backward", "lora", "checkpointing")
MODELS = {"ViT-L/16": ["--model", "vit-l-16", "--batch", "32"], "Llama 3.2 1B": ["--model", "llama-3.2-1b", "--dtype", "bf16", "--seq", "1024"]}
PROGRAMS = {  # with the packages that they need beside PyTorch
    "A transformer with checkpoints, PyTorch alone": ("checkpointed_transformer.py", []),
    "GPT-2 by Hugging Face's transformers": ("hf_gpt2_train.py", ["--requirements", "lab/releases-requirements.txt"]),
}
HEAD = f"""# What releases of PyTorch changed

Which release takes how much memory, and what changed from one to the next?

```sh
peakbench releases --torch 2.6,2.11,newest -- python3 train.py
```

The command runs a model or a program of yours with each release on an emulated card ([how](reference/cli/run.md#several-builds-or-releases-of-pytorch)).
This page is its output for two models under five strategies and for two programs, on `{CARD}`. `lab/releases.py` makes it; nothing is
edited. Each row's difference is against the first row; the sentences say what changed since the release before.
"""


def releases(peakbench, name, arguments):
    """The command as a reader would type it, and what it printed."""
    out = f"results/releases/{name}"
    command = ["releases", *arguments[0], "--no-ablation", "--out", out, "--overwrite", *arguments[1]]
    done = subprocess.run([peakbench, *command], cwd=ROOT, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    said = done.stdout.split("\nResults: ")[0] if done.returncode == 0 else done.stderr
    return done.returncode == 0, " ".join(["peakbench", *command]), said.strip("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peakbench", type=pathlib.Path)
    parser.add_argument("--models", default="", help="releases for models (default: those that there are workers for)")
    parser.add_argument("--programs", default="2.6,2.9,2.11,newest", help="releases for programs (default %(default)s)")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/evidence/releases.md")
    given = parser.parse_args()
    of_models = ["--torch", given.models] if given.models else []
    strategies = [word for strategy in STRATEGIES for word in ("--strategy", strategy)]
    runs = {title: ([*of_models, *words, *strategies, "--device", f"emulated:{CARD}"], []) for title, words in MODELS.items()}
    for title, (script, requirements) in PROGRAMS.items():
        runs[title] = (["--torch", given.programs, "--card", CARD, *requirements], ["--", "python3", f"tests/programs/corpus/{script}"])
    page, any_ran = [HEAD], False
    for number, (title, arguments) in enumerate(runs.items(), 1):
        ran, command, said = releases(given.peakbench.resolve(), str(number), arguments)
        any_ran = any_ran or ran
        note = "" if ran else "It did not run:\n\n"
        page.append(f"## {title}\n\n{note}```\n{command}\n\n{said}\n```\n")
        print(f"{title}: {'done' if ran else said}", file=sys.stderr, flush=True)
    given.out.write_text("\n".join(page), encoding="utf-8")
    return 0 if any_ran else 1


if __name__ == "__main__":
    sys.exit(main())
