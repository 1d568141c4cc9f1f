"""All attacks in their long form, one after the other, each with its counts in a file of its own; ci/soak is the way to call it."""

import argparse
import concurrent.futures
import importlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import counts as counting
import fuzzing
from hostile import KINDS
from readers import all_readers
from workplace import SOURCE, Workplace

DOCUMENT = SOURCE / "docs/evidence/reliability.md"
BEGIN, END = "<!-- ci/soak: begin -->", "<!-- ci/soak: end -->"
FUZZ, FILES = "fuzz", "files"
ALL = [*KINDS, FUZZ]
QUICK = {"mutations": 300, "commands": 20, "kills": 10, "faults": 20, "together": 2, "slurm": 2, "minutes": 0.25}


def arguments():
    parser = argparse.ArgumentParser(prog="ci/soak", description="Tries to break the program, for about 90 minutes on two cores.",
                                     epilog="Kinds: " + "; ".join(f"{kind}: {what}" for kind, what in KINDS.items()) + "; fuzz: "
                                     "coverage-guided fuzzing of the readers (clang). What a kind has counted is kept in DIR/KIND.json "
                                     "(files and fuzz: DIR/KIND-READER.json), so kinds may be run one by one, or beside each other; --resume leaves out "
                                     "those that are there.")
    parser.add_argument("--quick", action="store_true", help="minutes in place of an hour: a sample of each kind")
    parser.add_argument("--only", action="append", choices=ALL, metavar="KIND", help="one of " + ", ".join(ALL) + "; may be repeated")
    parser.add_argument("--resume", action="store_true", help="leave out the kinds whose counts are in DIR, with the same seed")
    parser.add_argument("--seed", type=int, default=int(time.strftime("%Y%m%d")), help="decides every attack (default: today)")
    parser.add_argument("--mutations", type=int, default=20_000, help="spoilt files a reader, through the reader (%(default)s)")
    parser.add_argument("--commands", type=int, default=500, help="spoilt files a reader, through commands (%(default)s)")
    parser.add_argument("--kills", type=int, default=200, help="kills of a run and of `history add`; of other commands, a part (%(default)s)")
    parser.add_argument("--faults", type=int, default=100_000, help="calls that fail, a command and a way (default: every one)")
    parser.add_argument("--together", type=int, default=20, help="times two of everything at once (%(default)s)")
    parser.add_argument("--slurm", type=int, default=20, help="runs on a stand-in of Slurm, each kind of disturbance (%(default)s)")
    parser.add_argument("--minutes", type=float, default=10, help="of each fuzzer (%(default)s)")
    parser.add_argument("--readers", action="append", metavar="NAME", help="of files, bulk and fuzz, only this reader")
    parser.add_argument("--jobs", type=int, default=2, help="so many at a time (%(default)s)")
    parser.add_argument("--out", type=pathlib.Path, default=SOURCE / "results/soak", metavar="DIR", help="(results/soak)")
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build/release", help=argparse.SUPPRESS)
    parser.add_argument("--fuzz-build", type=pathlib.Path, default=SOURCE / "build/fuzz", help=argparse.SUPPRESS)
    parser.add_argument("--write-docs", action="store_true", help="put the table of DIR's counts into docs/evidence/reliability.md")
    parser.add_argument("--table", action="store_true", help="print that table and end: nothing is attacked")
    options = parser.parse_args()
    if options.quick:
        for name, value in QUICK.items():
            if getattr(options, name) == parser.get_default(name):
                setattr(options, name, value)
    return options


def say(message):
    print(message, file=sys.stderr, flush=True)


class Attack:
    """The options that a kind of attack looks at (hostile.py has the same)."""

    def __init__(self, options, kind, part):
        build = options.build
        self.seed, self.jobs, self.first, self.minutes = options.seed, options.jobs, 0, options.minutes
        self.readers = [part] if part else options.readers
        self.bad_plugins, self.shim = build / "tests/plugin/bad", build / "tests/hostile/peakbench_fail_nth.so"
        self.read_many = build / "bin/peakbench-read-many"
        self.keep = str(options.out / "findings" / kind)
        self.count = {"files": options.commands, "bulk": options.mutations, "kills": options.kills, "faults": options.faults,
                      "links": 1, "limits": 1, "plugins": 1, "together": options.together,
                      "slurm": options.slurm}.get(kind, 0)
        # Nothing times what these do; kills and limits do.
        if kind in ("kills", "limits", "plugins"):
            self.jobs = max(1, options.jobs // 2) if kind == "limits" else options.jobs


def parts(kind):
    """The readers, where each may take ten minutes, which a kill of the others must not cost; else one part, without a name."""
    if kind == FUZZ:
        return fuzzing.names()
    return [reader.name for reader in all_readers()] if kind == FILES else [""]


def run_kind(kind, options):
    wanted = [part for part in parts(kind) if not options.readers or not part or part in options.readers]
    if kind == FUZZ:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(lambda part: run_part(kind, options, part), wanted))
    else:  # in this thread, which is the one that a signal ends
        for part in wanted:
            run_part(kind, options, part)


def run_part(kind, options, part):
    path = place_of(kind, options, part)
    if options.resume and path.exists() and json.loads(path.read_text())["seed"] == options.seed:
        return say(f"{path.stem}: done already ({path})")
    say(f"{path.stem} ...")
    counts = counting.Counts(kind, options.seed, say)
    attack = Attack(options, kind, part)
    began = time.monotonic()
    if kind == FUZZ:
        fuzzing.fuzz(options.fuzz_build, part, counts, attack, options.out / FUZZ / part, say)
    else:
        with Workplace(options.build / "bin/peakbench", options.build / "tests/e2e/plugins") as workplace:
            importlib.import_module(kind).attack(workplace, counts, attack)
    record = {**counts.as_json(), "seconds": round(time.monotonic() - began), "date": time.strftime("%Y-%m-%d"), "commit": options.commit}
    path.write_text(json.dumps(record, indent=1) + "\n")
    print(counting.table(counts), flush=True)
    if counts.findings:
        print(f"{len(counts.findings)} findings\n{counting.listed(counts.findings)}", flush=True)
    return say(f"{path.stem}: {counts.total():,} tried, {len(counts.findings)} findings, {record['seconds'] / 60:.1f} min")


def place_of(kind, options, part):
    return options.out / (kind + "".join("-" + word for word in re.findall(r"\w+", part)) + ".json")


def commit():
    done = subprocess.run(["git", "-C", str(SOURCE), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"], capture_output=True,
                          text=True, check=False)
    return done.stdout.strip() or "unknown"


def records(options):
    """What was counted, in the order of the kinds."""
    paths = [place_of(kind, options, part) for kind in ALL for part in parts(kind)]
    return [json.loads(path.read_text()) for path in paths if path.exists()]


# --- The table ------------------------------------------------------------------------------------------


def table(found):
    dates = sorted({record["date"] for record in found})
    commits = sorted({record["commit"] for record in found})
    lines = [f"{' to '.join(sorted({dates[0], dates[-1]}))}, commit {', '.join(commits)}, seed "
             f"{', '.join(sorted({str(record['seed']) for record in found}))}.", "",
             "| attack | on | tried | what came of it | slowest | findings |", "|:--|:--|--:|:--|--:|--:|"]
    for record in found:
        for row in record["rows"]:
            slowest = f"{row['slowest_s']:.1f} s" if row["slowest_s"] else ""
            outcomes = ", ".join(f"{name} {count:,}" for name, count in sorted(row["outcomes"].items(), key=lambda item: -item[1])[:6])
            if record["kind"] == FUZZ:
                outcomes = ", ".join(name for name in row["outcomes"] if name.startswith("edges"))
            lines.append(f"| {record['kind']} | {row['name']} | {row['tried']:,} | {outcomes} | {slowest} | {row['findings']} |")
        lines += [f"| {record['kind']} | {one['row']} | 0 | skipped: {one['why']} | | |" for one in record["skipped"]]
    tried, findings = sum(record["tried"] for record in found), sum(len(record["findings"]) for record in found)
    lines.append(f"| together | | {tried:,} | {sum(record['seconds'] for record in found) // 60} min | | {findings} |")
    return "\n".join(lines)


def write_document(found):
    text = DOCUMENT.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"error: {DOCUMENT} has no place for the table ({BEGIN} ... {END})")
    DOCUMENT.write_text(pattern.sub(lambda _: f"{BEGIN}\n{table(found)}\n{END}", text), encoding="utf-8")
    say(f"The table is in {DOCUMENT.relative_to(SOURCE)}")


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options.out = options.out.resolve()
    options.commit = commit()  # of what is attacked: an hour later the files may be others
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.table:
        for kind in options.only or ALL:
            run_kind(kind, options)
    found = records(options)
    if not found:
        raise SystemExit(f"error: there are no counts in {options.out}")
    print(table(found))
    if options.write_docs:
        write_document(found)
    return 1 if any(record["findings"] for record in found) else 0


if __name__ == "__main__":
    os.umask(0o022)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
