"""Runs one test of pytest once a rank, each in a process of its own: pytest again, of that test alone, in the environment that torchrun gives.

The processes report as pytest-xdist's workers do, and count as such for other plugins: none of them writes the session's own files.
"""

import contextlib
import faulthandler
import io
import json
import marshal
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

import pytest

from peakbench import _files, _memory, _process_group
from peakbench._texts import plain, shown_object

EXCEEDS = "device_memory_exceeds"  # a property of a test that only took too much
_GRACE_S = 5.0  # that the other ranks have to end, once one has failed, and a rank's process to end after its test
_REST_S = 60.0  # that the other ranks have, once one has taken too much: what they take counts, too
_POLL_S = 0.02
_TAIL = 4000  # characters of what a process printed that told nothing else
_USAGE = int(pytest.ExitCode.USAGE_ERROR)
_PACKAGES = str(Path(__file__).resolve().parents[1])
# As `-m peakbench._ranks` does, and nothing is imported from the working folder: it comes with the session's own sys.path, where it is there.
_START = """import sys
if not getattr(sys.flags, "safe_path", False): del sys.path[0]
sys.path.append(sys.argv.pop(1))
import runpy
runpy.run_module("peakbench._ranks", run_name="__main__", alter_sys=True)
"""


@dataclass(frozen=True)
class Rank:
    """Which one this process is, of how many."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"rank {self.number} of {self.of}"


def here() -> Optional[Rank]:
    """Of this process, where torchrun or run() started it as one of several."""
    number, of = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return Rank(int(number), int(of)) if number.isdigit() and of.isdigit() and int(of) > 1 else None


def use_own_card(torch: Any) -> None:
    """Makes this rank's card the current one, so that it is the one whose memory counts."""
    local = os.environ.get("LOCAL_RANK", "")
    if local.isdigit():
        torch.cuda.set_device(int(local) % torch.cuda.device_count())


class NotHanded(Exception):
    """An option of this session that a process of a rank cannot have: one sentence."""


def run(item: pytest.Item, ranks: int, torch: Any, more_environment: Optional[Dict[str, str]] = None) -> List[List[pytest.TestReport]]:
    """The reports of each rank, whose processes have ``more_environment``, too. Of those that failed only, the first one first, where any did otherwise
    than by taking too much: the rest is ended then. Raises NotHanded."""
    with tempfile.TemporaryDirectory(prefix="peakbench-ranks-") as folder, _process_group.parent_pipe() as alive:
        Path(folder, "session").write_bytes(marshal.dumps(_session(item)))
        store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        processes = [_Process(item, Path(folder), Rank(number, ranks), store.port, alive, more_environment or {}) for number in range(ranks)]
        try:
            return _watched(item, processes)
        finally:
            for process in processes:
                process.end()


def _watched(item: pytest.Item, processes: "List[_Process]") -> List[List[pytest.TestReport]]:
    failed: List[_Process] = []
    end = float("inf")
    try:
        while time.monotonic() < end:
            going = [process for process in processes if process.is_going()]
            for process in processes:
                if process not in failed and process.has_failed():
                    failed.append(process)
                    end = min(end, time.monotonic() + (_REST_S if process.only_exceeds() else _GRACE_S))
            if not going:
                break
            time.sleep(_POLL_S)
    except (KeyboardInterrupt, pytest.fail.Exception) as ended:  # the latter as a plugin that limits the time of a test raises it
        raise type(ended)("\n".join([str(ended), *(process.where() for process in processes if process.is_at_work())]).strip()) from None
    _tell_warnings(item, processes)
    late = [process for process in processes if process.is_at_work()]
    told = [process.told(item) for process in failed or processes]
    for report in (report for reports in told for report in reports if report.failed):
        report.sections += [("other ranks", f"{process} was ended: its peak is unknown") for process in late if process not in failed]
    return told


def _tell_warnings(item: pytest.Item, processes: "List[_Process]") -> None:
    """To this session's summary; the same of several ranks once."""
    told: Set[Tuple[str, ...]] = set()
    for process in processes:
        for said in process.warnings():
            same = (said["category"], said["message"], said["filename"], str(said["lineno"]))
            if same in told:
                continue
            told.add(same)
            module, _, name = said["category"].rpartition(".")
            category = getattr(sys.modules.get(module), name, UserWarning)
            message = warnings.WarningMessage(said["message"], category, said["filename"], said["lineno"])
            item.config.hook.pytest_warning_recorded.call_historic(
                kwargs={"warning_message": message, "nodeid": item.nodeid, "when": "runtest", "location": None}
            )


def _session(item: pytest.Item) -> Tuple[List[str], List[str], Dict[str, Any], Dict[str, bytes]]:
    """sys.path, what is to be collected, and the options of this session, less those that are the session's own affair: those of plain values, and
    the others, pickled."""
    config = item.config
    options, others = {}, {}
    for name, value in vars(config.option).items():
        if _is_plain(value):
            options[name] = value
        elif isinstance(value, io.IOBase):  # a file of the session's
            options[name] = None
        else:
            others[name] = _pickled(name, value)
    options |= {"rootdir": str(config.rootpath), "inifilename": str(config.inipath) if config.inipath else None}
    # What chooses among tests, starts workers or writes files.
    options |= {"keyword": "", "markexpr": "", "deselect": None, "lf": False, "failedfirst": False, "newfirst": False, "stepwise": False, "maxfail": 0,
                "numprocesses": None, "maxprocesses": None, "dist": "no", "distload": False, "tx": [], "looponfail": False, "usepdb": False, "xmlpath": None,
                "no_cov": True}  # fmt: skip
    options.pop("file_or_dir", None)  # what is collected is named anew
    # No path of pathlib's: the id of a parameter may hold `//`.
    return sys.path, [f"{config.rootpath}/{item.nodeid}"], options, others


def _is_plain(value: Any) -> bool:
    try:
        marshal.dumps(value)
        return True
    except ValueError:
        return False


def _pickled(name: str, value: Any) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception as error:  # an object says itself what it raises
        raise NotHanded(f"the option {name} is {shown_object(value)}, which cannot be handed to the processes of ranks ({error}): give it a type that pickle knows") from None


class _Process:
    """One rank's."""

    def __init__(self, item: pytest.Item, folder: Path, rank: Rank, port: int, alive: int, more: Dict[str, str]) -> None:
        self._rank = rank
        self._said = folder / f"{rank.number}.json"
        self._warned = folder / f"{rank.number}-warnings.json"
        self._stands = folder / f"{rank.number}-stands.log"
        self._printed = folder / f"{rank.number}.log"
        self._left_at = 0.0
        own = {**_process_group.variables(rank.number, rank.of, port), "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0"}
        # One alone is run again as it was: nothing says to it that it is a rank.
        of_rank = {"OMP_NUM_THREADS": "1", **os.environ, **own} if rank.of > 1 else os.environ
        with contextlib.ExitStack() as files:
            # Where pytest captures nothing, what ranks print is seen at once.
            printed = None if item.config.getoption("capture") == "no" else files.enter_context(self._printed.open("wb"))
            self._process = subprocess.Popen([sys.executable, "-c", _START, _PACKAGES, str(folder), str(alive), str(rank.number), str(rank.of)], cwd=item.config.invocation_params.dir,
                                             env={**of_rank, **more}, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, pass_fds=[alive])  # fmt: skip

    def __str__(self) -> str:
        return str(self._rank)

    def is_running(self) -> bool:
        return self._process.poll() is None

    def is_at_work(self) -> bool:
        return self.is_running() and not self._has_ended_well()

    def is_going(self) -> bool:
        """Also for a while after the test: a thread that it left behind may keep its process for ever."""
        if not self._has_ended_well():
            return self.is_running()
        self._left_at = self._left_at or time.monotonic()
        return self.is_running() and time.monotonic() - self._left_at < _GRACE_S

    def has_failed(self) -> bool:
        if any(report["outcome"] == "failed" for report in self._reports()):
            return True
        return not self.is_running() and not self._has_ended_well()

    def only_exceeds(self) -> bool:
        failed = [report for report in self._reports() if report["outcome"] == "failed"]
        return bool(failed) and all(EXCEEDS in [name for name, _ in report.get("user_properties", [])] for report in failed)

    def where(self) -> str:
        """Where it is, the last call first; without pytest's own."""
        if not self._stands.exists():
            return f"{self._rank} had not begun."
        self._process.send_signal(signal.SIGUSR1)
        time.sleep(0.5)
        calls = self._stands.read_text(encoding="utf-8", errors="replace").splitlines()[1:]
        own = [call for call in calls if not any(part in call for part in ("/_pytest/", "/pluggy/", "<frozen ", "peakbench/_ranks.py"))]
        return "\n".join([f"{self._rank} had not ended:", *own])

    def _has_ended_well(self) -> bool:
        return any(report.get("when") == "teardown" for report in self._reports())

    def _reports(self) -> List[Dict[str, Any]]:
        return _read(self._said)

    def warnings(self) -> List[Dict[str, Any]]:
        return _read(self._warned)

    def told(self, item: pytest.Item) -> List[pytest.TestReport]:
        """Of its setup, call and teardown: also where it did not come so far."""
        read = {}
        for data in self._reports():
            report = item.config.hook.pytest_report_from_serializable(config=item.config, data=data)
            if isinstance(report, pytest.TestReport):
                if isinstance(report.longrepr, list):  # of a skip, as JSON has it
                    report.longrepr = tuple(report.longrepr)
                report.sections.insert(0, ("rank", str(self._rank)))
                read[str(report.when)] = report
            elif report.failed:  # it was not collected
                read["call"] = made(item, "call", "failed", f"{self._rank}: {report.longreprtext}")
        if not any(report.failed for report in read.values()) and not self._has_ended_well():
            # What it took is known where the test itself came to its end.
            when, what = ("teardown", "the test's fixtures") if "call" in read else ("call", "its test")
            read[when] = made(item, when, "failed", self._early_end(what))
        return lifecycle(read.get("call"), item, read.get("setup"), read.get("teardown"))

    def _early_end(self, what: str) -> str:
        printed = self._tail()
        if self._process.poll() == _USAGE and "not found: " in printed:
            return f"{self._rank} collected no test of this name: names of parameters must be the same in every process."
        return f"{self._rank} {self._ending()} before {what} did.\n{printed}".rstrip()

    def _ending(self) -> str:
        code = self._process.poll()
        if code is None:
            return "was ended"
        return f"ended by signal {-code}" if code < 0 else f"ended with code {code}"

    def _tail(self) -> str:
        try:
            return self._printed.read_text(encoding="utf-8", errors="replace")[-_TAIL:]
        except FileNotFoundError:
            return ""

    def end(self) -> None:
        if self.is_running():
            self._process.terminate()
            try:
                self._process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()


def made(item: pytest.Item, when: Any, outcome: Any, longrepr: Optional[str] = None) -> pytest.TestReport:
    """A report that nothing ran for."""
    return pytest.TestReport(item.nodeid, item.location, {name: 1 for name in item.keywords}, outcome, longrepr, when)


def lifecycle(
    call: Optional[pytest.TestReport], item: pytest.Item, setup: Optional[pytest.TestReport] = None, teardown: Optional[pytest.TestReport] = None
) -> List[pytest.TestReport]:
    """What pytest's plugins expect of a test, in order."""
    return [setup or made(item, "setup", "passed"), *([call] if call else []), teardown or made(item, "teardown", "passed")]


def _read(file: Path) -> List[Dict[str, Any]]:
    try:
        return list(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return []


# ---- in a rank's process ----


class _Teller:
    """Writes what becomes of the test, as it becomes known."""

    def __init__(self, config: pytest.Config, file: Path, options: Dict[str, bytes]) -> None:
        self._config, self._file, self._options = config, file, options
        self._reports: List[Dict[str, Any]] = []
        self._warnings: List[Dict[str, Any]] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Hands on the options whose types come with the session's own plugins, which are loaded by now."""
        for name, value in self._options.items():
            setattr(config.option, name, pickle.loads(value))

    def pytest_keyboard_interrupt(self, excinfo: Any) -> None:
        print(f"{excinfo.typename}: {excinfo.value}", file=sys.__stderr__, flush=True)  # pytest.exit(), too

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, when: str) -> None:
        if when != "runtest":  # the session has the others itself
            return
        category = warning_message.category
        self._warnings.append({"category": f"{category.__module__}.{category.__qualname__}", "message": str(warning_message.message),
                               "filename": warning_message.filename, "lineno": warning_message.lineno})  # fmt: skip
        _files.write(self._file.with_name(f"{self._file.stem}-warnings.json"), json.dumps(self._warnings))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._tell(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._tell(report)

    def _tell(self, report: Any) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        if "user_properties" in data:  # a test may have put anything there
            data["user_properties"] = [(str(plain(said[0])), plain(said[1])) for said in data["user_properties"] if isinstance(said, tuple) and len(said) == 2]
        self._reports.append(data)
        _files.write(self._file, json.dumps(self._reports, default=shown_object))


def _main(folder: Path, alive: int, number: int, ranks: int) -> int:
    _process_group.end_with_parent(alive)
    stands = (folder / f"{number}-stands").open("w")
    faulthandler.register(signal.SIGUSR1, file=stands, all_threads=False)
    os.rename(stands.name, f"{stands.name}.log")  # from now on it may be asked
    path, collected, options, others = marshal.loads((folder / "session").read_bytes())
    sys.path[:] = path
    with contextlib.suppress(_memory.MemoryUnavailable):
        use_own_card(_memory.cuda())  # before any file of tests is imported
    options["basetemp"] = str(folder / f"temporary-{number}")
    options["plugins"] = [*options["plugins"], "no:terminal"]
    config = pytest.Config.fromdictargs(options, collected)
    config.workerinput = {"workerid": f"rank{number}", "workercount": ranks}  # type: ignore[attr-defined]
    config.pluginmanager.register(_Teller(config, folder / f"{number}.json", others), "peakbench-rank")
    try:
        return int(config.hook.pytest_cmdline_main(config=config))
    except pytest.UsageError as error:
        print(error, file=sys.stderr)
        return _USAGE


if __name__ == "__main__":
    sys.exit(_main(Path(sys.argv[1]), *map(int, sys.argv[2:])))
