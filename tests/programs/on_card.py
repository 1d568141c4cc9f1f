"""Runs a program on the card that is there, real or emulated, and writes PyTorch's own peaks of it.

usage: on_card.py FILE.json PROGRAM.py

The peaks are the highest over the whole program: what it resets of them counts until then.
"""

import atexit
import json
import pathlib
import runpy
import sys


def peaks(torch):
    return {name: torch.cuda.memory_stats().get(f"{name}_bytes.all.peak", 0) for name in ("requested", "allocated", "reserved")}


def keep(torch, file):
    highest = peaks(torch)

    def take():
        for name, size in peaks(torch).items():
            highest[name] = max(highest[name], size)

    def reset(*given, of):
        take()
        return of(*given)

    for name in ("_cuda_resetPeakMemoryStats", "_accelerator_resetPeakStats"):
        if hasattr(torch._C, name):
            setattr(torch._C, name, lambda *given, of=getattr(torch._C, name): reset(*given, of=of))

    def write():
        take()
        file.write_text(json.dumps({f"peak_{name}_bytes": size for name, size in highest.items()}), encoding="utf-8")

    atexit.register(write)


def main():
    file, program = pathlib.Path(sys.argv[1]), sys.argv[2]
    import torch

    keep(torch, file)
    sys.argv = [program]
    sys.path[0] = str(pathlib.Path(program).parent)
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
