"""What a notebook shows of a peak, and the magic ``%%peakbench`` for a cell."""

import contextlib
import html
import importlib
from collections import Counter
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, Tuple

if TYPE_CHECKING:
    from peakbench._memory import Peak

_MOST_LINES = 10


def table(peak: "Peak") -> str:
    """The lines that fill it, the largest first, each with its largest category."""
    of_line: Dict[str, Counter[str]] = {}
    of_category: Counter[str] = Counter()
    for part in peak.parts:
        of_line.setdefault(part.line or "no line of Python", Counter())[part.category] += part.bytes
        of_category[part.category] += part.bytes
    lines = sorted(of_line.items(), key=lambda one: -sum(one[1].values()))
    rows = [(line, sum(categories.values()), categories.most_common(1)[0][0]) for line, categories in lines]
    others = sum(size for _, size, _ in rows[_MOST_LINES:])
    rows = rows[:_MOST_LINES] + ([(f"{len(rows) - _MOST_LINES} other lines", others, "")] if others else [])
    caption = [str(peak), ", ".join(f"{category} {_in_words(size)}" for category, size in of_category.most_common()), peak.note]
    head = "<tr><th>line</th><th>allocated</th><th>of the peak</th><th>mostly</th></tr>" if rows else ""
    return f"<table><caption>{'<br>'.join(html.escape(one) for one in caption if one)}</caption>{head}{''.join(_rows(rows, peak.allocated_bytes))}</table>"


def _rows(rows: Iterable[Tuple[str, int, str]], whole: int) -> Iterable[str]:
    for line, size, category in rows:
        yield f"<tr><td>{html.escape(line)}</td><td>{_in_words(size)}</td><td>{size / whole:.0%}</td><td>{html.escape(category)}</td></tr>"


def _in_words(size: int) -> str:
    return str(importlib.import_module("peakbench._memory").in_words(size))


def register(shell: Any) -> None:
    """The magic ``%%peakbench``, in IPython's shell."""
    shell.register_magic_function(_magic(shell), "cell", "peakbench")


def _magic(shell: Any) -> Callable[[str, str], "Peak"]:
    memory = importlib.import_module("peakbench._memory")

    def peakbench(line: str, cell: str) -> "Peak":
        """The peak of this cell, and what fills it by line: %%peakbench, alone in the first line of the cell."""
        if line.strip():
            raise _usage_error(f"%%peakbench takes no words, found: {line.strip()}")
        try:
            memory.step()
        except memory.MemoryUnavailable as error:
            raise _usage_error(str(error)) from None
        with _numbered(shell):
            own = "" if cell.startswith("%%") else "# in place of the magic\n"  # lines have the numbers that the notebook shows
            done = shell.run_cell(own + cell, store_history=False)
        peak: "Peak" = memory.peak()
        if not done.success:  # cells that follow do not run then
            raise _usage_error(f"the cell failed; its peak until then: {peak}")
        return peak

    return peakbench


@contextlib.contextmanager
def _numbered(shell: Any) -> Iterator[None]:
    """What runs within it is of the cell that is running. IPython 9 has the next one's number by then."""
    name_of, number = shell.compile.cache, shell.displayhook.prompt_count
    shell.compile.cache = lambda code, _=0, raw_code=None: name_of(code, number, raw_code=raw_code)
    try:
        yield
    finally:
        del shell.compile.cache  # the class's own again


def _usage_error(sentence: str) -> Exception:
    """Of which IPython shows one line."""
    error: Exception = importlib.import_module("IPython.core.error").UsageError(sentence)
    return error
