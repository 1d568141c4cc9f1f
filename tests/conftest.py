"""Options of the tests, which `given` passes on, and the exit code of a skipped file: 77, which CTest reports as skipped."""

import pathlib

import given
import pytest

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "build/release/bin/peakbench"
SKIPPED = 77


def pytest_addoption(parser):
    group = parser.getgroup("Peakbench")
    group.addoption("--peakbench", metavar="PROGRAM", type=pathlib.Path, default=PROGRAM, help="of a build folder; default: build/release/bin/peakbench")
    group.addoption("--all", action="store_true", help="also the cases that take long")
    group.addoption("--only", metavar="A,B", default="", help="only these programs of the corpus")
    group.addoption("--update", action="store_true", help="write what is expected anew; review the difference")
    group.addoption("--family", metavar="NAME", help="the family of models that a parity test compares")


def pytest_configure(config):
    given.take(config.option)


def pytest_sessionfinish(session, exitstatus):
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    ran = any(reporter.stats.get(outcome) for outcome in ("passed", "failed", "error", "xfailed", "xpassed"))
    skipped = reporter.stats.get("skipped")
    if skipped and not ran and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        reasons = dict.fromkeys(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
        reporter.ensure_newline()
        reporter.write_line(f"SKIP: {'; '.join(reasons)}")
        session.exitstatus = SKIPPED
