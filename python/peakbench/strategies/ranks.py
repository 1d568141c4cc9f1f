"""Training on several ranks: PyTorch's own, in the default process group.

Modules that take a second to import are imported where they are used.
"""

from typing import Any, Callable, Dict, List, Tuple

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from peakbench._objects import Refused
from peakbench.strategies._offer import WITHIN, another, blocks_of, chosen, device_of, materialised, strategy


class _Loss(nn.Module):
    """What DistributedDataParallel runs: the model with its loss, so that the function of the loss stays as it is."""

    def __init__(self, model: nn.Module, loss: Callable[..., Any]) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, *rows: slice) -> Any:
        return self.loss(*rows)


@strategy("ddp", WITHIN, for_ranks=True, shares_batch=True)
def ddp(model: nn.Module, loss: Callable[..., Any]) -> nn.Module:
    """Averages gradients over the ranks. https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"""
    return DistributedDataParallel(_Loss(model, loss))


def _fullest_and_emptiest(_: nn.Module, optimizer: Any, ranks: int) -> List[int]:
    """Of whole parameters, which ZeroRedundancyOptimizer gives to ranks; those that have as much as the first are like it."""
    sizes = [sum(one.numel() for group in groups for one in group["params"]) for groups in optimizer._partition_parameters()]
    return [sizes.index(size) for size in (max(sizes), min(sizes)) if size != sizes[0]]


@strategy("zero-1", WITHIN, for_ranks=True, shares_batch=True, distinct=_fullest_and_emptiest)
def zero_1(model: nn.Module, loss: Callable[..., Any], optimizer: Optimizer) -> Tuple[nn.Module, Optimizer]:
    """Data parallel training that shards the optimizer's state. https://docs.pytorch.org/docs/stable/distributed.optim.html"""
    from torch.distributed.optim import ZeroRedundancyOptimizer

    parameters = [one for group in optimizer.param_groups for one in group["params"]]
    return DistributedDataParallel(_Loss(model, loss)), another(optimizer, parameters, ZeroRedundancyOptimizer, optimizer_class=type(optimizer))


@strategy("fsdp", WITHIN, for_ranks=True, shares_batch=True, on_meta=True)
def fsdp(model: nn.Module, reshard: bool = True, mixed: str = "none", offload: bool = False) -> nn.Module:
    """Shards parameters, gradients and the optimizer's state, block by block. https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html

    ``reshard``: frees a block's parameters after forward. ``mixed``: bf16 computes in 16 bits and reduces gradients in 32. ``offload``: shards
    are on the host. On a card the model is made on ``meta``, and materialised when it is sharded.
    """
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard

    precision = chosen("fsdp", "mixed", mixed, {"none": MixedPrecisionPolicy(), "bf16": MixedPrecisionPolicy(torch.bfloat16, torch.float32)})
    for part in [*blocks_of(model), model]:
        fully_shard(
            part,
            mesh=_mesh(model),
            reshard_after_forward=reshard,
            mp_policy=precision,
            offload_policy=CPUOffloadPolicy(pin_memory=device_of(model).type == "cuda") if offload else OffloadPolicy(),
        )
    return materialised(model, torch.device("cpu") if offload else device_of(model))


@strategy("tensor-parallel", WITHIN, for_ranks=True, on_meta=True)
def tensor_parallel(model: nn.Module) -> nn.Module:
    """Splits the layers of each block of a model like Llama. https://docs.pytorch.org/docs/stable/distributed.tensor.parallel.html"""
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    # Rows of the weight, or its columns; what leaves a pair of them is whole on each rank.
    styles: Dict[str, Callable[[], Any]] = {
        **dict.fromkeys(("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"), ColwiseParallel),
        **dict.fromkeys(("o_proj", "down_proj"), RowwiseParallel),
        "embed_tokens": lambda: RowwiseParallel(input_layouts=Replicate()),
        "lm_head": lambda: ColwiseParallel(output_layouts=Replicate()),
    }
    ranks, name = dist.get_world_size(), type(model).__name__
    config: Any = getattr(model, "config", None)
    plan = {}
    for path, one in model.named_modules():
        style = styles.get(path.rpartition(".")[2])
        if style is not None:
            plan[path] = style()
        elif any(inside in path for inside in (".self_attn.", ".mlp.")) and any(True for _ in one.parameters(recurse=False)):
            raise Refused(f"tensor-parallel: there is no plan for {path} of {name}")
    if not any(path.endswith(".q_proj") for path in plan):
        raise Refused(f"tensor-parallel: there is a plan for models like Llama (layers q_proj to down_proj), and {name} is none")
    for what in ("num_attention_heads", "num_key_value_heads", "intermediate_size", "vocab_size"):
        if getattr(config, what, ranks) % ranks:
            raise Refused(f"tensor-parallel: {ranks} ranks do not divide the {getattr(config, what)} of {what}")
    parallelize_module(model, _mesh(model), plan)
    if getattr(config, "tie_word_embeddings", False):
        model.tie_weights()  # type: ignore[operator]
    return materialised(model, device_of(model))


def _mesh(model: nn.Module) -> Any:
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh(device_of(model).type, (dist.get_world_size(),))
