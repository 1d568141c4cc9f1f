"""A run folder as plain objects: what run.json and the traces say."""

import html
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, Tuple, Union

from peakbench import _trace
from peakbench._memory import in_words


@dataclass(frozen=True)
class Alive:
    """An allocation that is alive at the peak of a case. "" where something is not known."""

    bytes: int
    requested_bytes: int
    category: str
    phase: str
    module: str
    operator: str
    name: str


@dataclass(frozen=True)
class Case:
    """A case of a run. Figures are 0 where it was not measured: ``status`` and ``reason`` say why. ``at_peak``: bytes by category."""

    id: str
    status: str
    reason: str
    device: str
    allocated_bytes: int
    reserved_bytes: int
    requested_bytes: int
    at_peak: Mapping[str, int]
    trace: Path

    def alive_at_peak(self) -> Tuple[Alive, ...]:
        """Of the case's own memory, the largest first; read from its trace."""
        if not self.trace.is_file():
            raise FileNotFoundError(f"{self.trace}: the case {self.id} has no trace")
        return tuple(Alive(*row) for row in _trace.alive_at_peak(self.trace))


@dataclass(frozen=True)
class Run:
    """A run. A notebook shows its report, or a table of its cases where there is none."""

    folder: Path
    title: str
    status: str
    cases: Tuple[Case, ...]

    def frame(self) -> Any:
        """A pandas.DataFrame of the cases, a column for each category."""
        try:
            import pandas  # type: ignore[import-untyped,unused-ignore]
        except ImportError:
            raise ImportError("frame() needs pandas: pip install pandas") from None
        rows = [{"case": case.id, "status": case.status, "device": case.device, "allocated_bytes": case.allocated_bytes, "reserved_bytes": case.reserved_bytes,
                 "requested_bytes": case.requested_bytes, **case.at_peak} for case in self.cases]  # fmt: skip
        return pandas.DataFrame(rows)

    def _repr_html_(self) -> str:
        report = self.folder / "report/index.html"
        if report.is_file():
            page = html.escape(report.read_text(encoding="utf-8"), quote=True)
            # Its scripts run in an origin of their own: a report may come from anyone.
            return f'<iframe sandbox="allow-scripts" srcdoc="{page}" width="100%" height="720"></iframe>'
        rows = "".join(f"<tr><td>{html.escape(case.id)}</td><td>{html.escape(case.status)}</td><td>{in_words(case.allocated_bytes)}</td>"
                       f"<td>{in_words(case.reserved_bytes)}</td></tr>" for case in self.cases)  # fmt: skip
        head = "<tr><th>case</th><th>status</th><th>allocated at the peak</th><th>reserved</th></tr>"
        return f"<table><caption>{html.escape(self.title)}</caption>{head}{rows}</table>"


def load(folder: Union[str, "os.PathLike[str]"]) -> Run:
    """The run in that folder. FileNotFoundError or ValueError, in one sentence, where there is none."""
    file = Path(folder) / "run.json"
    try:
        if file.exists() and not file.is_file():  # a pipe would be waited for
            raise ValueError("it is no regular file")
        run = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{file} is not there: name the folder that `peakbench run` or `peakbench trace` wrote") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file}: not a run of Peakbench ({error})") from None
    try:
        return Run(Path(folder), run["title"], run["status"], tuple(_case(Path(folder), case) for case in run["cases"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{file}: not a run of Peakbench (it lacks {error})") from None


def _case(folder: Path, case: Mapping[str, Any]) -> Case:
    memory = case.get("memory") or {}
    trace = folder / "cases" / Path(case["slug"]).name / "trace.sqlite"
    return Case(case["id"], case["status"], case["reason"], case["device"], memory.get("peak_allocated_bytes", 0), memory.get("peak_reserved_bytes", 0),
                memory.get("peak_requested_bytes", 0), dict(memory.get("at_peak", {})), trace)  # fmt: skip
