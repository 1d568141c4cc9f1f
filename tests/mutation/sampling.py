"""A sample of faults that a seed decides: spread over rooms and rules, one half of it in the concepts that must not be wrong."""

import random

from rooms import CONCEPTS, ROOMS, concept_of, room_of


def group_of(fault):
    """A concept's name or a room's folder."""
    return concept_of(fault.file) or room_of(fault.file).folder


def queues(faults, seed):
    """Group to its faults, in the order in which they are drawn."""
    groups = {}
    for fault in faults:
        groups.setdefault(group_of(fault), []).append(fault)
    order = [group for group in (*CONCEPTS, *(room.folder for room in ROOMS)) if group in groups]
    return {group: _drawn(groups[group], random.Random(f"{seed}:{group}")) for group in order}


def _drawn(faults, chance):
    """One of each rule in turn, so that constants do not crowd out the rest."""
    by_rule = {}
    for fault in faults:
        by_rule.setdefault(fault.rule, []).append(fault)
    piles = [by_rule[rule] for rule in sorted(by_rule)]
    chance.shuffle(piles)
    for pile in piles:
        chance.shuffle(pile)
    drawn = []
    while piles:
        drawn += [pile.pop() for pile in piles]
        piles = [pile for pile in piles if pile]
    return drawn


def quotas(available, count):
    """How many of each group: half for the concepts, half for the rooms; what one group lacks the others give."""
    concepts = [group for group in available if group in CONCEPTS]
    rooms = [group for group in available if group not in CONCEPTS]
    quota = dict.fromkeys(available, 0)
    _deal(quota, available, concepts, (count + 1) // 2 if rooms else count)
    _deal(quota, available, rooms, count - sum(quota.values()))
    _deal(quota, available, list(available), count - sum(quota.values()))
    return quota


def _deal(quota, available, groups, count):
    """Hands out one at a time, in turn."""
    while count > 0:
        open_ = [group for group in groups if quota[group] < available[group]]
        if not open_:
            return
        for group in open_[:count]:
            quota[group] += 1
        count -= len(open_[:count])


class Sample:
    """The faults to plant; one that turns out to be none is replaced by the next of its group."""

    def __init__(self, faults, seed, count):
        self._queues = queues(faults, seed)
        self.quota = quotas({group: len(queue) for group, queue in self._queues.items()}, count)
        self._missing = dict(self.quota)

    def take(self):
        """The faults that are missing yet, file by file."""
        taken = []
        for group, count in self._missing.items():
            taken += self._queues[group][:count]
            del self._queues[group][:count]
            self._missing[group] = 0
        order = {room.folder: place for place, room in enumerate(ROOMS)}
        return sorted(taken, key=lambda fault: (order[room_of(fault.file).folder], fault.file, fault.edits))

    def replace(self, fault):
        self._missing[group_of(fault)] += 1
