#!/usr/bin/env python3
"""How far settings move reserved memory, which depends on the order in which the allocator gets its segments back: the programs of
one-card records are run again under the emulated card, each once as it is and once per setting, and what CUDA gave is compared.

usage: reserved.py [FILE...] [--only TEXT] [--peakbench PROGRAM] [--out FILE]

FILE     records with `emulated.peak_used_bytes`; otherwise fms_acceleration.json
--only   records whose source, program or packages contain the text
--out    writes what was measured as JSON, too

Prints a table in Markdown: a row a setting, with the least, the median and the most of its difference in per cent. A program that runs out
of memory under a setting is counted apart. Exit code 77 without the oracle, 1 where a program failed for another reason.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import run  # noqa: E402

NEARLY_FULL = 1.02  # of what the program took with room to spare


def settings_of(used):
    """-> {what it is called: (options of the card, environment)}; `used`: what the program took of its card as it is"""
    nearly = round(used * NEARLY_FULL / 2**20)
    return {
        "expandable segments": ("", {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
        "streams=late": (",streams=late", {}),
        f"a card with {NEARLY_FULL - 1:.0%} more than it took": (f",memory={nearly}MiB", {}),
    }


def given(peakbench, record, options="", environment=None):
    """-> bytes that CUDA gave on the one card, or None where the program ran out of them"""
    done, took = run.emulated(peakbench, record, record["card"] + options, environment)
    if done.returncode and took and took["answer"]["out_of_memory"]:
        return None
    if done.returncode:
        raise run.failure_of(done)
    return took["cards"][0]["peak_used_bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--only")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--peakbench", type=pathlib.Path, default=run.ROOT / "build/release/bin/peakbench")
    arguments = parser.parse_args()
    if "PEAKBENCH_ORACLE" not in os.environ:
        print("SKIP: no oracle; ci/oracle makes one, and PEAKBENCH_ORACLE names its Python")
        return 77
    peakbench, measured, failed = arguments.peakbench.resolve(), {}, 0
    for path in arguments.files or [run.HERE / "fms_acceleration.json"]:
        for record in run.read(path)["records"]:
            name = " ".join(record["configuration"]["program"])
            if run.cards_of(record) != record["card"] or arguments.only and arguments.only not in run.words_of(record) or name in measured:
                continue
            try:
                used = given(peakbench, record)
                measured[name] = {"as it is": used}
                for setting, (options, environment) in settings_of(used).items():
                    measured[name][setting] = given(peakbench, record, options, environment)
            except run.Failure as failure:
                failed += 1
                print(f"FAILED   {name}: {failure}", file=sys.stderr)
                continue
            print(name, measured[name], file=sys.stderr, flush=True)
    if arguments.out:
        arguments.out.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    print_table(measured)
    return 1 if failed else 0


def print_table(measured):
    print("| setting | programs | ran out of memory | least, % | median, % | most, % |")
    print("|:--|--:|--:|--:|--:|--:|")
    for setting in dict.fromkeys(setting for took in measured.values() for setting in took if setting != "as it is"):
        of_setting = [(took[setting], took["as it is"]) for took in measured.values() if setting in took]
        moved = [100 * (now / before - 1) for now, before in of_setting if now is not None] or [float("nan")]
        print(f"| {setting} | {len(of_setting)} | {sum(now is None for now, _ in of_setting)} | {min(moved):+.2f} |"
              f" {statistics.median(moved):+.2f} | {max(moved):+.2f} |")


if __name__ == "__main__":
    sys.exit(main())
