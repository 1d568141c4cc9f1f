"""The cards that Peakbench knows, and which one this process is on."""

import difflib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Union

from peakbench._texts import shown


@dataclass(frozen=True)
class Card:
    """A kind of card: its id in Peakbench, what PyTorch calls it, and what it holds."""

    id: str
    name: str
    total_bytes: int


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
    return Card(card["id"], card["values"]["name"]["value"], int(card["values"]["total_memory_bytes"]["value"]))
