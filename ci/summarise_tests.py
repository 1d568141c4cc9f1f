"""Sums up a CTest run: how many passed, failed and were skipped under each label, how long they took together, the slowest of them, and
why each skipped one was.

usage: summarise_tests.py JUNIT_XML TESTS_JSON [PASSED]    (ctest --output-junit, ctest --show-only=json-v1)

Ends with the line "N passed, N failed, N skipped"; its exit status is 1 if one failed or none ran. In continuous integration (CI is set)
a test that needs Slurm counts as failed where it is skipped: ci/packages --tests has installed it.
The file PASSED gets a line for each that passed and skipped no part of itself: a sum of how it is run, and its name.
A test says why it is skipped with a line "SKIP: reason", or through GoogleTest's GTEST_SKIP() << reason.
"""

import hashlib
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


def lines_of(tests_json):
    """Test name -> its line in PASSED."""
    with open(tests_json, encoding="utf-8") as file:
        tests = json.load(file)["tests"]
    how = {test["name"]: {key: test.get(key) for key in ("command", "properties")} for test in tests}
    return {name: f"{hashlib.sha256(json.dumps(one, sort_keys=True).encode()).hexdigest()} {name}" for name, one in how.items()}


def is_whole(case):
    """pytest, unittest and GoogleTest say at their end how many were skipped."""
    return not re.search(r"^=+ .*\b\d+ skipped\b|^OK \(.*skipped=|^\[  SKIPPED \]", case.findtext("system-out") or "", re.M)


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


def main(junit_xml, tests_json, passed=None):
    labels, whole = labels_of(tests_json), []
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
        elif is_whole(case):
            whole.append(name)

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
    if passed:
        lines = lines_of(tests_json)
        with open(passed, "w", encoding="utf-8") as file:
            file.writelines(lines[name] + "\n" for name in whole if name in lines)
    return 1 if totals["failed"] or not totals["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
