"""A plugin of pytest: a test's device memory against a limit, and to the byte against accepted figures (docs/how-to/pytest.md).

All that is known of a test travels in its user properties: into JUnit's XML, and under xdist from the workers to the one process that sums up.
"""

import contextlib
import difflib
import fcntl
import json
import os
import re
import tempfile
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Callable, Dict, Generator, Iterator, List, NoReturn, Optional, Tuple

import pytest

from peakbench import _cards, _files, _journal, _memory, _ranks, _reads
from peakbench._journal import Part
from peakbench._memory import Peak, in_words
from peakbench._texts import shown, shown_object

_SCHEMA = 1
_PROPERTY = "device_memory_"  # ..allocated_bytes, ..reserved_bytes, ..requested_bytes, ..key, ..note, ..condition, ..doubt, ..ranks
_TOLD = (_PROPERTY + "condition", _PROPERTY + "note")  # in the summary
_FIGURES = ("allocated_bytes", "reserved_bytes", "requested_bytes")
_MOST_LINES = 8
_GUESS = "PEAKBENCH_EMULATED_GUESS"  # as emulator/core/values_hook.h has it
_MOST_BYTES = 1 << 60  # more than any card has


class _Wrong(Exception):
    """What a user wrote and is to mend: one sentence."""


@dataclass(frozen=True)
class _Limit:
    """What one mark asks for. ``limit_bytes``: None where only the accepted figure counts."""

    limit_bytes: Optional[int] = None
    at: str = "allocated"
    card: Optional[str] = None
    ranks: int = 1
    warmup: int = 0
    workspaces: str = "exclude"
    only_warns: bool = False


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("peakbench", "device memory (peakbench)")
    group.addoption("--peakbench-base", metavar="FILE", help="hold each test marked device_memory to the byte against the accepted figures in FILE")
    group.addoption("--peakbench-accept", action="store_true", help="renew the figures of the tests that ran, and passed, in FILE of --peakbench-base")
    group.addoption("--peakbench-second-guess", metavar="N", type=int, default=0,
                    help="run a test whose path rests on values that an emulated card does not know N times again, with other plausible values: "
                         "it is accepted where it takes the same bytes each time")  # fmt: skip
    parser.addini("device_memory_default", 'limit of tests without a mark: "2 GiB", or "warn 2 GiB" for a warning', default="")
    parser.addini("device_memory_unknown", "what becomes of a test whose path rests on values that an emulated card does not know: fail (default) or warn", default="fail")
    parser.addini("device_memory_missing", "what becomes of a marked test where device memory cannot be measured: fail (default) or skip", default="fail")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        'device_memory(limit=None, at="allocated", card=None, ranks=1, warmup=0, workspaces="exclude"): the most device memory that the test may take, as "2 GiB"; '
        "needs no GPU under `peakbench emulate -- python3 -m pytest`",
    )
    if config.getoption("peakbench_accept") and not config.getoption("peakbench_base"):
        raise pytest.UsageError("--peakbench-accept needs --peakbench-base FILE: the file that it renews")
    if config.getoption("peakbench_second_guess") < 0:
        raise pytest.UsageError("--peakbench-second-guess N: a number of further runs, such as 2")
    for option, other in (("device_memory_unknown", "warn"), ("device_memory_missing", "skip")):
        if (word := config.getini(option)) not in ("fail", other):
            raise pytest.UsageError(f"the ini option {option} = {shown(word)}: expected fail or {other}")
    if not hasattr(config, "workerinput"):  # xdist's workers measure, this process sums up
        config.pluginmanager.register(_Summary(config), "peakbench-summary")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: Optional[pytest.Item]) -> Optional[bool]:
    """A test of several ranks runs in processes of its own. What else is wrong with a mark, the usual way says."""
    try:
        limit = _limit_of(item)
        torch = _memory.cuda() if limit else None
        if not limit or limit.ranks == 1 or _ranks.here() or limit.card not in (None, _cards.here(torch).id):
            return None
    except (_Wrong, ValueError, _memory.MemoryUnavailable):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    try:
        reports = _of_ranks(item, limit, torch)
    except (pytest.fail.Exception, _ranks.NotHanded) as failed:  # the former as a plugin that limits the time of a test raises it, wherever the test is
        reports = _ranks.lifecycle(_ranks.made(item, "call", "failed", str(failed)), item)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.session._setupstate.teardown_exact(nextitem)  # of what came before and was kept for this test
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _of_ranks(item: pytest.Item, limit: _Limit, torch: Any) -> List[pytest.TestReport]:
    """The reports of the rank that the test's outcome is (_decisive); with every rank's figures."""
    ranks = limit.ranks
    cards = torch.cuda.device_count()
    if cards < ranks:
        there = "one is" if cards == 1 else f"{cards} are"
        says = f"device_memory: ranks={ranks} needs {ranks} cards, and {there} here: peakbench emulate --card CARD,count={ranks} -- python3 -m pytest"
        if item.config.getini("device_memory_missing") == "skip":
            path, line, _ = item.location
            called = _ranks.made(item, "call", "skipped")
            called.longrepr = (path, (line or 0) + 1, f"Skipped: {says}")
        else:
            called = _ranks.made(item, "call", "failed", says)
        return _ranks.lifecycle(called, item)
    of_ranks = _ranks.run(item, ranks, torch)
    measured = {rank: dict(_ours_of(report)) for rank, reports in enumerate(of_ranks) for report in reports if report.when == "call"}
    measured = {rank: said for rank, said in measured.items() if _PROPERTY + "key" in said}
    took = [int(str(measured[rank][f"{_PROPERTY}{limit.at}_bytes"])) if rank in measured else -1 for rank in range(len(of_ranks))]
    decisive = _decisive(of_ranks, took)
    if any(report.failed for report in of_ranks[decisive]) or not measured:
        return of_ranks[decisive]
    figures = [{name: said[_PROPERTY + name] for name in (*_FIGURES, "key")} for said in measured.values()]
    told = [one for rank, said in measured.items() if rank != decisive for one in said.items() if one[0] in _TOLD]
    for report in of_ranks[decisive]:
        if report.when != "setup":  # plugins look at one or the other
            report.user_properties += [(_PROPERTY + "ranks", json.dumps(figures)), *told]
    return of_ranks[decisive]


def _decisive(of_ranks: List[List[pytest.TestReport]], took: List[int]) -> int:
    """Of the ranks that failed otherwise than by taking too much, the first; of those that did that, the one that took most. Then the first that failed as
    expected, the first that was skipped; otherwise of all the one that took most."""

    def of(what: Callable[[pytest.TestReport], bool]) -> List[int]:
        return [rank for rank, reports in enumerate(of_ranks) if any(what(report) for report in reports)]

    exceeding = of(lambda report: report.failed and _ranks.EXCEEDS in dict(_ours_of(report)))
    others = of(lambda report: report.failed and _ranks.EXCEEDS not in dict(_ours_of(report)))
    expected = of(lambda report: report.skipped and hasattr(report, "wasxfail"))
    skipped = of(lambda report: report.skipped and not hasattr(report, "wasxfail"))
    by_bytes = sorted(range(len(of_ranks)), key=lambda rank: -took[rank])
    exceeding.sort(key=by_bytes.index)
    return next(ranks[0] for ranks in (others, exceeding, expected, skipped, by_bytes) if ranks)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    rank = _ranks.here()
    if rank is None or item.get_closest_marker("device_memory") is None:
        return
    with contextlib.suppress(_memory.MemoryUnavailable):
        _ranks.use_own_card(_memory.cuda())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    try:
        return (yield from _measured(item))
    finally:
        _leave_out_the_tests_own(item)


def _leave_out_the_tests_own(item: pytest.Item) -> None:
    """A property that a test records under a name of ours would pass for a figure."""
    left = item.stash.get(_LEFT, [])
    others = [said for said in item.user_properties if _is_ours(said) and not any(said is one for one in left)]
    item.user_properties[:] = [said for said in item.user_properties if not any(said is one for one in others)]
    for said in others:
        item.warn(pytest.PytestWarning(f"device_memory: the property {shown(said[0])} is left out: names that begin so are Peakbench's own"))


def _is_ours(said: Any) -> bool:
    return isinstance(said, tuple) and len(said) == 2 and isinstance(said[0], str) and (said[0].startswith(_PROPERTY) or said[0] == _ranks.EXCEEDS)


def _ours_of(report: pytest.TestReport) -> List[Tuple[str, Any]]:
    """Among properties that may be anything: a test may have put them there itself."""
    pairs = [(one[0], one[1]) for one in report.user_properties if isinstance(one, (list, tuple)) and len(one) == 2]
    return [said for said in pairs if _is_ours(said)]


def _say(item: pytest.Item, name: str, value: Any) -> None:
    said = (name, value)
    item.stash.setdefault(_LEFT, []).append(said)
    item.user_properties.append(said)


_LEFT: "pytest.StashKey[List[Tuple[str, Any]]]" = pytest.StashKey()


def _measured(item: pytest.Item) -> Generator[None, Any, Any]:
    try:
        limit = _limit_of(item)
        if limit is None:
            return (yield)
        torch = _torch(item, limit)
        if torch is None:
            return (yield)
        card = _cards.here(torch).id
        if limit.card not in (None, card):
            _cards.find(str(limit.card))
            pytest.skip(f"its limit is for {limit.card}, and this is {card}: peakbench emulate --card {limit.card} -- python3 -m pytest")
        rank = _ranks.here()
        if limit.ranks > 1 and (rank is None or rank.of != limit.ranks):
            pytest.skip(f"its limit is for {limit.ranks} ranks, and this is {rank or 'one process'}: start pytest without torchrun, or with as many")
        accepted = _accepted(item.config)
    except (_Wrong, ValueError) as wrong:
        raise pytest.fail.Exception(f"device_memory: {shown(str(wrong))}", pytrace=False) from None
    for _ in range(limit.warmup):
        item.ihook.pytest_pyfunc_call(pyfuncitem=item)
    stretch, known, alike = _memory.Stretch(torch, limit.workspaces), _reads.so_far(), _reads.answered_alike()
    with _children_apart() as started:
        try:
            returned = yield
        except torch.OutOfMemoryError:
            item.add_report_section("call", "device memory", _told(stretch.parts(), limit))
            raise
        finally:
            peak = stretch.peak()
            stretch.close()
            key = ", ".join([card, *([str(rank)] if rank else []), f"torch {torch.__version__}"])
            _leave(item, peak, key)
    if started():
        _fail("device_memory: the test started a process that uses the card, and only the test's own process is measured. "
              "Run its code in the test itself, ask for ranks in the mark, or run it under `peakbench trace`")  # fmt: skip
    others = stretch.other_devices()
    if others:
        _fail(f"device_memory: the test allocated on {', '.join(others)}, and only cuda:{stretch.device} is measured, which was current when it began: "
              "make the other one current in a fixture (torch.cuda.set_device)")  # fmt: skip
    _doubt(item, _reads.since(known), peak, torch, _reads.answered_alike() > alike)
    _hold(item, limit, peak, accepted, key, stretch.parts)
    return returned


def _doubt(item: pytest.Item, reads: _reads.Reads, peak: Peak, torch: Any, answered_alike: bool) -> None:
    """Of a figure that rests on values which an emulated card does not know. It is accepted by nobody, unless other values give the same.
    ``answered_alike``: for some of them no other value is made up."""
    conditions = _reads.conditions(reads)
    if conditions:
        _say(item, _PROPERTY + "condition", f"exact if nothing that it allocates rests on this: {_reads.in_words(conditions)}")
    branches = reads - conditions
    if not branches:
        return
    said = f"{_reads.in_words(branches)}, which an emulated card does not know: what it takes may be another on a real card"
    runs = 0 if os.environ.get(_GUESS, "0") != "0" else item.config.getoption("peakbench_second_guess")
    if runs:
        differs = "for some of them no other value is made up" if answered_alike else _other_values(item, runs, _figures(peak), torch) or _reads.not_tried(branches, runs)
        if not differs:
            return _say(item, _PROPERTY + "note", f"the same with other values ({runs + 1} runs): {_reads.in_words(branches)}")
        said += f"; {differs}"
    if item.config.getini("device_memory_unknown") != "warn":
        more = "" if runs else "--peakbench-second-guess 2 runs it again with other values; "
        _fail(f"device_memory: {said} ({more}the ini option device_memory_unknown = warn lets such tests pass)")
    _say(item, _PROPERTY + "doubt", said)
    item.warn(pytest.PytestWarning(f"device_memory: {said}"))


def _other_values(item: pytest.Item, runs: int, figures: Dict[str, int], torch: Any) -> str:
    """Runs the test again, each time with other plausible values for those that are not known. What came out otherwise, or nothing."""
    for guess in range(1, runs + 1):
        try:
            reports = _ranks.run(item, 1, torch, {_GUESS: str(guess)})[0]
        except _ranks.NotHanded as failed:
            return str(failed)
        called = next((report for report in reports if report.when == "call"), None)
        measured = dict(_ours_of(called)) if called else {}
        if called is None or (called.failed and "device_memory: " not in called.longreprtext):
            return f"with other values it failed: {_last_line(called)}"
        others = {name: int(str(measured.get(_PROPERTY + name, -1))) for name in _FIGURES}
        if others != figures:
            return f"with other values it took {others['allocated_bytes']} bytes allocated and {others['reserved_bytes']} reserved, not {figures['allocated_bytes']} and {figures['reserved_bytes']}"
    return ""


def _last_line(report: Optional[pytest.TestReport]) -> str:
    lines = report.longreprtext.strip().splitlines() if report else []
    return lines[-1] if lines else "it did not run"


def _limit_of(item: pytest.Item) -> Optional[_Limit]:
    """Of the test's mark, or of the default in the ini file."""
    mark = item.get_closest_marker("device_memory")
    if mark is not None:
        return _of_mark(mark)
    default = str(item.config.getini("device_memory_default")).strip()
    if not default:
        return None
    warns, _, rest = default.partition(" ")
    only_warns = warns == "warn"
    return _Limit(_bytes(rest if only_warns else default, "device_memory_default"), only_warns=only_warns)


def _of_mark(mark: pytest.Mark) -> _Limit:
    known = ("limit", "at", "card", "ranks", "warmup", "workspaces")
    said = dict(zip(known, mark.args[:1]), **mark.kwargs)
    for name in said:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise _Wrong(f'the mark has no "{name}"' + (f'; did you mean "{near[0]}"?' if near else f": it knows {', '.join(known)}"))
    if len(mark.args) > 1 or (mark.args and "limit" in mark.kwargs):
        raise _Wrong('the mark takes one limit; what else it takes has a name, as in device_memory("2 GiB", at="reserved")')
    limit = said.pop("limit", None)
    wanted = _Limit(None if limit is None else _bytes(limit, "the mark"), **said)
    for name, words in (("at", ("allocated", "reserved")), ("workspaces", ("exclude", "include"))):
        value = getattr(wanted, name)
        if type(value) is not str or value not in words:
            raise _Wrong(f'{name}={shown_object(value)} is neither "{words[0]}" nor "{words[1]}"')
    if type(wanted.warmup) is not int or wanted.warmup < 0:
        raise _Wrong(f"warmup={shown_object(wanted.warmup)} is no number of runs before the measured one, such as 1")
    if type(wanted.ranks) is not int or wanted.ranks < 1:
        raise _Wrong(f"ranks={shown_object(wanted.ranks)}: expected a number of processes, 1 or more")
    if wanted.card is not None:
        if type(wanted.card) is not str:
            raise _Wrong(f'card={shown_object(wanted.card)} is no name of a card, such as "h100-80gb"')
        _cards.find(wanted.card)
    return wanted


def _bytes(size: Any, where: str) -> int:
    count = Decimal(size) if type(size) is int else None
    if type(size) is str:
        count = _cards.size_of(size)
    if count is None or count < 0:
        raise _Wrong(f'{where} has the limit {shown_object(size)}, which is no size: write it as "2 GiB", "512 MiB" or a number of bytes')
    if count > _MOST_BYTES:
        raise _Wrong(f"{where} has the limit {shown_object(size)}, which is more than any card has")
    return int(count)


def _torch(item: pytest.Item, limit: _Limit) -> Any:
    """None where a test without a mark cannot take device memory anyway."""
    try:
        return _memory.cuda()
    except _memory.MemoryUnavailable as missing:
        if item.get_closest_marker("device_memory") is None:
            return None
        sentence = str(missing).replace("python3 ...", "python3 -m pytest")
        if item.config.getini("device_memory_missing") == "skip":
            pytest.skip(f"device_memory: {sentence}")
        raise _Wrong(f"{sentence} (the ini option device_memory_missing = skip leaves such tests out)") from None


@contextlib.contextmanager
def _children_apart() -> Iterator[Callable[[], List[Path]]]:
    """Traced processes that begin within it leave their journals in a folder of their own first, so that they are known."""
    folder = os.environ.get("PEAKBENCH_TRACE_FOLDER")
    if not folder or not os.path.isdir(folder):
        yield lambda: []
        return
    apart = Path(tempfile.mkdtemp(prefix="test-", dir=folder))
    started: List[Path] = []
    os.environ["PEAKBENCH_TRACE_FOLDER"] = str(apart)
    try:
        yield lambda: started
    finally:
        os.environ["PEAKBENCH_TRACE_FOLDER"] = folder
        for file in apart.iterdir():
            # The tracer writes of a card when CUDA begins: a data loader's worker, which has none, is not meant.
            if file.suffix == ".journal" and b"cuda:0" in file.read_bytes():
                started.append(file)
            file.rename(Path(folder, file.name))
        apart.rmdir()


def _leave(item: pytest.Item, peak: Peak, key: str) -> None:
    """The figures, for JUnit's XML, the summary, and pytest-benchmark's JSON where the test uses it."""
    figures = _figures(peak)
    for name, value in {**figures, "key": key}.items():
        _say(item, _PROPERTY + name, value)
    benchmark: Any = getattr(item, "funcargs", {}).get("benchmark")
    if hasattr(benchmark, "extra_info"):
        benchmark.extra_info["peakbench"] = {**figures, "key": key}


def _fail(said: str) -> NoReturn:
    pytest.fail(shown(said), pytrace=False)


def _figures(peak: Peak) -> Dict[str, int]:
    return {name: getattr(peak, name) for name in _FIGURES}


def _hold(item: pytest.Item, limit: _Limit, peak: Peak, accepted: Optional[Dict[str, Any]], key: str, parts: Callable[[], Tuple[Part, ...]]) -> None:
    took = _figures(peak)[f"{limit.at}_bytes"]
    # The figures first: pytest's summary has the beginning of the line alone.
    what = f"at its peak the test had {took} bytes of device memory {limit.at}"
    if peak.requested_bytes == 0 and limit.limit_bytes != 0 and item.get_closest_marker("device_memory") is not None:
        item.warn(pytest.PytestWarning("device_memory: the test took no device memory, so its mark checks nothing; does what it tests run on the card (\"cuda\")?"))
    if limit.limit_bytes is not None and took > limit.limit_bytes:
        more = f"{in_words(took)}, limit {in_words(limit.limit_bytes)}: {what}, {took - limit.limit_bytes} more than the limit ({key})"
        if not limit.only_warns:
            _say(item, _ranks.EXCEEDS, True)
            _fail(f"{more}.\n{_told(parts(), limit)}")
        item.warn(pytest.PytestWarning(more))
    if accepted is None or item.config.getoption("peakbench_accept") or item.get_closest_marker("device_memory") is None:
        return
    of_test = accepted.get(item.nodeid, {})
    if key not in of_test:
        there = f"it has figures for {'; '.join(sorted(set(map(_without_rank, of_test))))}" if of_test else "it has none of this test"
        this = _without_rank(key)
        return _say(item, _PROPERTY + "note", f"not held against the base: {there}; this is {this}; --peakbench-accept adds it")
    before = of_test[key][f"{limit.at}_bytes"]
    if took > before:
        _say(item, _ranks.EXCEEDS, True)
        _fail(f"{in_words(took)}, accepted {in_words(before)}: {what}, {took - before} more than accepted ({key}).\n{_told(parts(), limit)}")
    if took < before:
        _say(item, _PROPERTY + "note", f"{before - took} bytes less than accepted; --peakbench-accept keeps it so")


def _without_rank(key: str) -> str:
    return re.sub(r"rank \d+ of (\d+)", r"\1 ranks", key)


def _told(parts: Tuple[Part, ...], limit: _Limit) -> str:
    """What filled the memory: lines first."""
    if limit.workspaces == "exclude":
        workspaces = "Workspaces that cuBLAS keeps from first use were made before the test, and are not its own (workspaces=\"exclude\")."
    else:
        workspaces = "Workspaces that cuBLAS keeps from first use were freed before the test: those that it makes are its own (workspaces=\"include\")."
    if not parts and _journal.is_full(_journal.path()):
        return f"{workspaces}\n{_journal.FULL[0].upper()}{_journal.FULL[1:]}."
    if not parts:
        return f"{workspaces}\nTo see the lines, run `peakbench emulate -- python3 -m pytest` without --no-lines, with a PyTorch that has a tracer."
    return "\n".join([
        _table("By line", parts, _where),
        _table("By module", parts, lambda part: part.module or "(outside of modules)"),
        _table("By category", parts, lambda part: part.category),
        workspaces,
    ])  # fmt: skip


def _where(part: Part) -> str:
    if not part.line:
        return "(not Python)"
    return part.line if part.caller in ("", part.line) else f"{part.line}, called at {part.caller}"


def _table(title: str, parts: Tuple[Part, ...], of: Callable[[Part], str]) -> str:
    sums: "Counter[str]" = Counter()
    for part in parts:
        sums[of(part)] += part.bytes
    rows = sums.most_common()
    lines = [f"  {in_words(size):>12}  {name}" for name, size in rows[:_MOST_LINES]]
    if len(rows) > _MOST_LINES:
        lines.append(f"  {in_words(sum(size for _, size in rows[_MOST_LINES:])):>12}  {len(rows) - _MOST_LINES} others")
    return "\n".join([f"{title}, at the peak of allocated memory:", *lines])


def _accepted(config: pytest.Config) -> Optional[Dict[str, Any]]:
    """By test and key. Read once a session: tests that run are held against one state."""
    base = config.getoption("peakbench_base")
    if not base:
        return None
    if _BASE not in config.stash:
        config.stash[_BASE] = _read_base(config.invocation_params.dir / base, must_exist=not config.getoption("peakbench_accept"))
    return config.stash[_BASE]


_BASE: "pytest.StashKey[Dict[str, Any]]" = pytest.StashKey()


def _read_base(file: Path, must_exist: bool) -> Dict[str, Any]:
    try:
        if file.exists() and not file.is_file():  # a pipe would be waited for
            raise OSError("it is no regular file")
        read = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if must_exist:
            raise _Wrong(f"--peakbench-base {file} is not there: --peakbench-accept makes it") from None
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise _Wrong(f"--peakbench-base {file} cannot be read ({error}): restore it, or delete it and run with --peakbench-accept") from None
    tests = read.get("tests") if isinstance(read, dict) and read.get("device_memory_schema") == _SCHEMA else None
    by_test = list(tests.values()) if isinstance(tests, dict) else [None]
    figures = [figure for of_test in by_test for figure in (of_test.values() if isinstance(of_test, dict) else [None])]
    if not all(isinstance(figure, dict) and all(type(figure.get(f"{at}_bytes")) is int for at in ("allocated", "reserved")) for figure in figures):
        raise _Wrong(f"--peakbench-base {file} is no file of accepted figures (device_memory_schema {_SCHEMA}): name another, or make one with --peakbench-accept")
    return tests or {}


class _Summary:
    """What the session says and writes at its end; in one process, also under xdist."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.accepted: Dict[str, Dict[str, Any]] = {}
        self.lines: List[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        said = {name[len(_PROPERTY) :]: value for name, value in _ours_of(report)}
        if report.when != "call" or "key" not in said:
            return
        told = dict.fromkeys(str(text) for name, text in _ours_of(report) if name in _TOLD)  # of several ranks, several of a name
        self.lines += [f"{report.nodeid}: {text}" for text in told]
        if report.passed and "doubt" in said and self.config.getoption("peakbench_accept"):
            self.lines.append(f"{report.nodeid}: not accepted: {said['doubt']}")
        elif report.passed:
            of_ranks = json.loads(str(said["ranks"])) if "ranks" in said else [said]
            self.accepted[report.nodeid] = {str(one["key"]): {name: one[name] for name in _FIGURES} for one in of_ranks}

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not self.config.getoption("peakbench_accept") or not self.accepted:
            return
        file = self.config.invocation_params.dir / self.config.getoption("peakbench_base")
        try:
            file = Path(os.path.realpath(file))  # a link stays one
            with _alone(file):
                tests = _read_base(file, must_exist=False)
                for name, figures in self.accepted.items():
                    tests.setdefault(name, {}).update(figures)
                _files.write(file, json.dumps({"device_memory_schema": _SCHEMA, "tests": tests}, indent=2, sort_keys=True) + "\n")
            self.lines.append(f"accepted figures of {len(self.accepted)} tests are in {file}")
        except (_Wrong, OSError) as error:
            self.lines.append(f"the accepted figures could not be written: {error}")
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.lines:
            terminalreporter.section("device memory")
            for line in self.lines:
                terminalreporter.line(shown(line))


@contextlib.contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Of several sessions (torchrun's ranks) one at a time reads and renews it."""
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
