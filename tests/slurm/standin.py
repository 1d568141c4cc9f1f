"""Slurm's commands without Slurm: sbatch, squeue, scontrol, scancel, sacct on PATH, with tasks as processes of this machine.

They print what those of 22.05 printed. A test makes happen what a real cluster does not do when it is asked to: a node that is lost and goes on,
a preempted task, a suspended one, a squeue that hangs or speaks of other jobs. No root, no daemon but one process a job, which ends with its tasks.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

PROGRAMS = ("sbatch", "squeue", "scontrol", "scancel", "sacct")
AT_ONCE = 2
LOOK_S = 0.03
LONGEST_S = 300  # of a job; then it ends itself, whatever became of the test
FINAL = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL")
# What squeue does beside its work; the answer of `sensible` is whole.
NOISE = ("hang", "fail", "strangers", "ranges", "nonsense", "twice")


def read(path, otherwise=None):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        return otherwise


def write(path, content):
    """Whole: others read it meanwhile."""
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_text(json.dumps(content), encoding="utf-8")
    part.replace(path)


class StandIn:
    """What a test sees of it; the commands are in `bin`, to be put before PATH."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.bin = self.folder / "bin"
        self.bin.mkdir(parents=True)
        for name in PROGRAMS:
            program = self.bin / name
            program.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E {pathlib.Path(__file__).resolve()} {name} {self.folder} "$@"\n', encoding="utf-8")
            program.chmod(0o755)

    def path(self):
        return f"{self.bin}:{os.environ['PATH']}"

    def jobs(self):
        return sorted((int(path.name) for path in self.folder.glob("[0-9]*")), reverse=True)

    def task(self, job, task=0):
        return read(self.folder / f"{job}/{task}.json", {"state": ""})

    def tell(self, job, task, *order):
        """preempt: SIGTERM, and begun again. lose WHAT: begun again on another node, and WHAT becomes of the first attempt (goes_on, stops,
        dies). end STATE: SIGKILL, and that state. suspend, resume."""
        path = self.folder / f"{job}/{task}.order"
        until(lambda: not path.exists(), f"the order before {order}")
        write(path, order)
        until(lambda: not path.exists(), f"{order}")

    def noise(self, *kinds):
        """Of squeue, from now on."""
        write(self.folder / "noise", kinds)

    def close(self):
        (self.folder / "closed").touch()
        for runner in list(self.folder.glob("[0-9]*/runner")):
            until(lambda: not is_alive(int(runner.read_text(encoding="utf-8"))), "the end of a job")


def until(condition, what, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s in vain for {what}")
        time.sleep(LOOK_S)


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


# --- The commands -----------------------------------------------------------------------------------------


def sbatch(folder, arguments):
    script = arguments[-1]
    text = pathlib.Path(script).read_text(encoding="utf-8")
    last = int(re.search(r'^#SBATCH --array="0-(\d+)', text, re.M)[1])
    number = max([11, *(int(path.name) for path in folder.glob("[0-9]*"))]) + 1
    job = folder / str(number)
    job.mkdir()
    output = re.search(r'^#SBATCH --output="(.*)"', text, re.M)[1]
    write(job / "job", {"script": script, "tasks": last + 1, "output": output})
    for task in range(last + 1):
        write(job / f"{task}.json", {"state": "PENDING", "restarts": 0, "where": "(Priority)"})
    runner = subprocess.Popen([sys.executable, "-S", "-E", __file__, "run", str(folder), str(number)], start_new_session=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (job / "runner").write_text(str(runner.pid), encoding="utf-8")
    print(number)
    return 0


def tasks_of(job):
    return {task: read(job / f"{task}.json") for task in range(read(job / "job")["tasks"])}


def squeue(folder, arguments):
    said = dict(word.lstrip("-").partition("=")[::2] for word in arguments)
    noise = read(folder / "noise", [])
    if "hang" in noise:
        time.sleep(LONGEST_S)
    if "fail" in noise:
        print("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", file=sys.stderr)
        return 1
    jobs = [folder / said["jobs"]] if "jobs" in said else sorted(folder.glob("[0-9]*"))
    if not all((job / "job").exists() for job in jobs):
        print("slurm_load_jobs error: Invalid job id specified", file=sys.stderr)
        return 1
    states = said.get("states", "pending,running,completing").upper().split(",")
    rows = [(job.name, task, one, read(job / "job")["script"]) for job in jobs for task, one in tasks_of(job).items()
            if states == ["ALL"] or one["state"] in states]
    for row in rows:
        show(said["format"], *row)
    for job, task, one, script in rows:
        if "twice" in noise:
            show(said["format"], job, task, one, script)
        if "strangers" in noise:
            show(said["format"], int(job) + 1000, task, {**one, "state": "COMPLETED"}, "/somebody/job.sh")
    if "ranges" in noise and "array" in said:
        for _ in range(40):
            show(said["format"], "4711", "[0-1000000]", {"state": "PENDING", "where": "(Resources)"}, "/somebody/job.sh")
    if "nonsense" in noise:
        print("slurm_load_jobs: warning\n|||\n12_|\n_\n12_[0-\n12_[|PENDING|\n\x1b[31m|RUNNING|x")
    return 0


def show(form, job, task, one, script):
    values = {"i": f"{job}_{task}", "F": str(job), "T": one["state"], "R": one["where"], "o": script}
    print(re.sub("%(.)", lambda found: values[found[1]], form))


def scontrol(folder, arguments):
    job, _, task = arguments[-1].partition("_")
    one = read(folder / job / f"{task}.json")
    if one is None:
        print("slurm_load_jobs error: Invalid job id specified", file=sys.stderr)
        return 1
    print(f"JobId={job} ArrayJobId={job} ArrayTaskId={task} JobName=peakbench\n   JobState={one['state']} Reason=None Dependency=(null)\n"
          f"   Requeue=1 Restarts={one['restarts']} BatchFlag=1 Reboot=0 ExitCode=0:0\n")
    return 0


def scancel(folder, arguments):
    job, _, task = arguments[-1].partition("_")
    for number in [task] if task else tasks_of(folder / job):
        write(folder / job / f"{number}.order", ["end", "CANCELLED"])
    return 0


def sacct(*_):
    print("Slurm accounting storage is disabled", file=sys.stderr)
    return 1


# --- The controller and the nodes of one job ----------------------------------------------------------------


class Task:
    def __init__(self, job, number, script, output):
        self.job, self.number, self.script, self.output = job, number, script, output
        self.state, self.restarts, self.process, self.then, self.lost = "PENDING", 0, None, None, []

    def note(self, state):
        self.state = state
        write(self.job / f"{self.number}.json", {"state": state, "restarts": self.restarts,
                                                 "where": "(Priority)" if state == "PENDING" else self.node()})

    def node(self):
        return f"n{1 + self.restarts % 2}"

    def begin(self):
        environment = {**os.environ, "SLURM_ARRAY_TASK_ID": str(self.number), "SLURMD_NODENAME": self.node()}
        if self.restarts:
            environment["SLURM_RESTART_COUNT"] = str(self.restarts)
        with open(self.output.replace("%a", str(self.number)), "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(["bash", self.script], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True)
        self.note("RUNNING")

    def send(self, number):
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def obey(self, what, more=None):
        if what == "end":
            self.then = more
            self.send(signal.SIGKILL)
            if self.process is None:
                self.note(more)
        elif self.process is None:
            pass  # nothing becomes of a task that waits
        elif what == "preempt":
            self.then = "PENDING"
            self.send(signal.SIGTERM)
        elif what == "lose":
            if more != "goes_on":
                self.send(signal.SIGSTOP if more == "stops" else signal.SIGKILL)
            self.lost.append(self.process)
            self.again()
        elif what in ("suspend", "resume"):
            self.send(signal.SIGSTOP if what == "suspend" else signal.SIGCONT)
            self.note("SUSPENDED" if what == "suspend" else "RUNNING")

    def again(self):
        self.process, self.then = None, None
        self.restarts += 1
        self.note("PENDING")

    def look(self):
        order = self.job / f"{self.number}.order"
        if (said := read(order)) is not None:
            if self.state not in FINAL:
                self.obey(*said)
            order.unlink()
        if self.process is not None and self.state not in FINAL and self.process.poll() is not None:
            if self.then == "PENDING":
                self.again()
            else:
                self.note(self.then or ("COMPLETED" if self.process.returncode == 0 else "FAILED"))

    def close(self):
        for process in [*self.lost, self.process]:
            if process is not None and process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def run(folder, arguments):
    job = folder / arguments[0]
    what = read(job / "job")
    tasks = [Task(job, number, what["script"], what["output"]) for number in range(what["tasks"])]
    deadline = time.monotonic() + LONGEST_S
    while time.monotonic() < deadline and not (folder / "closed").exists():
        for task in tasks:
            task.look()
        busy = sum(task.state in ("RUNNING", "SUSPENDED") for task in tasks)
        waiting = [task for task in tasks if task.state == "PENDING"]
        for task in waiting[:max(0, AT_ONCE - busy)]:
            task.begin()
        if all(task.state in FINAL for task in tasks) and all(one.poll() is not None for task in tasks for one in task.lost):
            break
        time.sleep(LOOK_S)
    for task in tasks:
        task.close()
    return 0


if __name__ == "__main__":
    COMMANDS = {"sbatch": sbatch, "squeue": squeue, "scontrol": scontrol, "scancel": scancel, "sacct": sacct, "run": run}
    sys.exit(COMMANDS[sys.argv[1]](pathlib.Path(sys.argv[2]), sys.argv[3:]))
