"""A Slurm of one's own on this host: munge, a controller and two nodes, in one folder, on the loopback interface.

As root; needs Debian's slurm-wlm, slurmctld, slurmd and munge (ci/packages --tests). No systemd, no cgroups, no accounting.
"""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel")
NODES = ("n1", "n2")

CONFIGURATION = """\
ClusterName=peakbench
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/d.%n.pid
SlurmctldLogFile={folder}/log/ctld.log
SlurmdLogFile={folder}/log/d.%n.log
SlurmctldPort={ports[0]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=0,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
SlurmdTimeout=6
KillWait=3
UnkillableStepTimeout=10
MinJobAge=60
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1 RealMemory=2000 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1 RealMemory=2000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=guarded Nodes=ALL AllowAccounts=nobody MaxTime=INFINITE State=UP
"""


def missing():
    """The first of Slurm's programs that is not installed; None: all are."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return next((program for program in PROGRAMS if shutil.which(program, path=path) is None), None)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def wait_until(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"waited {seconds} s in vain for {what}")


def processes():
    """(id, command line, environment) of every process that can be looked at."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = pathlib.Path("/proc", entry, "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
            environment = pathlib.Path("/proc", entry, "environ").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        yield int(entry), command, environment


def parent_of(pid):
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[1])
    except (OSError, ValueError):
        return 0


class Cluster:
    """Ends with close(), whatever became of it."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.environment = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf"),
                            "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}
        for name in ("munge", "state", "log", "spool/n1", "spool/n2"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "munge").chmod(0o711)
        host = socket.gethostname().split(".")[0]
        (self.folder / "slurm.conf").write_text(
            CONFIGURATION.format(host=host, folder=self.folder, ports=free_ports(3)), encoding="utf-8")
        try:
            self.start_munge()
            self.call("slurmctld")
            for node in NODES:
                self.start_node(node)
            wait_until(self.is_ready, 40, "the nodes")
        except BaseException:
            self.close()
            raise

    def call(self, *arguments, check=True):
        done = subprocess.run(list(map(str, arguments)), env=self.environment, text=True, capture_output=True, timeout=60,
                              stdin=subprocess.DEVNULL, check=False)
        if check and done.returncode:
            raise AssertionError(f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def start_munge(self):
        munge = self.folder / "munge"
        key = munge / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self.call("munged", "--force", f"--socket={munge}/socket", f"--key-file={key}", f"--pid-file={munge}/pid",
                  f"--log-file={munge}/log", f"--seed-file={munge}/seed")

    def start_node(self, node):
        self.call("slurmd", "-N", node)

    def is_ready(self):
        done = self.call("sinfo", "--noheader", "--Node", "--format=%N %t", check=False)
        states = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
        return all(states.get(node) == "idle" for node in NODES)

    def states(self):
        """{"JOB_TASK": state} of all that Slurm knows."""
        done = self.call("squeue", "--noheader", "--array", "--states=all", "--format=%i %T", check=False)
        return dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)

    def busy_nodes(self):
        """{"JOB_TASK": node} of the tasks that run."""
        done = self.call("squeue", "--noheader", "--array", "--states=running", "--format=%i %N", check=False)
        return dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)

    def kill_node(self, node):
        """As if its plug were pulled: the daemon, its helpers and what they run."""
        def pid_of_daemon():
            file = self.folder / f"d.{node}.pid"
            return int(file.read_text(encoding="utf-8"))
        os.kill(pid_of_daemon(), signal.SIGKILL)
        for _ in range(3):  # what was just being started
            for pid, command, environment in list(processes()):
                ours = f"SLURM_CONF={self.folder}/slurm.conf" in environment
                if ours and f"SLURMD_NODENAME={node}" in environment:
                    helper = parent_of(pid)
                    for victim in (helper, pid) if self.is_helper(helper) else (pid,):
                        self.kill(victim)
            time.sleep(0.05)

    @staticmethod
    def is_helper(pid):
        try:
            return b"slurmstepd" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False

    @staticmethod
    def kill(pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def close(self):
        self.call("scancel", "--user=root", check=False)
        time.sleep(0.5)
        self.call("scontrol", "shutdown", check=False)
        pids = [*self.folder.glob("*.pid"), self.folder / "munge/pid"]
        for file in pids[:-1]:
            self.end(file)
        for pid, _, environment in list(processes()):
            if f"SLURM_CONF={self.folder}/slurm.conf" in environment and pid != os.getpid():
                self.kill(pid)
        self.end(pids[-1])
        shutil.rmtree(self.folder, ignore_errors=True)

    def end(self, file):
        try:
            pid = int(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and pathlib.Path(f"/proc/{pid}").exists():
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                return
            time.sleep(0.1)
        self.kill(pid)
