"""What a run found, without what may differ from one time to the next."""

import json

# Of a machine and its clock, not of the case.
_VOLATILE = {"worker_peak_rss_bytes", "wall_ns", "wall_seconds", "memory_wall_ns", "other_busy_cores", "environment", "created", "rss_bytes",
             # In which order a round took its cases: of those that were missing.
             "place"}


def without_volatile(value):
    if isinstance(value, dict):
        return {key: without_volatile(one) for key, one in value.items() if key not in _VOLATILE and "wall" not in key and "rss" not in key}
    if isinstance(value, list):
        return [without_volatile(one) for one in value]
    return value


def figures(folder):
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return run["status"], without_volatile(run["cases"])
