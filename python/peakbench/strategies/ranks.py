"""Training on several ranks: PyTorch's own. A ``mesh`` has the ranks that a strategy goes over, ``size`` of them.

Modules that take a second to import are imported where they are used.
"""

import contextlib
import functools
from typing import Any, Callable, Dict, List, Tuple

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from peakbench._objects import Unsupported
from peakbench.strategies._offer import WITHIN, another, blocks_of, chosen, device_of, every_rank, materialised, strategy


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
def fsdp(model: nn.Module, mesh: Any, size: int = 0, reshard: bool = True, mixed: str = "none", offload: bool = False) -> nn.Module:
    """Shards parameters, gradients and the optimizer's state, block by block. https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html

    ``reshard``: frees a block's parameters after forward; the model's own, beside its blocks, stay, as by default there. ``mixed``: bf16 computes in
    16 bits and reduces gradients in 32. ``offload``: shards are on the host. On a card the model is made on ``meta``, and materialised when it is
    sharded.
    """
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard

    precision = chosen("fsdp", "mixed", mixed, {"none": MixedPrecisionPolicy(), "bf16": MixedPrecisionPolicy(torch.bfloat16, torch.float32)})
    shard: Any = fully_shard if reshard else functools.partial(fully_shard, reshard_after_forward=False)
    for part in [*blocks_of(model), model]:
        shard(
            part,
            mesh=mesh,
            mp_policy=precision,
            offload_policy=CPUOffloadPolicy(pin_memory=device_of(model).type == "cuda") if offload else OffloadPolicy(),
        )
    return materialised(model, torch.device("cpu") if offload else device_of(model))


@strategy("hsdp", WITHIN, for_ranks=True, shares_batch=True, on_meta=True)
def hsdp(model: nn.Module, mesh: Any, size: int = 0, reshard: bool = True, mixed: str = "none", offload: bool = False) -> nn.Module:
    """FSDP over ``size`` ranks, with a copy of the shards on each further group of them: fully_shard over a mesh of two dimensions.

    https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html
    """
    return fsdp(model, mesh, size, reshard, mixed, offload)


@strategy("tensor-parallel", WITHIN, for_ranks=True, on_meta=True)
def tensor_parallel(model: nn.Module, mesh: Any, size: int = 0) -> nn.Module:
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
    ranks, name = mesh.size(), type(model).__name__
    config: Any = getattr(model, "config", None)
    plan = {}
    for path, one in model.named_modules():
        style = styles.get(path.rpartition(".")[2])
        if style is not None:
            plan[path] = style()
        elif any(inside in path for inside in (".self_attn.", ".mlp.")) and any(True for _ in one.parameters(recurse=False)):
            raise Unsupported(f"tensor-parallel: there is no plan for {path} of {name}")
    if not any(path.endswith(".q_proj") for path in plan):
        raise Unsupported(f"tensor-parallel: there is a plan for models like Llama (layers q_proj to down_proj), and {name} is none")
    for what in ("num_attention_heads", "num_key_value_heads", "intermediate_size", "vocab_size"):
        if getattr(config, what, ranks) % ranks:
            raise Unsupported(f"tensor-parallel: {ranks} ranks do not divide the {getattr(config, what)} of {what}")
    parallelize_module(model, mesh, plan)
    if getattr(config, "tie_word_embeddings", False):
        model.tie_weights()  # type: ignore[operator]
    return model


@strategy("context-parallel", WITHIN, for_ranks=True, distinct=every_rank)
def context_parallel(model: nn.Module, optimizer: Optimizer, mesh: Any, size: int = 0) -> Callable[..., Any]:
    """Splits each sequence over the ranks: attention exchanges keys and values. For models of transformers with `input_ids` and `labels`.

    https://docs.pytorch.org/tutorials/unstable/context_parallel.html and
    https://huggingface.co/docs/accelerate/concept_guides/context_parallelism, which shifts labels and leaves out masks in the same way.
    """
    from torch.distributed.tensor.experimental import context_parallel

    attentions = [one for name, one in model.named_modules() if name.endswith("self_attn")]
    if not attentions:
        raise Unsupported(f"context-parallel: {type(model).__name__} has no modules self_attn, as models of transformers have")
    for one in attentions:
        one.register_forward_pre_hook(_without_mask, with_kwargs=True)
    sharded = any(hasattr(one, "full_tensor") for one in model.parameters())  # by FSDP, which averages gradients, too

    def step(loss: Callable[..., Any]) -> Any:
        with contextlib.ExitStack() as until_backward:

            def split(_: nn.Module, given: Tuple[Any, ...], named: Dict[str, Any]) -> Any:
                if given or not {"input_ids", "labels"} <= named.keys() or named.get("attention_mask") is not None:
                    raise Unsupported("context-parallel: the loss calls the model with other than input_ids=... and labels=...")
                ids, labels = named["input_ids"], named["labels"]
                if ids.shape[1] % (2 * mesh.size()):
                    raise Unsupported(f"context-parallel: {ids.shape[1]} tokens are no multiple of {2 * mesh.size()}, twice the ranks")
                parts = {
                    "input_ids": ids.clone(),
                    "shift_labels": nn.functional.pad(labels[:, 1:], (0, 1), value=-100),
                    "position_ids": torch.arange(ids.shape[1], device=ids.device).expand_as(ids).clone(),
                }
                buffers = list(parts.values())
                until_backward.enter_context(
                    context_parallel(mesh, buffers=buffers, buffer_seq_dims=[1] * len(buffers), no_restore_buffers=set(buffers))
                )
                # The loss is the sum over these tokens, of which each rank has some; gradients are averaged.
                tokens = labels.shape[0] * (labels.shape[1] - 1) / mesh.size()
                return (), {**named, **parts, "labels": parts["shift_labels"], "num_items_in_batch": tokens}

            optimizer.zero_grad()
            with model.register_forward_pre_hook(split, with_kwargs=True):
                value = _attended(model, loss)
            value.backward()
        for one in model.parameters():
            if one.grad is not None and not sharded:
                dist.all_reduce(one.grad, dist.ReduceOp.SUM, mesh.get_group())
                one.grad /= mesh.size()
        optimizer.step()
        return value.detach()

    return step


def _without_mask(_: nn.Module, given: Tuple[Any, ...], named: Dict[str, Any]) -> Any:
    """Attention over the parts of a sequence is causal, and takes no other mask."""
    return given, {**named, "attention_mask": None, "is_causal": True}


def _attended(model: nn.Module, loss: Callable[..., Any]) -> Any:
    """The loss, by kernels that PyTorch splits over ranks, as its tutorial chooses them."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    try:
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]):
            return loss()
    except RuntimeError as error:
        if isinstance(error, NotImplementedError) and device_of(model).type == "cpu":  # no rule for the CPU's kernel
            raise Unsupported("context-parallel: PyTorch splits attention on cards alone") from None
        if "No available kernel" in str(error):
            raise Unsupported("context-parallel: PyTorch splits no kernel that takes this attention: try bf16, or autocast") from None
        raise
