"""`peakbench mcp`: its tools return what the program's JSON says, and the protocol's own client reaches them over standard input and output."""

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from given import ALL, ORACLE as PYTHON, PEAKBENCH

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "python"))
from peakbench import _mcp  # noqa: E402

PACKAGES = Path(PYTHON).parents[1] / "mcp"
PATHS = ":".join(filter(None, [str(REPOSITORY / "python"), os.environ.get("PYTHONPATH"), str(PACKAGES)]))
ENVIRONMENT = os.environ | {"PYTHONPATH": PATHS, "PEAKBENCH_PYTHON": str(PYTHON)}
HAS_MCP = subprocess.run([PYTHON, "-c", "import mcp"], env=ENVIRONMENT, capture_output=True, check=False).returncode == 0
PROGRAM = """
import sys, torch
kept = [torch.zeros(int(sys.argv[1]) << 20, dtype=torch.uint8, device="cuda"), torch.zeros(3 << 20, dtype=torch.uint8, device="cuda")]
raise SystemExit(int(sys.argv[2]))
"""
MiB = 1 << 20

CLIENT = """
import asyncio, json, os, sys
from mcp import ClientSession, StdioServerParameters, stdio_client

async def main(program, asked):
    server = StdioServerParameters(command=program, args=["mcp"], env=dict(os.environ))
    async with stdio_client(server) as pipes, ClientSession(*pipes) as session:
        await session.initialize()
        said = [[one.name for one in (await session.list_tools()).tools]]
        for name, arguments in asked:
            result = await session.call_tool(name, arguments)
            said.append(result.content[0].text if result.is_error else result.structured_content["result"])
        print(json.dumps(said))

asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
"""


@pytest.fixture
def tools(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    return _mcp.Tools(str(PEAKBENCH))


def command(size, code=0):
    return [str(PYTHON), "train.py", str(size), str(code)]


def test_a_program_and_its_runs(tools):
    figures = tools.emulate(command(4), card="rtx-4090-24gb")
    assert (figures["answer"]["fits"], figures["verdict"]["kind"], figures["peak"]["peak_allocated_bytes"]) == (True, "exact", 7 * MiB)
    (before,) = tools.trace(command(4), "before", card="rtx-4090-24gb")
    assert before["peak"]["lines"] == figures["peak"]["lines"] and before["peak"]["at_peak"] == figures["peak"]["at_peak"]
    assert [(one["line"], one["bytes"]) for one in before["peak"]["lines"]] == [(3, 7 * MiB)]
    alive = tools.alive_at_peak("before", most=1)
    assert (alive["count"], alive["bytes"], [one["bytes"] for one in alive["largest"]]) == (2, 7 * MiB, [4 * MiB])
    assert [case["allocated_bytes"] for case in tools.cases("before")["cases"]] == [7 * MiB]
    with pytest.raises(ValueError, match="^before holds a run already: name a new folder$"):
        tools.trace(command(9), "before", card="rtx-4090-24gb")
    tools.trace(command(9), "after", card="rtx-4090-24gb")
    (row,) = tools.compare("before", "after")["cases"]
    (allocated,) = [one for one in row["memory"]["figures"] if (one["where"], one["figure"]) == ("peak", "allocated")]
    assert (allocated["base_bytes"], allocated["new_bytes"], allocated["verdict"]) == (7 * MiB, 12 * MiB, "worse")


@pytest.mark.skipif(not ALL, reason="--all: it runs a program ten times")
def test_the_largest_that_fits(tools):
    # PyTorch reserves the first block in steps of 2 MiB, and 20 MiB for the one of 3 MiB: 62 + 20, and 64 + 20.
    found = tools.fit([str(PYTHON), "train.py", "{size}", "0"], "size=61..64", card="rtx-4090-24gb,context=0,memory=83MiB", out="fit")
    assert [(cell["state"], cell["largest"], cell["fails"]["value"]) for cell in found["cells"]] == [("fits", 62, 63)]


def test_failures_are_sentences(tools):
    with pytest.raises(ValueError, match='^unknown card "h1"'):
        tools.emulate(command(1), card="h1")
    with pytest.raises(ValueError, match="^nope: no such file or folder$"):
        tools.peak("nope")
    with pytest.raises(FileNotFoundError, match="nope/run.json is not there"):
        tools.cases("nope")
    failed = tools.emulate([str(PYTHON), "train.py", "x"])
    assert failed["exit_code"] == 1 and "invalid literal for int() with base 10: 'x'" in failed["output"]
    assert "output" not in tools.emulate(command(1))


def test_each_tool_is_described():
    for tool in _mcp.Tools("").all():
        assert inspect.getdoc(tool) and all(one.annotation is not inspect.Parameter.empty for one in inspect.signature(tool).parameters.values()), tool


def test_without_the_package(tmp_path):
    (tmp_path / "mcp.py").write_text("", encoding="utf-8")
    environment = ENVIRONMENT | {"PYTHONPATH": f"{tmp_path}:{PATHS}"}
    done = subprocess.run([PEAKBENCH, "mcp"], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("peakbench: ") and done.stderr.endswith(' has no package mcp of version 2 or later, which the extra mcp of Peakbench brings: pip install "mcp>=2"\n'), done.stderr


@pytest.mark.skipif(not HAS_MCP, reason="ci/oracle --nightly installs the package mcp")
def test_the_protocols_own_client(tools):
    asked = [["emulate", {"command": command(4)}], ["emulate", {"command": command(4), "card": "h1"}], ["peak", {"run": "nope"}]]
    line = [str(PYTHON), "-c", CLIENT, str(PEAKBENCH), json.dumps(asked)]
    done = subprocess.run(line, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    names, figures, unknown, missing = json.loads(done.stdout)
    assert names == [tool.__name__ for tool in tools.all()]
    assert figures["peak"]["peak_allocated_bytes"] == 7 * MiB
    assert unknown.startswith('Error executing tool emulate: unknown card "h1"')
    assert missing == "Error executing tool peak: nope: no such file or folder"
