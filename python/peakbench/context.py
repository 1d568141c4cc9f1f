"""How much of a card a process takes beside what PyTorch reserves: the CUDA context, by nvidia-smi (``peakbench doctor --context``).

usage: python3 -m peakbench.context [--device INDEX] [--to FILE] [--json]
Exit codes: 0; 2 where nothing could be measured, in one sentence on standard error.
"""

import argparse
import csv
import datetime
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List

from peakbench import _cards, _files, _memory

_MIB = 1 << 20
_STEPS = 3


class _Unable(Exception):
    """One sentence that says why, and what to do."""


@dataclass(frozen=True)
class _Card:
    """What nvidia-smi says of a card."""

    uuid: str
    used_bytes: int
    driver: str


def main() -> int:
    """Measures, and tells."""
    asked = _parsed(sys.argv[1:])
    try:
        print(_measured(asked))
        return 0
    except (_Unable, _cards.CardFileError, _memory.MemoryUnavailable, ValueError, OSError) as error:
        print(f"peakbench: doctor --context: {error}", file=sys.stderr)
        return 2


def _parsed(typed: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python3 -m peakbench.context", description="Measures the CUDA context's memory on a card of yours.")
    parser.add_argument("--device", metavar="INDEX", type=int, default=0, help="as PyTorch counts cards (default 0)")
    parser.add_argument("--to", metavar="FILE", type=Path, help="a card file of your own to add it to")
    parser.add_argument("--json", action="store_true", help="as JSON")
    return parser.parse_args(typed)


def _measured(asked: argparse.Namespace) -> str:
    before = _cards_of_nvidia_smi()
    torch = _memory.cuda()
    if not 0 <= asked.device < torch.cuda.device_count():
        raise _Unable(f"there is no card {asked.device}: PyTorch sees {torch.cuda.device_count()}")
    torch.cuda.set_device(asked.device)
    uuid = f"GPU-{torch.cuda.get_device_properties(asked.device).uuid}"
    if uuid not in before:
        raise _Unable(f"nvidia-smi has no card {uuid}, which is PyTorch's card {asked.device} (a MIG device?)")
    _refuse_others(uuid, "already use")
    versions = {"driver": before[uuid].driver, "cuda": str(torch.version.cuda), "torch": str(torch.__version__)}
    source = f"`peakbench doctor --context`, {datetime.datetime.now(datetime.timezone.utc).date().isoformat()}"
    if "PEAKBENCH_EMULATED_CARD" in os.environ:
        source = f"an EMULATED card, which shows nothing about a real one: {source}"
    measured = []
    for what, do in (("one tensor", _one_tensor), ("training a small Transformer in bfloat16", _train)):
        do(torch)
        torch.cuda.synchronize()
        beside = _cards_of_nvidia_smi()[uuid].used_bytes - before[uuid].used_bytes - torch.cuda.memory_reserved()
        _refuse_others(uuid, "began to use")
        measured.append({"bytes": beside, "what": f"nvidia-smi's figure less what PyTorch reserved: {what}", **versions, "source": source})
    card = _cards.here(torch)
    if asked.to:
        _add(asked.to, card.id, measured)
    return _told(card, measured, asked)


def _one_tensor(torch: Any) -> None:
    torch.zeros(1, device="cuda")


def _train(torch: Any) -> None:
    """Loads the kernels that trainings use: the context grows by them."""
    layer = torch.nn.TransformerEncoderLayer(512, 8, batch_first=True, device="cuda")
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(_STEPS):
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(torch.zeros(4, 256, 512, device="cuda")).square().mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


def _cards_of_nvidia_smi() -> Dict[str, _Card]:
    found = {}
    for row in _asked_of_nvidia_smi("--query-gpu=uuid,memory.used,driver_version"):
        uuid, used, driver = row
        if not used.isdigit():
            raise _Unable(f'nvidia-smi does not tell how much of {uuid} is used (it says "{used}")')
        found[uuid] = _Card(uuid, int(used) * _MIB, driver)
    return found


def _refuse_others(uuid: str, do: str) -> None:
    """What other processes take of a card cannot be told from the context's."""
    others = [row[1] for row in _asked_of_nvidia_smi("--query-compute-apps=gpu_uuid,pid") if row[0] == uuid and row[1] != str(os.getpid())]
    if others:
        raise _Unable(f"other processes {do} this card ({', '.join(others)}): end them, or name another card with --device")


def _asked_of_nvidia_smi(query: str) -> List[List[str]]:
    try:
        done = subprocess.run(["nvidia-smi", query, "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=60)
    except FileNotFoundError:
        raise _Unable("there is no nvidia-smi on PATH, which comes with NVIDIA's driver") from None
    except subprocess.TimeoutExpired:
        raise _Unable("nvidia-smi did not answer within a minute") from None
    if done.returncode != 0:
        raise _Unable(f"nvidia-smi failed: {(done.stdout or done.stderr).strip().splitlines()[0]}")
    return [[cell.strip() for cell in row] for row in csv.reader(done.stdout.splitlines()) if row]


def _add(file: Path, card: str, measured: List[Dict[str, Any]]) -> None:
    """To the list of a card file of the user's own."""
    profile = _cards.file_of(file, card)
    profile["context_memory"] = [*profile.get("context_memory", []), *measured]
    _files.write(file, json.dumps(profile, indent=1) + "\n")


def _told(card: _cards.Card, measured: List[Dict[str, Any]], asked: argparse.Namespace) -> str:
    if asked.json:
        return json.dumps({"card": card.id, "name": card.name, "context_memory": measured}, indent=1)
    first = measured[0]
    lines = [f"{card.name} ({card.id}), driver {first['driver']}, CUDA {first['cuda']}, PyTorch {first['torch']}"]
    lines += [f"{one['bytes'] // _MIB:>6} MiB  {one['what']}" for one in measured]
    lines.append(f"Added to {asked.to}." if asked.to else "--to FILE adds it to a card file of your own, --json prints what such a file has.")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
