"""What fills a peak of this process, out of the journal that the tracer writes (harness/recording/journal.h): by line, module and category.

Read only when it is asked for. Totals are PyTorch's own; this says what they consist of.
"""

import os
import re
import struct
import sys
import sysconfig
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import DefaultDict, Dict, Iterator, List, Optional, Tuple

_RECORD = struct.Struct("<BBhiiiQqqqqq")  # tag, kind, space, thread, and the fields of EventRecord
_HEADER_BYTES = 4096
_TEXT, _SPACE, _FRAME, _EVENT, _WHERE, _NAME = 0, 1, 2, 3, 4, 7  # Tag
_ALLOC, _FREE, _FREE_REQUESTED = 0, 1, 2  # EventKind
_ROLES = ("parameter", "buffer", "gradient", "optimizer state", "input", "workspace", "kept", "communication")
_UNNAMED = "activation or temporary"
# harness/recording/journal.cpp: what it grows by, and where it ends if nobody says so.
_WINDOW_BYTES, _MOST_BYTES = 4 << 20, 16 << 30
FULL = (
    "the recording of this process is full, so that the lines that fill the peak are not known: `peakbench trace -- python3 ...` records "
    "more than `peakbench emulate`; or run a part of the program"
)


@dataclass(frozen=True)
class Part:
    """Memory that is alive at a peak, of one line of the program, one module and one category.

    ``line``: the innermost FILE:LINE of the program's own code, ``caller``: the outermost; "" where Python was not asked.
    """

    bytes: int
    line: str
    caller: str
    module: str
    category: str


@dataclass
class _Allocation:
    requested: int
    block: int
    began: int  # which record
    stack: int = -1
    module: int = -1
    role: int = -1
    ended: Optional[int] = None


def path() -> Optional[Path]:
    """The journal of this process, where it is traced."""
    if getattr(sys.modules.get("_peakbench_tracing"), "TELLING", None) is None:
        return None
    journal = Path(os.environ.get("PEAKBENCH_TRACE_FOLDER", ""), f"{os.getpid()}.journal")
    return journal if journal.exists() else None


def position(journal: Optional[Path]) -> int:
    """How many records there are by now."""
    if journal is None:
        return 0
    with journal.open("rb") as file:
        return int(struct.unpack("<8sQ", file.read(16))[1])


def is_full(journal: Optional[Path]) -> bool:
    """What came last may not be in it."""
    most = int(os.environ.get("PEAKBENCH_TRACE_MOST") or 0) or _MOST_BYTES
    return journal is not None and position(journal) * _RECORD.size > most - 2 * _WINDOW_BYTES


def parts(journal: Path, device: int, since: int, with_before: bool) -> Tuple[Part, ...]:
    """What the highest allocated bytes since that record consist of, the largest first. ``with_before``: also of what was alive then.

    Nothing where the journal is full.
    """
    if is_full(journal):
        return ()
    reader = _Reader(f"cuda:{device}")
    reader.read(journal)
    return reader.parts(since, with_before)


class _Reader:
    def __init__(self, space: str) -> None:
        self.space = space
        self.texts: List[str] = []
        self.frames: List[Tuple[int, int, int]] = []  # parent, file, line
        self.number = -1  # of the space
        self.all: List[_Allocation] = []
        self.live: Dict[int, _Allocation] = {}
        self.waiting: DefaultDict[int, List[_Allocation]] = defaultdict(list)  # by thread: for the line that asked
        self.unsized: Optional[Tuple[_Allocation, int]] = None  # its block is the difference to the next total

    def read(self, journal: Path) -> None:
        with journal.open("rb") as file:
            records = struct.unpack("<8sQ", file.read(16))[1]
            file.seek(_HEADER_BYTES)
            data = file.read(records * _RECORD.size)
        at = _enumerate(data)
        for index, record in at:
            tag = record[0]
            if tag == _TEXT:
                size = record[5]
                begin = (index + 1) * _RECORD.size
                self.texts.append(data[begin : begin + size].decode(errors="replace"))
                for _ in range(-(-size // _RECORD.size)):
                    next(at)
            elif tag == _SPACE and self.texts[record[4]] == self.space:
                self.number = record[2]
            elif tag == _FRAME:
                self.frames.append((record[5], record[6], record[8]))
            elif tag == _EVENT and record[2] == self.number:
                self._event(index, record)
            elif tag == _WHERE:
                for allocation in self.waiting.pop(record[3], ()):
                    allocation.stack = record[4]
                    if record[6] < 1 << 63:  # signed here: -1 is none
                        allocation.module = record[6]
            elif tag == _NAME and record[6] in self.live:
                named = self.live[record[6]]
                # The first name that it was given, but for what a collective was given: the weakest.
                if named.role in (-1, len(_ROLES) - 1):
                    named.role = record[1]

    def _event(self, index: int, record: Tuple[int, ...]) -> None:
        _, kind, _, thread, module, _, address, requested, block, total, _, _ = record
        if self.unsized is not None:
            allocation, before = self.unsized
            allocation.block = max(total - before, allocation.requested)
            self.unsized = None
        if kind == _ALLOC:
            allocation = _Allocation(requested, max(block, -(-requested // 512) * 512), index, module=module)
            self.unsized = (allocation, total) if block < 0 else None
            self.all.append(allocation)
            self.live[address] = allocation
            self.waiting[thread].append(allocation)
        elif kind in (_FREE, _FREE_REQUESTED) and address in self.live:
            freed = self.live[address] if kind == _FREE_REQUESTED else self.live.pop(address)
            if freed.ended is None:
                freed.ended = index

    def parts(self, since: int, with_before: bool) -> Tuple[Part, ...]:
        changes = [(one.began, one.block) for one in self.all] + [(one.ended, -one.block) for one in self.all if one.ended is not None]
        peak, highest, allocated = since, -1, 0
        for index, by in sorted(changes):
            if index >= since and highest < 0:
                highest = allocated
            allocated += by
            if index >= since and allocated > highest:
                peak, highest = index, allocated
        bytes_of: Counter[Tuple[str, str, str, str]] = Counter()
        for one in self.all:
            if one.began <= peak and (one.ended is None or one.ended > peak) and (with_before or one.began >= since):
                module = self.texts[one.module] if one.module >= 0 else ""
                bytes_of[(*self._lines(one.stack), module, _ROLES[one.role] if one.role >= 0 else _UNNAMED)] += one.block
        return tuple(Part(size, *where) for where, size in bytes_of.most_common())

    def _lines(self, frame: int) -> Tuple[str, str]:
        own, innermost = [], ""
        while frame >= 0:
            parent, file, line = self.frames[frame]
            place = f"{_short(self.texts[file])}:{line}"
            innermost = innermost or place
            if _is_own(self.texts[file]):
                own.append(place)
            frame = parent
        return (own[0], own[-1]) if own else (innermost, innermost)


def _enumerate(data: bytes) -> Iterator[Tuple[int, Tuple[int, ...]]]:
    return enumerate(_RECORD.iter_unpack(data))


def _is_own(file: str) -> bool:
    """Of the program, not of a library, as `peakbench trace` tells them apart."""
    torch = getattr(sys.modules.get("torch"), "__file__", None)
    libraries = [sysconfig.get_path("stdlib"), os.path.dirname(__file__), *([os.path.dirname(torch)] if torch else [])]
    if _CELL.match(file):
        return True
    if file.startswith("<") or "/site-packages/" in file or "/dist-packages/" in file:
        return False
    return not any(file.startswith(library + os.sep) for library in libraries)


_CELL = re.compile(r"<ipython-input-(\d+)[->]")  # of a notebook, as the journal names it


def _short(file: str) -> str:
    cell = _CELL.match(file)
    if cell:
        return f"In[{cell[1]}]"
    inside = os.path.relpath(file) if os.path.isabs(file) else file
    return file if inside.startswith("..") else inside
