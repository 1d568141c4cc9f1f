"""Which sources are sampled, under which name, and which tests should notice a fault in them."""

import dataclasses
import fnmatch
import pathlib


@dataclasses.dataclass(frozen=True)
class Stage:
    """Targets to build, then tests to run: those of the programs just built, or those that CTest selects."""

    targets: tuple
    programs: tuple = ()
    select: tuple = ()  # CTest's -L, -R, -E


def _tests_of(*programs):
    return Stage(programs, programs=programs)


# The worker on strategies planted for it; the plugins and models beside it are built before the first fault.
_WORKER = Stage(("worker_test", "peakbench-worker", "planted_strategies"), select=("-L", "^worker$"))
# What the tests of a whole case need is most of what there is.
_WHOLE = ("all",)
# What is recorded under LibTorch's own operators.
_TESTS_OF_DEVICE = Stage(("recorder_test", "registry_test", "training_trace_test"), select=("-L", "^device$"))
_E2E = ("peakbench", "fake_models", "fake_strategies")


@dataclasses.dataclass(frozen=True)
class Room:
    folder: str
    stages: tuple  # the quickest first
    recursive: bool = False


# In the order in which they are run. A test program is built before its tests are looked up.
ROOMS = (
    Room(
        "harness/trace",
        (
            _tests_of("trace_test"),
            _tests_of("peakbench_golden_tests"),
            _tests_of("compare_test"),
            _TESTS_OF_DEVICE,
        ),
    ),
    Room(
        "reports/compare",
        (
            _tests_of("compare_test"),
            _tests_of("peakbench_golden_tests"),
            _tests_of("history_test", "site_test"),
            Stage(_E2E, select=("-R", r"^e2e\.(ab|cli)$")),
        ),
    ),
    Room(
        "harness/process",
        (
            _tests_of("process_test"),
            _tests_of("launch_test"),
            Stage(_E2E, select=("-R", r"^e2e\.(interrupt|outcomes)$")),
        ),
    ),
    Room(
        "harness/launch",
        (
            _tests_of("launch_test"),
            _tests_of("compare_test"),
            _tests_of("cli_test"),
            Stage(_E2E, select=("-R", r"^e2e\.(outcomes|cli|interrupt|ab|rounds|terminal)$")),
        ),
    ),
    Room(
        "harness/worker",
        (
            _tests_of("worker_test"),
            _WORKER,
            Stage(_WHOLE, select=("-L", "^plugin$")),
            Stage(_WHOLE, select=("-R", r"^e2e\.gate$")),
            Stage(_WHOLE, select=("-R", r"^parity\.strategies\.")),
        ),
    ),
    Room(
        "harness/record",
        (
            _TESTS_OF_DEVICE,
            Stage(_WHOLE, select=("-L", "^emulated$")),
        ),
        recursive=True,
    ),
    Room(
        "harness/device",
        (
            _TESTS_OF_DEVICE,
            _WORKER,
            Stage(_WHOLE, select=("-R", r"^e2e\.gate$")),
            Stage(_WHOLE, select=("-L", "^emulated$")),
        ),
        recursive=True,
    ),
)

# What must not be wrong: a sample has as many faults here as elsewhere, and none may survive.
CONCEPTS = {
    "the judge": ("harness/worker/equivalence.cpp", "harness/worker/promise.cpp"),
    "the timing job": ("harness/worker/throughput_job.cpp",),
    "the recipe": (
        "harness/worker/recipe_*.cpp",
        "harness/worker/contributions.cpp",
        "harness/worker/counted_recipe.cpp",
        "harness/worker/micro_batches.cpp",
    ),
    "the categories": (
        "harness/trace/lifetimes.cpp",
        "harness/trace/maxima.cpp",
        "harness/trace/anatomy.cpp",
    ),
}


def room_of(file):
    return next((room for room in ROOMS if file.startswith(room.folder + "/")), None)


def concept_of(file):
    return next((name for name, patterns in CONCEPTS.items() if any(fnmatch.fnmatch(file, p) for p in patterns)), None)


def sources(repository, rooms=ROOMS):
    """The .cpp files of the rooms, from the repository's root, in order."""
    found = []
    for room in rooms:
        pattern = "**/*.cpp" if room.recursive else "*.cpp"
        found += sorted(path.relative_to(repository).as_posix() for path in pathlib.Path(repository, room.folder).glob(pattern))
    return found
