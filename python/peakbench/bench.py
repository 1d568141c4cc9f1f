"""Trains a model under a strategy, both functions in Python, for a few steps: what ``peakbench run --program`` starts for each case.

It is a program like any other, so that it can be run by hand, too::

    peakbench emulate --card h100-80gb -- python3 -m peakbench.bench bench.py --model tiny --strategy sgd --batch 8

A step is zero_grad(), the loss, backward() and step(), in PyTorch's usual order, unless the strategy does the step itself. Random
numbers start anew from the seed with each step, so that every strategy is trained on the same batches.
"""

import argparse
import importlib
import importlib.util
import json
import math
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from peakbench import _objects
from peakbench._objects import Found, Refused

# Set by the worker of a case on the CPU (harness/programs/internal_commands.cpp): where losses and parameters are left.
TRAINED_VARIABLE = "PEAKBENCH_TRAINED"


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """The exit code: 0; 2 where what was typed or written cannot be used, in one sentence on standard error."""
    typed = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if typed[:1] == ["--describe"]:
            return _describe(json.loads(typed[1]))
        if typed[:1] == ["--compare"]:
            return _compare(*typed[1:])
        return _train(_parsed(typed))
    except Refused as refused:
        print(f"peakbench: {refused}", file=sys.stderr)
        return 2


def _parsed(typed: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python3 -m peakbench.bench", description="Trains a model under a strategy, both functions in Python.")
    parser.add_argument("place", metavar="FILE.py|MODULE", help="where the functions are")
    parser.add_argument("--model", metavar="NAME[,key=value]", default="", help="default: the only one")
    parser.add_argument("--strategy", metavar="NAME[,key=value]", default="", help="default: the first")
    parser.add_argument("--batch", metavar="N", type=int, help="samples in a batch")
    parser.add_argument("--device", default="", help="default: cuda where there is a card, else cpu")
    parser.add_argument("--steps", metavar="N", type=int, default=3, help="default 3")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="default 0")
    return parser.parse_args(typed)


# ---- what a file declares ----


def _load(place: str) -> ModuleType:
    """The file or module with the functions. Refused where it is not there, or does not load."""
    if importlib.util.find_spec("torch") is None:
        raise Refused(f"{sys.executable} has no PyTorch: install it there (pip install torch), or name another Python in PEAKBENCH_PYTHON")
    is_file = place.endswith(".py") or "/" in place
    if is_file and not Path(place).is_file():
        raise Refused(f"there is no file {place}; --program takes FILE.py:FUNCTION or MODULE:FUNCTION")
    try:
        module = _load_file(Path(place)) if is_file else _load_module(place)
    except Refused:
        raise
    except (Exception, SystemExit) as error:
        raise Refused(f"{place} cannot be imported: {_in_words(error, place)}") from error
    twice = _objects.twice_in(module)
    if twice:
        raise Refused(f"{place} has two marked functions called {twice[0]} (lines {' and '.join(map(str, twice[1]))}): give each a name of its own")
    return module


def _load_file(file: Path) -> ModuleType:
    sys.path.insert(0, str(file.resolve().parent))
    # Under its own name, where that is nobody else's: profile.py is not to become Python's module of that name.
    is_taken = file.stem in sys.modules or file.stem in sys.stdlib_module_names
    name = f"_peakbench_{file.stem}" if is_taken else file.stem
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise Refused(f"{file} is no file of Python: its name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # From its text, as `python3 file.py` does: bytecode that is kept beside it is told apart by the second and the size alone.
    exec(compile(file.read_bytes(), str(spec.origin), "exec"), module.__dict__)
    return module


def _load_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise Refused(f"there is no module {name} here; for a file: FILE.py:FUNCTION") from None
        raise


def _in_words(error: BaseException, place: str) -> str:
    """What was raised, and the last line of that file on the way to it."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).name == Path(place).name]
    if isinstance(error, SyntaxError):
        lines = [error.lineno]
    said = " ".join(str(error.msg if isinstance(error, SyntaxError) else error).split())
    return f"{type(error).__name__}: {said}" + (f" (line {lines[-1]})" if lines else "")


def _model(module: ModuleType, place: str, typed: str) -> Found:
    known = _objects.marked_in(module, "model")
    if not typed and len(known) != 1:
        if known:
            raise Refused(f"{place} has the models {', '.join(known)}: say which, {place}:{next(iter(known))}")
        raise Refused(f"{place} has no model: put @peakbench.model above the function that makes one")
    return _objects.find(module, place, "model", typed or next(iter(known)))


def _strategies(module: ModuleType, place: str, typed: Sequence[str]) -> List[Found]:
    known = list(_objects.marked_in(module, "strategy"))
    if not known:
        raise Refused(f"{place} has no strategy: put @peakbench.strategy above a function that returns an optimizer")
    return [_objects.find(module, place, "strategy", one) for one in typed or known]


def _describe(asked: Mapping[str, Any]) -> int:
    """For `peakbench run`, before anything is run: which model, strategies and batch sizes are meant, as JSON on standard output."""
    os.chdir(asked["folder"])
    sys.path.insert(0, asked["folder"])
    answer_to = _own_output()
    try:
        answer = _description(asked["program"], asked["strategies"], asked["batch_sizes"])
    except Refused as refused:
        answer = {"error": str(refused), "is_of_import": refused.__cause__ is not None}
    with os.fdopen(answer_to, "w", encoding="utf-8") as output:
        print(json.dumps(answer), file=output)
    return 0


def _description(program: str, strategies: Sequence[str], batch_sizes: Sequence[int]) -> Dict[str, Any]:
    place, _, typed = program.partition(":")
    if "," in place:
        raise Refused(f'"{program}": expected FILE.py:FUNCTION,key=value')
    module = _load(place)
    model = _model(module, place, typed)
    if batch_sizes and not _objects.takes_batch(model.function):
        raise Refused(f"{place}: {model.name} takes no batch: give the function a parameter `batch`, or leave the batch size out")
    default = [_objects.default_batch(model.function)] if _objects.takes_batch(model.function) else [0]
    return {
        "place": place,
        "model": {"id": model.name, "options": model.options},
        "batch_sizes": list(batch_sizes) or default,
        "strategies": [_described(module, place, one) for one in _strategies(module, place, strategies)],
    }


def _described(module: ModuleType, place: str, one: Found) -> Dict[str, Any]:
    """What it promises, and of whom: the first strategy of a file is what others are held against, and promises nothing itself."""
    known = _objects.marked_in(module, "strategy")
    first, promise = next(iter(known)), one.promise
    reference = promise.reference or first
    if reference not in known:
        raise Refused(
            f'{place}: {one.name} is held against "{reference}", and there is no such strategy{_objects.nearest(reference, list(known))}'
        )
    trains_differently = promise.promise == "different_problem" and one.name != first
    if trains_differently or one.name == first:
        reference = one.name
    return {
        "id": one.name,
        "options": one.options,
        "promise": promise.promise if one.name != first else "bit_identical",
        "different_problem": reference != first,
        "tolerance": promise.tolerance,
        "relative_tolerance": promise.relative_tolerance,
        "reference": {"id": reference, "options": _objects.shared_options(one, known[reference])},
    }


def _own_output() -> int:
    """Standard output, for the answer alone. What a file and its libraries print until the process ends, also in threads and at exit, goes to standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    return kept


# ---- the training ----


def _train(asked: argparse.Namespace) -> int:
    module = _load(asked.place)
    model, strategy = (
        _model(module, asked.place, asked.model),
        _strategies(module, asked.place, [asked.strategy] if asked.strategy else [])[0],
    )
    torch = importlib.import_module("torch")
    device = asked.device or ("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(asked.seed)
    net, loss = _made(torch, asked, model, device)
    train_step = _step_of(torch, asked.place, strategy, net, loss)
    where = json.loads(os.environ.pop(TRAINED_VARIABLE, "null"))
    losses = []
    for step in range(asked.steps):
        torch.manual_seed(asked.seed + step)
        value = _called(torch, asked.place, f"step {step + 1} of {strategy.name}", train_step)
        if where:  # else nobody reads it, so that an emulated card need not know it
            losses.append(float(value.detach()))
        del value  # the last step's loss is no part of this one's memory
    if where:
        _keep(torch, net, losses, where)
    return 0


def _made(torch: Any, asked: argparse.Namespace, model: Found, device: str) -> Tuple[Any, Callable[[], Any]]:
    """The module on the device, and what makes a step's loss."""
    more: Dict[str, Any] = dict(model.options)
    if _objects.takes_batch(model.function):
        more["batch"] = _objects.default_batch(model.function) if asked.batch is None else asked.batch
    elif asked.batch is not None:
        raise Refused(f"{asked.place}: {model.name} takes no batch: give the function a parameter `batch`, or leave --batch out")
    with torch.device(device):
        made = _called(torch, asked.place, model.name, model.function, **more)
    if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], torch.nn.Module) and callable(made[1])):
        raise Refused(
            f"{asked.place}: {model.name} returned {_kind(made)}; expected a torch.nn.Module and a function that makes the loss of a step"
        )
    net = _as_if_there(model, "return net.to(device)", net=made[0], device=device)()
    return net, _checked(torch, f"{asked.place}: the loss of {model.name}", made[1])


def _step_of(torch: Any, place: str, strategy: Found, net: Any, loss: Callable[[], Any]) -> Callable[[], Any]:
    """What is done in a step, and returns its loss."""
    returned = _called(torch, place, strategy.name, strategy.function, net, **strategy.options)
    if returned is None:
        return _as_if_there(strategy, "value = loss(); value.backward(); return value", loss=loss)
    is_instance = not isinstance(returned, type)
    if is_instance and callable(getattr(returned, "step", None)) and callable(getattr(returned, "zero_grad", None)):
        whole = "optimizer.zero_grad(); value = loss(); value.backward(); optimizer.step(); return value"
        return _as_if_there(strategy, whole, loss=loss, optimizer=returned)
    if callable(returned) and is_instance:
        return _checked(torch, f"{place}: a step of {strategy.name}", lambda: returned(loss))
    raise Refused(
        f"{place}: {strategy.name} returned {_kind(returned)}; expected an optimizer, a function of a step, or None where backward updates"
    )


def _as_if_there(of: Found, statements: str, **names: Any) -> Callable[[], Any]:
    """A function of these statements that stands in the line of that function, for whoever looks at the call stack.

    What an update allocates is of the strategy's line then, and not of ours.
    """
    code = of.function.__code__
    scope = dict(names)
    exec(compile("\n" * (code.co_firstlineno - 1) + f"def {of.name}(): {statements}", code.co_filename, "exec"), scope)
    made: Callable[[], Any] = scope[of.name]
    return made


def _called(torch: Any, place: str, what: str, function: Callable[..., Any], /, *given: Any, **more: Any) -> Any:
    """What the function returns. Out of memory is raised as it is: it is what a case ends with.

    One that leaves the program would pass for a training that ended.
    """
    try:
        return function(*given, **more)
    except (torch.OutOfMemoryError, Refused):
        raise
    except SystemExit as left:
        raise Refused(f"{place}: {what} ended the program ({_in_words(left, place)})") from None
    except Exception as error:
        traceback.print_exc()
        raise Refused(f"{place}: {what} raised {_in_words(error, place)}") from None


def _checked(torch: Any, where: str, function: Callable[[], Any]) -> Callable[[], Any]:
    def checked() -> Any:
        value = function()
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            raise Refused(f"{where} is {_kind(value)}; expected a tensor of one value")
        return value

    return checked


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, type):
        return f"the class {value.__name__} itself"
    if isinstance(value, tuple):
        return f"({', '.join(_kind(one) for one in value)})"
    shape = getattr(value, "shape", None)
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}" + (f" of shape {tuple(shape)}" if shape is not None else "")


# ---- the promise, on the CPU ----


def _keep(torch: Any, net: Any, losses: List[float], where: Mapping[str, str]) -> None:
    """Leaves the losses, and losses and parameters where they are a reference or held against one."""
    Path(where["losses"]).write_text(
        json.dumps({"losses": [value if math.isfinite(value) else str(value) for value in losses]}), encoding="utf-8"
    )
    if where["parameters"]:
        torch.save({"losses": losses, "parameters": {name: one.detach() for name, one in net.named_parameters()}}, where["parameters"])


def _compare(told: str) -> int:
    """What two trainings differ in, as JSON on standard output. The worker asks once both have ended."""
    torch = importlib.import_module("torch")
    asked = json.loads(told)
    ours, theirs = (torch.load(asked[one], map_location="cpu", weights_only=True) for one in ("ours", "theirs"))
    print(json.dumps(_equivalence(torch, ours, theirs, asked["promise"])))
    return 0


def _equivalence(torch: Any, ours: Mapping[str, Any], theirs: Mapping[str, Any], promise: Mapping[str, Any]) -> Dict[str, Any]:
    """Losses and parameters against the reference's, in the words of a plugin's check (harness/worker/equivalence.h)."""
    shapes = [{name: (one.shape, one.dtype) for name, one in side["parameters"].items()} for side in (ours, theirs)]
    if shapes[0] != shapes[1]:
        return _broken("trains other parameters than the reference case")
    if len(ours["losses"]) != len(theirs["losses"]):
        return _broken(f"made {len(ours['losses'])} losses, the reference case {len(theirs['losses'])}")
    double = torch.float64
    pairs = [("the losses", torch.tensor(ours["losses"], dtype=double), torch.tensor(theirs["losses"], dtype=double))]
    pairs += [(name, one, theirs["parameters"][name]) for name, one in ours["parameters"].items()]
    blind = next((name for name, _, theirs_ in pairs if not theirs_.isfinite().all()), None)
    if blind:
        return _not_checked(f"the reference case has values that are infinite or not a number in {blind}: nothing can be told from it")
    largest, worst = 0.0, ("", -1.0)
    for name, a, b in pairs:
        far, breaks = _difference(torch, a, b, promise)
        largest = max(largest, far)
        if breaks and far > worst[1]:
            worst = (name, far)
    if not worst[0]:
        return {"verdict": "held", "max_abs_difference": largest, "reason": ""}
    if worst[1] == math.inf:
        return {**_broken(f"values that are infinite or not a number in {worst[0]}"), "max_abs_difference": "nan"}
    return {**_broken(f"differs most in {worst[0]}, by {worst[1]:.3g}"), "max_abs_difference": largest}


def _difference(torch: Any, ours: Any, theirs: Any, promise: Mapping[str, Any]) -> Tuple[float, bool]:
    """The largest distance of two values, infinite where one is not finite, and whether the promise is broken by them."""
    if torch.equal(_bits(torch, ours), _bits(torch, theirs)):
        return 0.0, False
    a, b = ours.double(), theirs.double()
    away = (a - b).abs()
    far = float(away.max()) if bool(a.isfinite().all()) else math.inf
    if promise["promise"] == "bit_identical":
        return far, True
    within = away <= (promise["tolerance"] or 0) + (promise["relative_tolerance"] or 0) * b.abs()
    return far, not bool(within.all())


def _bits(torch: Any, values: Any) -> Any:
    return values.contiguous().reshape(-1).view(torch.uint8)


def _broken(reason: str) -> Dict[str, Any]:
    return {"verdict": "broken", "max_abs_difference": None, "reason": reason}


def _not_checked(reason: str) -> Dict[str, Any]:
    return {"verdict": "not_checked", "max_abs_difference": None, "reason": reason}


if __name__ == "__main__":
    sys.exit(main())
