"""Stacks of strategies in Python: which functions are meant, what they promise together, and the step that they make.

A stack is typed ``lora+checkpointing``. Names are looked up in the user's file first, then in ``peakbench.strategies``. PyTorch is imported with
the latter, when it is first needed.
"""

import importlib
import importlib.metadata
import importlib.util
import re
import sys
from types import MappingProxyType, ModuleType
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set

from peakbench import _degrees, _objects
from peakbench._objects import Found, Promise, Refused
from peakbench._texts import kind_of

PACKAGE = "peakbench.strategies"

# Of these one a stack, and why.
_EXCLUSIVE = (
    (("lora", "dora"), "both put adapters beside the same layers"),
    (("ddp", "zero-1", "fsdp", "hsdp"), "both decide what each rank has of the model"),
    *(((one, other), "DistributedDataParallel is given the whole model, and every rank a batch of its own")
      for one in ("ddp", "zero-1") for other in ("tensor-parallel", "pipeline", "context-parallel")),
    *((("pipeline", other), "a rank of a pipeline runs a part of the model's forward, and does the whole step")
      for other in ("fsdp", "hsdp", "context-parallel", "accumulation", "fused-in-backward", "compile")),
    *((("context-parallel", other), "context-parallel does the whole step, and averages gradients after backward")
      for other in ("hsdp", "tensor-parallel", "accumulation", "fused-in-backward")),
    (("fused-in-backward", "accumulation"), "the backward pass of each part of a batch would update the parameters"),
    (("fused-in-backward", "zero-1"), "ZeRO updates a rank's share after the backward pass"),
    (("fused-in-backward", "ddp"), "DDP averages gradients after they have arrived, and the update would come before"),
)
# What splits the model among ranks is last to change it.
_AFTER_ALL_CHANGES = ("ddp", "fsdp", "hsdp", "tensor-parallel", "pipeline")
# What is compiled has been changed, and what is sharded has been split; as torchtitan does (torchtitan/models/llama3/parallelize.py).
_LATE = {"compile": 1, "fsdp": 2, "hsdp": 2}
_CHANGES = ("checkpointing", "compile", "liger", "lora", "dora", "qlora")


# ---- which are meant ----


def stacks(module: ModuleType, place: str, typed: Sequence[str], has_ranks: bool) -> List[List[Found]]:
    """Those that are typed, else each strategy of the file, else the baseline. Refused where one cannot be used.

    ``has_ranks``: somebody says how many ranks there are.
    """
    own = _objects.marked_in(module, "strategy")
    return [_stack(module, place, one, has_ranks) for one in typed or own or ["baseline"]]


def is_for_ranks(stack: List[Found]) -> bool:
    """Whether it trains on several ranks."""
    return any(one.offer and one.offer.for_ranks for one in stack)


def is_made_on_meta(stack: List[Found]) -> bool:
    """Whether, on a card, no rank ever has the whole model. To quantize weights, they must be there."""
    return any(one.offer and one.offer.on_meta for one in stack) and not any(one.name == "qlora" for one in stack)


def distinct_ranks(stack: List[Found]) -> Any:
    """What says which ranks have other memory than the first; None: sharded parameters do."""
    return next((one.offer.distinct for one in stack if one.offer and one.offer.distinct), None)


def _stack(module: ModuleType, place: str, typed: str, has_ranks: bool) -> List[Found]:
    stack = [_find(module, place, one) for one in _objects.split_stack(typed)]
    names = [one.name for one in stack]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise Refused(f'"{typed}": {twice} is there twice')
    stack = _without_plain_baseline(stack)
    for one in stack:
        _check_alone(one, has_ranks)
    _check_together(typed, [one for one in stack if one.offer])
    optimizers = [one.name for one in stack if _objects.chooses_optimizer(one.function)]
    if len(optimizers) > 1:
        raise Refused(f'"{typed}": {optimizers[0]} and {optimizers[1]} both choose the optimizer')
    return stack


def _find(module: ModuleType, place: str, typed: str) -> Found:
    name = _objects.split(typed)[0]
    own = _objects.marked_in(module, "strategy")
    if _objects.named(own, name):
        return _objects.find(module, place, "strategy", typed)
    package = _package()
    offered = _objects.marked_in(package, "strategy")
    if _objects.named(offered, name):
        return _objects.find(package, PACKAGE, "strategy", typed)
    if hasattr(module, name):
        return _objects.find(module, place, "strategy", typed)  # says what it is
    raise Refused(f'{place} has no strategy "{name}", and {PACKAGE} has none{_objects.nearest(name, [*own, *offered])}')


def _package() -> ModuleType:
    try:
        return importlib.import_module(PACKAGE)
    except Exception as error:
        raise Refused(f"{PACKAGE} cannot be imported: {type(error).__name__}: {' '.join(str(error).split())}") from error


def offered() -> List[str]:
    """The names, aliases too, of the strategies of one process that ``peakbench.strategies`` has; none where it was not needed so far."""
    package = sys.modules.get(PACKAGE)
    marks = [one for one in _objects.offers_in(package) if not one.for_ranks] if package else []
    return [name for one in marks for name in (one.name, *one.aliases)]


def _without_plain_baseline(stack: List[Found]) -> List[Found]:
    """It is what a stack has anyway."""
    return [one for one in stack if not (one.offer and one.name == "baseline" and not one.options)] or stack[:1]


def _check_alone(one: Found, has_ranks: bool) -> None:
    """Whether there is what it needs."""
    if one.offer is None:
        return
    if one.offer.for_ranks and not has_ranks:
        raise Refused(f"{one.name} trains on several ranks: say on how many with --ranks N")
    module, package, least = one.offer.needs
    if not module:
        return
    if importlib.util.find_spec(module) is None:
        raise Refused(f"{one.name} needs the package {package}: pip install {package}")
    try:
        release = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:  # a folder on PYTHONPATH
        return
    if _numbers(release) < _numbers(least):
        raise Refused(f"{one.name} needs {package} {least} or later, and {release} is installed: pip install --upgrade {package}")


def _numbers(release: str) -> List[int]:
    return [int(one) for one in re.findall(r"\d+", release)[:3]]


def _check_together(typed: str, offered: List[Found]) -> None:
    names = [one.name for one in offered]
    for group, why in _EXCLUSIVE:
        both = [name for name in names if name in group]
        if len(both) > 1:
            raise Refused(f'"{typed}": {both[0]} and {both[1]} are not combined: {why}')
    if "qlora" in names and not {"lora", "dora"} & set(names):
        raise Refused(f'"{typed}": qlora trains no weights, and needs adapters: qlora+lora')
    last = next((at for at, name in enumerate(names) if name in _AFTER_ALL_CHANGES), len(names))
    late = [name for name in names[last:] if name in _CHANGES]
    if late:
        raise Refused(f'"{typed}": {late[0]} changes the model, and stands before {names[last]}')


# ---- what they promise ----


def described(module: ModuleType, place: str, stack: List[Found], ranks: Sequence[int]) -> Dict[str, Any]:
    """The stack, what it promises, and of which other stack, as `peakbench run` reads it. Refused where it cannot go over so many ranks.

    The strategies that train a different problem are the reference, with the optimizer that the others replace. The promise is the weakest of
    the others. A stack that is its own reference promises nothing.
    """
    own = _objects.marked_in(module, "strategy")
    first = next(iter(own), "") if not any(one.offer for one in stack) else ""
    promise = Promise("bit_identical")
    reference: Dict[str, Found] = {}
    for one in stack:
        if one.promise.promise == "different_problem" or one.name == first:
            reference[one.name] = one
            continue
        promise = _weaker(promise, one.promise)
        name = one.promise.reference or first or "baseline"
        if not _objects.named(own, name) and name != "baseline":
            raise Refused(f'{place}: {one.name} is held against "{name}", and there is no such strategy{_objects.nearest(name, list(own))}')
        other = _find(module, place, name)
        options = _objects.shared_options(one, other.function)
        if options or other.name not in reference:
            reference.setdefault(other.name, other).options.update(options)
    against = _without_plain_baseline(list(reference.values()))
    is_own_reference = [one.text for one in against] == [one.text for one in stack]
    trains_differently = is_own_reference and any(one.promise.promise == "different_problem" and one.name != first for one in stack)
    plain = [one.name for one in against] == [first or "baseline"]
    return {
        "stack": [{**_selection(one), "values": _objects.all_options(one, "strategy")} for one in stack],
        "promise": "different_problem" if trains_differently else promise.promise,
        "different_problem": trains_differently or not plain,
        "tolerance": None if trains_differently else promise.tolerance,
        "relative_tolerance": None if trains_differently else promise.relative_tolerance,
        "reference": [_selection(one) for one in against],
        "for_ranks": is_for_ranks(stack),
        "batches": [_degrees.share_of_batch(stack, _degrees.degrees(stack, of), 0)[1] for of in ranks],  # of all ranks together
    }


def is_reference(module: ModuleType, place: str, stack: List[Found]) -> bool:
    """Whether other stacks are compared with this one."""
    told = described(module, place, stack, ())
    return bool([_selection(one) for one in stack] == told["reference"])


def _selection(one: Found) -> Dict[str, Any]:
    return {"id": one.name, "options": one.options}


def _weaker(one: Promise, other: Promise) -> Promise:
    if "within_tolerance" not in (one.promise, other.promise):
        return one
    return Promise(
        "within_tolerance",
        max(one.tolerance or 0, other.tolerance or 0) or None,
        max(one.relative_tolerance or 0, other.relative_tolerance or 0) or None,
    )


# ---- the step that they make ----


class Composition:
    """Calls a stack's functions, and has what they make of the model, the loss and the optimizer.

    Functions that change the model or wrap the loss are called in the order of the stack, then the one that chooses the optimizer, then those
    that are given it. ``call(strategy, **given)`` calls one. Refused where what they return is not to be combined.
    """

    def __init__(self, place: str, stack: List[Found], net: Any, loss: Callable[..., Any], batch: Optional[int], call: Callable[..., Any],
                 meshes: Mapping[str, Any] = MappingProxyType({})) -> None:
        self.loss = loss
        self.optimizer: Any = None
        self.step: Optional[Callable[[Callable[..., Any]], Any]] = None  # of a function that does it all
        self.by: Optional[Found] = None  # whose update it is
        self._place, self._net, self._batch, self._call, self._meshes = place, net, batch, call, meshes
        phases = [[one for one in stack if _phase(one) == phase] for phase in range(3)]
        for one in sorted(phases[0], key=lambda one: _LATE.get(one.name, 0)):
            self._take(one)
        if is_made_on_meta(stack):
            offer = importlib.import_module(f"{PACKAGE}._offer")
            offer.materialised(net, offer.device_of(net))
        for one in phases[1]:
            self._take(one)
        if self.by is None:
            self._take(_objects.find(_package(), PACKAGE, "strategy", "baseline"))
        for one in phases[2]:
            self._take(one)

    def _take(self, one: Found) -> None:
        names = _objects.given_to(one.function)
        if "optimizer" in names and self.optimizer is None and self.by:
            raise Refused(f"{self._place}: {one.name} needs an optimizer, and {self.by.name} has none")
        known = {"loss": self.loss, "optimizer": self.optimizer, "batch": self._batch, "mesh": self._meshes.get(one.name)}
        given = {name: value for name, value in known.items() if name in names}
        returned = self._call(one, **given)
        for value in returned if isinstance(returned, tuple) else (returned,):
            self._take_value(one, names, value)

    def _take_value(self, one: Found, names: Set[str], value: Any) -> None:
        is_instance = not isinstance(value, type)
        if value is self._net:
            if self.by is not None and "optimizer" not in names:
                raise Refused(f"{self._place}: {one.name} changes the model after {self.by.name} has taken its parameters: put it before")
        elif callable(value) and is_instance and "loss" in names:
            self.loss = value
        elif is_instance and hasattr(value, "named_parameters"):
            raise Refused(f"{self._place}: {one.name} returned another module, which the loss does not call: change the model, or take `loss` and wrap it")
        else:
            is_optimizer = is_instance and callable(getattr(value, "step", None)) and callable(getattr(value, "zero_grad", None))
            if not (value is None or is_optimizer or (callable(value) and is_instance)):
                raise Refused(
                    f"{self._place}: {one.name} returned {kind_of(value)}; expected an optimizer, the model, a function of a step, or None where "
                    "backward updates"
                )
            if self.by is not None and ("optimizer" not in names or self.optimizer is None or self.step is not None):
                raise Refused(f"{self._place}: {self.by.name} and {one.name} both update the parameters: leave one of them out")
            self.by, self.optimizer = one, value if is_optimizer else None
            self.step = None if is_optimizer else value


def _phase(one: Found) -> int:
    return 2 if "optimizer" in _objects.given_to(one.function) else int(_objects.chooses_optimizer(one.function))
