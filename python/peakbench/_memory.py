"""Device memory of this program, as PyTorch counts it: a step's peak, what fills it, which card it fits, and a recording of a part of it.

PyTorch is imported when something is asked for, and not before.
"""

import contextlib
import functools
import gc
import importlib
import os
import pickle
import subprocess
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple, Union

from peakbench import _cards, _journal, _notebook
from peakbench._journal import Part

NO_PARTS = "start the program with `peakbench emulate -- python3 ...` or `peakbench trace -- python3 ...`: then the lines that fill the peak are reported"


class MemoryUnavailable(RuntimeError):
    """Device memory cannot be counted here; the message is one sentence that says what to do."""


@dataclass(frozen=True)
class Peak:
    """The most that PyTorch had of the current device at once, in bytes. ``parts`` sum to ``allocated_bytes``; without them ``note`` says why."""

    allocated_bytes: int
    reserved_bytes: int
    requested_bytes: int
    parts: Tuple[Part, ...] = ()
    note: str = ""

    def __str__(self) -> str:
        return f"{in_words(self.allocated_bytes)} allocated, {in_words(self.reserved_bytes)} reserved"

    def _repr_html_(self) -> str:
        """At the end of a notebook's cell: what fills it, a row for each line."""
        return _notebook.table(self)


@dataclass(frozen=True)
class Fit:
    """Whether what is reserved at the peak and a CUDA context are within a card together; true where they are."""

    card: str
    needed_bytes: int
    total_bytes: int
    context_bytes: int
    sentence: str

    def __bool__(self) -> bool:
        return self.needed_bytes + self.context_bytes <= self.total_bytes

    def __str__(self) -> str:
        return self.sentence


def in_words(size: int) -> str:
    """A size as reports write it."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if abs(size) >= unit:
            return f"{size / unit:.3f} {name}"
    return f"{size} B"


def cuda() -> Any:
    """The module torch, with a CUDA card. MemoryUnavailable where there is none."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        if error.name != "torch":
            raise MemoryUnavailable(f"PyTorch cannot be imported ({error}); `peakbench emulate -- python3 ...` brings CUDA's libraries that are missing") from None
        raise MemoryUnavailable("this Python has no PyTorch: install one that is built for CUDA (pip install torch), which needs no GPU") from None
    if getattr(torch.version, "cuda", None) is None:
        raise MemoryUnavailable(f"PyTorch {torch.__version__} is built without CUDA: install one that is built for it (pip install torch), which needs no GPU")
    if not torch.cuda.is_available():
        raise MemoryUnavailable("there is no CUDA card: start it with `peakbench emulate -- python3 ...`, which needs no GPU")
    return torch


# Of torch._C: what torch.cuda.reset_peak_memory_stats() and torch.accelerator's call.
_RESETS = ("_cuda_resetPeakMemoryStats", "_accelerator_resetPeakStats")


class Stretch:
    """A part of the program whose own memory is measured: peaks less what was allocated at its beginning, caches and cycles freed before.

    Reserved memory is what lies beyond that, too: segments have room beside what was allocated in them before, and the part may use it.
    What the program resets of PyTorch's peaks until close() is kept.
    """

    def __init__(self, torch: Any, workspaces: str = "exclude") -> None:
        self._torch = torch
        if workspaces == "exclude":
            make_workspaces(torch)
        else:
            torch._C._cuda_clearCublasWorkspaces()
        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        self.device = torch.cuda.current_device()
        self._before = _counts(torch, "current", self.device)
        self._elsewhere = self._ever_allocated_elsewhere()
        self._highest = self._before
        self._resets = self._keep_what_is_reset()
        self._journal = _journal.path()
        self._since = _journal.position(self._journal)

    def close(self) -> None:
        """Resets are PyTorch's own again."""
        for name, reset in self._resets.items():
            setattr(self._torch._C, name, reset)

    def _keep_what_is_reset(self) -> Dict[str, Callable[..., Any]]:
        resets = {name: getattr(self._torch._C, name) for name in _RESETS if hasattr(self._torch._C, name)}
        for name, reset in resets.items():
            setattr(self._torch._C, name, functools.partial(self._reset, reset))
        return resets

    def _reset(self, reset: Callable[..., Any], *given: Any) -> Any:
        self._highest = self._peaks()
        return reset(*given)

    def _peaks(self) -> Dict[str, int]:
        now = _counts(self._torch, "peak", self.device)
        return {what: max(size, self._highest[what]) for what, size in now.items()}

    def peak(self) -> Peak:
        """So far. Parts are read apart from it: they take a while."""
        peak, before = self._peaks(), self._before
        return Peak(peak["allocated"] - before["allocated"], peak["reserved"] - before["allocated"], peak["requested"] - before["requested"])

    def other_devices(self) -> List[str]:
        """Those that something was allocated on, which no figure has."""
        now = self._ever_allocated_elsewhere()
        return [f"cuda:{device}" for device, count in now.items() if count != self._elsewhere[device]]

    def _ever_allocated_elsewhere(self) -> Dict[int, int]:
        others = (device for device in range(self._torch.cuda.device_count()) if device != self.device)
        return {device: int(self._torch.cuda.memory_stats(device).get("allocation.all.allocated", 0)) for device in others}

    def parts(self) -> Tuple[Part, ...]:
        """What was made in it and is alive at the peak; nothing where the process is not traced."""
        return _journal.parts(self._journal, self.device, self._since, False) if self._journal else ()


def make_workspaces(torch: Any) -> None:
    """What cuBLAS and cuBLASLt keep from first use: of this thread and of backward's, on the current stream."""
    with torch.enable_grad(), torch.autocast("cuda", enabled=False):
        weight = torch.zeros(8, 8, device="cuda", requires_grad=True)
        torch.nn.functional.linear(weight @ weight, weight, torch.zeros(8, device="cuda")).sum().backward()


def _counts(torch: Any, which: str, device: int) -> Dict[str, int]:
    stats = torch.cuda.memory_stats(device)
    return {what: int(stats.get(f"{what}_bytes.all.{which}", 0)) for what in ("allocated", "reserved", "requested")}


_step_began = 0  # in the journal: peak() is of what follows, as PyTorch's own peaks are


def peak() -> Peak:
    """The highest so far of this step, or of the program where no step() was called: ``torch.cuda.max_memory_allocated()`` and its like."""
    torch = cuda()
    device = torch.cuda.current_device()
    counts = _counts(torch, "peak", device)
    journal = _journal.path()
    if journal is None:
        return _peak_of(counts, note=NO_PARTS)
    if _journal.is_full(journal):
        return _peak_of(counts, note=_journal.FULL)
    return _peak_of(counts, parts=_journal.parts(journal, device, _step_began, True))


def _peak_of(counts: Dict[str, int], parts: Tuple[Part, ...] = (), note: str = "") -> Peak:
    return Peak(counts["allocated"], counts["reserved"], counts["requested"], parts, note)


def step() -> None:
    """Begins a step: peak() is of it alone from here on. It resets PyTorch's own peaks (``torch.cuda.reset_peak_memory_stats()``)."""
    global _step_began
    cuda().cuda.reset_peak_memory_stats()
    _step_began = _journal.position(_journal.path())


def fits(card: str) -> Fit:
    """Whether the peak so far and a CUDA context are within that card (``peakbench list devices``). ValueError where there is no such card.

    ``t4-16gb,context=500MiB`` says what the context takes, and ``context=0`` that it takes nothing.
    """
    (wanted, context), so_far = _cards.with_options(card), peak()
    needed, allocated, total = so_far.reserved_bytes, so_far.allocated_bytes, wanted.total_bytes
    if needed + context.bytes <= total:
        said = "it fits"
    elif allocated > total:
        said = "it does not fit"
    elif allocated + context.bytes > total:
        said = "it may not fit with a CUDA context"
    else:
        said = f"it may fit, as {in_words(allocated)} are allocated and the rest is cache: run it on that card (peakbench emulate --card {card})"
    sentence = f"{in_words(needed)} reserved at the peak, {card} has {in_words(total)}, {_of_context(context)}: {said}"
    return Fit(card, needed, total, context.bytes, sentence)


def _of_context(context: _cards.Context) -> str:
    if context.bytes == 0:
        return "none set aside for a CUDA context"
    return f"{'up to ' if context.is_largest_known else ''}{in_words(context.bytes)} of it for a CUDA context"


@contextlib.contextmanager
def trace(out: Union[str, "os.PathLike[str]"]) -> Iterator[None]:
    """Records what is allocated within it, by PyTorch's own history, and leaves a run folder with a report, as `peakbench import` does.

    In any process that has a card, real or emulated. Categories are inferred from lifetimes; `peakbench trace` of the whole program knows more.
    FileExistsError where ``out`` is there already. What the program raises goes on, and what was recorded until then is kept. PyTorch keeps one
    history for all threads: RuntimeError within another trace(), or beside one. A history that the program records itself continues.
    """
    folder = Path(out)
    if folder.exists():
        raise FileExistsError(f"{folder} is there already: name another folder, or delete it")
    program = _program()
    torch = cuda()
    if not _TRACING.acquire(blocking=False):
        raise RuntimeError("peakbench.trace() is already recording in this process, and PyTorch keeps one history for all threads: leave that trace() first")
    try:
        history = _History(torch)
        try:
            yield
        finally:
            _write_run(program, torch, history.take(), folder)
    finally:
        _TRACING.release()


_TRACING = threading.Lock()


class _History:
    """PyTorch's record of what is allocated from now on; where the program records already, what its record has from now on."""

    def __init__(self, torch: Any) -> None:
        self._memory = torch.cuda.memory
        torch.cuda.init()
        self._is_own = not torch._C._cuda_isHistoryEnabled()
        self._before: List[Any] = []  # of each device, the last entry
        if self._is_own:
            self._memory._record_memory_history(stacks="python", max_entries=10_000_000)
        else:
            self._before = [entries[-1:] for entries in self._memory._snapshot()["device_traces"]]

    def take(self) -> Dict[str, Any]:
        snapshot: Dict[str, Any] = self._memory._snapshot()
        if self._is_own:
            self._memory._record_memory_history(enabled=None)
        for entries, last in zip(snapshot["device_traces"], self._before):
            # The oldest fall out of a history that is full: then all there are came later.
            for at in range(len(entries) - 1, -1, -1):
                if last and entries[at] == last[0]:
                    del entries[: at + 1]
                    break
        return snapshot


def _write_run(program: str, torch: Any, snapshot: Dict[str, Any], folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="peakbench-") as scratch:
        file = os.path.join(scratch, "snapshot.pickle")
        with open(file, "wb") as out:
            pickle.dump(snapshot, out)
        card = ["--card", _cards.here(torch).id] if os.environ.get("PEAKBENCH_EMULATED_CARD") else []
        # On an emulated card the program would otherwise be given one, too.
        plain = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD" and not name.startswith(("PEAKBENCH_EMULA", "PEAKBENCH_TRACE_"))}
        plain["PEAKBENCH_EMULATED_CARD"] = ""  # said to be none: it is not put back
        done = subprocess.run([program, "import", file, "--out", str(folder), *card], env=plain, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{folder} could not be written: {(done.stderr or done.stdout).strip()}")


@functools.lru_cache(maxsize=None)
def _program() -> str:
    for root in _cards.roots():
        program = root / "bin/peakbench"
        if os.access(program, os.X_OK):
            return str(program)
    raise FileNotFoundError("the program `peakbench` is not found: install the wheel, or put it on PATH")
