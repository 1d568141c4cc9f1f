"""Names what a program does, for ``peakbench trace``: nothing of PyTorch is imported, and nothing happens where nobody traces."""

import functools
import inspect
import os
import sys
import threading
from typing import Any, Callable, Dict, List, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

# Set by `peakbench trace` before the program begins.
_TRACED = "PEAKBENCH_TRACE_LIBRARY" in os.environ

_here = threading.local()  # .open: this thread's phases, the outermost first


class _Entry:
    """A phase that was entered and not left. ``number``: the tracer's own for it; 0: it does not know of it."""

    __slots__ = ("name", "number")

    def __init__(self, name: str) -> None:
        self.name = name
        self.number = 0


class phase:
    """Names what is done within it, so that `peakbench trace` can say which part of a program allocates memory.

    As a context manager, or as a decorator of a function::

        with peakbench.phase("rollout"):
            samples = model.generate(prompts)

        @peakbench.phase("score")
        def score(samples): ...

    Phases nest, end where an exception leaves them, and are a thread's own; what autograd does on threads of its own belongs to the phase that
    called it. One object can be entered again, within itself and by several threads. Beside the phases that are found without it (forward,
    backward, ...), this name is a second one: both are told. Without `peakbench trace` it does nothing.
    """

    __slots__ = ("name", "_entries")

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f'peakbench.phase takes a name, as in peakbench.phase("rollout"); it was given {name!r}')
        self.name = name
        self._entries: Dict[int, List[_Entry]] = {}  # by thread

    def __enter__(self) -> "phase":
        if _TRACED and not _is_compiling():
            entry = _Entry(self.name)
            self._entries.setdefault(threading.get_ident(), []).append(entry)
            _opened().append(entry)
            telling = getattr(sys.modules.get("_peakbench_tracing"), "TELLING", None)
            if telling is not None:  # else PyTorch is not imported yet
                entry.number = telling.begin_phase(self.name)
        return self

    def __exit__(self, *exception: object) -> None:
        if not _TRACED or _is_compiling():
            return
        entries = self._entries.get(threading.get_ident())
        if not entries:
            return  # left by another thread than the one that entered it
        entry = entries.pop()
        if not entries:
            del self._entries[threading.get_ident()]
        _opened().remove(entry)
        if entry.number:
            sys.modules["_peakbench_tracing"].TELLING.end_range(entry.number)

    def __call__(self, function: Function) -> Function:
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"peakbench.phase cannot decorate {function.__qualname__}, which runs in pieces: use `with peakbench.phase({self.name!r}):` inside of it")

        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return within  # type: ignore[return-value]


def _is_compiling() -> bool:
    """PyTorch's compiler looks at this function: what it compiles is to be the same whoever traces, and has no phases within."""
    compiler = getattr(sys.modules.get("torch"), "compiler", None)
    return compiler is not None and compiler.is_compiling()


def _opened() -> List[_Entry]:
    """This thread's open phases."""
    opened: List[_Entry] = getattr(_here, "open", [])
    _here.open = opened
    return opened


def begin_open(telling: Any) -> None:
    """Tells the tracer, which begins only now, of the phases that this thread is in."""
    for entry in _opened():
        entry.number = telling.begin_phase(entry.name)
