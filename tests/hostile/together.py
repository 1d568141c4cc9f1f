"""Two of everything at once: one goes on and the other says why it cannot, or both end as one after the other would."""

import json
import os
import shutil
import signal
import subprocess
import threading
import time

import judge
from figures import figures
from kills import contents
from readers import rng_of
from workplace import MODEL, SOURCE, is_sound_sqlite

QUICK = 2
WRITERS = 8
NIGHT = f"""
title = "Night"
models = ["{MODEL}"]
strategies = ["baseline"]
devices = ["emulated:t4-16gb"]
steps = 1
repetitions = 0
"""


def attack(workplace, counts, options):
    for number in range(options.first, options.first + (options.count or QUICK)):
        for row, scene in (("runs in one folder", two_runs), ("history writers, some killed", many_writers), ("publish", two_sites),
                           ("reports into one folder", two_reports)):
            attempt(workplace, counts, options, row, scene, number)
    for number in range(max(1, options.count // 20)):
        attempt(workplace, counts, options, "ci/nightly", two_nights, number)


def attempt(workplace, counts, options, row, scene, number):
    folder = workplace.trial(f"together-{row.split()[0].replace('/', '-')}-{number}")
    began = time.monotonic()
    try:
        faults = scene(workplace, folder, rng_of(options.seed, row, number))
    except Exception as error:  # noqa: BLE001  an attack that cannot be judged is a finding
        faults = [f"not judged: {error!r}"]
    counts.tried(row, "fine" if not faults else "not fine", time.monotonic() - began)
    for fault in faults:
        counts.found(row, fault, f"seed {options.seed}, number {number}")


def at_once(commands, folder, env, rng, within=0.02):
    """Starts all within a moment and waits for all. A list of (exit code, out, err)."""
    processes = []
    for command in commands:
        processes.append(subprocess.Popen(list(map(str, command)), cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE, start_new_session=True))
        time.sleep(rng.uniform(0, within))
    found = [None] * len(processes)

    def wait(index):
        out, err = processes[index].communicate(timeout=120)
        found[index] = (processes[index].returncode, judge.text(out), judge.text(err))

    threads = [threading.Thread(target=wait, args=(index,)) for index in range(len(processes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def two_runs(workplace, folder, rng):
    command = [workplace.program, "run", "--model", "tiny", "--strategy", "baseline", "--strategy", "slim", "--repetitions", "1", "--out",
               folder / "out", "--quiet"]
    ends = at_once([command, command, [*command, "--resume"], [*command, "--overwrite"]], folder, workplace.environment(), rng, 0.2)
    faults = [f"exit code {code}: {err[-200:]}" for code, _, err in ends if code not in (0, 2)]
    if not any(code == 0 for code, _, _ in ends):
        faults.append("nobody could run")
    for code, _, err in ends:
        if code == 2 and not ("another peakbench" in err or "holds a run already" in err):
            faults.append(f"refused for another reason: {err[-200:]}")
    status, cases = figures(folder / "out")
    if status != "complete" or [case["status"] for case in cases] != ["ok", "ok"]:
        faults.append(f"the run is {status}: {[case['status'] for case in cases]}")
    return faults + [f"left behind: {path}" for path in judge.left_over(folder)]


def many_writers(workplace, folder, rng):
    """Eight processes file three runs each, one of them a run of all; three are killed."""
    history = folder / "h.sqlite"
    run = json.loads((workplace.timed() / "run.json").read_text())
    runs = []
    for number in range(3 * WRITERS):
        path = folder / f"run{number}"
        path.mkdir()
        run["created"] = f"2026-{1 + number // 28:02}-{1 + number % 28:02}T00:00:00Z"
        (path / "run.json").write_text(json.dumps(run))
        runs.append(path)
    command = [workplace.program, "history", "add", "--history", history, "--branch", "main"]
    processes = []
    for writer in range(WRITERS):
        mine = [*runs[3 * writer : 3 * writer + 3], runs[0]]
        processes.append(subprocess.Popen(list(map(str, [*command, *mine])), cwd=folder, env=workplace.environment(),
                                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    victims = rng.sample(range(WRITERS), 3)
    for victim in victims:
        time.sleep(rng.uniform(0, 0.01))
        processes[victim].send_signal(signal.SIGKILL)
    faults, promised = [], set()
    for writer, process in enumerate(processes):
        out, err = process.communicate(timeout=60)
        if writer not in victims and process.returncode != 0:
            faults.append(f"exit code {process.returncode}: {judge.text(err)[-200:]}")
        # What it said is filed, is filed, killed or not.
        promised |= {line.split(":")[0].rsplit("/", 1)[-1] for line in judge.text(out).splitlines() if ": run " in line}
    workplace.must(workplace.program, "history", "check", "--history", history)
    listed = json.loads(workplace.must(workplace.program, "history", "list", "--all", "--json", "--history", history))
    days = [one["created"] for one in listed]
    if len(days) != len(set(days)):
        faults.append("one run is filed twice")
    lost = [name for name in promised if json.loads((folder / name / "run.json").read_text())["created"] not in days]
    faults += [f"lost: {name} was said to be filed" for name in lost]
    workplace.must(*command, *runs)
    listed = json.loads(workplace.must(workplace.program, "history", "list", "--all", "--json", "--history", history))
    if len(listed) != len(runs):
        faults.append(f"{len(listed)} of {len(runs)} runs are filed in the end")
    if not is_sound_sqlite(history):
        faults.append("the file is not sound")
    return faults


def two_sites(workplace, folder, rng):
    expected = workplace._made("site-alone", lambda path: workplace.must(
        workplace.program, "publish", "--history", workplace.history(), "--out", path))
    command = [workplace.program, "publish", "--history", workplace.history(), "--out", folder / "site"]
    ends = at_once([command, command, command], folder, workplace.environment(), rng)
    faults = [f"exit code {code}: {err[-200:]}" for code, _, err in ends if code not in (0, 2)]
    if not any(code == 0 for code, _, _ in ends):
        faults.append("nobody could publish: " + ends[0][2][-200:])
    if contents(folder / "site") != contents(expected):
        faults.append("the site is not what one publish makes")
    return faults


def two_reports(workplace, folder, rng):
    expected = workplace._made("report-alone", lambda path: workplace.must(workplace.program, "report", workplace.run(), "--out", path))
    command = [workplace.program, "report", workplace.run(), "--out", folder / "report"]
    ends = at_once([command, command, command], folder, workplace.environment(), rng)
    faults = [f"exit code {code}: {err[-200:]}" for code, _, err in ends if code != 0]
    if contents(folder / "report") != contents(expected):
        faults.append("the report is not what one command makes")
    return faults


def two_nights(workplace, folder, rng):
    if shutil.which("flock") is None:
        return []
    (folder / "night.toml").write_text(NIGHT)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PEAKBENCH_", "GITHUB_", "CI"))}
    env = {**inherited, "PEAKBENCH_NIGHTLY_DIR": str(folder / "night"), "PEAKBENCH_PROGRAM": workplace.real, "PEAKBENCH_BRANCH": "main",
           "PEAKBENCH_COMMIT": "c0ffee"}
    ends = at_once([[SOURCE / "ci/nightly", folder / "night.toml"]] * 2, folder, env, rng, 0.3)
    faults = []
    refused = [err for code, _, err in ends if code != 0]
    if len(refused) > 1 or any("another ci/nightly" not in err for err in refused):
        faults.append(f"{len(refused)} were refused: {[err[-300:] for err in refused]}")
    listed = json.loads(workplace.must(workplace.program, "history", "list", "--all", "--json", "--history", folder / "night/history.sqlite"))
    if len(listed) != 2 - len(refused):
        faults.append(f"{len(listed)} runs are filed of {2 - len(refused)} nights")
    return faults
