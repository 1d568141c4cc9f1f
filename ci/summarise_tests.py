"""Sums up a CTest run: how many passed, failed and were skipped under each label, how long they took together, the slowest of them, and
why each skipped one was.

usage: summarise_tests.py JUNIT_XML TESTS_JSON [SKIPPED]    (ctest --output-junit, ctest --show-only=json-v1)

Ends with the line "N passed, N failed, N skipped"; its exit status is 1 if one failed or none ran. In continuous integration (CI is set)
a test that needs Slurm counts as failed where it is skipped: ci/packages --tests has installed it.
The names of those that were skipped are written to the file SKIPPED, one a line.
A test says why it is skipped with a line "SKIP: reason", or through GoogleTest's GTEST_SKIP() << reason.
"""

import json
import os
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict


def labels_of(tests_json):
    """Test name -> its labels."""
    with open(tests_json, encoding="utf-8") as file:
        tests = json.load(file)["tests"]
    properties = {test["name"]: {p["name"]: p["value"] for p in test.get("properties", [])} for test in tests}
    return {name: values.get("LABELS") or ["(no label)"] for name, values in properties.items()}


def outcome(case):
    if case.find("skipped") is not None or case.get("status") == "notrun":
        return "skipped"
    return "failed" if case.find("failure") is not None or case.get("status") == "fail" else "passed"


def reason(case):
    output = case.findtext("system-out") or ""
    said = re.search(r"^SKIP: (.+)$", output, re.M) or re.search(r": Skipped\n(.+)", output)
    if said:
        return said.group(1).strip()
    skipped = case.find("skipped")
    return (skipped.get("message") if skipped is not None else None) or "no reason given"


def main(junit_xml, tests_json, skipped=None):
    labels = labels_of(tests_json)
    counts, reasons, totals = defaultdict(Counter), defaultdict(list), Counter()
    seconds, times = Counter(), {}
    failed = []
    for case in ElementTree.parse(junit_xml).getroot().iter("testcase"):
        name, result = case.get("name"), outcome(case)
        if result == "skipped" and os.environ.get("CI") and "slurm" in labels.get(name, []):
            print(f"{name} may not be skipped in continuous integration: {reason(case)}")
            result = "failed"
        totals[result] += 1
        times[name] = float(case.get("time") or 0)
        for label in labels.get(name, ["(no label)"]):
            counts[label][result] += 1
            seconds[label] += times[name]
        if result == "skipped":
            reasons[reason(case)].append(name)
        elif result == "failed":
            failed.append(name)

    print()
    width = max([len(label) for label in counts] + [5])
    for label in sorted(counts):
        row = counts[label]
        print(f"{label:<{width}} {seconds[label]:6.0f} s  " + ", ".join(f"{row[r]} {r}" for r in ("passed", "failed", "skipped") if row[r]))
    slowest = sorted(times, key=times.get, reverse=True)[:8]
    print("slowest: " + ", ".join(f"{name} {times[name]:.0f} s" for name in slowest))
    for why, names in sorted(reasons.items()):
        print(f"skipped, {why}: {', '.join(names)}")
    for name in failed:
        print(f"failed: {name}")
    print(f"{totals['passed']} passed, {totals['failed']} failed, {totals['skipped']} skipped")
    if skipped:
        with open(skipped, "w", encoding="utf-8") as file:
            file.writelines(f"{name}\n" for names in reasons.values() for name in names)
    return 1 if totals["failed"] or not totals["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
