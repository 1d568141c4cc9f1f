#!/usr/bin/env python3
"""Recorded data as JSON with one record a line, so that a diff shows which records changed. Every script that records figures writes with this.

  lab/record_file.py FILE...    rewrites JSON files in this form
"""
import json
import os
import pathlib
import sys
import tempfile


def text(document):
    """A table of records by name has a line for each; in any other document each member's own members have one."""
    is_table = isinstance(document, dict) and all(isinstance(member, dict) for member in document.values())
    return _lines(document, 1 if is_table else 2, "") + "\n"


def _lines(value, depth, indent):
    if not depth or not value or not isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    inner = indent + " "
    if isinstance(value, dict):
        members = [f"{json.dumps(name, ensure_ascii=False)}: {_lines(member, depth - 1, inner)}" for name, member in value.items()]
        begin, end = "{}"
    else:
        members = [_lines(member, depth - 1, inner) for member in value]
        begin, end = "[]"
    return begin + ",".join(f"\n{inner}{member}" for member in members) + f"\n{indent}{end}"


def write(path, document):
    """Atomically: recording takes long, and scripts keep each result as it comes."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=path.name, delete=False) as file:
        file.write(text(document))
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


if __name__ == "__main__":
    for each in map(pathlib.Path, sys.argv[1:]):
        write(each, json.loads(each.read_text(encoding="utf-8")))
