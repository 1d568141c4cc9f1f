"""How a stack uses its ranks: the number of ranks of each strategy, whose product is the number of ranks, and the device mesh that they share.

A strategy for ranks with the option ``size`` says over how many of them it goes; one of a stack may leave it out and goes over the rest.
PyTorch is imported when a mesh is made.
"""

import math
from typing import Any, Dict, List, Tuple

from peakbench._objects import Found, Refused, given_to

# Neighbours exchange most: the last is over consecutive ranks, as in torchtitan (torchtitan/distributed/parallel_dims.py).
_OUTER_TO_INNER = ("pipeline", "ddp", "zero-1", "hsdp", "fsdp", "context-parallel", "tensor-parallel")
REPLICAS = "replicas"  # the dimension that hsdp has besides its own

Degrees = Dict[str, int]


def degrees(stack: List[Found], ranks: int) -> Degrees:
    """Dimensions of the mesh, from the outermost, and their sizes. Refused where they do not multiply to the ranks."""
    typed = "+".join(one.text for one in stack)
    of_ranks = sorted((one for one in stack if one.offer and one.offer.for_ranks), key=lambda one: _OUTER_TO_INNER.index(one.name))
    sizes: Degrees = {}
    for one in of_ranks:
        if one.name == "hsdp":
            sizes[REPLICAS] = 0
        sizes[one.name] = _size(one)
    if not sizes:
        return {}
    if sizes.get("hsdp") == 0:
        raise Refused(f'"{typed}": hsdp shards over some of the ranks, and copies over the rest: say over how many it shards, hsdp,size=N')
    open_ = [name for name, size in sizes.items() if size == 0]
    if len(open_) > 1:
        last = open_[-1]
        raise Refused(f'"{typed}": {" and ".join(open_)} both go over the rest of the ranks: say over how many, {last},size=N')
    product = math.prod(size for size in sizes.values() if size)
    if open_ and ranks % product == 0:
        return {name: size or ranks // product for name, size in sizes.items()}
    if open_ or product != ranks:
        told = " x ".join(str(size) for size in sizes.values() if size)
        raise Refused(f'"{typed}": the {ranks} ranks are {"no multiple of " if open_ else "not "}{told}')
    return sizes


def _size(one: Found) -> int:
    """0 where it was not said."""
    size = one.options.get("size", 0)
    if not isinstance(size, int) or size < 0:
        raise Refused(f"{one.name}: size: expected 1 or more, got {size}")
    return size


def share_of_batch(stack: List[Found], sizes: Degrees, rank: int) -> Tuple[int, int]:
    """Which part of the batch a rank trains, of how many: ranks that are alike but for their part of the model train the same one."""
    shares = {one.name for one in stack if one.offer and one.offer.shares_batch}
    part, of = 0, 1
    stride = math.prod(sizes.values())
    for name, size in sizes.items():
        stride //= size
        if name in shares or (name == REPLICAS and "hsdp" in shares):
            part, of = part * size + rank // stride % size, of * size
    return part, of


def meshes(stack: List[Found], sizes: Degrees, device: str) -> Dict[str, Any]:
    """By strategy, the mesh that it is given: its dimension, or two of hsdp. A function of the user gets the whole mesh.

    None is made where none is asked for, as its groups of ranks take memory.
    """
    import torch.distributed as dist

    if not dist.is_initialized() or not any("mesh" in given_to(one.function) for one in stack):
        return {}
    from torch.distributed.device_mesh import init_device_mesh

    sizes = sizes or {"ranks": dist.get_world_size()}
    mesh = init_device_mesh(device, tuple(sizes.values()), mesh_dim_names=tuple(sizes))
    found = {name: mesh[name] for name in sizes}
    if "hsdp" in sizes:
        found["hsdp"] = mesh[REPLICAS, "hsdp"]
    if "fsdp" in sizes and "context-parallel" in sizes:  # shards over both, as each rank has gradients of its own
        found["fsdp"] = init_device_mesh(device, (sizes["fsdp"] * sizes["context-parallel"],))
    return {one.name: found.get(one.name, mesh) for one in stack}


def whole_parameters(net: Any) -> Tuple[Dict[str, Any], List[str]]:
    """Each parameter by its name, put together of what the ranks have, and the names of those of which ranks have other values, or other shapes.

    Of each rank it is on the meta device of, the first other one sends it.
    """
    import torch
    import torch.distributed as dist

    named = dict(net.named_parameters())
    if not dist.is_initialized():
        return named, []
    told: List[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(told, {name: (tuple(one.shape), str(one.dtype), one.is_meta) for name, one in named.items()})
    whole, unequal = {}, [name for other in told for name in other if name not in told[0]]
    for name, (shape, dtype, _) in told[0].items():
        if any(other.get(name, ())[:2] != (shape, dtype) for other in told):
            unequal.append(name)  # so that no rank waits for one that sends something else
            continue
        one = named[name].detach()
        if not one.is_meta and hasattr(one, "full_tensor"):
            one = one.full_tensor()
        sent = torch.empty(shape, dtype=one.dtype) if one.is_meta else one.contiguous().clone()
        dist.broadcast(sent, next(rank for rank, other in enumerate(told) if not other[name][2]))
        differs = torch.tensor([int(not one.is_meta and not torch.equal(bits(one), bits(sent)))])
        dist.all_reduce(differs)
        if differs.item():
            unequal.append(name)
        whole[name] = sent
    return whole, unequal


def bits(values: Any) -> Any:
    """As they are compared: no number is itself."""
    import torch

    return values.contiguous().reshape(-1).view(torch.uint8)
