"""Ranks of a training: which processes stand for them, and how a process joins the others.

On the CPU every rank is a process, and they talk by Gloo. So it is where each has an emulated card (count=N). On a single emulated card only the
ranks whose memory differs run, one after the other, each as a single rank of the whole world. Only the ranks import PyTorch.
"""

import atexit
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence

from peakbench import _files
from peakbench._objects import Refused, Unsupported

# Of a process that run() starts: where ranks leave what the others need, and the pipe's end that closes with their parent.
_FOLDER_VARIABLE = "PEAKBENCH_RANKS_FOLDER"
_PARENT_VARIABLE = "PEAKBENCH_RANKS_PARENT"
_EMULATED_VARIABLE = "PEAKBENCH_EMULATED_CARD"
_WAIT_VARIABLE = "PEAKBENCH_EMULATED_RANKS"  # `alone`, or for how many seconds ranks wait for each other
_USUAL_WAIT_S = 300.0
_GRACE_S = 5.0  # that a process has to end
_POLL_S = 0.02

Distinct = Callable[[Any, Any, int], Sequence[int]]


def variables(number: int, of: int, port: int) -> Dict[str, str]:
    """Those that torchrun gives a rank of one machine."""
    own = {"RANK": number, "LOCAL_RANK": number, "WORLD_SIZE": of, "LOCAL_WORLD_SIZE": of, "GROUP_RANK": 0, "ROLE_RANK": number,
           "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}  # fmt: skip
    return {name: str(value) for name, value in own.items()}


@contextmanager
def parent_pipe() -> Iterator[int]:
    """An end of a pipe for the processes to hold: it is closed when this process is no more."""
    read, write = os.pipe()
    try:
        yield read
    finally:
        os.close(read)
        os.close(write)


def end_with_parent(alive: int) -> None:
    """Ends this process when the one with the other end of the pipe has ended."""

    def wait() -> None:
        os.read(alive, 1)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


# ---- in the process that starts them ----


def starts_them(ranks: int) -> bool:
    """Whether this process is to start the ranks. Refused where WORLD_SIZE says another number."""
    world = os.environ.get("WORLD_SIZE")
    if world is not None and world != str(ranks):
        raise Refused(f"WORLD_SIZE is {world}, and --ranks {ranks}: unset WORLD_SIZE, or leave --ranks out")
    return world is None


def usual_device() -> str:
    """Where ranks run if nobody says it: the emulated card, else the CPU."""
    return "cuda" if os.environ.get(_EMULATED_VARIABLE) else "cpu"


def run(words: Sequence[str], ranks: int, device: str) -> int:
    """Starts ``python3 -m peakbench.bench`` with these words for each rank that is needed, and waits. The exit code: that of the first that fails."""
    is_card = device == "cuda"
    if is_card and not os.environ.get(_EMULATED_VARIABLE):
        raise Refused("--ranks starts the ranks of emulated cards and of the CPU; on GPUs, start `python3 -m peakbench.bench` by torchrun")
    with tempfile.TemporaryDirectory(prefix="peakbench-ranks-") as folder, parent_pipe() as alive:
        group = _Group(words, ranks, Path(folder), alive)
        cards = json.loads(os.environ[_EMULATED_VARIABLE])["count"] if is_card else ranks
        if 1 < cards < ranks:
            raise Unsupported(f"{cards} emulated cards for {ranks} ranks: give each a card (count={ranks}), or leave count out")
        if ranks <= cards:
            return group.run(range(ranks), {"MASTER_PORT": str(_port())})
        alone = {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", _WAIT_VARIABLE: "alone"}
        return group.run([0], alone) or next((code for number in _named(Path(folder)) if (code := group.run([number], alone))), 0)


def _port() -> int:
    """Where the ranks meet: MASTER_PORT, else a free one."""
    asked = os.environ.get("MASTER_PORT", "0")
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("127.0.0.1", int(asked)))
        except (OSError, ValueError, OverflowError):
            raise Refused(f"the ranks cannot meet at port {asked}, which is in use or no port: set MASTER_PORT to a free one") from None
        return int(one.getsockname()[1])


class _Group:
    """The processes of a training."""

    def __init__(self, words: Sequence[str], ranks: int, folder: Path, alive: int) -> None:
        self._words, self._ranks, self._folder, self._alive = words, ranks, folder, alive

    def run(self, numbers: Sequence[int], more: Mapping[str, str]) -> int:
        """These ranks at once: 0, or what the first that failed ended with. The others are ended then."""
        running = {}
        try:
            for number in numbers:
                running[number] = self._started(number, more)
            return self._watched(running)
        finally:
            for process in running.values():
                process.terminate()
            end = time.monotonic() + _GRACE_S
            for process in running.values():
                try:
                    process.wait(max(0.0, end - time.monotonic()))
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def _started(self, number: int, more: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        own = {**variables(number, self._ranks, 0), _FOLDER_VARIABLE: str(self._folder), _PARENT_VARIABLE: str(self._alive), **more}
        return subprocess.Popen([sys.executable, "-m", "peakbench.bench", *self._words], env={"OMP_NUM_THREADS": "1", **os.environ, **own},
                                stdin=subprocess.DEVNULL, pass_fds=[self._alive])  # fmt: skip

    def _watched(self, running: "Mapping[int, subprocess.Popen[bytes]]") -> int:
        while True:
            codes = {number: process.poll() for number, process in running.items()}
            failed = {number: code for number, code in codes.items() if code}
            if failed:
                # What a signal ended is why the others fail.
                number = min(failed, key=lambda one: (failed[one] > 0, one))
                return self._told(number, failed[number])
            if all(code == 0 for code in codes.values()):
                return 0
            time.sleep(_POLL_S)

    def _told(self, number: int, code: int) -> int:
        said = self._folder / f"{number}.refused"
        if said.exists():
            raise Refused(said.read_text(encoding="utf-8"))
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        print(f"peakbench: rank {number} of {self._ranks} {how}", file=sys.stderr)
        return 128 - code if code < 0 else code


def _named(folder: Path) -> List[int]:
    """The ranks whose memory is another than the first one's, as that one told."""
    told: List[int] = json.loads((folder / "distinct").read_text(encoding="utf-8"))
    return told


# ---- in a rank's process ----


def enter() -> None:
    """Before anything else in a process of run()'s: it is to end with its parent."""
    if _PARENT_VARIABLE in os.environ:
        end_with_parent(int(os.environ[_PARENT_VARIABLE]))


def leave(code: int) -> None:
    """Ends the process of a rank that run() started on the CPU, without ending Python.

    DistributedDataParallel keeps its process group (PyTorch 2.11), and with it threads of Gloo. One that drops a tensor while Python ends aborts
    the process.
    """
    if code or _FOLDER_VARIABLE not in os.environ or os.environ.get(_EMULATED_VARIABLE):
        return
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.CDLL(None).fflush(None)
    os._exit(code)


def refuse(refused: Refused) -> bool:
    """Leaves the sentence for the process that started this one, which prints it once. False: nobody started it."""
    folder = os.environ.get(_FOLDER_VARIABLE)
    if folder is None:
        return False
    _files.write(Path(folder, f"{os.environ['RANK']}.refused"), str(refused))
    return True


def tell_distinct(net: Any, optimizer: Any, ranks: int, say: Optional[Distinct]) -> None:
    """The first rank of an emulated card tells which others differ from it: as the strategy says, else the last one where shards are uneven."""
    folder = os.environ.get(_FOLDER_VARIABLE)
    if folder is None or os.environ["RANK"] != "0":
        return
    others = say(net, optimizer, ranks) if say else [ranks - 1] if _is_uneven(net) else []
    _files.write(Path(folder, "distinct"), json.dumps(sorted({one for one in others if 0 < one < ranks})))


def _is_uneven(net: Any) -> bool:
    """Whether a rank's share of a parameter is larger than another's."""
    for one in net.parameters():
        parts: Dict[int, int] = {}  # by the tensor's dimension, which several of the mesh may split
        for along, placement in enumerate(getattr(one, "placements", ())):
            dimension = getattr(placement, "dim", None)  # of Shard, and of _StridedShard, whose is_shard() is false
            if dimension is not None:
                parts[dimension] = parts.get(dimension, 1) * one.device_mesh.size(along)
        if any(one.size(dimension) % count for dimension, count in parts.items()):
            return True
    return False


def join(torch: Any, device: str) -> int:
    """The number of ranks: those of torchrun's variables, once they have met. Refused where one is missing."""
    if "WORLD_SIZE" not in os.environ:
        return 1
    ranks, number = _number("WORLD_SIZE"), _number("RANK")
    if not 0 <= number < ranks:
        raise Refused(f"RANK is {number}, and WORLD_SIZE {ranks}: expected a rank from 0 to {ranks - 1}")
    if device == "cuda":
        torch.cuda.set_device(_number("LOCAL_RANK", 0))
    # A single emulated rank meets nobody: the card's own rendezvous gives it a store (harness/recording/python/peakbench_single_rank.py).
    is_single = device == "cuda" and os.environ.get(_WAIT_VARIABLE) == "alone"
    store = None if is_single else _met(torch, number, ranks)
    try:
        torch.distributed.init_process_group("nccl" if device == "cuda" else "gloo", store=store, rank=number, world_size=ranks)
    except (ValueError, RuntimeError) as error:
        raise Refused(f"the ranks do not meet: {' '.join(str(error).split())}") from None
    return ranks


def _number(name: str, otherwise: Optional[int] = None) -> int:
    text = os.environ.get(name, "" if otherwise is None else str(otherwise))
    try:
        return int(text)
    except ValueError:
        raise Refused(f'{name} is "{text}": expected a number, as torchrun sets it') from None


def _met(torch: Any, number: int, ranks: int) -> Any:
    """The store of the ranks, once all have come."""
    asked = os.environ.get(_WAIT_VARIABLE, "")
    wait_s = float(asked) if asked.isdigit() and int(asked) else _USUAL_WAIT_S
    end = time.monotonic() + wait_s
    address, port = os.environ.get("MASTER_ADDR", "127.0.0.1"), _number("MASTER_PORT", 29500)
    is_host = number == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    try:
        store = torch.distributed.TCPStore(address, port, ranks, is_host, timedelta(seconds=wait_s), wait_for_workers=False)
        # Of this attempt, where torchrun starts the ranks again.
        store = torch.distributed.PrefixStore(f"peakbench/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
        store.set(f"here/{number}", "1")
    except (RuntimeError, ValueError) as error:
        said = "it is in use" if "EADDRINUSE" in str(error) else " ".join(str(error).split())
        raise Refused(f"rank {number} of {ranks} cannot meet the others at {address}:{port}: {said}") from None
    for other in range(ranks):
        try:
            store.wait([f"here/{other}"], timedelta(seconds=max(0.1, end - time.monotonic())))
        except RuntimeError:
            raise Refused(f"rank {other} of {ranks} has not come within {wait_s:g} s") from None
    return store
