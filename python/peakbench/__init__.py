"""What a training strategy costs in peak memory and throughput.

The program ``peakbench`` and all that it needs lie in this package; ``peakbench --help`` says what it does.
"""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("peakbench")
except PackageNotFoundError:  # this folder alone, on PYTHONPATH
    __version__ = "unknown"
