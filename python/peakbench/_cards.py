"""The cards that Peakbench knows, what a CUDA context takes of them, and which one this process is on."""

import difflib
import json
import os
import re
import shutil
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple, Union

from peakbench._texts import shown


@dataclass(frozen=True)
class Card:
    """A kind of card: its id in Peakbench, what PyTorch calls it, and what it holds."""

    id: str
    name: str
    total_bytes: int
    context_bytes: int = 0  # the most that was measured of a CUDA context; 0: no measurement


@dataclass(frozen=True)
class Context:
    """What a CUDA context takes of a card."""

    bytes: int
    is_largest_known: bool = False  # of any card, as no measurement of this one has been published


def roots() -> List[Path]:
    """Where Peakbench may be installed: this package (the wheel), or what the command `peakbench` belongs to."""
    found = [Path(__file__).resolve().parent]
    program = shutil.which("peakbench")
    if program:
        found.append(Path(program).resolve().parent.parent)
    return found


def known() -> Dict[str, Card]:
    """By id; empty where Peakbench's cards are not found."""
    for root in roots():
        files = sorted((root / "lib/peakbench/emulator/cards").glob("*.json"))
        if files:
            return {card.id: card for card in map(_read, files)}
    return {}


def find(card: str) -> Card:
    """The card of that id. ValueError, with the nearest name, where there is none."""
    cards = known()
    if card in cards:
        return cards[card]
    if not cards:
        raise ValueError(f'card "{shown(card)}": Peakbench\'s cards are not found; install the wheel, or put `peakbench` on PATH')
    near = [name for name in cards if name.startswith(card)] or difflib.get_close_matches(card[:100], cards, 1, 0.4)
    raise ValueError(f'unknown card "{shown(card)}"' + (f'; did you mean "{near[0]}"?' if near else "; `peakbench list devices` shows them"))


class CardFileError(Exception):
    """One sentence that says what is wrong with a card file of the user's own."""


def file_of(file: Path, card: str) -> Dict[str, Any]:
    """What a card file of the user's own holds; it begins as a copy of ours. CardFileError where there is none, or where it is another card's."""
    ours = next((path for root in roots() for path in (root / "lib/peakbench/emulator/cards").glob(f"{card}.json")), None)
    from_file = file if file.exists() else ours
    if from_file is None and not known():
        raise CardFileError("Peakbench's cards are not found: put `peakbench` on PATH, or name with --to a card file that is there already")
    if from_file is None:
        raise CardFileError(f"Peakbench has no card like this one ({card}): --to FILE needs a card file that is there already")
    profile = json.loads(from_file.read_text(encoding="utf-8"))
    if not isinstance(profile, dict) or profile.get("id") != card:
        raise CardFileError(f"{from_file} is not the file of {card}")
    return profile


def with_options(spec: str) -> Tuple[Card, Context]:
    """``t4-16gb,context=0``: a card as ``--card`` takes it, of whose options ``memory=SIZE`` and ``context=SIZE`` mean something here.

    The context is what the option says, else the most that was measured on such a card, else the largest known of any card: the rule of
    emulator::context_taken(). ValueError names what is wrong.
    """
    name, *options = spec.split(",")
    card, asked = find(name), None
    for option in options:
        key, _, value = option.partition("=")
        size = Decimal(0) if (key, value) == ("context", "0") else size_of(value)
        if key not in ("memory", "context") or size is None:
            raise ValueError(f'card "{shown(spec)}": expected memory=SIZE or context=SIZE, like context=500MiB, found "{shown(option)}"')
        if key == "memory":
            card = replace(card, total_bytes=int(size))
        else:
            asked = Context(int(size))
    if asked or card.context_bytes:
        return card, asked or Context(card.context_bytes)
    return card, Context(max(one.context_bytes for one in known().values()), is_largest_known=True)


_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}


def size_of(text: str) -> Optional[Decimal]:
    """Bytes of "2 GiB"; None where that is no size."""
    read = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]i?B|B)\s*", text)
    return Decimal(read[1]) * _UNITS[read[2].upper()] if read else None


def here(torch: Any) -> Card:
    """The current device's; of an unknown real card, its name is its id."""
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    emulated = os.environ.get("PEAKBENCH_EMULATED_CARD")
    if emulated:
        return Card(json.loads(emulated)["id"], properties.name, properties.total_memory)
    same = [card for card in known().values() if card.name == properties.name]
    same.sort(key=lambda card: abs(card.total_bytes - properties.total_memory))
    return same[0] if same else Card(properties.name, properties.name, properties.total_memory)


def _read(file: Union[str, Path]) -> Card:
    card = json.loads(Path(file).read_text(encoding="utf-8"))
    values = card["values"]
    contexts = [int(one["bytes"]) for one in card.get("context_memory", [])]
    return Card(card["id"], values["name"]["value"], int(values["total_memory_bytes"]["value"]), max(contexts, default=0))
