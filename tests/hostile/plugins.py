"""Plugins that misbehave, in real workers and in a script that behaves as its option says: the run goes on, and is bounded."""

import json
import re
import time

import judge
from kills import processes_below
from workplace import MODEL

# What the script can do (tests/support/fake_worker.py), and the statuses that are right for it. A worker that ends itself with SIGKILL or
# SIGTERM looks as one that another process or the machine has ended: that is host_failure, which blames nobody's strategy.
SCRIPTED = {
    "segfault": {"crashed"}, "abort": {"crashed"}, "kill": {"host_failure"}, "terminate": {"host_failure"},
    "hang": {"timeout"}, "hang_hard": {"timeout"}, "exit": {"crashed"}, "no_result": {"crashed"}, "garbage": {"crashed"},
    "truncated": {"crashed"}, "out_of_memory": {"out_of_memory"}, "crash_after_result": {"crashed"}, "leave_child": {"ok"},
    "bad_bytes": {"crashed"}, "no_effect": {"no_effect"}, "unsupported": {"unsupported"},
    "flood_lines": {"timeout"}, "flood_without_newline": {"timeout"}, "flood_beside": {"ok"}, "long_line": {"ok"}, "odd_progress": {"ok"},
    "close_progress": {"ok"}, "close_output": {"ok"}, "stop": {"timeout"}, "other_group": {"timeout"},
    "kill_parent": {"host_failure"}, "daemon": {"ok"}, "daemon_and_hang": {"timeout"}, "flood_log": {"crashed"},
    "deep_result": {"crashed"}, "sparse_result": {"crashed"}, "pipe_as_result": {"crashed"}, "folder_as_result": {"crashed"},
    "wordy_result": {"unsupported"}, "delete_folder": {"crashed"},
}
QUICK = ("abort", "hang_hard", "garbage", "leave_child", "flood_lines", "daemon", "flood_log", "wordy_result")
MOST_LOG = 17 << 20
MOST_RECORD = 4 << 20
TIMEOUT_S = 4  # a case takes a fraction of it, on a busy machine too
GRACE_S = 3


def attack(workplace, counts, options):
    whole = options.count > 0
    for how in SCRIPTED if whole else QUICK:
        for where in ("memory", "throughput") if whole else ("memory",):
            if where == "throughput" and how in ("no_effect", "unsupported"):
                continue
            command = [workplace.program, "run", "--model", "tiny", "--strategy", "baseline", "--strategy",
                       f"misbehave,behaviour={how},in={where}", "--strategy", "slim", "--repetitions", "1"]
            judged(workplace, counts, f"script, {where}", how, command, SCRIPTED[how])
    if options.bad_plugins is None:
        return counts.skip("plugin", "no folder of bad plugins was named (--bad-plugins)")
    names = bad_strategies(workplace, options.bad_plugins)
    for name in names if whole else names[:: max(1, len(names) // 3)]:
        command = [workplace.real, "run", "--model", MODEL, "--strategy", "baseline", "--strategy", name, "--strategy", "foreach-off",
                   "--plugins", options.bad_plugins.resolve(), "--steps", "1", "--repetitions", "0"]
        judged(workplace, counts, "plugin", name, command, None)
    return None


def bad_strategies(workplace, folder):
    listed = json.loads(workplace.must(workplace.real, "list", "strategies", "--json", "--plugins", folder.resolve()))
    entries = listed["strategies"] if isinstance(listed, dict) else listed
    bundled = workplace.must(workplace.real, "list", "strategies", "--json")
    return sorted(entry["id"] for entry in entries if f'"{entry["id"]}"' not in bundled)


def judged(workplace, counts, row, name, command, statuses):
    folder = workplace.trial(f"plugin-{re.sub('[^a-z]', '-', name)}")
    out = folder / "out"
    workers = 3 if row == "plugin" else 6
    before = judge.state(folder.parent, besides=(str(out),))
    ended = judge.run([*command, "--timeout", TIMEOUT_S, "--out", out], folder, workplace.environment(), limits={},
                      allowed_s=2 * judge.patience() + workers * (TIMEOUT_S + GRACE_S))
    counts.tried(row, ended.outcome, ended.seconds)
    faults = judge.faults_of(ended, {0, 3}) + judge.changed(before, judge.state(folder.parent, besides=(str(out),)))
    faults += record_faults(out, statuses)
    deadline = time.monotonic() + 2
    while (left := processes_below(out)) and time.monotonic() < deadline:
        time.sleep(0.05)
    if left:
        faults.append(f"processes left: {left}")
    for fault in faults:
        counts.found(row, f"{fault} [{name}]", ended.words)


def record_faults(out, statuses):
    path = out / "run.json"
    if not path.exists():
        return ["no run.json"]
    faults = []
    cases = json.loads(path.read_text(encoding="utf-8"))["cases"]
    if len(cases) != 3:
        faults.append(f"{len(cases)} of 3 cases")
    else:
        if statuses and cases[1]["status"] not in statuses:
            faults.append(f"the case is {cases[1]['status']}: {cases[1]['reason'][:200]}")
        if not statuses and cases[1]["status"] == "ok" and cases[1].get("reason"):
            faults.append(f"ok, with a reason: {cases[1]['reason'][:200]}")
        faults += [f"another case suffers: {case['status']}: {case['reason'][:200]}" for case in (cases[0], cases[2])
                   if case["status"] != "ok"]
    if path.stat().st_size > MOST_RECORD:
        faults.append(f"run.json has {path.stat().st_size} bytes")
    for log in out.rglob("worker.log"):
        if log.stat().st_size > MOST_LOG:
            faults.append(f"worker.log has {log.stat().st_size} bytes")
    return faults
