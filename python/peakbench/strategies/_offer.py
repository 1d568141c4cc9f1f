"""What every strategy of this package says of itself, and what several of them use."""

import inspect
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, TypeVar

import torch
from torch import nn
from torch.distributed.tensor import DTensor

from peakbench._objects import Offer, Promise, Refused, offered

Function = TypeVar("Function", bound=Callable[..., Any])

# The tolerance of the plugins (plugins/*/plugin.json): AdamW moves a parameter whose gradient is nearly zero by up to its learning rate.
WITHIN = Promise("within_tolerance", 0.006, 0.001, "baseline")
SAME_BITS = Promise("bit_identical", reference="baseline")
DIFFERENT = Promise("different_problem")


def strategy(
    name: str,
    promise: Promise = DIFFERENT,
    *,
    aliases: Tuple[str, ...] = (),
    needs: Tuple[str, str, str] = ("", "", ""),
    for_ranks: bool = False,
    shares_batch: bool = False,
    on_meta: bool = False,
    distinct: Optional[Callable[[Any, Any, int], Sequence[int]]] = None,
) -> Callable[[Function], Function]:
    """Marks a function. ``needs`` is a module, its package and the oldest release; the rest is as in ``peakbench._objects.Offer``."""
    offer = Offer(name, aliases, needs, for_ranks, shares_batch, on_meta, distinct)
    return lambda function: offered(function, offer, promise)


def every_rank(_: nn.Module, __: Any, ranks: int) -> Sequence[int]:
    """Each may have other memory than the first."""
    return range(ranks)


def device_of(model: nn.Module) -> torch.device:
    """The device of its first parameter, or where a model without memory is materialised."""
    device = next(model.parameters()).device
    return torch.device("cuda", torch.cuda.current_device()) if device.type == "meta" else device


def materialised(model: nn.Module, device: torch.device) -> nn.Module:
    """A model on `meta`, with random weights on this device: only what this rank has of them. Others stay as they are."""
    if not any(one.is_meta for one in model.parameters()):
        return model
    model._apply(lambda one: torch.empty_like(one, device=device) if one.is_meta else one)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        for one in model.parameters():
            (one.to_local() if isinstance(one, DTensor) else one).normal_(std=0.02)
    return model


def blocks_of(model: nn.Module) -> List[nn.Module]:
    """The repeated blocks of a model: the outermost lists of modules of one class that have modules themselves."""
    return list(_blocks_in(model))


def _blocks_in(module: nn.Module) -> Iterator[nn.Module]:
    for child in module.children():
        parts = list(child.children())
        is_list = isinstance(child, nn.ModuleList) or (isinstance(child, nn.Sequential) and len(parts) > 1)
        if is_list and len({type(one) for one in parts}) == 1 and any(parts[0].children()):
            yield from parts
        else:
            yield from _blocks_in(child)


def linear_layers(model: nn.Module) -> List[str]:
    """The names of the linear layers but the output head, and those that return something else, such as routers."""
    head = getattr(model, "get_output_embeddings", lambda: None)()

    def is_plain(one: nn.Module) -> bool:
        return isinstance(one, nn.Linear) and (type(one).forward is nn.Linear.forward or hasattr(one.weight, "quant_state"))

    return [name for name, one in model.named_modules() if is_plain(one) and one is not head]


def trained(model: nn.Module) -> List[Any]:
    """The parameters that are trained, as an optimizer takes them: those of each device mesh in a group, as kernels take no mixture.

    Those that another rank has are on the meta device.
    """
    groups: Dict[Any, List[Any]] = {}
    for one in model.parameters():
        if one.requires_grad and not one.is_meta:
            groups.setdefault(getattr(one, "device_mesh", None), []).append(one)
    return [{"params": group} for group in groups.values()] if len(groups) > 1 else next(iter(groups.values()), [])


def another(optimizer: torch.optim.Optimizer, parameters: List[Any], make: Any = None, **more: Any) -> Any:
    """An optimizer like that one, for these parameters: by ``make``, or of its class."""
    taken = inspect.signature(type(optimizer)).parameters
    options = {name: value for name, value in optimizer.defaults.items() if name in taken}
    return (make or type(optimizer))(parameters, **{**options, **more})


def chosen(name: str, option: str, value: str, known: Any) -> Any:
    """The entry of ``known`` for an option's value. Refused where there is none."""
    if value not in known:
        raise Refused(f'{name}: {option}: expected {", ".join(list(known)[:-1])} or {list(known)[-1]}, got "{value}"')
    return known[value]
