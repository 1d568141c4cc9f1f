"""Models of the user's installed libraries, by name: ``peakbench run --program hf:llama-3.1-8b``.

They have random weights, a batch of the form that the model takes, and the library's own loss. Nothing is downloaded. Each library is a
file here with:

- ``model(name)``: a Model. Refused where the name means nothing;
- ``names()``, where no configurations are bundled: the names to list, each with its number of parameters or None.
"""

import difflib
import importlib
import importlib.metadata
import importlib.util
import inspect
import json
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from peakbench import _objects
from peakbench._objects import Found, Refused, Unsupported, Value

# A place of --program, and the package that it needs, from that release on.
LIBRARIES: Mapping[str, Tuple[str, str]] = {
    "hf": ("transformers", "4.56"),
    "timm": ("timm", "1.0"),
    "torchvision": ("torchvision", "0.14"),
    "diffusers": ("diffusers", "0.30"),
}
DTYPES: Mapping[str, str] = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}

Made = Tuple[Any, Callable[..., Any]]  # the module and its loss


@dataclass(frozen=True)
class Model:
    """A named model: its options with their defaults, what checks them, and what makes it on the current device.

    Both are called with all options; ``make`` also with ``batch``. ``check`` raises Refused.
    """

    defaults: Dict[str, Value]
    check: Callable[..., None]
    make: Callable[..., Made]


def load(place: str) -> ModuleType:
    """The file of that library. Refused where the library is not installed, too old, or does not load."""
    package, oldest = LIBRARIES[place]
    os.environ["HF_HUB_OFFLINE"] = "1"  # read as the library is imported
    if importlib.util.find_spec(package) is None:
        raise Unsupported(f"{place}: {sys.executable} has no {package}: install it there (pip install {package})")
    try:
        version = importlib.metadata.version(package)  # without importing it, which takes seconds
    except importlib.metadata.PackageNotFoundError:
        version = str(importlib.import_module(package).__version__)
    if _numbers(version) < _numbers(oldest):
        raise Unsupported(f"{place}: {package} {version} is too old; it takes {oldest} or newer (pip install -U {package})")
    return importlib.import_module(f"{__name__}.{place}")


def _numbers(version: str) -> List[int]:
    return [int(part) for part in version.split(".")[:2] if part.isdigit()]


def find(library: ModuleType, place: str, typed: str) -> Found:
    """The model that is meant by NAME,key=value,... Refused where there is none, or it takes no such option or value."""
    if not typed:
        raise Unsupported(f"{place} has many models: say which, {place}:NAME (peakbench list models --library {place})")
    name, options = _objects.split(typed[len(place) + 1 :] if typed.startswith(place + ":") else typed)
    model: Model = library.model(name)
    found = _objects.with_options(_function(model), place, "model", name, options)
    chosen = {**model.defaults, **found.options}
    try:
        _check(chosen)
        model.check(**chosen)
    except Refused as refused:
        raise Unsupported(f"{place}: {name}: {refused}") from None
    return found


def _function(model: Model) -> Callable[..., Made]:
    def make(**given: Any) -> Made:
        return model.make(**{**model.defaults, **given})

    parameters = {"batch": 1, **model.defaults}
    kind = inspect.Parameter.KEYWORD_ONLY
    setattr(make, "__signature__", inspect.Signature([inspect.Parameter(name, kind, default=one) for name, one in parameters.items()]))
    return _objects.model(make)


def loss_of(batch: Any, loss: Callable[[Any], Any]) -> Callable[..., Any]:
    """The loss of the whole batch, or of the samples ``rows``. A batch is made of tensors whose first dimension is the samples."""

    def of_rows(rows: Optional[slice] = None) -> Any:
        return loss(batch if rows is None else _rows(batch, rows))

    return of_rows


def _rows(batch: Any, rows: slice) -> Any:
    if isinstance(batch, dict):
        return {name: _rows(one, rows) for name, one in batch.items()}
    return batch[rows] if hasattr(batch, "shape") or isinstance(batch, list) else batch


def _check(options: Mapping[str, Value]) -> None:
    """What holds for every library."""
    for name in ("seq", "layers", "image", "classes", "frames"):
        if int(options.get(name, 1)) < 1:
            raise Unsupported(f"{name}={options[name]}: expected an integer of 1 or more")
    one_of("dtype", str(options["dtype"]), tuple(DTYPES))


def one_of(option: str, value: str, known: Tuple[str, ...]) -> None:
    """Refused where the value is none of these."""
    if value not in known:
        raise Unsupported(f'{option}: expected {", ".join(known[:-1])} or {known[-1]}, got "{value}"')


@contextmanager
def default_dtype(torch: Any, dtype: str) -> Iterator[Any]:
    """Weights that are made within are of that type ("bf16"), which it returns."""
    before, wanted = torch.get_default_dtype(), getattr(torch, DTYPES[dtype])
    torch.set_default_dtype(wanted)
    try:
        yield wanted
    finally:
        torch.set_default_dtype(before)


# ---- configurations ----


def bundled(place: str) -> Dict[str, Dict[str, Any]]:
    """The configurations that come with Peakbench, by name: source, parameters, config."""
    file = Path(__file__).with_name("configurations.json")
    found: Dict[str, Dict[str, Any]] = json.loads(file.read_text(encoding="utf-8")).get(place, {})
    return found


def configuration(place: str, name: str, cached: Tuple[str, ...]) -> Dict[str, Any]:
    """The values of a bundled name, of a config.json or its folder, or of a name in the hub's local cache (there, in one of these files).

    Refused where it is none of them.
    """
    known = bundled(place)
    if name in known:
        return dict(known[name]["config"])
    file = Path(name)
    if file.is_dir():
        file = file / "config.json"
    if file.is_file():
        return _read(place, file)
    if name.endswith(".json") or name.startswith((".", "/", "~")):
        raise Unsupported(f"{place}: there is no file {file}")
    if "/" in name:
        return _read(place, _in_cache(place, name, cached))
    raise unknown(place, name, list(known), "or give the path of a config.json")


def unknown(place: str, name: str, known: List[str], otherwise: str = "") -> Unsupported:
    """There is no such name: with the nearest, or where to find them."""
    close = difflib.get_close_matches(name, known, 1, 0.5)
    listed_by = f"see `peakbench list models --library {place}`" + (f", {otherwise}" if otherwise else "")
    return Unsupported(f'{place} has no model "{name}"; ' + (f'did you mean "{close[0]}"?' if close else listed_by))


def _read(place: str, file: Path) -> Dict[str, Any]:
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise Unsupported(f"{place}: {file} is not JSON: {error.msg} (line {error.lineno})") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Unsupported(f"{place}: {file} cannot be read: {error}") from None
    if not isinstance(values, dict):
        raise Unsupported(f"{place}: {file} is no configuration: expected a JSON object")
    return values


def _in_cache(place: str, name: str, files: Tuple[str, ...]) -> Path:
    hub = importlib.import_module("huggingface_hub")
    for file in files:
        try:
            found = hub.try_to_load_from_cache(name, file)
        except ValueError:  # no name of the hub
            break
        if isinstance(found, str):
            return Path(found)
    raise Unsupported(
        f'{place}: "{name}" is neither a file nor in the hub\'s cache on this machine; get its configuration with '
        f"`hf download {name} {files[0]}`, or give the path of a config.json"
    )


def listed(place: str) -> List[Dict[str, Any]]:
    """For `peakbench list models --library`: name, parameters and source of each, None where unknown.

    Refused where there is no such library.
    """
    if place not in LIBRARIES:
        raise Unsupported(f'there is no library "{place}"{_objects.nearest(place, list(LIBRARIES))}')
    known = bundled(place)
    if known:
        return [{"name": name, "parameters": one["parameters"], "source": one["source"]} for name, one in known.items()]
    return [{"name": name, "parameters": parameters, "source": None} for name, parameters in load(place).names().items()]
