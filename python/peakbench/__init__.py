"""What a training strategy costs in peak memory and throughput.

The program ``peakbench`` and all that it needs lie in this package; ``peakbench --help`` says what it does.
``peakbench.phase("rollout")`` names a part of a program for ``peakbench trace``. ``peak()``, ``step()`` and ``fits(card)`` say what this program
takes of its device, ``trace(out)`` records a part of it, and ``load(folder)`` reads a run (docs/reference/python.md). ``@peakbench.model`` and
``@peakbench.strategy`` mark functions for ``peakbench run --program``. Tests: docs/how-to/pytest.md.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from peakbench._objects import model, strategy
from peakbench._phase import phase

if TYPE_CHECKING:
    from peakbench._journal import Part
    from peakbench._memory import Fit, MemoryUnavailable, Peak, fits, peak, step, trace
    from peakbench._results import Alive, Case, Run, load

__all__ = ["Alive", "Case", "Fit", "MemoryUnavailable", "Part", "Peak", "Run", "fits", "load", "model", "peak", "phase", "step", "strategy", "trace"]

try:
    __version__ = version("peakbench")
except PackageNotFoundError:  # this folder alone, on PYTHONPATH
    __version__ = "unknown"


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext peakbench``: the magic ``%%peakbench``."""
    import_module("peakbench._notebook").register(shell)


def __getattr__(name: str) -> Any:
    """The rest is imported when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module 'peakbench' has no attribute {name!r}")
    return getattr(import_module("peakbench._results" if name in ("Alive", "Case", "Run", "load") else "peakbench._memory"), name)
