"""What a program on an emulated card read of it that nobody computed: a figure that comes after may be another on a real card."""

import ctypes
import functools
import json
from collections import Counter
from typing import Any, Optional, Tuple

# Of such reads (emulator/core/read_kinds.h), those that a verdict makes a condition of: the rest makes it unreliable (emulator/verdict).
_CONDITIONS = ("floating", "finite", "storage", "copy")
_NOTHING = ("seed",)

Reads = Counter[Tuple[str, str]]


def unknown() -> Reads:
    """So far, by what was read and where: ("bool", "train.py:12"). Nothing on a real card."""
    library = _library()
    if library is None:
        return Counter()
    rows = json.loads(library.peakbench_emulator_report().decode("utf-8", "replace"))["read_backs"]
    found: Reads = Counter()
    for row in rows:
        calls = row["zero_calls"] + row["uncertain_calls"] + row["substitute_calls"]
        if calls and row["kind"] not in _NOTHING:
            found[row["kind"] or "bytes", row["place"] or row["operation"] or row["function"]] += calls
    return found


def is_condition(kind: str) -> bool:
    """Whether the figure is exact if nothing that is allocated rests on it; otherwise it is unreliable."""
    return kind in _CONDITIONS


def in_words(reads: Reads) -> str:
    """The places, most reads first."""
    return "; ".join(f"{where} read {_KINDS.get(kind, kind + ' values')} ({calls} time{'' if calls == 1 else 's'})" for (kind, where), calls in reads.most_common(3))


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
