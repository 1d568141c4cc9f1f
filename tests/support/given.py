"""What a test is given: paths of the build that `--peakbench` names (tests/conftest.py), pytest's options, and the oracle.

`from given import PEAKBENCH, PAGES` imports paths. `from given import ORACLE` imports the oracle's Python, or skips the file if there is none.
"""

import os
import pathlib
import re

# Below the build folder.
PATHS = {
    "BAD_PLUGINS": "tests/plugin/bad",
    "CHARTS": "share/peakbench/charts/d3.js",
    "CHECK_MANIFEST": "bin/peakbench-check-manifest",
    "CUDNN_FORWARD": "tests/emulated/cudnn_itself/libcudnn_itself_forward.so",
    "CUDNN_IDLE_DRIVER": "tests/emulated/cudnn_itself/libcuda.so.1",
    "EXAMPLES": "bin/examples",
    "FAIL_NTH": "tests/hostile/peakbench_fail_nth.so",
    "FAKE_PLUGINS": "tests/e2e/plugins",
    "HISTORY_FILL": "bin/peakbench_history_fill",
    "MODEL_DRIVER": "bin/model_driver",
    "PAGES": "bin/peakbench_browser_pages",
    "PICTURES": "tests/browser/pictures",
    "PLANTED": "tests/worker/planted/planted_strategies.so",
    "PLANTED_AFTER": "tests/gate/after",
    "PLANTED_BEFORE": "tests/gate/before",
    "PLUGINS": "lib/peakbench/plugins",
    "ROUTED": "tests/emulated/routed",
    "STRATEGY_DRIVER": "bin/strategy_driver",
    "TEMPLATES": "share/peakbench/templates",
    "WORKER": "bin/peakbench-worker",
}
# Variables of CMake, which the build folder keeps.
VARIABLES = {
    "CMAKE": "CMAKE_COMMAND",
    "CUDA_INCLUDE": "PEAKBENCH_CUDA_INCLUDE",
    "CXX": "CMAKE_CXX_COMPILER",
    "TORCH": "PEAKBENCH_TORCH_DIR",
}


def take(options):
    """Sets what pytest's options say."""
    global PEAKBENCH, BUILD, ALL, ONLY, UPDATE, FAMILY
    PEAKBENCH = options.peakbench.resolve()
    BUILD = PEAKBENCH.parents[1]
    ALL, ONLY, UPDATE, FAMILY = options.all, options.only, options.update, options.family


def __getattr__(name):
    if name == "ORACLE":
        if python := os.environ.get("PEAKBENCH_ORACLE"):
            return python
        import pytest

        pytest.skip("no oracle; ci/oracle makes one, and PEAKBENCH_ORACLE names its Python", allow_module_level=True)
    if name in PATHS:
        return BUILD / PATHS[name]
    if name in VARIABLES:
        cache = (BUILD / "CMakeCache.txt").read_text(encoding="utf-8")
        return pathlib.Path(re.search(rf"^{VARIABLES[name]}:\w+=(.+)$", cache, re.MULTILINE)[1])
    raise AttributeError(name)
