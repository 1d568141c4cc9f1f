"""Which workspaces cuDNN takes for a program's convolutions on a card of yours, added to a card file (``peakbench doctor --workspaces``).

usage: python3 -m peakbench.workspaces --to FILE [--json] -- COMMAND ARG...
The program runs once, as it is. Exit codes: the program's; 2 where nothing could be measured, in one sentence on standard error.
"""

import argparse
import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Tuple

from peakbench import _cards, _files, _memory

_LIBRARY = "lib/peakbench/emulator/observer/libpeakbench_cudnn_observer.so"
_PASSES = ("forward", "backward_data", "backward_weight")


class _Unable(Exception):
    """One sentence that says why, and what to do."""


def main() -> int:
    """Runs the program, and adds what cuDNN took to the file."""
    asked = _parsed(sys.argv[1:])
    try:
        return _measured(asked)
    except (_Unable, _cards.CardFileError, _memory.MemoryUnavailable, ValueError, OSError) as error:
        print(f"peakbench: doctor --workspaces: {error}", file=sys.stderr)
        return 2


def _parsed(typed: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python3 -m peakbench.workspaces", description="Measures cuDNN's workspaces on a card of yours.")
    parser.add_argument("--to", metavar="FILE", type=Path, required=True, help="the card file to add them to")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("command", nargs="+", help="the program")
    return parser.parse_args(typed)


def _measured(asked: argparse.Namespace) -> int:
    library = next((root / _LIBRARY for root in _cards.roots() if (root / _LIBRARY).exists()), None)
    if library is None:
        raise _Unable("libpeakbench_cudnn_observer.so is not found: put `peakbench` on PATH, or install the wheel")
    card = _cards.here(_memory.cuda())
    profile = _cards.file_of(asked.to, card.id)
    if not asked.to.resolve().parent.is_dir():
        raise _Unable(f"{asked.to}: there is no such folder")
    with tempfile.TemporaryDirectory(prefix="peakbench-workspaces-") as folder:
        link = Path(folder, library.name)  # the dynamic loader takes no path with a space or a colon
        link.symlink_to(library)
        preload = f"{link}:{os.environ.get('LD_PRELOAD', '')}".rstrip(":")
        program = subprocess.Popen(asked.command, env={**os.environ, "LD_PRELOAD": preload, "PEAKBENCH_WORKSPACES_TO": folder})
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the program, and what it took until then is kept
        ended = program.wait()
        told = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(Path(folder).glob("*.json"))]
    if not told:
        raise _Unable(f"the program took no convolution of cuDNN's (it ended with exit code {ended}): nothing was measured")
    source = f"`peakbench doctor --workspaces` on {card.name}, {datetime.datetime.now(datetime.timezone.utc).date().isoformat()}"
    if "PEAKBENCH_EMULATED_CARD" in os.environ:
        source = f"an EMULATED card, which shows nothing about a real one: {source}"
    lists, new = profile.setdefault("convolution_workspaces", []), 0
    for measured in (one for process in told for one in process["workspaces"]):
        new += _add(lists, measured, source)
    _files.write(asked.to, json.dumps(profile, indent=1) + "\n")
    left_out: Dict[str, int] = {}
    for reason, calls in (pair for process in told for pair in process["left_out"].items()):
        left_out[reason] = left_out.get(reason, 0) + calls
    print(json.dumps({"card": card.id, "new": new, "left_out": left_out}, indent=1) if asked.json else _told(card, asked.to, new, left_out), file=sys.stderr)
    return ended if ended >= 0 else 128 - ended


def _key(convolution: Dict[str, Any]) -> str:
    return json.dumps({name: value for name, value in convolution.items() if name not in _PASSES}, sort_keys=True)


def _add(lists: List[Dict[str, Any]], measured: Dict[str, Any], source: str) -> int:
    """Merges one release's list into the file's, and counts what is new. A size that differs from the file's is an error."""
    of_release = next((one for one in lists if one["cudnn"] == measured["cudnn"]), None)
    if of_release is None:
        of_release = {"cudnn": measured["cudnn"], "source": source, "convolutions": []}
        lists.append(of_release)
    elif source not in of_release["source"]:
        of_release["source"] += f"; {source}"
    known: Dict[str, Dict[str, Any]] = {_key(one): one for one in of_release["convolutions"]}
    new = 0
    for convolution in measured["convolutions"]:
        there = known.setdefault(_key(convolution), {name: value for name, value in convolution.items() if name not in _PASSES})
        if there not in of_release["convolutions"]:
            of_release["convolutions"].append(there)
        for name, size in _sizes(convolution):
            if there.get(name, size) != size:
                raise _Unable(f"cuDNN {measured['cudnn']} took {size} bytes ({name}) for a convolution of which the file says {there[name]}: "
                              f"{_key(convolution)}; take that entry out, or write to another file")
            new += name not in there
            there[name] = size
    return new


def _sizes(convolution: Dict[str, Any]) -> List[Tuple[str, int]]:
    return [(name, convolution[name]) for name in _PASSES if name in convolution]


def _told(card: _cards.Card, file: Path, new: int, left_out: Dict[str, int]) -> str:
    lines = [f"{card.name} ({card.id}): {new} new workspace{'s' * (new != 1)} of convolutions, in {file}.",
             f"`peakbench emulate --card {file} -- COMMAND` uses them."]
    lines += [f"Left out: {reason} ({calls} call{'s' * (calls != 1)} or more)." for reason, calls in sorted(left_out.items())]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
