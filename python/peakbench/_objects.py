"""Models and strategies that are functions in Python: what marks them, and what is found of them in a file.

Nothing of PyTorch is imported.
"""

import difflib
import inspect
import re
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple, TypeVar, Union, overload

Function = TypeVar("Function", bound=Callable[..., Any])
Value = Union[bool, int, float, str]

PROMISES = ("bit_identical", "within_tolerance", "different_problem")  # a plugin's manifest has the same words
_MARK = "__peakbench__"


# All, in order: of two functions of one name, a module keeps the second alone.
marked_so_far: List[Callable[..., Any]] = []


class Refused(Exception):
    """What somebody wrote or typed cannot be used; the message is one sentence that says why."""


class Unsupported(Refused):
    """A model or a strategy of this package cannot be used with these values, or here."""


@dataclass(frozen=True)
class Promise:
    """What a strategy says of its training: losses and parameters, held against those of the strategy ``reference``."""

    promise: str
    tolerance: Optional[float] = None
    relative_tolerance: Optional[float] = None
    reference: str = ""  # empty: the first strategy of the file


@dataclass(frozen=True)
class Offer:
    """What a strategy of ``peakbench.strategies`` says besides its promise."""

    name: str  # as typed; the function's has underscores
    aliases: Tuple[str, ...] = ()
    needs: Tuple[str, str, str] = ("", "", "")  # module, package, oldest release
    for_ranks: bool = False
    shares_batch: bool = False  # each rank trains samples of its own
    on_meta: bool = False  # on a card, takes a model without memory, and gives each rank its share
    distinct: Optional[Callable[[Any, Any, int], Sequence[int]]] = None  # of model, optimizer, ranks: ranks of other memory than the first


@dataclass(frozen=True)
class Mark:
    """What a decorator leaves on a function."""

    kind: str  # "model" | "strategy"
    promise: Promise
    offer: Optional[Offer] = None


def model(function: Function) -> Function:
    """Marks a function that makes a model, for ``peakbench run --program FILE.py:FUNCTION``.

    It returns the ``torch.nn.Module`` and a function without arguments that makes the loss of a step, a tensor of one value::

        @peakbench.model
        def tiny(batch=8, width=256):
            net = torch.nn.Linear(width, width)
            inputs = torch.randn(batch, width)
            return net, lambda: net(inputs).square().mean()

    It is called in ``with torch.device(...)``: what it makes is on the card, or on the CPU. ``batch`` is what ``--batch`` gives (1 where
    the function has no default); other parameters are options (``FILE.py:tiny,width=512``). The function itself is returned as it is.
    TypeError where that is no function.
    """
    return _marked(function, "model", Promise("different_problem"))


@overload
def strategy(function: Function) -> Function: ...
@overload
def strategy(
    *, promise: str = ..., tolerance: Optional[float] = ..., relative_tolerance: Optional[float] = ..., reference: str = ...
) -> Callable[[Function], Function]: ...
def strategy(
    function: Optional[Function] = None,
    *,
    promise: str = "different_problem",
    tolerance: Optional[float] = None,
    relative_tolerance: Optional[float] = None,
    reference: str = "",
) -> Any:
    """Marks a function that says how a model is trained, for ``peakbench run --program``.

    It is given the model and may change it. What it returns says what it is:

    - an optimizer (anything with ``step()`` and ``zero_grad()``);
    - the model: it was changed, and the optimizer is another strategy's, or the AdamW of ``peakbench.strategies.baseline``;
    - a function of a step, which is given the function that makes the loss, does all that a step is and returns the loss;
    - None, where backward itself updates.

    A parameter without a default is given, if it is called

    - ``loss``: the function that makes the loss. A function that is returned is called in its place;
    - ``optimizer``: the one of the other strategies, or the baseline's;
    - ``batch``: the samples of a batch. The loss then takes ``rows``, a slice of them;
    - ``mesh``: the device mesh of the ranks.

    A tuple returns several of these. Other parameters are options (``--strategy sgd,lr=0.1``)::

        @peakbench.strategy
        def sgd(model, lr=0.01):
            return torch.optim.SGD(model.parameters(), lr=lr)

        @peakbench.strategy(promise="bit_identical")
        def one_by_one(model, lr=0.01):
            return torch.optim.SGD(model.parameters(), lr=lr, foreach=False)

    ``promise``: losses and parameters are ``bit_identical`` to those of the strategy ``reference`` (the first of the file), or
    ``within_tolerance`` of them (``tolerance``, and ``relative_tolerance`` times the reference's value), or it trains a
    ``different_problem``. It is checked on the CPU. ValueError for another word, or tolerances that are missing, negative or of another
    promise.
    """
    told = _promise(promise, tolerance, relative_tolerance, reference)
    if function is not None:
        return _marked(function, "strategy", told)
    return lambda marked: _marked(marked, "strategy", told)


def _promise(promise: str, tolerance: Optional[float], relative_tolerance: Optional[float], reference: str) -> Promise:
    if promise not in PROMISES:
        raise ValueError(f'promise "{promise}": expected {", ".join(PROMISES[:-1])} or {PROMISES[-1]}{nearest(promise, PROMISES)}')
    tolerances = [one for one in (tolerance, relative_tolerance) if one is not None]
    if promise == "within_tolerance" and not tolerances:
        raise ValueError("within_tolerance needs a tolerance or a relative_tolerance: by how much a value may differ")
    if promise != "within_tolerance" and tolerances:
        raise ValueError(f"{promise} has no tolerance: leave it out, or promise within_tolerance")
    if any(isinstance(one, bool) or not isinstance(one, (int, float)) or not 0 <= one < float("inf") for one in tolerances):
        raise ValueError("a tolerance is a number of 0 or more")
    if reference and promise == "different_problem":
        raise ValueError("different_problem is compared with nothing: leave out the reference, or promise something")
    return Promise(promise, tolerance, relative_tolerance, reference)


def offered(function: Function, offer: Offer, promise: Promise) -> Function:
    """Marks a strategy of ``peakbench.strategies``."""
    return _marked(function, "strategy", promise, offer)


def _marked(function: Function, kind: str, promise: Promise, offer: Optional[Offer] = None) -> Function:
    if not inspect.isfunction(function):
        raise TypeError(f"@peakbench.{kind} marks a function; it was given {function!r}")
    setattr(function, _MARK, Mark(kind, promise, offer))
    marked_so_far.append(function)
    return function


def nearest(word: str, known: "Tuple[str, ...] | List[str]") -> str:
    """`; did you mean "that"?`, or what there is."""
    close = difflib.get_close_matches(word, known, 1, 0.5)
    if close:
        return f'; did you mean "{close[0]}"?'
    return f"; there is {', '.join(known)}" if known else ""


@dataclass(frozen=True)
class Found:
    """A marked function, and the options that it is called with."""

    name: str
    function: Callable[..., Any]
    promise: Promise
    options: Dict[str, Value]  # those that differ from the defaults

    @property
    def offer(self) -> Optional[Offer]:
        """Where it is one of ``peakbench.strategies``."""
        mark: Mark = getattr(self.function, _MARK)
        return mark.offer

    @property
    def text(self) -> str:
        """As it is typed."""
        return ",".join([self.name, *(f"{key}={_as_typed(value)}" for key, value in self.options.items())])


def _as_typed(value: Value) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f'"{text}"' if isinstance(value, str) and (not text or any(one in text for one in ',+" ')) else text


def marked_in(module: ModuleType, kind: str) -> Dict[str, Callable[..., Any]]:
    """The functions that are marked so, in the order of the file, by name."""
    found: Dict[str, Callable[..., Any]] = {}
    for name, value in vars(module).items():
        mark = _mark_of(value, kind) if inspect.isfunction(value) else None
        if mark is not None:
            found.setdefault(mark.offer.name if mark.offer else name, value)
    return found


def offers_in(package: ModuleType) -> List[Offer]:
    """Of the strategies of that package."""
    marks = [getattr(one, _MARK) for one in marked_in(package, "strategy").values()]
    return [mark.offer for mark in marks if mark.offer]


def named(known: Mapping[str, Callable[..., Any]], name: str) -> str:
    """The name among those that is meant: itself, with ``-`` for ``_``, or an alias; empty where there is none."""
    plain = name.replace("-", "_")
    for one, function in known.items():
        mark: Mark = getattr(function, _MARK)
        if plain in (other.replace("-", "_") for other in (one, *(mark.offer.aliases if mark.offer else ()))):
            return one
    return ""


def twice_in(module: ModuleType) -> Optional[Tuple[str, List[int]]]:
    """A name that two of its marked functions have, and their lines."""
    lines: Dict[str, List[int]] = {}
    for function in marked_so_far:
        if function.__module__ == module.__name__ and function.__qualname__ == function.__name__:
            lines.setdefault(function.__name__, []).append(function.__code__.co_firstlineno)
    return next(((name, where) for name, where in lines.items() if len(where) > 1), None)


def _mark_of(function: Callable[..., Any], kind: str) -> Optional[Mark]:
    mark = getattr(function, _MARK, None)
    return mark if isinstance(mark, Mark) and mark.kind == kind else None


def find(module: ModuleType, place: str, kind: str, typed: str) -> Found:
    """The function that is meant by NAME,key=value,... in that file or module. Refused where there is none, or it takes no such option."""
    name, options = split(typed)
    known = marked_in(module, kind)
    name = named(known, name) or name
    if name not in known:
        marked = getattr(getattr(module, name, None), _MARK, None)
        if isinstance(marked, Mark):
            raise Refused(f"{place}: {name} is a {marked.kind}, and no {kind}")
        if hasattr(module, name):
            raise Refused(f"{place}: {name} is no {kind}: put @peakbench.{kind} above it")
        raise Refused(
            f'{place} has no {kind} "{name}"' + (nearest(name, list(known)) or f": put @peakbench.{kind} above the function that makes one")
        )
    return with_options(known[name], place, kind, name, options)


def with_options(function: Callable[..., Any], place: str, kind: str, name: str, options: Dict[str, str]) -> Found:
    """The marked function with these options. Refused where it takes no such option or value, or lacks one."""
    taken = _options_of(function, kind)
    values: Dict[str, Value] = {}
    for key, text in options.items():
        if key not in taken:
            raise Refused(f'{place}: {name} takes no option "{key}"' + (nearest(key, list(taken)) or "; it has none"))
        values[key] = _value(f"{place}: {name}", taken[key], text)
    missing = [key for key, parameter in taken.items() if parameter.default is parameter.empty and key not in values]
    if missing:
        raise Refused(f"{place}: {name} needs the option {missing[0]}, as it has no default: {name},{missing[0]}=VALUE")
    mark: Mark = getattr(function, _MARK)
    return Found(name, function, mark.promise, {key: values[key] for key in sorted(values) if values[key] != taken[key].default})


def all_options(found: Found, kind: str) -> Dict[str, Value]:
    """Also those that have their defaults, where these are values that can be typed."""
    defaults = {name: parameter.default for name, parameter in _options_of(found.function, kind).items()}
    return {**{name: value for name, value in defaults.items() if isinstance(value, (bool, int, float, str))}, **found.options}


def takes_batch(function: Callable[..., Any]) -> bool:
    """Whether the model is made for a batch size."""
    return "batch" in inspect.signature(function).parameters


def default_batch(function: Callable[..., Any]) -> int:
    """What the function says, else 1. Refused where that is no number of samples."""
    default = inspect.signature(function).parameters["batch"].default
    if default is inspect.Parameter.empty:
        return 1
    if isinstance(default, bool) or not isinstance(default, int) or default < 1:
        raise Refused(f"{function.__name__}(batch={default!r}): expected an integer of 1 or more")
    return default


def shared_options(one: Found, other: Callable[..., Any]) -> Dict[str, Value]:
    """Of what a strategy is called with, all that another one takes, too: so they are held against each other."""
    return {name: value for name, value in one.options.items() if name in _options_of(other, "strategy")}


def given_to(function: Callable[..., Any]) -> Set[str]:
    """What a strategy is given besides the model."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return {one.name for one in parameters if one.name in ("loss", "optimizer", "batch", "mesh") and one.default is one.empty}


def chooses_optimizer(function: Callable[..., Any]) -> bool:
    """Whether its annotation says that an optimizer is all that it returns: that is known before it is called."""
    told = inspect.signature(function).return_annotation
    return "optimizer" not in given_to(function) and (told if isinstance(told, str) else getattr(told, "__name__", "")).endswith("Optimizer")


def _options_of(function: Callable[..., Any], kind: str) -> Dict[str, inspect.Parameter]:
    """By name: what can be typed. A strategy's first parameter is the model, a model's `batch` has its own option."""
    parameters = list(inspect.signature(function).parameters.values())
    if kind == "strategy":
        parameters = parameters[1:]
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    others = {"batch"} if kind == "model" else given_to(function)
    return {one.name: one for one in parameters if one.kind in kinds and one.name not in others}


def _value(where: str, parameter: inspect.Parameter, text: str) -> Value:
    """Of the type that the default has; without one, what the text looks like."""
    default = parameter.default
    words: Dict[str, Value] = {"true": True, "false": False, "on": True, "off": False}
    if isinstance(default, bool):
        if text.lower() in words:
            return words[text.lower()]
        raise Refused(f'{where}: {parameter.name}: expected true or false, got "{text}"')
    guesses = {int: (int,), float: (float,), str: (str,)}.get(type(default), (int, float, str))
    for guess in guesses:
        try:
            return words[text.lower()] if len(guesses) > 1 and text.lower() in ("true", "false") else guess(text)
        except ValueError:
            continue
    raise Refused(f'{where}: {parameter.name}: expected {"an integer" if guesses == (int,) else "a number"}, got "{text}"')


def split_stack(typed: str) -> List[str]:
    """The strategies of NAME,key=value+NAME,... Refused where one is missing. The + of a quoted value or of 1e+3 separates nothing."""
    parts = re.findall(r'(?:"[^"]*"|[\d.][eE]\+(?=\d)|[^+])+', typed)
    if "+".join(parts) != typed:
        raise Refused(f'"{typed}": expected NAME+NAME')
    return parts


def split(typed: str) -> Tuple[str, Dict[str, str]]:
    """NAME,key=value,... with values in double quotes where they hold a comma. Refused where it is nothing like that."""
    name, _, rest = typed.partition(",")
    if not name:
        raise Refused(f'"{typed}": expected NAME,key=value')
    options: Dict[str, str] = {}
    while rest:
        key, equals, rest = rest.partition("=")
        if not equals or not key:
            raise Refused(f'"{typed}": expected key=value after a comma')
        if key in options:
            raise Refused(f'"{typed}": option "{key}" is given twice')
        if rest.startswith('"'):
            options[key], closed, rest = rest[1:].partition('"')
            if not closed or (rest and not rest.startswith(",")):
                raise Refused(f'"{typed}": the quote is not closed')
            rest = rest[1:]
        else:
            options[key], _, rest = rest.partition(",")
        if not options[key]:
            raise Refused(f'"{typed}": expected a value after {key}=')
    return name, options
