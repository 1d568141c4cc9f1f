"""What a program on an emulated card read of it that nobody computed: a figure that comes after may be another on a real card."""

import ctypes
import functools
import json
from collections import Counter
from typing import Any, Dict, List, Optional, Tuple

# By what it means for a figure that comes after ("condition", "unreliable"), what was read, and where: "bool", "train.py:12".
Reads = Counter[Tuple[str, str, str]]


def so_far() -> "Counter[Tuple[str, ...]]":
    """How often each place read what is not known. Nothing on a real card."""
    return Counter({_place(row): _calls(row) for row in _rows() if _calls(row)})


def since(before: "Counter[Tuple[str, ...]]") -> Reads:
    found: Reads = Counter()
    for row in _rows():
        calls = _calls(row) - before[_place(row)]
        if calls > 0 and row["effect"] != "none":
            found[row["effect"], row["kind"] or "bytes", row["place"] or row["operator"] or row["function"] or "more places"] += calls
    return found


def _report() -> Dict[str, Any]:
    library = _library()
    if not library:
        return {"read_backs": [], "unbounded_integers": 0}
    return dict(json.loads(library.peakbench_emulator_report().decode("utf-8", "replace")))


def _rows() -> List[Dict[str, Any]]:
    return list(_report()["read_backs"])


def _place(row: Dict[str, Any]) -> Tuple[str, ...]:
    return tuple(str(row[key]) for key in ("kind", "place", "operator", "function", "library"))


def _calls(row: Dict[str, Any]) -> int:
    return int(row["zero_calls"] + row["uncertain_calls"] + row["substitute_calls"])


def answered_alike() -> int:
    """How often something was read for which no other value is made up: a second guess leaves it as it is."""
    report = _report()
    return int(report["unbounded_integers"]) + sum(
        int(row["zero_calls"] + row["uncertain_calls"]) for row in report["read_backs"] if row["effect"] != "none" and row["kind"] != "finite"
    )


def conditions(reads: Reads) -> Reads:
    """Those by which a figure is exact if nothing that is allocated rests on them; the others make it unreliable."""
    return Counter({read: calls for read, calls in reads.items() if read[0] == "condition"})


def not_tried(reads: Reads, runs: int) -> str:
    """What so many further runs do not try (emulator/verdict/judge.h, guesses_needed), or nothing."""
    integers, sizes = (sum(calls for (_, kind, _where), calls in reads.items() if kind == word) for word in ("integer", "size"))
    needed, what = (4, "both orders of the sizes that it reads") if sizes and integers + sizes > 1 else (3, "both orders of the numbers that it reads") if integers + sizes > 1 else (2, "both sides of each comparison")
    return f"{runs} further run{' does' if runs == 1 else 's do'} not try {what}, as --peakbench-second-guess {needed} does" if runs < needed else ""


def in_words(reads: Reads) -> str:
    """The places, most reads first."""
    return "; ".join(f"{where} read {_KINDS.get(kind, kind + ' values')} ({calls} time{'' if calls == 1 else 's'})" for (_, kind, where), calls in reads.most_common(3))


_KINDS = {"size": "a size", "finite": "whether values are finite", "copy": "values onto the host", "storage": "whole storages", "bytes": "bytes"}


@functools.lru_cache(maxsize=None)
def _library() -> Optional[Any]:
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            path = next((line.split(maxsplit=5)[5].rstrip("\n") for line in maps if line.rstrip("\n").endswith("/libpeakbench_emulator.so")), None)
    except OSError:
        return None
    if path is None:
        return None
    library = ctypes.CDLL(path)
    library.peakbench_emulator_report.restype = ctypes.c_char_p
    return library
