"""Puts a fault into a file and takes it out again, whatever happens in between: the file's text waits in a journal."""

import contextlib
import json
import os
import pathlib


class ChangedSince(Exception):
    pass


class Journal:
    def __init__(self, repository, path):
        self._repository = pathlib.Path(repository)
        self.path = pathlib.Path(path)

    @contextlib.contextmanager
    def planted(self, fault):
        file = self._repository / fault.file
        original = file.read_text()
        text = quieted(fault.planted_in(original))
        self._write({"file": fault.file, "original": original, "planted": text})
        try:
            _write_whole(file, text)
            yield
        finally:
            self.restore()

    def restore(self):
        """Puts back what a journal holds; the file's name, or None where there is no journal."""
        if not self.path.exists():
            return None
        entry = json.loads(self.path.read_text())
        file = self._repository / entry["file"]
        now = file.read_text() if file.exists() else None
        if now not in (None, entry["planted"], entry["original"]):
            raise ChangedSince(
                f"{entry['file']} was changed after a fault had been planted in it; what it held is in {self.path}"
            )
        if now != entry["original"]:
            _write_whole(file, entry["original"])
        _part_of(file).unlink(missing_ok=True)
        self.path.unlink()
        return entry["file"]

    def _write(self, entry):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        _write_whole(self.path, json.dumps(entry))


def _part_of(path):
    return path.with_name(path.name + ".part")


def _write_whole(path, text):
    part = _part_of(path)
    with open(part, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    if path.exists():
        part.chmod(path.stat().st_mode)
    part.replace(path)


# A fault is for the tests to find; the compiler's warnings would find some, and only here are they errors.
_WARNINGS = """
    address array-bounds bool-compare bool-operation dangling-else div-by-zero empty-body implicit-fallthrough int-in-bool-context
    logical-not-parentheses maybe-uninitialized misleading-indentation overflow parentheses return-type shift-count-overflow
    sign-compare stringop-overflow tautological-compare type-limits uninitialized unused-but-set-parameter unused-but-set-variable
    unused-function unused-label unused-local-typedefs unused-result unused-value unused-variable
""".split()


def quieted(text):
    """Without a warning that a fault may cause, and with every line where it was."""
    pragmas = "".join(f'_Pragma("GCC diagnostic ignored \\"-W{name}\\"") ' for name in ("pragmas", *_WARNINGS))
    return f"{pragmas}\n#line 1\n{text}"
