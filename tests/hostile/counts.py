"""What an attack tried, what came of it and what it found: a table for people, JSON for machines."""

import collections
import dataclasses
import json
import re
import threading
import time

TELL_EVERY_S = 20


@dataclasses.dataclass(frozen=True)
class Finding:
    """Something that must not happen. `again` is a command that shows it, `kept` a folder with what it was given."""

    row: str
    what: str
    again: str
    kept: str = ""


class Row:
    def __init__(self, name):
        self.name, self.tried, self.slowest = name, 0, 0.0
        self.outcomes = collections.Counter()


class Counts:
    """Rows by name, of one kind of attack. May be written from several threads."""

    def __init__(self, kind, seed, say=None):
        """`say` hears now and then how far it is."""
        self.kind, self.seed, self.say = kind, seed, say
        self.rows, self.findings, self.skipped = {}, [], []
        self.expected = 0  # how many there will be, where that is known
        self._lock, self._told = threading.Lock(), time.monotonic()

    def tried(self, row, outcome, seconds=0.0, times=1):
        with self._lock:
            one = self.rows.setdefault(row, Row(row))
            one.tried += times
            one.outcomes[outcome] += times
            one.slowest = max(one.slowest, seconds)
            self._tell(row)

    def _tell(self, row):
        if self.say is None or time.monotonic() < self._told + TELL_EVERY_S:
            return
        self._told = time.monotonic()
        self.say(f"{self.kind}: {self.total():,}{f' of {self.expected:,}' if self.expected else ''} tried, {len(self.findings)} findings ({row})")

    def found(self, row, what, again="", kept=""):
        with self._lock:
            self.findings.append(Finding(row, what, again, str(kept)))
        if self.say is not None:
            self.say(f"{self.kind}: finding: {row}: {what} ({again})")

    def skip(self, row, why):
        with self._lock:
            self.skipped.append((row, why))

    def total(self):
        return sum(row.tried for row in self.rows.values())

    def found_in(self, row):
        return sum(finding.row == row for finding in self.findings)

    def as_json(self):
        return {
            "kind": self.kind,
            "seed": self.seed,
            "tried": self.total(),
            "rows": [
                {"name": row.name, "tried": row.tried, "outcomes": dict(row.outcomes), "slowest_s": round(row.slowest, 3),
                 "findings": self.found_in(row.name)}
                for row in self.rows.values()
            ],
            "skipped": [{"row": row, "why": why} for row, why in self.skipped],
            "findings": [dataclasses.asdict(finding) for finding in self.findings],
        }


def table(counts):
    lines = [f"{counts.kind} (seed {counts.seed})", f"  {'':34}{'tried':>8}{'slowest':>10}{'findings':>10}  what came of it"]
    for row in counts.rows.values():
        outcomes = ", ".join(f"{name} {count}" for name, count in row.outcomes.most_common())
        lines.append(f"  {row.name:34}{row.tried:>8}{row.slowest:>8.2f} s{counts.found_in(row.name):>10}  {outcomes}")
    lines += [f"  {row:34} skipped: {why}" for row, why in counts.skipped]
    return "\n".join(lines)


def listed(findings, most=20):
    """The findings, like ones together: the first of each with what shows it again."""
    groups = collections.defaultdict(list)
    for finding in findings:
        groups[(finding.row, re.sub(r"\d[\d.e+]*", "N", finding.what.split(":")[0]))].append(finding)
    lines = []
    for (row, _), alike in list(groups.items())[:most]:
        lines.append(f"{row}: {alike[0].what}" + (f" ({len(alike)} times)" if len(alike) > 1 else ""))
        lines += [f"    {part}" for part in (alike[0].again, alike[0].kept) if part]
    if len(groups) > most:
        lines.append(f"and {len(groups) - most} more")
    return "\n".join(lines)


def write_json(path, all_counts):
    with open(path, "w", encoding="utf-8") as file:
        json.dump([counts.as_json() for counts in all_counts], file, indent=1)
        file.write("\n")
