"""Files that are there whole, or not at all."""

import os
import tempfile
from pathlib import Path


def write(file: Path, text: str) -> None:
    """In place of what is there. OSError where it cannot be, and then nothing has changed."""
    handle, scratch = tempfile.mkstemp(prefix=file.name, dir=file.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as to:
            to.write(text)
        os.chmod(scratch, 0o644)
        os.replace(scratch, file)
    except BaseException:
        os.unlink(scratch)
        raise
