"""The modules, as modules.toml has them, who includes whom, and the table of docs/explanation/architecture.md.

    python3 tests/structure/modules.py --write    writes the table into the page
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
DATA = REPOSITORY / "tests/structure/modules.toml"
PAGE = REPOSITORY / "docs/explanation/architecture.md"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
SOURCES = (".h", ".cpp", ".h.in", ".cpp.in")
# Folders that an `#include "..."` is searched in, besides the file's own.
SEARCHED = ("", "harness", "harness/sdk/include", "emulator", "tests", "tests/golden", "plugins/checkpointing")


class TableError(Exception):
    """The table cannot be understood."""


def read(text):
    """{module: its table of modules.toml}, in the order of the file.

    A module is a directory's path; `NAME` in capitals at its end stands for every directory there. `uses` lists modules, or is
    "anything".
    """
    modules = tomllib.loads(text)
    if not modules:
        raise TableError("modules.toml has no module")
    for name, module in modules.items():
        uses = module["uses"]
        if uses == "anything":
            continue
        for other in uses:
            if other not in modules:
                raise TableError(f"{name} may use {other}, which is not in modules.toml")
    return modules


def allowed(modules):
    """{module: set of modules that it may use, or None for any}"""
    return {name: None if module["uses"] == "anything" else set(module["uses"]) for name, module in modules.items()}


def table(modules):
    """The modules as the page has them."""
    lines = ["| directory | what it does | LibTorch | may use |", "|---|---|---|---|"]
    for name, module in modules.items():
        uses = module["uses"]
        words = uses if isinstance(uses, str) else ", ".join(f"`{other}`" for other in uses) or "nothing"
        lines.append(f"| `{name}` | {module['what']} | {module.get('libtorch', '')} | {words} |")
    return "\n".join(lines) + "\n"


def with_table(page, modules):
    """The page with the table as it should be."""
    return re.sub(r"^\| directory \| what it does \|.*?\n(?!\|)", lambda _: table(modules), page, count=1, flags=re.MULTILINE | re.DOTALL)


def module_of(path, modules):
    """The row for a file: the deepest folder that has one; None where none has."""
    parts = str(path).split("/")[:-1]
    for length in range(len(parts), 0, -1):
        name = "/".join(parts[:length])
        if name in modules:
            return name
        for pattern in modules:
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


def trespasses(modules, graph):
    """Messages for includes that modules.toml does not allow. `graph`: {file: [(line, included file)]}."""
    messages = []
    for file, included in graph.items():
        here = module_of(file, modules)
        if here is None:
            messages.append(f"{file}: its directory is not in tests/structure/modules.toml")
            continue
        for line, other in included:
            there = module_of(other, modules)
            own = str(Path(file).parent) == str(Path(other).parent)
            if there == here and (own or not here.rpartition("/")[2].isupper()):
                continue
            if modules[here] is None or (there != here and there in modules[here]):
                continue
            messages.append(f"{file}:{line}: {here} may not use {there} ({other})")
    return messages


def cycle(modules):
    """Modules that use each other in a ring, or None. Modules that may use anything are not looked at."""
    done, path = set(), []

    def visit(module):
        if module in path:
            return path[path.index(module):] + [module]
        if module in done:
            return None
        path.append(module)
        for other in sorted(modules[module] or ()):
            if ring := visit(other):
                return ring
        path.pop()
        done.add(module)
        return None

    for module in modules:
        if ring := visit(module):
            return ring
    return None


def graph():
    known = set(sources())
    return {path: includes(path, known) for path in sorted(known)}


def unused(modules, graph_):
    """What the table allows and no file does: "A may use B, and does not"."""
    used = {(module_of(file, modules), module_of(other, modules)) for file, included in graph_.items() for _, other in included}
    return [f"{module} may use {other}, and does not" for module, allowed in modules.items() for other in sorted(allowed or ())
            if (module, other) not in used]


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), read(DATA.read_text(encoding="utf-8"))), encoding="utf-8")
