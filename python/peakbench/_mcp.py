"""``peakbench mcp``: tools of the Model Context Protocol over standard input and output. Each runs the program ``peakbench`` and returns its JSON.

usage: python3 -m peakbench._mcp PROGRAM [--check]
"""

import functools
import importlib
import importlib.util
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Callable, Dict, List, NoReturn, Optional, Sequence

from peakbench import _results

_UNUSABLE = 2
_LONGEST_OUTPUT = 4000  # of a program that failed, its end
_INSTRUCTIONS = (
    "Peakbench says how much GPU memory a PyTorch program takes, and what fills it, without a GPU. Call `emulate` with the program's command and a card. "
    "Figures are bytes. `verdict.kind` says how far they can be relied on: with `exact`, a real card allocates the same bytes."
)


class Tools:
    """What the server offers; a docstring is what a language model reads of a tool. Files are relative to where the server was started."""

    def __init__(self, program: str) -> None:
        self._program = program

    def all(self) -> List[Any]:
        return [self.cards, self.emulate, self.trace, self.import_snapshot, self.fit, self.cases, self.peak, self.alive_at_peak, self.compare]

    def cards(self) -> List[Dict[str, Any]]:
        """The GPUs that can be emulated, with their memory."""
        cards: List[Dict[str, Any]] = self._json("list", "devices", "--json")
        return cards

    def emulate(self, command: List[str], card: str = "h100-80gb", world: int = 0, rank: int = 0) -> Dict[str, Any]:
        """Runs a PyTorch program on an emulated GPU: whether it fits (`answer`), the peak by category and source line (`peak`), and the verdict.

        command: its words, as ["python3", "train.py", "--batch", "8"]. card: a name from `cards`, with options like h100-80gb,memory=60GiB,count=2.
        world, rank: of a script for torchrun, to run one rank of a world that need not exist.
        """
        ranks = ["--world", str(world), "--rank", str(rank)] if world else []
        figures, printed = self._asked("emulate", "--quiet", "--json=-", "--card", card, *ranks, "--", *command)
        if figures["exit_code"]:
            figures["output"] = printed[-_LONGEST_OUTPUT:]
        return dict(figures)

    def trace(self, command: List[str], out: str, card: str = "h100-80gb") -> List[Dict[str, Any]]:
        """Records a PyTorch program on an emulated GPU into the new run folder `out`, with a report. Returns what `peak` does."""
        return self._written(out, "trace", "--card", card, "--out", out, "--", *command)

    def import_snapshot(self, snapshot: str, out: str) -> List[Dict[str, Any]]:
        """Makes the new run folder `out` of a file of torch.cuda.memory._dump_snapshot, from a real GPU. Returns what `peak` does."""
        return self._written(out, "import", snapshot, "--out", out)

    def fit(self, command: List[str], vary: str, card: str = "h100-80gb", out: str = "") -> Dict[str, Any]:
        """The largest value with which a program fits a GPU. vary: NAME=FIRST..LAST, like batch=1..256, for {batch} in the words of the command."""
        return dict(self._json("fit", "--json", "--card", card, "--vary", vary, *(["--out", out] if out else []), "--", *command))

    def cases(self, run: str) -> Dict[str, Any]:
        """The cases of a run folder: outcome, peaks, bytes at the peak by category."""
        read = _results.load(run)
        cases = [{key: value for key, value in asdict(case).items() if key != "trace"} for case in read.cases]
        return {"title": read.title, "status": read.status, "cases": cases}

    def peak(self, run: str) -> List[Dict[str, Any]]:
        """When each case of a run folder peaks, and what fills it: by category and by source line, the largest first."""
        peaks: List[Dict[str, Any]] = self._json("report", run, "--format", "json")
        return peaks

    def alive_at_peak(self, run: str, case: str = "", most: int = 50) -> Dict[str, Any]:
        """The largest tensors that are alive at the peak of a case of a run folder: bytes, category, phase, module, operator and name.

        case: its id from `cases`; not needed if the run has only one.
        """
        found = [one for one in _results.load(run).cases if case in ("", one.id)]
        if len(found) != 1:
            raise ValueError(f"{run} has {len(found)} cases{' of the id ' + case if case else ''}: name one of those that the tool `cases` lists")
        alive = found[0].alive_at_peak()
        return {"case": found[0].id, "count": len(alive), "bytes": sum(one.bytes for one in alive), "largest": [asdict(one) for one in alive[:most]]}

    def compare(self, base: str, new: str) -> Dict[str, Any]:
        """What differs between two run folders: peaks, categories, and the source lines of the difference."""
        return dict(self._json("compare", base, new, "--json"))

    def _written(self, out: str, *words: str) -> List[Dict[str, Any]]:
        if Path(out, "run.json").exists():
            raise ValueError(f"{out} holds a run already: name a new folder")
        done = self._run(*words)
        try:
            return self.peak(out)
        except ValueError:
            _refuse(done)

    def _json(self, *words: str) -> Any:
        return self._asked(*words)[0]

    def _asked(self, *words: str) -> Any:
        """Its JSON, and what it printed besides. ValueError with its sentence where there is none."""
        done = self._run(*words)
        try:
            return json.loads(done.stdout), done.stderr
        except ValueError:
            _refuse(done)

    def _run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([self._program, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")


def _refuse(done: "subprocess.CompletedProcess[str]") -> NoReturn:
    """With the sentence of the program."""
    printed = done.stderr.strip()[-_LONGEST_OUTPUT:]
    raise ValueError(printed.removeprefix("peakbench: ") or f"peakbench ended with exit code {done.returncode}") from None


def _failing_with(kind: Any, tool: Callable[..., Any]) -> Callable[..., Any]:
    """The message of any other exception does not reach the client."""

    @functools.wraps(tool)
    def called(*words: Any, **named: Any) -> Any:
        try:
            return tool(*words, **named)
        except (ValueError, OSError) as error:
            raise kind(str(error)) from None

    return called


def _why_not() -> Optional[str]:
    try:
        found = importlib.util.find_spec("mcp.server.mcpserver")
    except ImportError:
        found = None
    return None if found else f'{sys.executable} has no package mcp of version 2 or later, which the extra mcp of Peakbench brings: pip install "mcp>=2"'


def main(words: Sequence[str]) -> int:
    problem = _why_not()
    if problem:
        print(f"peakbench: {problem}", file=sys.stderr)
        return _UNUSABLE
    if words[1:] == ["--check"]:
        return 0
    server = importlib.import_module("mcp.server.mcpserver").MCPServer("peakbench", instructions=_INSTRUCTIONS, log_level="WARNING")
    error = importlib.import_module("mcp.server.mcpserver.exceptions").ToolError
    for tool in Tools(words[0]).all():
        server.tool()(_failing_with(error, tool))
    server.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
