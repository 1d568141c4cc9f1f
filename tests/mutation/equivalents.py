"""Faults that cannot change what the program does, each with its reason (equivalent.json)."""

import json
import pathlib

FILE = pathlib.Path(__file__).with_name("equivalent.json")


def read(path=FILE):
    """(file, line's text, rule, changed text) to the reason."""
    entries = json.loads(path.read_text())
    return {(one["file"], one["line"], one["rule"], one["becomes"]): one["reason"] for one in entries}


def reason_for(known, fault):
    return known.get((fault.file, fault.before, fault.rule, fault.after))


def outdated(known, faults):
    """Entries that no fault of the sources is like any more."""
    there = {(fault.file, fault.before, fault.rule, fault.after) for fault in faults}
    return [entry for entry in known if entry not in there]
