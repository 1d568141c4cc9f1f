"""Machines that give less than they should: full disks, read-only folders, small limits, no HOME, closed streams."""

import errno
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys

import judge
from readers import rng_of
from workplace import FILED, asked, is_sound_sqlite

SCRIPT = ["--model", "tiny", "--strategy", "baseline", "--repetitions", "0"]
# What prints, what writes, what starts others.
COMMANDS = {
    "list": ["list", "strategies"],
    "list --json": ["list", "models", "--json"],
    "dry run": ["run", *SCRIPT, "--dry-run"],
    "run": ["run", *SCRIPT, "--out", "OUT/run"],
    "report": ["report", "RUN", "--out", "OUT/report"],
    "export": ["export", "RUN", "foreach-off", "--out", "OUT/x.pickle"],
    "compare": ["compare", "BASE", "RUN"],
    "compare --out": ["compare", "BASE", "RUN", "--out", "OUT/comparison"],
    "gate": ["gate", "BASE", "RUN", "--junit", "OUT/gate.xml"],
    "doctor": ["doctor"],
    "history add": ["history", "add", "FRESH", "--history", "OUT/h.sqlite"],
    "history list": ["history", "list", "--history", "HISTORY"],
    "history show": ["history", "show", "1", "--history", "HISTORY"],
    "history trend": ["history", "trend", "--history", "HISTORY"],
    "history check": ["history", "check", "--history", "HISTORY"],
    "history export": ["history", "export", "--history", "HISTORY"],
    "publish": ["publish", "--history", "HISTORY", "--out", "OUT/site"],
    "help": ["run", "--help"],
    "version": ["--version"],
}
WRITING = [name for name, words in COMMANDS.items() if any("OUT" in word for word in words)]


def attack(workplace, counts, options):
    stage = Stage(workplace, counts, options)
    full_output(stage)
    closed_streams(stage)
    small_limits(stage)
    bare_environments(stage)
    odd_places(stage)
    mounts(stage)


class Stage:
    def __init__(self, workplace, counts, options):
        self.workplace, self.counts, self.options = workplace, counts, options
        self.whole = options.count > 0
        workplace.run(), workplace.base(), workplace.timed(), workplace.history(), workplace.fresh()

    def sample(self, row, values, most):
        values = list(values)
        if self.whole or len(values) <= most:
            return values
        return rng_of(self.options.seed, row).sample(values, most)

    def words(self, name, out):
        workplace = self.workplace
        places = {"RUN": workplace.run(), "BASE": workplace.base(), "TIMED": workplace.timed(), "HISTORY": workplace.history(),
                  "FRESH": workplace.fresh()}
        words = [str(places.get(word, word)) for word in COMMANDS[name]]
        return [workplace.program, *(word.replace("OUT", str(out)) if word.startswith("OUT") else word for word in words)]

    def try_one(self, row, name, codes=judge.USUAL_CODES, out=None, env=None, also=lambda ended: [], prefix=(), **options):
        """Runs the command and judges it; `also` gives further faults."""
        folder = self.workplace.trial("limits")
        if out is None:
            out = folder / "out"
            out.mkdir()
        if COMMANDS[name][0] == "history" and "OUT" in COMMANDS[name][-1]:
            shutil.copy(self.workplace.history(), out / "h.sqlite")
        before = judge.state(folder.parent, besides=(str(out),))
        env = self.workplace.environment() if env is None else env
        ended = judge.run([*prefix, *self.words(name, out)], folder, env, **options)
        self.counts.tried(row, ended.outcome, ended.seconds)
        faults = judge.faults_of(ended, codes, speaks=name in ("doctor", "history check"))
        if options.get("stderr") is not None:
            faults = [fault for fault in faults if not fault.startswith("silent")]
        faults += also(ended)
        faults += judge.changed(before, judge.state(folder.parent, besides=(str(out),)))
        # Under a limit on files nothing can be put back beyond it either: the journal stays for whoever opens the history next.
        limited = resource.RLIMIT_FSIZE in (options.get("limits") or {})
        faults += [f"left behind: {path}" for path in judge.left_over(out) if not (limited and path.endswith("h.sqlite-journal"))]
        if (out / "h.sqlite").exists():
            faults += self.history_faults(out / "h.sqlite", limited and ended.code == 2)
        for fault in faults:
            self.counts.found(row, f"{fault} [{name}]", ended.words)
        return ended


    def history_faults(self, path, failed):
        """Opened, which plays a journal back, it is sound, and as it was where filing failed."""
        faults = [] if is_sound_sqlite(path) else ["the history is not sound"]
        if failed and asked(path, FILED) != asked(self.workplace.history(), FILED):
            faults.append("changed: the command failed, and the history is another")
        return faults + [f"left behind: {left}" for left in judge.left_over(path.parent) if "h.sqlite-" in left]


def says(number):
    def judged(ended):
        return [] if ended.code == 0 or judge.gives_reason(ended, number) else [f"no reason given: {judge.text(ended.err)[-200:]}"]

    return judged


# --- Streams ----------------------------------------------------------------------------------------------


def full_output(stage):
    row = "standard output on a full disk"
    for name in stage.sample(row, COMMANDS, 10):
        with open("/dev/full", "wb") as full:
            def noticed(ended, name=name):
                return [] if ended.code == 2 and ended.err.strip() else [f"unnoticed: {ended.outcome}: {judge.text(ended.err)[-200:]}"]

            stage.try_one(row, name, stdout=full, also=noticed)
    row = "standard error on a full disk"
    for name in stage.sample(row, COMMANDS, 6):
        with open("/dev/full", "wb") as full:
            stage.try_one(row, name, stderr=full)
    row = "reader of the output gone"
    for name in stage.sample(row, COMMANDS, 5):
        reading, writing = os.pipe()
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            stage.try_one(row, name, codes={0, 2, 4, 5, 128 + signal.SIGPIPE}, stdout=pipe)


def closed_streams(stage):
    row = "closed standard streams"
    for name in stage.sample(row, COMMANDS, 8):
        for numbers in stage.sample(row + name, ((0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)), 2):
            shell = " ".join(f"{number}>&-" for number in numbers)
            stage.try_one(row, name, prefix=["sh", "-c", f'exec "$@" {shell}', "sh"], stderr=subprocess.PIPE,
                          also=lambda ended, name=name: overwritten(stage))


def overwritten(stage):
    """A file opened as descriptor 1 or 2 would get what is printed."""
    faults = []
    for path in stage.workplace.root.glob("trials/limits/work/out/**/*"):
        if path.suffix in (".json", ".html", ".sqlite") and path.is_file() and path.read_bytes()[:10] == b"peakbench:":
            faults.append(f"a message was written into {path.name}")
    return faults


# --- Limits of the system ---------------------------------------------------------------------------------

MiB = 1 << 20


def small_limits(stage):
    for row, what, values, names in (
        ("small files (ulimit -f)", resource.RLIMIT_FSIZE, (0, 1, 512, 4096, 16384, 65536, 200_000), WRITING),
        ("little memory (ulimit -v)", resource.RLIMIT_AS, (24 * MiB, 32 * MiB, 48 * MiB, 64 * MiB, 96 * MiB, 200 * MiB), COMMANDS),
        ("few descriptors (ulimit -n)", resource.RLIMIT_NOFILE, (3, 4, 5, 6, 8, 10, 16), COMMANDS),
        ("small stack (ulimit -s)", resource.RLIMIT_STACK, (128 << 10, 256 << 10, 512 << 10), COMMANDS),
        ("little processor time (ulimit -t)", resource.RLIMIT_CPU, (1, 2), COMMANDS),
        ("no core files (ulimit -c)", resource.RLIMIT_CORE, (0,), ("run",)),
    ):
        for name in stage.sample(row, names, 7):
            for value in stage.sample(row + name, values, 2):
                stage.try_one(row, name, codes=codes_under(what, name), limits={what: value})
    no_more_time(stage)
    few_processes(stage)


def no_more_time(stage):
    """A worker that uses its processor time up: by a signal that says so where there is room for one, else by SIGKILL."""
    row = "processor time used up (ulimit -t)"
    words = ["run", "--model", "tiny", "--strategy", "baseline", "--strategy", "misbehave,behaviour=spin", "--repetitions", "0", "--quiet"]
    for limit in stage.sample(row, ((1, 2), (1, 1)), 1):
        folder = stage.workplace.trial("limits")
        ended = judge.run([stage.workplace.program, *words, "--out", folder / "out"], folder, stage.workplace.environment(),
                          limits={resource.RLIMIT_CPU: limit}, allowed_s=2 * judge.patience())
        stage.counts.tried(row, ended.outcome, ended.seconds)
        faults = judge.faults_of(ended, {0, 3})
        cases = json.loads((folder / "out/run.json").read_text())["cases"]
        expected = "ulimit -t" if limit[0] < limit[1] else "SIGKILL"
        if [case["status"] for case in cases] != ["ok", "host_failure"] or expected not in cases[1]["reason"]:
            faults.append(f"blamed on the case: {[(case['status'], case['reason'][:200]) for case in cases]}")
        for fault in faults:
            stage.counts.found(row, f"{fault} [limit {limit}]", ended.words)


def codes_under(what, name):
    # Without memory or descriptors the loader itself gives up, with 127 and a message of its own; the script needs some, too.
    if what in (resource.RLIMIT_AS, resource.RLIMIT_NOFILE, resource.RLIMIT_STACK):
        return {0, 2, 3, 4, 5, 127}
    return {0, 2, 3, 4, 5}


def few_processes(stage):
    """RLIMIT_NPROC does not hold for root, so this one is another user's."""
    row = "no more processes (ulimit -u)"
    if os.geteuid() != 0:
        return stage.counts.skip(row, "it needs a second user, and this is not root")
    folder = stage.workplace.root
    os.chmod(folder, 0o755)
    for name in stage.sample(row, ("run", "doctor"), 2):
        out = folder / "trials/limits/work/out"

        def lend(out=out):
            os.chown(out, 65534, 65534)

        trial = stage.workplace.trial("limits")
        (trial / "out").mkdir()
        lend()
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "prlimit", "--nproc=1", "--"]
        if shutil.which("setpriv") is None or shutil.which("prlimit") is None:
            return stage.counts.skip(row, "setpriv and prlimit are not there")
        ended = judge.run([*command, *stage.words(name, out)], trial, stage.workplace.environment(TMPDIR=str(out)))
        stage.counts.tried(row, ended.outcome, ended.seconds)
        faults = judge.faults_of(ended, {0, 2, 3}, speaks=name == "doctor")
        if (out / "run/run.json").exists():
            statuses = [case["status"] for case in json.loads((out / "run/run.json").read_text())["cases"]]
            if any(status not in ("ok", "host_failure") for status in statuses):
                faults.append(f"blamed on the case: {statuses}")
        for fault in faults:
            stage.counts.found(row, f"{fault} [{name}]", ended.words)
    return None


# --- Environments -----------------------------------------------------------------------------------------


def bare_environments(stage):
    path = os.environ["PATH"]
    missing = str(stage.workplace.root / "no-such-folder")
    rows = {
        "no environment at all": {},
        "no HOME": {"PATH": path},
        "TMPDIR that is not there": {"PATH": path, "TMPDIR": missing, "HOME": missing},
        "TMPDIR that is a file": {"PATH": path, "TMPDIR": str(stage.workplace.suite())},
        "TERM=dumb, LANG=C": {"PATH": path, "TERM": "dumb", "LANG": "C", "LC_ALL": "C"},
        "unknown locale": {"PATH": path, "LC_ALL": "xx_YY.ISO-8859-15", "LANG": "\x1b[31m"},
        "odd variables": {"PATH": path, "COLUMNS": "-1", "TERM": "\x1b]0;x\x07", "GITHUB_SHA": "\x1b[31m", "GITHUB_REF_NAME": "a,b c\x07",
                          "PEAKBENCH_HISTORY": "", "TZ": "\x1b[2J"},
    }
    for row, env in rows.items():
        for name in stage.sample(row, COMMANDS, 3):
            stage.try_one(row, name, env=env)


# --- Places -----------------------------------------------------------------------------------------------


def odd_places(stage):
    row = "odd output paths"
    names = {"300 characters": "x" * 300, "5,000 characters": "y/" * 2500, "not UTF-8": os.fsdecode(b"caf\xe9"), "newline": "a\nb",
             "escape": "a\x1b[31mb", "a file in the way": "notes", "through a file": "notes/deeper", "nowhere": "no/such/folder/x",
             "/dev/null": "/dev/null/x"}
    words = {"run": ["run", *SCRIPT, "--out"], "report": ["report", str(stage.workplace.run()), "--out"],
             "export": ["export", str(stage.workplace.run()), "foreach-off", "--out"],
             "publish": ["publish", "--history", str(stage.workplace.history()), "--out"],
             "history": ["history", "add", str(stage.workplace.timed()), "--history"],
             "junit": ["gate", str(stage.workplace.base()), str(stage.workplace.run()), "--junit"]}
    works = [(one, other) for one in names for other in words]
    for what, name in stage.sample(row, works, 16):
        folder = stage.workplace.trial("places")
        out = folder / "out"
        out.mkdir()
        (out / "notes").write_text("years of work\n")
        target = names[what] if names[what].startswith("/") else f"{out}/{names[what]}"
        before = judge.state(folder.parent, besides=(str(out),))
        ended = judge.run([stage.workplace.program, *words[name], os.fsencode(target)], folder, stage.workplace.environment())
        stage.counts.tried(row, ended.outcome, ended.seconds)
        # A path goes to standard output as it is, for the next command to use.
        faults = [fault for fault in judge.faults_of(ended) if "standard output" not in fault]
        faults += judge.changed(before, judge.state(folder.parent, besides=(str(out),)))
        if name not in ("export", "junit") and (out / "notes").read_text() != "years of work\n":
            faults.append("touched: notes")
        for fault in faults:
            stage.counts.found(row, f"{fault} [{name}, {what}]", ended.words)


def mounts(stage):
    """In a mount namespace of its own: a disk of a few pages, and a folder that is read-only for root too."""
    probe = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False) if shutil.which("unshare") else None
    if probe is None or probe.returncode != 0:
        for row in ("full disk", "read-only folder"):
            stage.counts.skip(row, "mount namespaces are not allowed here")
        return
    for name in stage.sample("full disk", WRITING, 5):
        for size in stage.sample("full disk" + name, ("4k", "16k", "40k", "100k", "200k", "400k"), 2):
            mounted(stage, "full disk", name, f"mount -t tmpfs -o size={size} none OUT", errno.ENOSPC)
    for name in stage.sample("read-only folder", WRITING, 5):
        mounted(stage, "read-only folder", name, "mount --bind OUT OUT && mount -o remount,ro,bind OUT OUT", errno.EROFS)


def mounted(stage, row, name, mount, reason):
    out = pathlib.Path(stage.workplace.trial("limits")) / "out"
    out.mkdir()
    needs_history = "OUT/h.sqlite" in COMMANDS[name]
    seeded = "cp \"$HISTORY\" OUT/h.sqlite 2>/dev/null || exit 0;" if reason == errno.ENOSPC and needs_history else ""
    # What is left there is printed for us: the mount goes with the namespace.
    script = (f"{mount} || exit 99; {seeded} \"$@\"; code=$?; find OUT -name '*.tmp*' -o -name '*.partial' -o -name '.write_test*' "
              "-o -name '*-journal' | grep -v parameters.tmp >&3; exit $code").replace("OUT", str(out))
    listing = stage.workplace.root / "left.txt"
    with open(listing, "wb") as file:
        number = os.dup(file.fileno())
        folder = out.parent
        env = stage.workplace.environment(HISTORY=str(stage.workplace.history()))
        ended = judge.run(["unshare", "-m", "sh", "-c", script.replace(">&3", f">{listing}"), "sh", *stage.words(name, out)], folder, env)
        os.close(number)
    stage.counts.tried(row, ended.outcome, ended.seconds)
    faults = judge.faults_of(ended, {0, 2, 3, 4, 5})
    if ended.code == 2 and not judge.gives_reason(ended, reason):
        faults.append(f"no reason given: {judge.text(ended.err)[-300:]}")
    faults += [f"left behind: {line}" for line in listing.read_text().splitlines()]
    for fault in faults:
        stage.counts.found(row, f"{fault} [{name}]", f"{mount}: {ended.words[-300:]}")


if __name__ == "__main__":
    sys.exit("run hostile.py limits")
