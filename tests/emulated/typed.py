"""What the tests of pages need that type their commands: a folder, and an environment in which `peakbench` and `python3` are those of the test."""

import os


def environment(programs, peakbench, python):
    """-> the variables of a shell, with `peakbench`, `python3` and `torchrun` in the new folder `programs` first on PATH."""
    programs.mkdir()
    (programs / "peakbench").symlink_to(peakbench)
    (programs / "python3").write_text(f'#!/bin/sh\nexec "{python}" "$@"\n')
    (programs / "torchrun").write_text(f'#!/bin/sh\nexec "{python}" -m torch.distributed.run "$@"\n')
    for name in ("python3", "torchrun"):
        (programs / name).chmod(0o755)
    return os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1", "COLUMNS": "140"}
