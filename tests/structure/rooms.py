"""The rooms of the house, as the table in docs/explanation/architecture.md has them, and who includes whom."""

import re
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
HEADING = "## Modules"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
SOURCES = (".h", ".cpp", ".h.in", ".cpp.in")
# Folders that an `#include "..."` is searched in, besides the file's own.
SEARCHED = ("", "harness", "harness/sdk/include", "emulator", "tests", "tests/golden", "plugins/checkpointing")


class TableError(Exception):
    """The table cannot be understood."""


def table(text):
    """{room: set of rooms it may use, or None for any}, in the order of the table.

    A room is a folder's path; `NAME` in capitals at its end stands for every folder there. The last column lists rooms by
    path, or says `nothing` or `anything`.
    """
    after = text.split(HEADING, 1)
    if len(after) == 1:
        raise TableError(f'no heading "{HEADING}"')
    rooms = {}
    for line in after[1].splitlines():
        if line.startswith("## "):
            break
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("| `") or len(cells) < 3:
            continue
        allowed = cells[-1]
        for room in re.findall(r"`([^`]+)`", cells[0]):
            if allowed == "anything":
                rooms[room] = None
            elif allowed == "nothing":
                rooms[room] = set()
            else:
                rooms[room] = set(re.findall(r"`([^`]+)`", allowed))
                if not rooms[room]:
                    raise TableError(f'{room}: "{allowed}" names no room')
    if not rooms:
        raise TableError("the table has no rows")
    for room, allowed in rooms.items():
        for other in allowed or ():
            if other not in rooms:
                raise TableError(f"{room} may use {other}, which has no row")
    return rooms


def room_of(path, rooms):
    """The row for a file: the deepest folder that has one; None where none has."""
    parts = str(path).split("/")[:-1]
    for length in range(len(parts), 0, -1):
        name = "/".join(parts[:length])
        if name in rooms:
            return name
        for pattern in rooms:
            head, _, last = pattern.rpartition("/")
            if last.isupper() and length > 1 and head == "/".join(parts[: length - 1]):
                return pattern
    return None


def sources():
    """Paths of the C++ files that git knows, relative to the repository."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=REPOSITORY, check=True,
                            capture_output=True, text=True).stdout.splitlines()
    return [path for path in listed if path.endswith(SOURCES) and (REPOSITORY / path).exists()]


def includes(path, known):
    """(line, path of the included file of this repository) for each; others are left out."""
    text = (REPOSITORY / path).read_text(encoding="utf-8")
    found = []
    for match in INCLUDE.finditer(text):
        name = match.group(1)
        for folder in (str(Path(path).parent), *SEARCHED):
            candidate = str(Path(folder) / name) if folder else name
            candidate = re.sub(r"[^/]+/\.\./", "", candidate)
            for file in (candidate, candidate + ".in"):
                if file in known:
                    found.append((text.count("\n", 0, match.start()) + 1, file))
                    break
            else:
                continue
            break
    return found


def trespasses(rooms, graph):
    """Messages for includes that the table does not allow. `graph`: {file: [(line, included file)]}."""
    messages = []
    for file, included in graph.items():
        here = room_of(file, rooms)
        if here is None:
            messages.append(f"{file}: its folder has no row in the table of docs/explanation/architecture.md")
            continue
        for line, other in included:
            there = room_of(other, rooms)
            own = str(Path(file).parent) == str(Path(other).parent)
            if there == here and (own or not here.rpartition("/")[2].isupper()):
                continue
            if rooms[here] is None or (there != here and there in rooms[here]):
                continue
            messages.append(f"{file}:{line}: {here} may not use {there} ({other})")
    return messages


def cycle(rooms):
    """Rooms that use each other in a ring, or None. Rooms that may use anything are not looked at."""
    done, path = set(), []

    def visit(room):
        if room in path:
            return path[path.index(room):] + [room]
        if room in done:
            return None
        path.append(room)
        for other in sorted(rooms[room] or ()):
            if ring := visit(other):
                return ring
        path.pop()
        done.add(room)
        return None

    for room in rooms:
        if ring := visit(room):
            return ring
    return None


def graph():
    known = set(sources())
    return {path: includes(path, known) for path in sorted(known)}


def unused(rooms, graph_):
    """What the table allows and no file does: "A may use B, and does not"."""
    used = {(room_of(file, rooms), room_of(other, rooms)) for file, included in graph_.items() for _, other in included}
    return [f"{room} may use {other}, and does not" for room, allowed in rooms.items() for other in sorted(allowed or ())
            if (room, other) not in used]
