"""Trains a model under a strategy, both functions in Python, for a few steps: what ``peakbench run --program`` starts for each case.

It is a program like any other, so that it can be run by hand, too::

    peakbench emulate --card h100-80gb -- python3 -m peakbench.bench bench.py --model tiny --strategy sgd --batch 8

A step is zero_grad(), the loss, backward() and step(), in PyTorch's usual order, unless the strategy does the step itself. Random
numbers start anew from the seed with each step, so that every strategy is trained on the same batches.
"""

import argparse
import ctypes
import importlib
import importlib.util
import inspect
import json
import math
import os
import sys
import traceback
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from peakbench import _degrees, _objects, _process_group, _stacks, models
from peakbench._objects import Found, Refused, Unsupported
from peakbench._texts import kind_of

# Set by the worker of a case on the CPU (harness/programs/internal_commands.cpp): where losses and parameters are left.
TRAINED_VARIABLE = "PEAKBENCH_TRAINED"
# Set by the worker of each case: the file for the sentence that says why it cannot be run.
REFUSAL_VARIABLE = "PEAKBENCH_REFUSAL"
# Of what training moves. Two small models (an MLP, a Llama) on two ranks were 0.00 apart in fp32, 0.06 where fsdp computed in 16 bits, and 0.54
# and 0.92 where no gradients were exchanged.
_MOST_APART = 0.3


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """The exit code: 0; 2 where what was typed or written cannot be used, in one sentence on standard error."""
    typed = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if typed[:1] == ["--describe"]:
            return _describe(json.loads(typed[1]))
        if typed[:1] == ["--list"]:
            return _list(typed[1])
        if typed[:1] == ["--compare"]:
            return _compare(*typed[1:])
        asked = _parsed(typed)
        if asked.ranks is not None and _process_group.starts_them(asked.ranks):
            return _start_ranks(asked, typed)
        return _train(asked)
    except Refused as refused:
        file = os.environ.get(REFUSAL_VARIABLE)
        if file and isinstance(refused, Unsupported):
            Path(file).write_text(json.dumps(str(refused)), encoding="utf-8")
        if not _process_group.refuse(refused):
            sys.stderr.write(f"peakbench: {refused}\n")  # in one piece, as other ranks write there, too
        return 2


def _parsed(typed: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python3 -m peakbench.bench", description="Trains a model under a strategy, both functions in Python.")
    parser.add_argument("place", metavar="FILE.py|MODULE", help="where the functions are")
    parser.add_argument("--model", metavar="NAME[,key=value]", default="", help="default: the only one")
    parser.add_argument("--strategy", metavar="NAME[,key=value]", default="", help="default: the first")
    parser.add_argument("--batch", metavar="N", type=int, help="samples in a batch")
    parser.add_argument("--ranks", metavar="N", type=int, help="ranks to train on, of a strategy for several; --batch is for each")
    parser.add_argument("--device", default="", help="default: cuda where there is a card, else cpu")
    parser.add_argument("--steps", metavar="N", type=int, default=3, help="default 3")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="default 0")
    return parser.parse_args(typed)


# ---- what a file declares ----


def _load(place: str) -> ModuleType:
    """The file or module with the functions, or the library of that name. Refused where it is not there, or does not load."""
    if importlib.util.find_spec("torch") is None:
        raise Refused(f"{sys.executable} has no PyTorch: install it there (pip install torch), or name another Python in PEAKBENCH_PYTHON")
    is_file = place.endswith(".py") or "/" in place
    if is_file and not Path(place).is_file():
        raise Refused(f"there is no file {place}; --program takes FILE.py:FUNCTION or MODULE:FUNCTION")
    try:
        module = _load_file(Path(place)) if is_file else models.load(place) if place in models.LIBRARIES else _load_module(place)
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
    if place in models.LIBRARIES:
        return models.find(module, place, typed)
    known = _objects.marked_in(module, "model")
    if not typed and len(known) != 1:
        if known:
            raise Refused(f"{place} has the models {', '.join(known)}: say which, {place}:{next(iter(known))}")
        raise Refused(f"{place} has no model: put @peakbench.model above the function that makes one")
    return _objects.find(module, place, "model", typed or next(iter(known)))


def _describe(asked: Mapping[str, Any]) -> int:
    """For `peakbench run`, before anything is run: which model, strategies and batch sizes are meant, as JSON on standard output."""
    os.chdir(asked["folder"])
    sys.path.insert(0, asked["folder"])
    answer_to = _own_output()
    try:
        answer = _description(asked["program"], asked["strategies"], asked["batch_sizes"], asked["ranks"])
    except Refused as refused:
        answer = {"error": str(refused), "is_of_import": refused.__cause__ is not None}
    with os.fdopen(answer_to, "w", encoding="utf-8") as output:
        print(json.dumps(answer), file=output)
    return 0


def _list(library: str) -> int:
    """For `peakbench list models --library`: the models of a library, as JSON on standard output."""
    answer_to = _own_output()
    try:
        answer: Any = models.listed(library)
    except Refused as refused:
        answer = {"error": str(refused)}
    with os.fdopen(answer_to, "w", encoding="utf-8") as output:
        print(json.dumps(answer), file=output)
    return 0


def _description(program: str, strategies: Sequence[str], batch_sizes: Sequence[int], ranks: Sequence[int]) -> Dict[str, Any]:
    place, _, typed = program.partition(":")
    if "," in place:
        raise Refused(f'"{program}": expected FILE.py:FUNCTION,key=value')
    module = _load(place)
    model = _model(module, place, typed)
    if batch_sizes and not _objects.takes_batch(model.function):
        raise Refused(f"{place}: {model.name} takes no batch: give the function a parameter `batch`, or leave the batch size out")
    stacks = _stacks.stacks(module, place, strategies, bool(ranks))
    if ranks and not any(map(_stacks.is_for_ranks, stacks)):
        raise Refused("--ranks is for strategies that train on several ranks; name one, like --strategy fsdp")
    if ranks and "WORLD_SIZE" in os.environ:
        raise Refused(f"WORLD_SIZE is {os.environ['WORLD_SIZE']}, as in a rank of torchrun, and --ranks starts ranks: unset it")
    default = [_objects.default_batch(model.function)] if _objects.takes_batch(model.function) else [0]
    return {
        "place": place,
        "model": {
            "id": f"{place}:{model.name}" if place in models.LIBRARIES else model.name,
            "options": model.options,
            "values": _objects.all_options(model, "model"),
        },
        "batch_sizes": list(batch_sizes) or default,
        "strategies": [_stacks.described(module, place, one, ranks) for one in stacks],
        "offered": _stacks.offered(),
    }


def _own_output() -> int:
    """Standard output, for the answer alone. What a file and its libraries print until the process ends, also in threads and at exit, goes to standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    return kept


# ---- the training ----


def _start_ranks(asked: argparse.Namespace, typed: Sequence[str]) -> int:
    if asked.ranks < 1:
        raise Refused(f"--ranks: expected an integer of 1 or more, got {asked.ranks}")
    device = asked.device or _process_group.usual_device()
    return _process_group.run([*typed, "--device", device], asked.ranks, device)


def _train(asked: argparse.Namespace) -> int:
    _process_group.enter()
    module = _load(asked.place)
    model = _model(module, asked.place, asked.model)
    stack = _stacks.stacks(module, asked.place, [asked.strategy] if asked.strategy else [], "WORLD_SIZE" in os.environ)[0]
    if asked.ranks and not _stacks.is_for_ranks(stack):
        raise Refused(f"--ranks {asked.ranks}: {'+'.join(one.name for one in stack)} trains on one; name a strategy like fsdp, or leave --ranks out")
    torch = importlib.import_module("torch")
    device = asked.device or ("cuda" if torch.cuda.is_available() else "cpu")
    ranks = _process_group.join(torch, device)
    torch.manual_seed(asked.seed)
    sizes = _degrees.degrees(stack, ranks)
    share = _degrees.share_of_batch(stack, sizes, torch.distributed.get_rank()) if device == "cpu" and ranks > 1 else (0, 1)
    net, loss, batch = _made(torch, asked, model, device, share, device != "cpu" and _stacks.is_made_on_meta(stack))
    train_step = _step_of(torch, asked.place, stack, net, loss, batch, ranks, _degrees.meshes(stack, sizes, device))
    where = json.loads(os.environ.pop(TRAINED_VARIABLE, "null"))
    initial = _copies(torch, net) if where and where["parameters"] and _stacks.is_reference(module, asked.place, stack) else {}
    losses = []
    name = "+".join(one.name for one in stack)
    for step in range(asked.steps):
        torch.manual_seed(asked.seed + step)
        value = _called(torch, asked.place, f"step {step + 1} of {name}", train_step)
        if where:  # else nobody reads it, so that an emulated card need not know it
            losses.append(_mean(torch, value.detach(), ranks))
        del value  # the last step's loss is no part of this one's memory
    if where:
        _keep(torch, net, losses, where, initial, ranks)
    if torch.distributed.is_initialized():
        if device == "cpu":  # on a card it would take memory
            torch.distributed.barrier()
        torch.distributed.destroy_process_group()
    return 0


def _mean(torch: Any, value: Any, ranks: int) -> float:
    """Of the ranks' losses, which are of the same batch, or of parts of it as large as each other."""
    if ranks > 1:
        value = value.clone()
        torch.distributed.all_reduce(value)
    return float(value) / ranks


def _made(
    torch: Any, asked: argparse.Namespace, model: Found, device: str, share: Tuple[int, int], on_meta: bool
) -> Tuple[Any, Callable[..., Any], Optional[int]]:
    """The module on the device, what makes a step's loss, and the samples of a batch where that can be made of ``rows`` of them.

    Several ranks that share a batch train rows of one that is as many times as large, so that together they train what one process does.
    ``on_meta``: its parameters have no memory yet.
    """
    more: Dict[str, Any] = dict(model.options)
    batch = None
    part, parts = share
    if _objects.takes_batch(model.function):
        batch = _objects.default_batch(model.function) if asked.batch is None else asked.batch
        more["batch"] = batch * parts
    elif asked.batch is not None:
        raise Refused(f"{asked.place}: {model.name} takes no batch: give the function a parameter `batch`, or leave --batch out")
    with torch.device(device), _parameters_on_meta(torch) if on_meta else nullcontext():
        made = _called(torch, asked.place, model.name, model.function, **more)
    if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], torch.nn.Module) and callable(made[1])):
        raise Refused(
            f"{asked.place}: {model.name} returned {kind_of(made)}; expected a torch.nn.Module and a function that makes the loss of a step"
        )
    net, loss = made
    if not on_meta:
        net = _as_if_there(model, "return net.to(device)", net=net, device=device)()
    takes_rows = batch is not None and "rows" in inspect.signature(loss).parameters
    if parts > 1:
        if batch is None or not takes_rows:
            raise Unsupported(f"{asked.place}: ranks on the CPU train parts of one batch: give the loss of {model.name} a parameter `rows`, a slice of it")
    if batch is not None and takes_rows:
        loss = _in_rows(loss, batch, part if parts > 1 else -1)
    return net, _checked(torch, f"{asked.place}: the loss of {model.name}", loss), batch if takes_rows else None


@contextmanager
def _parameters_on_meta(torch: Any) -> Iterator[None]:
    """Modules keep no memory of parameters, as in Accelerate's init_empty_weights: what one has is freed as it becomes a module's.

    Other tensors that the model's function makes, such as the batch, are made as usual.
    """
    register = torch.nn.Module.register_parameter

    def register_on_meta(module: Any, name: str, parameter: Any) -> None:
        if parameter is not None and not parameter.is_meta:
            empty = torch.nn.Parameter(parameter.detach().to("meta"), requires_grad=parameter.requires_grad)
            torch.utils.swap_tensors(parameter, empty)  # so that tied parameters stay one
        register(module, name, parameter)

    torch.nn.Module.register_parameter = register_on_meta
    try:
        yield
    finally:
        torch.nn.Module.register_parameter = register
        torch.cuda.empty_cache()


def _in_rows(loss: Callable[..., Any], batch: int, rank: int) -> Callable[..., Any]:
    """The loss of all of a rank's rows, or of a slice of them."""
    first = max(rank, 0) * batch

    def of_rows(*rows: slice) -> Any:
        if not rows and rank < 0:
            return loss()
        begin, end = (rows[0].start, rows[0].stop) if rows else (0, batch)
        return loss(rows=slice(first + begin, first + end))

    return of_rows


def _step_of(
    torch: Any, place: str, stack: List[Found], net: Any, loss: Callable[..., Any], batch: Optional[int], ranks: int, meshes: Mapping[str, Any]
) -> Callable[[], Any]:
    """What is done in a step, and returns its loss."""

    def call(one: Found, **given: Any) -> Any:
        if "batch" in given and batch is None:
            raise Refused(f"{place}: {one.name} trains parts of a batch: give the model's function a parameter `batch`, and its loss `rows`, a slice of it")
        return _called(torch, place, one.name, one.function, net, **given, **one.options)

    made = _stacks.Composition(place, stack, net, loss, batch, call, meshes)
    assert made.by is not None
    _process_group.tell_distinct(net, made.optimizer, ranks, _stacks.distinct_ranks(stack))
    if made.optimizer is not None:
        whole = "optimizer.zero_grad(); value = loss(); value.backward(); optimizer.step(); return value"
        return _as_if_there(made.by, whole, loss=made.loss, optimizer=made.optimizer)
    if made.step is None:
        return _as_if_there(made.by, "value = loss(); value.backward(); return value", loss=made.loss)
    step = made.step
    return _checked(torch, f"{place}: a step of {made.by.name}", lambda: step(made.loss))


def _as_if_there(of: Found, statements: str, **names: Any) -> Callable[[], Any]:
    """A function of these statements that stands in the line of that function, for whoever looks at the call stack.

    What an update allocates is of the strategy's line then, and not of ours.
    """
    code, name = of.function.__code__, of.function.__name__
    scope = dict(names)
    exec(compile("\n" * (code.co_firstlineno - 1) + f"def {name}(): {statements}", code.co_filename, "exec"), scope)
    made: Callable[[], Any] = scope[name]
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


def _checked(torch: Any, where: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def checked(*rows: slice) -> Any:
        value = function(*rows)
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            raise Refused(f"{where} is {kind_of(value)}; expected a tensor of one value")
        return value

    return checked


# ---- the promise, on the CPU ----


def _copies(torch: Any, net: Any) -> Dict[str, Any]:
    """The parameters' values now, in memory that is not PyTorch's, so that they are in no figure."""
    copies = {}
    for name, one in net.named_parameters():
        held = one.detach().contiguous()
        if held.numel() and type(one) is torch.nn.Parameter:
            values = bytearray((ctypes.c_char * (held.numel() * held.element_size())).from_address(held.data_ptr()))
            copies[name] = torch.frombuffer(values, dtype=held.dtype).view(held.shape)
    return copies


def _keep(torch: Any, net: Any, losses: List[float], where: Mapping[str, str], initial: Dict[str, Any], ranks: int) -> None:
    """Leaves the losses, and losses and parameters where they are a reference or held against one. Of several ranks the first one does."""
    whole: Dict[str, Any] = {}
    unequal: List[str] = []
    if where["parameters"]:
        whole, unequal = _degrees.whole_parameters(net)
    if int(os.environ.get("RANK", "0")):
        return
    Path(where["losses"]).write_text(
        json.dumps({"losses": [value if math.isfinite(value) else str(value) for value in losses]}), encoding="utf-8"
    )
    if where["parameters"]:
        parameters = {name: one.detach() for name, one in whole.items()}
        kept = {"losses": losses, "parameters": parameters, "initial": initial, "ranks": ranks, "unequal": unequal}
        torch.save(kept, where["parameters"])


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
        return _broken(_unlike(ours) or "trains other parameters than the reference case")
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
    if worst[1] == math.inf:
        return _broken(f"values that are infinite or not a number in {worst[0]}", "nan")
    if _unlike(ours):
        return _broken(_unlike(ours), largest)
    apart = _apart(ours, theirs) if ours["ranks"] > 1 else 0.0
    if apart > _MOST_APART:
        return _broken(f"its parameters are off the reference's by {apart:.0%} of what training moved them", largest)
    if not worst[0]:
        return {"verdict": "held", "max_abs_difference": largest, "reason": ""}
    return _broken(f"differs most in {worst[0]}, by {worst[1]:.3g}", largest)


def _unlike(ours: Mapping[str, Any]) -> str:
    """What ranks differ in, in words; empty where they do not."""
    return f"ranks have different values of {ours['unequal'][0]}" if ours["unequal"] else ""


def _apart(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> float:
    """How far the parameters are from the reference's, as a part of how far those are from their initial values: norms of all of them together.

    A tolerance of each value does not tell: AdamW moves all by about as much, whatever their gradients are.
    """
    apart = moved = 0.0
    for name, began in theirs["initial"].items():
        ended = theirs["parameters"][name]
        moved += float((ended.double() - began.double()).square().sum())
        apart += float((ours["parameters"][name].double() - ended.double()).square().sum())
    return math.sqrt(apart / moved) if moved else 0.0


def _difference(torch: Any, ours: Any, theirs: Any, promise: Mapping[str, Any]) -> Tuple[float, bool]:
    """The largest distance of two values, infinite where one is not finite, and whether the promise is broken by them."""
    if torch.equal(_degrees.bits(ours), _degrees.bits(theirs)):
        return 0.0, False
    a, b = ours.double(), theirs.double()
    away = (a - b).abs()
    far = float(away.max()) if bool(a.isfinite().all()) else math.inf
    if promise["promise"] == "bit_identical":
        return far, True
    within = away <= (promise["tolerance"] or 0) + (promise["relative_tolerance"] or 0) * b.abs()
    return far, not bool(within.all())


def _broken(reason: str, difference: Any = None) -> Dict[str, Any]:
    return {"verdict": "broken", "max_abs_difference": difference, "reason": reason}


def _not_checked(reason: str) -> Dict[str, Any]:
    return {"verdict": "not_checked", "max_abs_difference": None, "reason": reason}


if __name__ == "__main__":
    code = main()
    _process_group.leave(code)
    sys.exit(code)
