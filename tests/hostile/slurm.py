"""Runs on a scheduler's machines while nodes are lost, tasks preempted, calls killed, and squeue says what it likes: what is measured ends as
undisturbed. Slurm's commands are stand-ins (tests/slurm/standin.py), workers a script."""

import concurrent.futures
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import judge
from figures import figures
from kills import keep
from mutations import cut
from readers import rng_of
from workplace import CARD, SOURCE

sys.path.insert(0, str(SOURCE / "tests/slurm"))

from standin import NOISE, StandIn, is_alive  # noqa: E402  (tests/slurm)

QUICK = 2
WITHIN_S = 90  # of a whole run; a wait that nothing ends is a hang
CASES = ("--model", "tiny,behaviour=slow", "--strategy", "baseline", "--strategy", "slim", "--batch", "1,2,3", "--device", CARD, "--no-report",
         "--no-ablation", "--quiet")
SLURM = ("--executor", "slurm", "--shared-delay", "1", "--cases-per-task", "3")
EVENTS = (("preempt",), ("lose", "goes_on"), ("lose", "dies"), ("suspend",), ("resume",))


def attack(workplace, counts, options):
    count = options.count or QUICK
    scenes = [("nodes and tasks", count, events), ("what squeue says", count, noise), ("calls killed, resumed", count, kills),
              ("files of a queue", 2 * count, spoilt_queue), ("Ctrl-C while squeue hangs", max(1, count // 4), ctrl_c)]
    expected = workplace._made("undisturbed", lambda path: workplace.must(workplace.program, "run", *CASES, "--out", path))

    def one(work):
        row, number, scene = work
        rng = rng_of(options.seed, row, number)
        folder = workplace.trial(f"slurm-{row.replace(' ', '-').replace(',', '')}-{number}")
        began = time.monotonic()
        outcome, faults = "", []
        slurm = StandIn(folder / "slurm")
        try:
            outcome, faults = scene(Scene(workplace, folder, slurm, expected), rng)
        except Exception as error:  # noqa: BLE001  an attack that cannot be judged is a finding
            faults = [f"not judged: {error!r}"]
        finally:
            slurm.close()
        counts.tried(row, outcome or "not judged", time.monotonic() - began)
        for fault in faults:
            counts.found(row, f"{fault} ({outcome})", f"seed {options.seed}, number {number}", keep(options.keep, row, number, folder))
        shutil.rmtree(folder.parent, ignore_errors=True)

    works = [(row, number, scene) for row, times, scene in scenes for number in range(options.first, options.first + times)]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, works))


class Scene:
    """A run in a folder of its own, with a Slurm of its own."""

    def __init__(self, workplace, folder, slurm, expected):
        self.workplace, self.slurm, self.expected = workplace, slurm, expected
        self.out = folder / "out"
        self.folder = folder

    def start(self, *more):
        return subprocess.Popen([self.workplace.program, "run", *CASES, *SLURM, "--out", str(self.out), *more], cwd=self.folder,
                                env=self.workplace.environment(PATH=self.slurm.path()), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, start_new_session=True)

    def end(self, process, within=WITHIN_S):
        """(exit code, what it said); code None: it had to be killed."""
        try:
            _, err = process.communicate(timeout=within)
            return process.returncode, judge.text(err)
        except subprocess.TimeoutExpired:
            judge.end_session(process)
            process.communicate()
            return None, f"hang: not done after {within} s"

    def until_a_job(self):
        deadline = time.monotonic() + 20
        while not list(self.out.glob("queue/*/job.json")):
            if time.monotonic() > deadline:
                raise RuntimeError("no job was submitted")
            time.sleep(0.02)
        return self.slurm.jobs()[0]

    def faults(self, process):
        code, err = self.end(process)
        return self.faults_of_run() if code == 0 else [f"exit code {code}: {err[-300:]}"]

    def faults_of_run(self):
        status, cases = figures(self.out)
        if (status, cases) == figures(self.expected):
            return []
        return [f"not the figures of an undisturbed run: {status}, {[case['status'] for case in cases]}"]

    def queue(self, name):
        return self.out / "queue/1" / name


def events(scene, rng):
    process = scene.start()
    job = scene.until_a_job()
    said = []
    for _ in range(rng.randint(1, 4)):
        time.sleep(rng.uniform(0, 1.5))
        task, event = rng.randint(0, 1), rng.choice(EVENTS)
        if not is_alive(int((scene.slurm.folder / f"{job}/runner").read_text())):
            break
        scene.slurm.tell(job, task, *event)
        if event == ("suspend",):
            time.sleep(rng.uniform(0, 2))
            scene.slurm.tell(job, task, "resume")
        said.append(" ".join(event))
    return (said or ["nothing"])[0], scene.faults(process)


def noise(scene, rng):
    process = scene.start()
    job = scene.until_a_job()
    kinds = rng.sample([kind for kind in NOISE if kind != "hang"], rng.randint(1, 3))
    scene.slurm.noise(*kinds)
    if rng.random() < 0.5:
        scene.slurm.tell(job, rng.randint(0, 1), "preempt")
    return kinds[0], scene.faults(process)


def kills(scene, rng):
    process = scene.start()
    how = rng.choice(("SIGKILL", "SIGTERM", "SIGINT"))
    time.sleep(rng.uniform(0, 4))
    process.send_signal(getattr(signal, how))
    code, err = scene.end(process, 5 + judge.patience())
    faults = [] if code in (0, 130, -signal.SIGKILL) else [f"exit code {code} after {how}: {err[-300:]}"]
    time.sleep(1)  # an sbatch that was under way has ended
    if rng.random() < 0.5:
        scene.queue("job.json").unlink(missing_ok=True)
    faults += scene.faults(scene.start("--resume"))
    jobs = scene.slurm.jobs()
    if len(jobs) > 1:
        faults.append(f"{len(jobs)} jobs: cases were submitted twice")
    return how, faults


def spoilt_queue(scene, rng):
    """A call is killed while its job runs; then a file of its queue is another."""
    process = scene.start()
    job = scene.until_a_job()
    process.kill()
    scene.end(process)
    name = rng.choice(("tasks.json", "job.json"))
    good = scene.queue(name).read_bytes()
    choices = [b"", b"null", b"[]", b"{}", b'{"tasks": 7}', b'{"tasks": [7]}', b'{"job": null}', b'{"job": "--me"}', cut(rng, good)]
    scene.queue(name).write_bytes(rng.choice(choices))
    code, err = scene.end(scene.start("--resume"))
    faults = []
    if code == 2 and name not in err:
        faults.append(f"the message does not name {name}: {err[-300:]}")
    if code not in (0, 2):
        faults.append(f"exit code {code}: {err[-300:]}")
    if code == 0:
        faults += scene.faults_of_run()
    if code == 2 and scene.slurm.jobs() != [job]:
        faults.append("cases were submitted twice")
    if code == 2:  # nothing is lost by it
        scene.queue(name).write_bytes(good)
        faults += scene.faults(scene.start("--resume"))
    return f"exit {code}", faults


def ctrl_c(scene, rng):
    process = scene.start()
    scene.until_a_job()
    scene.slurm.noise("hang")
    time.sleep(rng.uniform(1, 3))
    process.send_signal(signal.SIGINT)
    code, err = scene.end(process, 5 + judge.patience())
    faults = [] if code == 130 else [f"exit code {code}: {err[-300:]}"]
    scene.slurm.noise()
    return "SIGINT", faults + scene.faults(scene.start("--resume"))
