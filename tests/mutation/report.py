"""What is said of a sample: each fault as it is tried, a table at the end, the survivors with what was changed."""

import dataclasses
import json

from rooms import CONCEPTS, ROOMS
from sampling import group_of

KILLED, SURVIVED, INVALID, EQUIVALENT = "killed", "survived", "invalid", "equivalent"


@dataclasses.dataclass(frozen=True)
class Outcome:
    fault: object
    verdict: str
    why: str  # the test that noticed; the compiler's error; why it changes nothing
    seconds: float


def described(fault):
    return f"{fault.place} {fault.rule}\n    - {fault.before}\n    + {fault.after}"


def said(outcome):
    by = {KILLED: "killed by", SURVIVED: "SURVIVED", INVALID: "invalid, another in its place:", EQUIVALENT: "equivalent:"}
    verdict = f"{by[outcome.verdict]} {outcome.why}".rstrip()
    return f"{outcome.fault.place} {outcome.fault.rule}: {verdict}, {outcome.seconds:.0f} s"


def critical_survivors(outcomes):
    return [outcome for outcome in survivors(outcomes) if group_of(outcome.fault) in CONCEPTS]


def survivors(outcomes):
    return [outcome for outcome in outcomes if outcome.verdict == SURVIVED]


def table(outcomes):
    lines = [f"{'':24}{'planted':>9}{'killed':>9}{'survived':>10}{'invalid':>9}{'equivalent':>12}"]
    for group in (*CONCEPTS, *(room.folder for room in ROOMS)):
        verdicts = [outcome.verdict for outcome in outcomes if group_of(outcome.fault) == group]
        if verdicts:
            lines.append(_row(group, verdicts))
    lines.append(_row("together", [outcome.verdict for outcome in outcomes]))
    return "\n".join(lines)


def _row(name, verdicts):
    killed, survived = verdicts.count(KILLED), verdicts.count(SURVIVED)
    invalid, equivalent = verdicts.count(INVALID), verdicts.count(EQUIVALENT)
    return f"{name:24}{killed + survived:>9}{killed:>9}{survived:>10}{invalid:>9}{equivalent:>12}"


def summary(outcomes):
    parts = [table(outcomes)]
    known = [outcome for outcome in outcomes if outcome.verdict == EQUIVALENT]
    if known:
        parts.append("Known to change nothing:\n" + "\n".join(f"{described(one.fault)}\n    {one.why}" for one in known))
    alive = survivors(outcomes)
    if alive:
        parts.append("No test noticed:\n" + "\n".join(f"[{group_of(one.fault)}] {described(one.fault)}" for one in alive))
        parts.append("Again: ci/mutation_test --only FILE:LINE. How to read a survivor: docs/recipes.md.")
    return "\n\n".join(parts)


def write_json(path, seed, outcomes):
    faults = [
        {
            "file": one.fault.file,
            "line": one.fault.line,
            "rule": one.fault.rule,
            "group": group_of(one.fault),
            "before": one.fault.before,
            "after": one.fault.after,
            "verdict": one.verdict,
            "why": one.why,
            "seconds": round(one.seconds, 1),
        }
        for one in outcomes
    ]
    with open(path, "w") as file:
        json.dump({"seed": seed, "faults": faults}, file, indent=1)
        file.write("\n")


class Progress:
    """The faults that are done of those that were asked for, and how long the rest will take."""

    def __init__(self, wanted, expected_seconds, say):
        self._wanted, self._expected, self._say = wanted, expected_seconds, say
        self._done, self._spent = 0, 0.0

    def take(self, outcome):
        self._spent += outcome.seconds
        self._done += outcome.verdict in (KILLED, SURVIVED)
        # The guess counts as three faults, then what was seen outweighs it.
        each = (self._spent + 3 * self._expected / max(self._wanted, 1)) / (self._done + 3)
        left = each * (self._wanted - self._done) / 60
        self._say(f"[{self._done:>2} of {self._wanted}] {said(outcome)}; about {left:.0f} min left")
