"""What a training strategy costs in peak memory and throughput.

The program ``peakbench`` and all that it needs lie in this package; ``peakbench --help`` says what it does.
``peakbench.phase("rollout")`` names a part of a program for ``peakbench trace``.
"""

from importlib.metadata import PackageNotFoundError, version

from peakbench._phase import phase

__all__ = ["phase"]

try:
    __version__ = version("peakbench")
except PackageNotFoundError:  # this folder alone, on PYTHONPATH
    __version__ = "unknown"
