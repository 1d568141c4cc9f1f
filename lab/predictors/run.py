#!/usr/bin/env python3
"""Published predictors of memory on the same cases as Peakbench: writes docs/evidence/predictors.md.

usage: run.py [--peakbench PROGRAM] [--models A,B] [--out FILE | --check]

--check  writes nothing, and fails where the page would have other figures

Cases run on emulated cards: once without a limit, which is what predictors are held against, and once on each card, which says whether they run
there. Needs the oracle's Python ($PEAKBENCH_ORACLE; started with another it starts itself again) and the package index, once. Takes some minutes.
Exit code 77 without the oracle.
"""

import argparse
import collections
import datetime
import difflib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CACHE = pathlib.Path(os.environ.get("PEAKBENCH_CACHE") or ROOT / ".cache") / "predictors"
PAGE = ROOT / "docs/evidence/predictors.md"
TEXT = HERE / "page.md"
PUBLISHED = HERE.parent / "published/fms_acceleration.json"
KITSUNE = "torch-kitsune==0.7.0"

MODELS = ("gpt2", "gpt2-large", "gpt2-xl", "qwen2.5-0.5b", "qwen2.5-1.5b", "qwen2.5-3b", "tinyllama-1.1b", "llama-3.2-1b", "llama-3.2-3b", "llama-3.1-8b",
          "mistral-7b-v0.3")  # fmt: skip
SIZES = ((1, 512), (8, 1024))  # batch, sequence
PRECISIONS = {"fp32": ("baseline", "fp32"), "mixed": ("autocast", "fp32"), "bf16": ("baseline", "bf16")}  # strategy, dtype
TITLES = {"fp32": "fp32", "mixed": "Mixed precision: fp32 weights, autocast to bf16", "bf16": "bf16 throughout"}
CARDS = ("t4-16gb", "rtx-4090-24gb", "a100-40gb", "h100-80gb", "h200-141gb")
NO_LIMIT = "emulated:h100-80gb,memory=8TiB"
DEVICES = (NO_LIMIT, *(f"emulated:{card}" for card in CARDS))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peakbench", type=pathlib.Path, default=ROOT / "build/release/bin/peakbench")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--out", type=pathlib.Path, default=PAGE)
    parser.add_argument("--check", action="store_true")
    return parser.parse_args()


def in_oracle():
    python = os.environ.get("PEAKBENCH_ORACLE")
    if not python:
        print("SKIP: ci/oracle makes stock Python PyTorch, PEAKBENCH_ORACLE names its Python", file=sys.stderr)
        sys.exit(77)
    if pathlib.Path(sys.prefix) != pathlib.Path(python).parents[1]:
        os.execv(python, [python, "-B", __file__, *sys.argv[1:]])


def kitsune_folder():
    folder = CACHE / KITSUNE
    if not folder.is_dir():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target", folder, KITSUNE]
        subprocess.run(list(map(str, command)), check=True)
    return str(folder)


# --- What is asked ------------------------------------------------------------------------------------


def shapes_of(peakbench, names):
    listed = json.loads(subprocess.run([peakbench, "list", "models", "--json"], capture_output=True, check=True).stdout)
    known = {model["id"]: model for model in listed}
    return {name: known[name] for name in names}


def training_of(model, batch, sequence, precision):
    options = {option["name"]: option["default"] for option in model["options"]}
    is_gpt2 = model["family"] == "gpt2"
    return Training(
        model=model["id"], parameters=model["parameters"], layers=options["layers"], width=options["width"], mlp=options["mlp"],
        heads=options["heads"], kv_heads=options.get("kv_heads", options["heads"]), vocabulary=options["vocabulary"], gated=not is_gpt2,
        rms=not is_gpt2, tied="tied_embeddings" in model.get("facts", []), batch=batch, sequence=sequence, precision=precision,
    )  # fmt: skip


def stock(dtype):
    """Makes stock transformers' model of that name without memory."""
    import torch

    sys.path.insert(0, str(ROOT / "tests/oracle"))
    import decoder
    import gpt2

    def build(name):
        if name in gpt2.MODELS:
            kind, config = gpt2.GPT2LMHeadModel, gpt2.GPT2Config(**gpt2.MODELS[name])
        else:
            kind, options = decoder.MODELS[name]
            config = decoder.CONFIGS[kind](**options)
        with torch.device("meta"):
            return kind(config).to(dtype)

    return build


# --- What happens -------------------------------------------------------------------------------------


def run(peakbench, names, batch, sequence, precision):
    """By model and device: the peak of allocated bytes, or None where memory ran out."""
    strategy, dtype = PRECISIONS[precision]
    with tempfile.TemporaryDirectory() as folder:
        several = [word for option, values in (("--model", names), ("--device", DEVICES)) for value in values for word in (option, value)]
        command = [peakbench, "run", *several, "--strategy", strategy, "--dtype", dtype, "--batch", batch, "--seq", sequence, "--out", pathlib.Path(folder, "run"), "--no-report", "--no-ablation",
                   "--json"]  # fmt: skip
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        if done.returncode not in (0, 3):
            raise SystemExit(f"peakbench run ended with exit code {done.returncode}:\n{done.stderr}")
        record = json.loads(done.stdout)
    found = {}
    for case in record["cases"]:
        if case["status"] not in ("ok", "out_of_memory"):
            raise SystemExit(f"{case['id']}: {case['status']}: {case['reason']}")
        found[case["model"]["id"], case["device"]] = case["memory"]["peak_allocated_bytes"] if case["status"] == "ok" else None
    return found


def card_bytes():
    cards = {card: json.loads((ROOT / f"emulator/cards/{card}.json").read_text(encoding="utf-8"))["values"] for card in CARDS}
    return {card: int(values["total_memory_bytes"]["value"]) for card, values in cards.items()}


# --- The page -----------------------------------------------------------------------------------------


def gib(size):
    return f"{size / GIB:,.2f}"


def against(said, true):
    return "" if said is None else f"{gib(said)} ({(said - true) / true:+.0%})"


def table(head, rows):
    lines = [head, ["---:" if any(c.isdigit() for c in str(cell)) else "---" for cell in rows[0]], *rows]
    lines[1][0] = "---"
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


class Scores:
    """Of one predictor: its errors, and what it said of cards and what happened."""

    def __init__(self):
        self.errors = []
        self.cards = collections.Counter()

    def row(self, predictor):
        name = f"[{predictor.name}]({predictor.url})"
        if not self.errors:
            return [name, predictor.what, "", "", "", "", "", "", ""]
        errors = sorted(self.errors)
        share = statistics.median(map(abs, errors))
        said = [self.cards[key] for key in ((True, True), (True, False), (False, True), (False, False))]
        return [name, predictor.what, len(errors), f"{share:.0%}", f"{errors[0]:+.0%}", f"{errors[-1]:+.0%}", *said]


def published_records():
    """Full fine-tuning on a real A100, published to the byte -> (its options, published bytes, ours and the difference as the page has them)"""
    for record in json.loads(PUBLISHED.read_text(encoding="utf-8"))["records"]:
        program = record["configuration"]["program"]
        if "full" not in program or "--framework" in program or "--ranks" in program or record["grade"] != "same_configuration":
            continue
        true, ours = record["figure"]["value"], record["emulated"]["bytes"]
        yield dict(zip(program[1::2], program[2::2], strict=False)), true, f"{ours:,} ({(ours - true) / true:+.3%})"


def published_rows(build, folder):
    """What Peakbench makes of the publisher's own program, and what predictors say."""
    rows = []
    for named, true, ours in published_records():
        parameters = sum(weight.numel() for weight in published_model(named["--model"]).parameters())
        length = published_length(named["--model"])
        asked = Training(named["--model"], parameters, 0, 0, 0, 1, 1, 0, True, True, True, int(named["--batch"]), length, "bf16")
        said = [against(predictor.predict(asked), true) for predictor in PREDICTORS if predictor.predict in (hugging_face, llama_factory)]
        rows.append([f"{named['--model']}, batch {named['--batch']} x {length:,}", f"{true:,}", ours, *said])
    return rows


def published_model(name):
    import torch
    import transformers

    sys.path.insert(0, str(HERE.parent / "published"))
    import trainer

    model = trainer.MODELS[name]
    config = transformers.AutoConfig.for_model(model["kind"], **model["options"] | {"vocab_size": model["tokens"]})
    with torch.device("meta"):
        return transformers.AutoModelForCausalLM.from_config(config)


def published_length(name):
    import trainer

    return trainer.MODELS[name]["length"]


def page(peakbench, models, folder):
    import torch

    totals = card_bytes()
    scores = {predictor.name: Scores() for predictor in PREDICTORS}
    parts = {}
    for precision, title in TITLES.items():
        asked = [predictor for predictor in PREDICTORS
                 if ask(predictor, training_of(next(iter(models.values())), 1, 512, precision), folder) is not None]  # fmt: skip
        rows = []
        for batch, sequence in SIZES:
            print(f"{title}: batch {batch}, {sequence} tokens ...", file=sys.stderr)
            found = run(peakbench, list(models), batch, sequence, precision)
            for name, model in models.items():
                true = found[name, NO_LIMIT]
                row = [f"{name}, batch {batch} x {sequence:,}", gib(true)]
                for predictor in asked:
                    said = ask(predictor, training_of(model, batch, sequence, precision), folder)
                    row.append(against(said, true))
                    score = scores[predictor.name]
                    score.errors.append((said - true) / true)
                    for card in CARDS:
                        score.cards[said <= totals[card], found[name, f"emulated:{card}"] is not None] += 1
                rows.append(row)
        parts[precision] = f"### {title}\n\n" + table(["training", "Peakbench", *(predictor.name for predictor in asked)], rows)
    head = ["predictor", "counts, by its own words", "cases", "median error", "lowest", "highest", "fits, ran", "**fits, out of memory**", "no, ran", "no, out of memory"]
    summary = table(head, [scores[predictor.name].row(predictor) for predictor in PREDICTORS])
    real = table(["training on an A100 80 GB", "published, bytes", "Peakbench", "Hugging Face blog", "LLaMA-Factory's table"], published_rows(stock(torch.bfloat16), folder))
    made = f"{datetime.date.today():%-d %B %Y}, PyTorch {torch.__version__}, accelerate {accelerate_version()}"
    text = TEXT.read_text(encoding="utf-8")
    for key, part in {"summary": summary, "cases": "\n".join(parts.values()), "real": real, "made": made}.items():
        text = text.replace("{{" + key + "}}", part.strip())
    return text


def ask(predictor, training, folder):
    if predictor.predict is kitsune:
        import torch

        return kitsune(training, stock(torch.float32 if training.precision == "fp32" else torch.bfloat16), folder)
    return predictor.predict(training)


def accelerate_version():
    import accelerate as package

    return package.__version__


def main():
    in_oracle()
    options = arguments()
    models = shapes_of(options.peakbench, options.models.split(","))
    text = page(options.peakbench, models, kitsune_folder())
    if not options.check:
        options.out.write_text(text, encoding="utf-8")
        return
    dated = "`lab/predictors/run.py` writes this page"
    now, before = ([line for line in one.splitlines() if dated not in line] for one in (text, options.out.read_text(encoding="utf-8")))
    if changes := list(difflib.unified_diff(before, now, str(options.out), "now", lineterm="", n=0)):
        raise SystemExit("\n".join(changes))


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    from predictors import GIB, PREDICTORS, Training, hugging_face, kitsune, llama_factory

    main()
