"""What is alive at a trace's peak. A trace may come from anyone: only plain tables are read, never views, and no more work is done than a file of its size needs."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple
from urllib.parse import quote

# What is read, and by which columns (harness/trace/trace_writer.cpp).
_TABLES = {
    "trace": ("own_space",),
    "peaks": ("space", "event"),
    "allocations": ("event", "last_event", "category", "name"),
    "events": ("id", "space", "phase", "module", "operator", "requested_bytes", "block_bytes"),
    **{words: ("id", "name") for words in ("categories", "phases", "modules", "operators", "names")},
}
_ALIVE = """SELECT e.block_bytes, e.requested_bytes, a.category, e.phase, e.module, e.operator, a.name FROM peaks k
            JOIN allocations a ON a.event <= k.event AND a.last_event > k.event JOIN events e ON e.id = a.event AND e.space = k.space
            WHERE k.space = (SELECT own_space FROM trace) ORDER BY e.block_bytes DESC, a.event"""
# Of a file, as harness/base/database.cpp has it: thirty times what a whole reading needs.
_OPERATIONS, _EACH, _BYTES_FOR_EACH = 100_000_000, 10_000, 310
_ROWS, _LEAST_BYTES_OF_ROW = 10_000, 4
_BYTES, _READINGS = 16_000_000, 8
_LONGEST_TEXT = 1 << 20

Row = Tuple[int, int, str, str, str, str, str]  # bytes, requested bytes, category, phase, module, operator, name


def alive_at_peak(file: Path) -> List[Row]:
    """Of the case's own memory, the largest first. ValueError, in one sentence, where the file is no trace, or is corrupted."""
    address = f"file:{quote(str(file.resolve()))}?mode=ro&immutable=1"  # whatever lies beside it is left alone
    try:
        with closing(sqlite3.connect(address, uri=True)) as database:
            return _Reading(database, file.stat().st_size).rows()
    except (sqlite3.Error, ValueError) as error:
        raise ValueError(f"{file}: not a trace of Peakbench ({error})") from None


class _Reading:
    def __init__(self, database: sqlite3.Connection, size: int) -> None:
        self._database = database
        self._left = _OPERATIONS // _EACH + size // _BYTES_FOR_EACH
        self._most_rows = _ROWS + size // _LEAST_BYTES_OF_ROW
        self._left_bytes = _BYTES + size * _READINGS  # of texts
        self._stopped_by: Optional[BaseException] = None
        database.set_progress_handler(self._go_on, _EACH)
        database.execute("PRAGMA trusted_schema = OFF")

    def rows(self) -> List[Row]:
        for table, columns in _TABLES.items():
            self._require_plain(table, columns)
        alive = self._select(_ALIVE)
        categories, phases, modules, operators, names = (self._words(table, {row[at] for row in alive}) for at, table in _WORDS)
        return [
            (_size(size), _size(requested), categories[category], phases[phase], modules[module], operators[operator], names[name])
            for size, requested, category, phase, module, operator, name in alive
        ]

    def _require_plain(self, table: str, columns: Tuple[str, ...]) -> None:
        """Views, virtual tables, generated columns and indexes over expressions run code that the file brings with it."""
        made = self._select("SELECT type, substr(sql, 1, 13) FROM sqlite_master WHERE name = ?", table)
        if made != [("table", "CREATE TABLE ")]:
            raise ValueError(f"{table} is no plain table" if made else f"it has no table {table}")
        found = {row[1]: row[6] for row in self._select(f"PRAGMA table_xinfo({table})")}
        for column in columns:
            if found.get(column) != 0:
                raise ValueError(f"{table} has no plain column {column}")
        if any(found.values()) or self._select(f"PRAGMA index_list({table})"):
            raise ValueError(f"{table} has a generated column or an index")

    def _words(self, table: str, used: "set[Any]") -> Dict[Any, str]:
        """Each text once, however many rows have it. "" where a row has none."""
        words: Dict[Any, str] = {None: ""}
        for number, word in self._select(f"SELECT id, substr(name, 1, {_LONGEST_TEXT}) FROM {table}"):
            if number in used:
                if not isinstance(word, str):
                    raise ValueError(f"{table} has a name that is no text")
                words[number] = word
        if not used <= words.keys():
            raise ValueError(f"{table} lacks a row")
        return words

    def _select(self, query: str, *values: str) -> List[Tuple[Any, ...]]:
        found = []
        try:
            for row in self._database.execute(query, values):
                found.append(row)
                self._left_bytes -= sum(len(value) for value in row if isinstance(value, (str, bytes)))
                if len(found) > self._most_rows or self._left_bytes < 0:
                    raise ValueError("it has more rows or text than a file of its size can have")
        except sqlite3.Error as error:
            if self._stopped_by is not None:
                raise self._stopped_by from None
            if self._left <= 0:
                raise ValueError("reading it takes more work than a file of its size needs") from None
            if str(error) == "interrupted":
                raise KeyboardInterrupt from None
            raise
        return found

    def _go_on(self) -> int:
        """SQLite drops what is raised here: Ctrl-C is kept for the caller."""
        try:
            self._left -= 1
            return self._left <= 0
        except BaseException as stopped:
            self._stopped_by = stopped
            return 1


_WORDS = ((2, "categories"), (3, "phases"), (4, "modules"), (5, "operators"), (6, "names"))


def _size(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("it has a size that is no number of bytes")
    return value
